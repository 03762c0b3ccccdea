# SPDX-License-Identifier: GPL-2.0
"""
The event loop for asyncio: handles, their order, and their memory. On any backend. (What any
loop of asyncio does, its own tests say: see python_asyncio_suite.py.)
"""

import asyncio
import gc
import random
import time
import unittest
import weakref

import twheel.asyncio


class Thing:
    """Something that a callback refers to"""

    def call(self):
        pass


def with_clock(kind, seed):
    """What a loop of that kind calls whose clock is replaced, by which program it is at random"""
    rnd = random.Random(seed)
    at, called, handles = 1000.0, [], []

    class Replaced(kind):
        def time(self):
            return at

    loop = Replaced() if seed % 2 else kind()
    if not seed % 2:
        loop.time = lambda: at
    for n in range(200):
        action = rnd.randrange(4)
        if action == 0 and handles:
            handles.pop(rnd.randrange(len(handles))).cancel()
        elif action == 1:
            handles.append(loop.call_at(1000 + rnd.randrange(100), called.append, n))
        else:
            handles.append(loop.call_later(rnd.randrange(1, 50), called.append, n))
        if rnd.randrange(4) == 0:
            at += rnd.randrange(10)
            for _ in range(2):
                loop.call_soon(loop.stop)
                loop.run_forever()
            called.append(f"at {at}")
    loop.close()
    return called


class Loop(unittest.TestCase):
    def setUp(self):
        self.loop = twheel.asyncio.EventLoop()
        self.addCleanup(self.loop.close)

    def run_for(self, seconds):
        self.loop.call_later(seconds, self.loop.stop)
        self.loop.run_forever()

    def test_order(self):
        """asyncio: callbacks that are due together come in the order of their times"""
        called, times = [], []

        # Some are due when they are scheduled, the others as soon as the loop looks
        def begin():
            start = self.loop.time() + 0.01
            times.extend(start + n / 1e6 for n in range(5000))
            for when in random.sample(times, len(times)):
                self.loop.call_at(when, called.append, when)
            time.sleep(max(0, times[-1] + 0.01 - self.loop.time()))
            for when in random.sample(range(-100, 0), 100):
                self.loop.call_at(when, called.append, when)

        self.loop.call_soon(begin)
        self.loop.call_soon(self.loop.call_later, 0.05, self.loop.stop)
        self.loop.run_forever()
        self.assertEqual(called, [*range(-100, 0), *times])

    def test_clock(self):
        """asyncio: a loop whose clock is replaced runs what is due by that, as asyncio's own"""
        for seed in range(20):
            theirs = with_clock(asyncio.SelectorEventLoop, seed)
            self.assertGreater(len(theirs), 50)
            self.assertEqual(with_clock(twheel.asyncio.EventLoop, seed), theirs)

    def test_cancel(self):
        """asyncio: a handle that was cancelled is not called, also one that is due"""
        called = []
        handles = [self.loop.call_later(n % 5 / 1000, called.append, n) for n in range(1000)]
        for handle in handles[::2]:
            handle.cancel()
            handle.cancel()
            self.assertTrue(handle.cancelled())
        time.sleep(0.02)

        def cancel_others():
            for handle in handles[1::4]:
                handle.cancel()

        self.loop.call_soon(cancel_others)
        self.run_for(0.02)
        self.assertEqual(sorted(called), list(range(3, 1000, 4)))

    def test_cancelled_is_gone(self):
        """asyncio: what was cancelled takes no place in the wheel"""
        handles = [self.loop.call_later(3600, print) for _ in range(1000)]
        self.assertEqual(len(self.loop._timers), 1000)
        for handle in handles:
            handle.cancel()
        self.assertEqual(len(self.loop._timers), 0)

    def test_handle(self):
        """asyncio: a handle is as asyncio's own: when, repr, comparison, after its call"""
        when = self.loop.time() + 0.01
        handle = self.loop.call_at(when, print)
        self.assertIsInstance(handle, asyncio.TimerHandle)
        self.assertEqual(handle.when(), when)
        self.assertIn("TimerHandle when=", repr(handle))
        self.assertLess(handle, self.loop.call_at(when + 1, print))
        self.run_for(0.02)
        handle.cancel()
        self.assertTrue(handle.cancelled())

    def test_bad_calls(self):
        """asyncio: what asyncio refuses is refused"""
        self.assertRaises(TypeError, self.loop.call_later, None, print)
        self.assertRaises(TypeError, self.loop.call_at, None, print)
        self.loop.close()
        self.assertRaises(RuntimeError, self.loop.call_later, 1, print)

    def test_traceback(self):
        """asyncio: in debug mode a handle knows who made it"""
        self.loop.set_debug(True)
        for handle in (self.loop.call_later(1, print),
                       self.loop.call_at(self.loop.time() + 1, print)):
            self.assertEqual(handle._source_traceback[-1].name, "test_traceback")

    def test_far_away(self):
        """asyncio: times that are far away, or for ever"""
        for when in (1e6, 1e12, float("inf")):
            self.loop.call_later(when, print).cancel()
            self.loop.call_later(when, print)
        self.run_for(0.005)

    def test_random(self):
        """asyncio: a random program does the same as on asyncio's own loop, and nothing is early"""
        for seed in range(5):
            results = []
            for loop in (twheel.asyncio.EventLoop(), asyncio.SelectorEventLoop()):
                results.append(self.random_program(loop, seed))
                loop.close()
            self.assertEqual(*results)

    def random_program(self, loop, seed):
        """Callbacks that start and cancel others: what was called, and what was cancelled"""
        numbers, handles, called = random.Random(seed), {}, []
        start, pending, early = loop.time(), set(), []

        def call(name, depth):
            called.append(name)
            if loop.time() < handles[name].when():
                early.append(name)
            if depth:
                begin((*name, 0), depth - 1)
                begin((*name, 1), 0)
                cancel((*name, 1))
            pending.discard(name)
            if not pending:
                loop.stop()

        def begin(name, depth):
            # Times that are apart by more than both loops round
            when = start + 0.004 * ((name[0] + 31 * len(name)) % 97)
            handles[name] = loop.call_at(when, call, name, depth)
            pending.add(name)

        def cancel(name):
            handles[name].cancel()
            pending.discard(name)

        for n in range(1, 400):
            begin((n,), 2)
        for n in numbers.sample(range(1, 400), 200):
            cancel((n,))
        loop.run_forever()
        self.assertEqual(len(called), len(set(called)))
        # (asyncio's own loop takes what is early by less than its clock can tell for due.)
        if isinstance(loop, twheel.asyncio.EventLoop):
            self.assertEqual(early, [])
        return sorted(called), sorted(n for n, handle in handles.items() if handle.cancelled())


