# SPDX-License-Identifier: GPL-2.0
"""Pools from Python: tasks, their exceptions, and their end. On any backend."""

import gc
import os
import select
import threading
import time
import unittest
import warnings
import weakref

import twheel

MS = 1_000_000
HOUR = 3600 * 1000 * MS


class Thing:
    """Something that a task refers to"""

    def call(self):
        pass


class Tasks(unittest.TestCase):
    def test_run(self):
        """Pool: tasks are called at their times, in other threads"""
        called, done = [], threading.Event()

        def call(n, at):
            called.append((n, time.monotonic_ns() >= at, threading.get_ident()))
            if len(called) == 100:
                done.set()

        with twheel.Pool(4) as pool:
            for n in range(100):
                pool.start(call, n % 10 * MS, n, time.monotonic_ns() + n % 10 * MS)
            self.assertTrue(done.wait(60))
        self.assertEqual(sorted(n for n, _, _ in called), list(range(100)))
        self.assertTrue(all(late for _, late, _ in called))
        self.assertNotIn(threading.get_ident(), [thread for _, _, thread in called])

    def test_period(self):
        """Pool: a periodic task goes on until it is cancelled, from within too"""
        runs, done = [], threading.Event()

        def call():
            runs.append(time.monotonic_ns())
            if len(runs) == 5:
                task.cancel()
                done.set()

        with twheel.Pool() as pool:
            task = pool.start(call, MS, period=MS)
            self.assertTrue(done.wait(60))
            # Its last run may not be over yet
            task.cancel_wait()
            self.assertFalse(task.cancel_wait())
        self.assertEqual(len(runs), 5)

    def test_cancel(self):
        """Pool: a cancel that is true means that it is not run"""
        with twheel.Pool() as pool:
            called = []
            task = pool.start(called.append, HOUR, 1)
            self.assertEqual((task.function, task.args), (called.append, (1,)))
            self.assertTrue(task.cancel())
            self.assertFalse(task.cancel())
            self.assertRaises(twheel.NoTimer, task.reset, 0)
        self.assertEqual(called, [])

    def test_reset(self):
        """Pool: reset and run_now"""
        with twheel.Pool() as pool:
            first, second = threading.Event(), threading.Event()
            pool.start(first.set, HOUR).reset(MS)
            pool.start(second.set, HOUR).run_now()
            self.assertTrue(first.wait(60) and second.wait(60))

    def test_errors(self):
        """Pool: an exception goes to the handler, which says whether the task goes on"""
        told, done = [], threading.Event()

        def fails(what):
            raise ValueError(what)

        def on_error(task, error):
            told.append((task.args[0], str(error)))
            if len(told) > 5:
                done.set()
            return task.args[0] == "goes on"

        with twheel.Pool(on_error=on_error) as pool:
            pool.start(fails, 0, "ends", period=MS)
            pool.start(fails, MS, "goes on", period=MS)
            self.assertTrue(done.wait(60))
            self.assertEqual(told.count(("ends", "ends")), 1)
            self.assertGreater(told.count(("goes on", "goes on")), 3)

    def test_threads(self):
        """Pool: what a thread keeps for itself is there for its next task"""
        own, seen, done = threading.local(), [], threading.Event()

        def call():
            own.runs = getattr(own, "runs", 0) + 1
            seen.append((threading.current_thread(), own.runs))
            if len(seen) == 20:
                done.set()

        with twheel.Pool(2) as pool:
            task = pool.start(call, 0, period=MS)
            self.assertTrue(done.wait(60))
            task.cancel_wait()
        threads = {thread for thread, _ in seen}
        self.assertLessEqual(len(threads), 2)
        for thread in threads:
            runs = [n for its, n in seen if its is thread]
            self.assertEqual(runs, list(range(1, len(runs) + 1)))

    def test_stop(self):
        """Pool: stop gives the tasks that are not run"""
        pool = twheel.Pool(2)
        tasks = {pool.start(print, HOUR, n) for n in range(100)}
        self.assertEqual(set(pool.stop()), tasks)
        self.assertRaises(twheel.Stopped, pool.start, print, 0)

    def test_queue(self):
        """Pool: without threads it is a delay queue"""
        with twheel.Pool(0) as pool:
            self.assertEqual(pool.take(timeout=0), [])
            tasks = [pool.start(print, n * MS, n) for n in (3, 1, 2)]
            poll = select.poll()
            poll.register(pool, select.POLLIN)
            taken = []
            while len(taken) < 3:
                self.assertTrue(poll.poll(60000))
                taken += pool.take(timeout=0)
            self.assertEqual(set(taken), set(tasks))
            self.assertEqual(pool.take(timeout=0.01), [])

    def test_bad_calls(self):
        """Pool: what makes no sense is refused"""
        with twheel.Pool(capacity=1) as pool:
            for call in (lambda: pool.start(), lambda: pool.start(print),
                         lambda: pool.start(5, 0), lambda: pool.start(print, 0, other=1)):
                self.assertRaises(TypeError, call)
            pool.start(print, HOUR)
            self.assertRaises(twheel.Full, pool.start, print, HOUR)
            self.assertRaises(twheel.Error, pool.fileno)
        self.assertRaises(TypeError, twheel.Pool, 2, on_error=5)


