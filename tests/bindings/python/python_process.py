# SPDX-License-Identifier: GPL-2.0
"""Processes: fork(2), and how Python ends with all kinds of things left."""

import os
import subprocess
import sys
import threading
import time
import unittest

import twheel
import twheel.asyncio

try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters

LEFT = """
import asyncio, sys, threading, time
import twheel, twheel.asyncio
"""


class Fork(unittest.TestCase):
    def test_child(self):
        """Processes: a child of fork(2) says what it has not, and opens its own"""
        wheel = twheel.Wheel(backend="user")
        pool = twheel.Pool(2, backend="user")
        pool.start(print, 3600 * 10**9)

        def in_child():
            nonlocal pool
            for call in (lambda: wheel.arm(0), lambda: pool.start(print, 0), pool.stop):
                try:
                    call()
                except twheel.Error as error:
                    assert error.errno == 9 and "fork" in str(error), error
                else:
                    raise AssertionError("it was there")
            wheel.close()
            with twheel.Wheel(backend="user") as other:
                other.arm(1000000, 5)
                assert other.read(timeout=60)[0].user_data == 5
            del pool

        self.child(in_child)
        wheel.arm(0, 1)
        self.assertEqual(wheel.read(timeout=60)[0].user_data, 1)
        self.assertEqual(len(pool.stop()), 1)

    def child(self, do):
        """Have a child do that, and end without an exception"""
        child = os.fork()
        if not child:
            status = 1
            try:
                do()
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)

    def test_loop(self):
        """Processes: a child that closes a loop, or lets it go, leaves the parent's alone"""
        for let_go in (twheel.asyncio.EventLoop.close, twheel.asyncio.EventLoop.__del__):
            loop = twheel.asyncio.EventLoop()
            loop.call_later(0.01, print)
            self.child(lambda: let_go(loop))
            self.assertTrue(loop._selector.select(60), "the timer does not wake the loop")
            # Nor is what threads wake it by gone
            loop._timers.close()
            loop._write_to_self()
            self.assertTrue(loop._selector.select(60), "threads do not wake the loop")
            loop._timers = twheel.Timers()
            loop.close()

    def test_close_beside_reader(self):
        """Processes: a child that closes a wheel leaves the parent's readers alone"""
        began = time.process_time()
        with twheel.Wheel() as wheel:
            reader = threading.Thread(target=wheel.read, kwargs={"timeout": 2}, daemon=True)
            reader.start()
            time.sleep(0.1)
            self.child(wheel.close)
            reader.join(60)
            self.assertFalse(reader.is_alive(), "the reader waits for longer than its time")
            self.assertLess(time.process_time() - began, 1, "the reader turns round and round")

    def test_close_in_child(self):
        """Processes: a child that closes a wheel ends its own readers"""
        def in_child():
            ended = []

            def read():
                try:
                    wheel.read()
                except (twheel.Error, ValueError) as error:
                    ended.append(error)

            reader = threading.Thread(target=read, daemon=True)
            reader.start()
            time.sleep(0.1)
            wheel.close()
            reader.join(60)
            assert len(ended) == 1, ended

        with twheel.Wheel() as wheel:
            other = threading.Thread(target=wheel.read, kwargs={"timeout": 0.5}, daemon=True)
            other.start()
            time.sleep(0.1)
            self.child(in_child)
            other.join(60)
            self.assertFalse(other.is_alive())

    def test_timers(self):
        """Processes: in a child, timers of the parent's are refused"""
        timers = twheel.Timers()
        token = timers.add(time.monotonic() + 0.01, "mine")
        self.assertFalse(timers.inherited)

        def in_child():
            assert timers.inherited
            time.sleep(0.05)
            for call in (timers.due, lambda: timers.cancel(token), lambda: timers.add(0, "his")):
                try:
                    call()
                except twheel.Error as error:
                    assert error.errno == 9, error
                else:
                    raise AssertionError("it was there")
            timers.close()

        self.child(in_child)
        self.assertEqual(timers.due(), ["mine"])


