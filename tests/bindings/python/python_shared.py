# SPDX-License-Identifier: GPL-2.0
"""Shared timers from Python, which take the module."""

import array
import os
import select
import time
import unittest

import twheel
import twheel.asyncio

SEC = 10**9
NR = 10000


class Shared(unittest.TestCase):
    def setUp(self):
        self.wheel = twheel.Wheel(shared=NR)
        self.addCleanup(self.wheel.close)

    def take(self, nr):
        poll = select.poll()
        poll.register(self.wheel, select.POLLIN)
        taken = []
        while len(taken) < nr:
            self.assertTrue(poll.poll(60000))
            taken += self.wheel.shared_take()
        return sorted(taken)

    def test_states(self):
        """Shared timers: arm, push ahead, cancel"""
        later = self.wheel.now() + 3600 * SEC
        self.assertEqual(self.wheel.shared, NR)
        self.assertEqual(self.wheel.shared_arm(5, later), twheel.NONE)
        self.assertEqual(self.wheel.shared_arm(5, later + SEC), twheel.PENDING)
        self.assertEqual(self.wheel.shared_cancel(5), twheel.PENDING)
        self.assertEqual(self.wheel.shared_cancel(5), twheel.NONE)
        for n in (1, 2, 3):
            self.wheel.shared_arm(n, 1)
        while self.wheel.info()["ready"] < 3:
            time.sleep(0.001)
        self.assertEqual(self.wheel.shared_cancel(1), twheel.READY)
        self.assertEqual(self.wheel.shared_arm(2, later), twheel.READY)
        event, = self.wheel.read(timeout=60)
        self.assertEqual((event.user_data, event.deadline), (3, 1))
        self.assertEqual(self.wheel.shared_take(), [])

    def test_expire(self):
        """Shared timers: those that are due are taken, each once, none that was cancelled"""
        now = self.wheel.now()
        self.wheel.shared_arm_many(0, array.array("Q", [now + 20_000_000] * NR))
        for n in range(0, NR, 2):
            self.wheel.shared_cancel(n)
        self.assertEqual(self.take(NR // 2), list(range(1, NR, 2)))
        self.assertEqual(self.wheel.shared_take(), [])

    def test_take_into(self):
        """Shared timers: numbers are taken into a buffer"""
        buffer = array.array("I", [0] * 64)
        self.wheel.shared_arm(9, self.wheel.now())
        while not self.wheel.shared_take_into(buffer):
            select.select([self.wheel], [], [], 60)
        self.assertEqual(buffer[0], 9)

    def test_numbers(self):
        """Shared timers: a number that there is not is refused"""
        self.assertRaises(IndexError, self.wheel.shared_arm, NR, 0)
        self.assertRaises(IndexError, self.wheel.shared_cancel, 1 << 40)
        self.assertRaises(IndexError, self.wheel.shared_arm_many, NR - 1, bytes(16))
        self.assertRaises(IndexError, self.wheel.shared_arm_many, -1, bytes(8))
        self.assertRaises(OverflowError, self.wheel.shared_arm, -1, 0)

    def test_recover(self):
        """Shared timers: another wheel of the same descriptor takes over"""
        self.wheel.shared_arm(3, self.wheel.now() + 10_000_000)
        self.wheel.shared_arm(4, 1)
        other = twheel.Wheel.from_fd(os.dup(self.wheel.fileno()))
        self.wheel.close()
        self.wheel = other
        other.shared_recover()
        self.assertEqual(self.take(2), [3, 4])

    def test_closed(self):
        """Shared timers: a wheel that was closed has none"""
        self.wheel.close()
        self.assertRaises(ValueError, self.wheel.shared_arm, 0, 0)
        self.assertRaises(ValueError, self.wheel.shared_take)

    def test_foreign(self):
        """Shared timers: expiries that others armed are not taken for a loop's own"""
        for shared in (0, 100):
            timers = twheel.Timers(shared=shared)
            for n in range(2 * shared + 2):
                timers.add(time.monotonic() + 3600, n)
            with twheel.Wheel.from_fd(os.dup(timers.fileno())) as other:
                for number in (0, 1, shared + 1, 1000, 1 << 31, (1 << 32) + 1, (1 << 64) - 1):
                    other.arm(0, number)
                while other.info()["ready"] < 7:
                    time.sleep(0.001)
                self.assertEqual(timers.due(), [])
                self.assertEqual((len(timers), other.info()["ready"]), (2 * shared + 2, 0))
                timers.close()

    def test_loop(self):
        """Shared timers: the event loop uses them, and ordinary ones beyond"""
        loop = twheel.asyncio.EventLoop(timers=100)
        self.addCleanup(loop.close)
        self.assertEqual(loop.timer_backend, "shared")
        called = []
        for n in range(1000):
            loop.call_later(n % 10 / 1000, called.append, n)
        loop.call_later(0.05, loop.stop)
        loop.run_forever()
        self.assertEqual(sorted(called), list(range(1000)))
