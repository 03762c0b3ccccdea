# SPDX-License-Identifier: GPL-2.0
"""
asyncio's own tests, on our loop: wherever they make a loop, they make one of these.

Python's package of tests has to be there (test.test_asyncio). Those are taken that make
loops of their own; what a test says of the class of a loop by name is not meant for us.
"""

import asyncio
import asyncio.unix_events
import importlib
import sys
import unittest

import twheel.asyncio

import python_tap

MODULES = ("base_events", "events", "locks", "queues", "runners", "server", "sock_lowlevel",
           "streams", "taskgroups", "timeouts", "unix_events",
           "waitfor")


def run(name, result):
    module = importlib.import_module(f"test.test_asyncio.test_{name}")
    suite = unittest.defaultTestLoader.loadTestsFromModule(module)
    nr = suite.countTestCases()
    suite.run(result)
    return nr


def main():
    if sys.argv[1:] != ["theirs"]:
        asyncio.SelectorEventLoop = twheel.asyncio.EventLoop
        asyncio.unix_events.SelectorEventLoop = twheel.asyncio.EventLoop
        # Python 3.13 has this name for it, too.
        asyncio.EventLoop = twheel.asyncio.EventLoop
        asyncio.DefaultEventLoopPolicy._loop_factory = twheel.asyncio.EventLoop
        assert type(asyncio.new_event_loop()) is twheel.asyncio.EventLoop
    for name in MODULES:
        result = unittest.TestResult()
        nr = run(name, result)
        for test, text in result.failures + result.errors:
            python_tap.say(text)
            print("# failed:", test)
        good = nr and result.wasSuccessful()
        print("ok" if good else "not ok", f"- asyncio's own tests of {name}: {nr},",
              f"{len(result.skipped)} of them skipped by themselves", flush=True)


# A process that a test starts imports this file.
if __name__ == "__main__":
    main()
