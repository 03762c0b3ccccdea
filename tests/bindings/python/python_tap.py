# SPDX-License-Identifier: GPL-2.0
"""unittest's results as lines of TAP without numbers: python_tap.py FILE..."""

import importlib
import sys
import unittest


def say(text):
    for line in str(text).rstrip().splitlines():
        print("#", line)


class Result(unittest.TestResult):
    """One line for each test, by the first line of its text"""

    def name(self, test):
        return test.shortDescription() or test.id()

    def addSuccess(self, test):
        print("ok -", self.name(test), flush=True)

    def addError(self, test, err):
        super().addError(test, err)
        self.fail(test)

    def addFailure(self, test, err):
        super().addFailure(test, err)
        self.fail(test)

    def fail(self, test):
        say((self.failures + self.errors)[-1][1])
        print("not ok -", test.id() if not hasattr(test, "_testMethodName") else self.name(test),
              flush=True)

    def addSkip(self, test, reason):
        print("ok -", self.name(test), "# SKIP", reason, flush=True)


def main():
    result, suite = Result(), unittest.TestSuite()
    for name in sys.argv[1:]:
        module = importlib.import_module(name)
        suite.addTests(unittest.defaultTestLoader.loadTestsFromModule(module))
    print("@planned", suite.countTestCases(), flush=True)
    suite.run(result)
    sys.exit(not result.wasSuccessful())


if __name__ == "__main__":
    main()