class End(unittest.TestCase):
    def end(self, program, said=""):
        done = subprocess.run([sys.executable, "-X", "dev", "-c", LEFT + program], timeout=120,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, said, ""))

    def test_pool(self):
        """Processes: Python ends with a pool that runs tasks"""
        self.end("""
pool = twheel.Pool(4)
ran = threading.Event()
for n in range(100):
    pool.start(ran.set, 0, period=1000000)
pool.start(print, 3600 * 10**9)
ran.wait()
print("end")
""", "end\n")

    def test_no_task_after(self):
        """Processes: no task is called any more when Python ends"""
        self.end("""
import atexit, importlib, os

calls = []
def check():
    # Called after what twheel has Python call then
    before = len(calls)
    time.sleep(0.05)
    print("called before the end:", before > 0, "- after it:", len(calls) - before)

atexit.unregister(twheel._twheel.stop_pools)
atexit.register(check)
importlib.reload(twheel)
pool = twheel.Pool(2)
for n in range(10):
    pool.start(calls.append, 0, n, period=1000000)
while not calls:
    time.sleep(0.001)
""", "called before the end: True - after it: 0\n")

    def test_pool_in_circle(self):
        """Processes: Python ends with a pool that its own handler refers to"""
        self.end("""
pools = []
for n in range(10):
    pools.append(twheel.Pool(2, on_error=lambda task, error: pools))
    pools[-1].start(lambda: 1 / 0, 0, period=1000000)
time.sleep(0.05)
""")

    def test_loop(self):
        """Processes: Python ends with a loop that has timers, and was closed"""
        self.end("""
loop = twheel.asyncio.EventLoop()
for n in range(1000):
    loop.call_later(n * 100, print)
loop.call_later(0.01, loop.stop)
loop.run_forever()
loop.close()
wheel = twheel.Wheel()
timers = twheel.Timers()
timers.add(time.monotonic() + 5, timers)
""", "\n")

    def test_no_loop(self):
        """Processes: a loop that could not be made is not closed"""
        self.end("""
import errno, unittest.mock
def none(*args):
    raise OSError(errno.EMFILE, "no more")
for options in ({"backend": "other"}, {}):
    with unittest.mock.patch("socket.socketpair", none):
        try:
            twheel.asyncio.EventLoop(**options)
        except (ValueError, OSError) as error:
            print(type(error).__name__)
""", "ValueError\nOSError\n")

    def test_daemon(self):
        """Processes: Python ends while a daemon thread reads"""
        self.end("""
wheel = twheel.Wheel()
threading.Thread(target=wheel.read, daemon=True).start()
time.sleep(0.05)
""")

    def test_interrupt(self):
        """Processes: a signal's handler ends the waiting by its exception"""
        self.end("""
import signal
class Enough(Exception):
    pass
def handler(number, frame):
    raise Enough
signal.signal(signal.SIGALRM, handler)
def stop():
    pool = twheel.Pool(2)
    pool.start(len, 10**6, (), period=10**6)
    task = pool.start(print, 3600 * 10**9)
    try:
        pool.stop(run_periodic=True)
    finally:
        print(pool.stop().count(task))
def slow():
    begun.set()
    over.wait()
def leave():
    over.clear()
    with twheel.Pool() as pool:
        pool.start(slow, 0)
        begun.wait()
begun, over = threading.Event(), threading.Event()
for wait in (lambda: twheel.Wheel().read(), lambda: twheel.Pool(0).take(), stop, leave):
    # Once more, if it comes before the waiting: a pool then waits as it is left.
    signal.setitimer(signal.ITIMER_REAL, 0.05, 2)
    try:
        wait()
    except Enough:
        signal.setitimer(signal.ITIMER_REAL, 0)
        print("enough")
    over.set()
""", "enough\nenough\n1\nenough\nenough\n")

    def test_last_of_a_thread(self):
        """Processes: what a thread keeps ends with it, and may use the pool"""
        self.end("""
class Last:
    def __init__(self, task):
        self.task = task
    def __del__(self):
        self.task.cancel()
        self.pool = None
local = threading.local()
def keep():
    local.last = Last(pool.start(print, 3600 * 10**9))
    local.pool = pool
    ran.release()
for n in range(50):
    ran = threading.Semaphore(0)
    pool = twheel.Pool(2)
    for m in range(4):
        pool.start(keep, 0)
    for m in range(4):
        ran.acquire()
    pool.stop()
    pool = None
with open("/proc/self/maps") as maps:
    print(len(maps.readlines()) < 2000)
""", "True\n")

    def test_subinterpreter(self):
        """Processes: another interpreter of the process is refused"""
        # By the module, or from Python 3.13 on by Python itself
        self.end(f"""
import {interpreters.__name__} as interpreters
pool = twheel.Pool()
other = interpreters.create()
interpreters.run_string(other, '''
try:
    import twheel
except ImportError as error:
    print(str(error) in ("twheel works in the main interpreter only", "module twheel._twheel "
                         "does not support loading in subinterpreters"), flush=True)
''')
interpreters.destroy(other)
ran = threading.Event()
pool.start(ran.set, 0)
ran.wait()
""", "True\n")
