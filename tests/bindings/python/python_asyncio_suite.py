# SPDX-License-Identifier: GPL-2.0
"""
asyncio's own tests, on our loop: wherever they make a loop, they make one of these.

Python's package of tests has to be there (test.test_asyncio). Those are taken that make
loops of their own; what a test says of the class of a loop by name is not meant for us.
"""

import asyncio
import asyncio.unix_events
import sys
import unittest

import tap
import twheel.asyncio

MODULES = ("base_events", "events", "locks", "queues", "runners", "server", "sock_lowlevel",
           "streams", "taskgroups", "timeouts", "unix_events",
           "waitfor")


def wrong(name):
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromName(f"test.test_asyncio.test_{name}").run(result)
    if not result.testsRun:
        return "there are none"
    return "\n".join(f"{text}in {test}" for test, text in result.failures + result.errors)


def main():
    if sys.argv[1:] != ["theirs"]:
        asyncio.SelectorEventLoop = twheel.asyncio.EventLoop
        asyncio.unix_events.SelectorEventLoop = twheel.asyncio.EventLoop
        # Python 3.13 has this name for it, too.
        asyncio.EventLoop = twheel.asyncio.EventLoop
        asyncio.DefaultEventLoopPolicy._loop_factory = twheel.asyncio.EventLoop
        assert type(asyncio.new_event_loop()) is twheel.asyncio.EventLoop
    tap.run([(name, lambda name=name: wrong(name)) for name in MODULES])


# A process that a test starts imports this file.
if __name__ == "__main__":
    main()
