# SPDX-License-Identifier: GPL-2.0
"""unittest's results as TAP: python_tap.py FILE..."""

import sys
import unittest

import tap


def each(suite):
    for test in suite:
        yield from each(test) if isinstance(test, unittest.TestSuite) else (test,)


def wrong(test):
    result = unittest.TestResult()
    test.run(result)
    for _, reason in result.skipped:
        raise tap.Skip(reason)
    return "\n".join(text for _, text in result.failures + result.errors)


def main():
    tests = each(unittest.defaultTestLoader.loadTestsFromNames(sys.argv[1:]))
    tap.run([(test.shortDescription() or test.id(), lambda test=test: wrong(test))
             for test in tests])


if __name__ == "__main__":
    main()
