# SPDX-License-Identifier: GPL-2.0
#
# TAP of tests in Python.

import sys
import traceback


class Skip(Exception):
    '''A test can't be done here, as this says.'''


def caught(test, *args):
    '''What a test raises, as text; None if all is well'''
    try:
        test(*args)
    except Skip:
        raise
    except Exception:  # pylint: disable=broad-except
        return traceback.format_exc(limit=-3)
    return None


def run(tests):
    '''Names, and functions that give what is wrong, or nothing'''
    failed = False
    print('TAP version 13\n1..%d' % len(tests))
    for number, (name, test) in enumerate(tests, 1):
        why, skip = None, ''
        try:
            why = test()
        except Skip as reason:
            skip = ' # SKIP %s' % reason
        failed = failed or bool(why)
        print('%s %d - %s%s' % ('not ok' if why else 'ok', number, name, skip))
        for line in (why or '').splitlines():
            print('#', line)
        sys.stdout.flush()
    sys.exit(failed)