class Memory(unittest.TestCase):
    def descriptors(self):
        return len(os.listdir("/proc/self/fd"))

    def let_go_many(self):
        done = [threading.Event() for _ in range(150)]
        for each in done:
            twheel.Pool().start(each.set, 50 * MS)
        for each in done:
            self.assertTrue(each.wait(60))

    def wait_until_freed(self, before, turn):
        end = time.monotonic() + 30
        while self.descriptors() > before and time.monotonic() < end:
            turn()
        self.assertLessEqual(self.descriptors(), before)

    def test_many_let_go(self):
        """Pool: 150 that nobody holds are freed by the main thread, when it is free again"""
        before = self.descriptors()
        starter = threading.Thread(target=self.let_go_many)
        starter.start()
        starter.join()
        self.wait_until_freed(before, lambda: time.sleep(0.001))

    def test_freed_by_next(self):
        """Pool: those that nobody holds are freed by the next, while the main thread waits"""
        before = self.descriptors()

        def next_ones():
            self.let_go_many()
            self.wait_until_freed(before, lambda: twheel.Pool(0).stop())
            freed.append(True)

        freed = []
        starter = threading.Thread(target=next_ones)
        starter.start()
        starter.join()
        self.assertTrue(freed)

    def test_let_go(self):
        """Pool: what a task refers to is kept while it is armed, and let go after"""
        with twheel.Pool() as pool:
            for end in ("run", "cancel", "stop"):
                thing = Thing()
                done = threading.Event()
                known = weakref.ref(thing)
                task = pool.start(lambda thing=thing: done.set(), 0 if end == "run" else HOUR)
                if end == "run":
                    done.wait(60)
                    task.cancel_wait()
                del thing
                if end != "run":
                    del task
                    gc.collect()
                    self.assertIsNotNone(known())
                if end == "cancel":
                    left, = [each for each in gc.get_objects() if type(each) is twheel.Task]
                    left.cancel()
                    del left
                elif end == "stop":
                    pool.stop()
                task = None
                gc.collect()
                self.assertIsNone(known(), end)

    def test_queue_let_go(self):
        """Pool: delay queues that nobody holds are collected, with a warning, and their tasks"""
        before = self.descriptors()
        thing = Thing()
        known = weakref.ref(thing)
        held = twheel.Pool(0).start(print, HOUR)
        for n in range(50):
            queue = twheel.Pool(0)
            queue.start(thing.call, HOUR)
            queue.start(print, HOUR, queue)
            queue.start(print, HOUR).cancel()
            queue.start(print, 0)
            if n % 2:
                queue.take()
        del queue, thing
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            gc.collect()
        self.assertEqual([each.category for each in caught], [ResourceWarning] * 50)
        # The warnings have the pools.
        caught.clear()
        gc.collect()
        self.assertIsNone(known())
        # Who has a task may still cancel it. (What earlier tests had may have gone meanwhile.)
        with_held = self.descriptors()
        self.assertTrue(held.cancel())
        del held
        gc.collect()
        self.assertLess(self.descriptors(), with_held)
        self.assertLessEqual(self.descriptors(), before)

    def test_queue_held(self):
        """Pool: a delay queue that is held keeps its tasks, whatever else is collected"""
        with twheel.Pool(0) as queue:
            for n in range(100):
                queue.start(print, MS, n)
            taker = threading.Thread(target=lambda: taken.extend(queue.take(timeout=60)))
            taken = []
            taker.start()
            while taker.is_alive():
                gc.collect()
            gc.collect()
            while len(taken) < 100:
                taken += queue.take(timeout=60)
            self.assertEqual(sorted(task.args[0] for task in taken), list(range(100)))

    def test_pool_of_tasks(self):
        """Pool: a pool that nobody holds ends when its last task has run, in a worker too"""
        for _ in range(50):
            done = threading.Event()
            pool = twheel.Pool(2)
            pool.start(done.set, 2 * MS)
            del pool
            self.assertTrue(done.wait(60))
