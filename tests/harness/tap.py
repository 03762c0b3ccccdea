# SPDX-License-Identifier: GPL-2.0
#
# TAP of tests in Python.

import sys
import traceback


def caught(test, *args):
    '''What a test raises, as text; None if all is well'''
    try:
        test(*args)
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc(limit=-3)
    return None


def run(tests):
    '''Names, and functions that give what is wrong, or nothing'''
    failed = False
    print('TAP version 13\n1..%d' % len(tests))
    for number, (name, test) in enumerate(tests, 1):
        why = test()
        failed = failed or bool(why)
        print('%s %d - %s' % ('not ok' if why else 'ok', number, name))
        for line in (why or '').splitlines():
            print('#', line)
        sys.stdout.flush()
    sys.exit(failed)