class Memory(unittest.TestCase):
    def kept(self, end):
        loop = twheel.asyncio.EventLoop()
        thing = Thing()
        known = weakref.ref(thing)
        handle = loop.call_later(0.001 if end == "call" else 3600, thing.call)
        del thing
        gc.collect()
        self.assertIsNotNone(known())
        if end == "cancel":
            handle.cancel()
        elif end == "call":
            loop.call_later(0.01, loop.stop)
            loop.run_forever()
        del handle
        if end == "close":
            loop.close()
        gc.collect()
        self.assertIsNone(known(), end)
        loop.close()

    def test_let_go(self):
        """asyncio: what a callback refers to is kept until it was called, cancelled, closed"""
        for end in ("call", "cancel", "close"):
            self.kept(end)

    def test_circle(self):
        """asyncio: a loop that its own timers refer to is collected"""
        loop = twheel.asyncio.EventLoop()
        loop.call_later(3600, loop.stop)
        known = weakref.ref(loop)
        loop.close()
        del loop
        gc.collect()
        self.assertIsNone(known())

    def test_pending_at_close(self):
        """asyncio: to close a loop with 10,000 pending timers and a task"""
        loop = twheel.asyncio.EventLoop()
        for n in range(10000):
            loop.call_later(n, print)
        loop.close()
        loop.close()
        self.assertTrue(loop.is_closed())

    def test_timers(self):
        """Timers: tokens that were used up, objects that close them as they end"""
        timers = twheel.Timers()
        token = timers.add(time.monotonic() + 3600, "a")
        self.assertTrue(timers.cancel(token))
        self.assertFalse(timers.cancel(token))
        other = timers.add(0, "b")
        self.assertFalse(timers.cancel(token), "the slot is the same, the timer another")
        self.assertEqual((len(timers), timers.due(), len(timers)), (1, ["b"], 0))
        self.assertFalse(timers.cancel(other))
        self.assertFalse(timers.cancel(1 << 40))
        self.assertRaises(ValueError, timers.add, float("nan"), "c")

        class Closes:
            def __del__(self):
                timers.close()

        timers.add(time.monotonic() + 3600, "d")
        timers.cancel(timers.add(time.monotonic() + 3600, Closes()))
        self.assertRaises(ValueError, timers.add, 0, "e")
        self.assertEqual(timers.due(), [])

    def test_many(self):
        """Timers: memory of cancelled ones is used again"""
        with twheel.Wheel() as wheel:
            self.assertEqual(wheel.info()["pending"], 0)
        timers = twheel.Timers()
        for _ in range(20):
            tokens = [timers.add(time.monotonic() + 3600, n) for n in range(1000)]
            for token in tokens:
                timers.cancel(token)
        self.assertEqual(max(token & 0xffffffff for token in tokens), 999)
