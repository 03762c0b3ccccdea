# SPDX-License-Identifier: GPL-2.0
"""A wheel from Python: single timers, batches, reading, errors. On any backend."""

import array
import os
import struct
import threading
import time
import unittest

import twheel

SEC = 10**9
HOUR = 3600 * SEC
EVENT = struct.Struct("=QQQII")
OP = struct.Struct("=BBHiQQQQQQQ")


class Case(unittest.TestCase):
    def setUp(self):
        self.wheel = twheel.Wheel()
        self.addCleanup(self.wheel.close)

    def pending(self):
        return self.wheel.info()["pending"]


class Single(Case):
    def test_expires(self):
        """Wheel: a timer expires once, not early, with its data"""
        before = self.wheel.now()
        number = self.wheel.arm(20_000_000, 42)
        event, = self.wheel.read(timeout=60)
        self.assertEqual((event.user_data, event.id), (42, number))
        self.assertGreaterEqual(event.deadline, before + 20_000_000)
        self.assertGreaterEqual(self.wheel.now(), event.deadline)
        self.assertEqual(self.wheel.read(timeout=0), [])

    def test_modify_query_cancel(self):
        """Wheel: modify, query, cancel"""
        number = self.wheel.arm(self.wheel.now() + HOUR, 1, absolute=True, slack=SEC)
        self.assertEqual(self.wheel.modify(number, HOUR, 2, interval=HOUR), twheel.PENDING)
        timer = self.wheel.query(number)
        self.assertEqual((timer.id, timer.user_data, timer.interval, timer.state),
                         (number, 2, HOUR, twheel.PENDING))
        self.wheel.cancel(number)
        self.assertEqual(self.pending(), 0)

    def test_periodic(self):
        """Wheel: a periodic timer goes on, and counts what was missed"""
        self.wheel.arm(1_000_000, interval=1_000_000)
        periods = 0
        while periods < 20:
            # (More than one, if the next period is over before the read is.)
            events = self.wheel.read(timeout=60)
            self.assertTrue(events, "no period was over within a minute")
            for event in events:
                self.assertEqual(event.flags, twheel.EVENT_PERIODIC)
                periods += 1 + event.overrun

    def test_errors(self):
        """Wheel: errors are OSErrors that say what to do"""
        with self.assertRaisesRegex(twheel.NoTimer, "expired, was cancelled") as caught:
            self.wheel.cancel(77)
        self.assertIsInstance(caught.exception, OSError)
        self.assertEqual(caught.exception.errno, 2)
        for call in (lambda: self.wheel.modify(77, 0), lambda: self.wheel.query(77)):
            self.assertRaises(twheel.NoTimer, call)
        with self.assertRaisesRegex(twheel.Error, "2\\^63"):
            self.wheel.arm(1 << 63)
        self.assertRaises(TypeError, self.wheel.arm, 0.5)
        self.assertRaises(TypeError, self.wheel.arm)
        self.assertRaises(ValueError, twheel.Wheel, backend="other")
        with twheel.Wheel(limit=1) as small:
            small.arm(HOUR)
            with self.assertRaisesRegex(twheel.Full, "limit"):
                small.arm(HOUR)
        with self.assertRaisesRegex(ValueError, "no shared timers"):
            self.wheel.shared_arm(0, 0)
        self.assertRaises(TypeError, twheel.Task)

    def test_too_big(self):
        """Wheel: integers that don't fit are refused, not cut off"""
        big, words = 1 << 64, array.array("Q", [HOUR])
        number = self.wheel.arm(HOUR)
        for call in (lambda n: self.wheel.arm(n), lambda n: self.wheel.arm(0, n),
                     lambda n: self.wheel.arm(0, interval=n),
                     lambda n: self.wheel.arm(0, slack=n), lambda n: self.wheel.arm(0, jitter=n),
                     lambda n: self.wheel.modify(n, HOUR),
                     lambda n: self.wheel.modify(number, n),
                     lambda n: self.wheel.cancel(n), lambda n: self.wheel.query(n),
                     lambda n: self.wheel.arm_many(words, interval=n),
                     lambda n: self.wheel.arm_many(words, slack=n),
                     lambda n: self.wheel.arm_many(words, jitter=n),
                     lambda n: twheel.Wheel(tick=n), lambda n: twheel.Wheel(limit=n),
                     lambda n: twheel.Timers(tick=n), lambda n: twheel.Pool(tick=n),
                     lambda n: self.wheel.read(n, 0), lambda n: self.wheel.drain(n)):
            self.assertRaises(OverflowError, call, big + number)
            self.assertRaises(OverflowError, call, -1)
        with twheel.Pool() as pool:
            self.assertRaises(OverflowError, pool.start, print, 0, period=big)
        for call in (lambda n: twheel.Wheel(clock=n), lambda n: twheel.Wheel(shared=n),
                     lambda n: twheel.Pool(n), lambda n: twheel.Pool(capacity=n),
                     lambda n: self.wheel.read(n, 0), lambda n: self.wheel.drain(n)):
            self.assertRaises(OverflowError, call, (1 << 32) + 1)
        self.assertEqual(self.pending(), 1)
        self.wheel.cancel(self.wheel.arm(HOUR, big - 1))

    def test_clocks(self):
        """Wheel: each clock, and a tick of one's own"""
        for clock, name in ((twheel.MONOTONIC, time.CLOCK_MONOTONIC),
                            (twheel.BOOTTIME, time.CLOCK_BOOTTIME),
                            (twheel.REALTIME, time.CLOCK_REALTIME)):
            with twheel.Wheel(clock=clock, tick=100_000) as wheel:
                before = time.clock_gettime_ns(name)
                now = wheel.now()
                self.assertLessEqual(before, now)
                self.assertLessEqual(now, time.clock_gettime_ns(name))
                self.assertEqual(wheel.info()["tick"], 100_000)
                wheel.arm(now, 5, absolute=True)
                self.assertEqual(wheel.read(timeout=60)[0].user_data, 5)

    def test_wrong(self):
        """Wheel: what is no clock, wheel or eventfd is said with words of its own"""
        for maker in (twheel.Wheel, twheel.Pool):
            with self.assertRaisesRegex(ValueError, "MONOTONIC, BOOTTIME, .* not 1$"):
                maker(clock=time.CLOCK_MONOTONIC)
        with open("/dev/null") as other:
            with self.assertRaisesRegex(twheel.Error, "not that of a wheel"):
                twheel.Wheel.from_fd(other.fileno())
            with self.assertRaisesRegex(twheel.Error, "eventfd"):
                self.wheel.set_eventfd(other.fileno())
        self.assertRaises(twheel.Error, twheel.Wheel.from_fd, -1)

    def test_modes(self):
        """Wheel: count mode and short events"""
        with twheel.Wheel(count=True) as wheel:
            self.assertEqual(wheel.read_count(timeout=0), 0)
            for _ in range(3):
                wheel.arm(0)
            self.assertEqual(wheel.read_count(timeout=60), 3)
            self.assertRaises(twheel.Error, wheel.read)
        with twheel.Wheel(short_events=True) as wheel:
            number = wheel.arm(0, 9)
            self.assertEqual(wheel.read(timeout=60), [(9, number, 0, 0, 0)])

    def test_stats(self):
        """Wheel: info and stats"""
        self.wheel.arm(0)
        self.wheel.cancel(self.wheel.arm(HOUR))
        self.wheel.read(timeout=60)
        stats = self.wheel.stats()
        self.assertEqual([stats[name] for name in ("armed", "cancelled", "delivered")], [2, 1, 1])
        self.assertEqual(sum(stats["lateness"]), 1)
        self.assertEqual(self.wheel.info()["clock"], twheel.MONOTONIC)
        self.assertEqual(self.wheel.backend, os.environ.get("TWHEEL_BACKEND", "user"))


class Batches(Case):
    NR = 100_000

    def test_many(self):
        """Batches: 100,000 timers are armed in one call, and cancelled in one"""
        ids = self.wheel.arm_many(array.array("Q", [HOUR]) * self.NR)
        self.assertEqual(len(ids), self.NR)
        self.assertEqual(len(set(ids)), self.NR)
        self.assertEqual(self.wheel.query(ids[500]).user_data, 500)
        self.assertEqual(self.pending(), self.NR)
        self.wheel.cancel(ids[7])
        self.assertEqual(self.wheel.cancel_many(ids), self.NR - 1)
        self.assertEqual(self.pending(), 0)

    def test_read_into(self):
        """Batches: 100,000 events are read into a buffer, each once"""
        data = array.array("Q", range(10, 10 + self.NR))
        ids = array.array("Q", bytes(8 * self.NR))
        self.assertIs(self.wheel.arm_many(array.array("Q", bytes(8 * self.NR)), data, ids,
                                          absolute=True), ids)
        buffer = bytearray(EVENT.size * 4096)
        seen = []
        while len(seen) < self.NR:
            nr = self.wheel.read_into(buffer, timeout=60)
            seen += [(event[0], event[1]) for event in
                     EVENT.iter_unpack(memoryview(buffer)[:nr * EVENT.size])]
        self.assertEqual(sorted(seen), sorted(zip(data, ids)))

    def test_numpy(self):
        """Batches: numpy's arrays"""
        import numpy
        ids = numpy.zeros(1000, dtype=numpy.uint64)
        self.wheel.arm_many(numpy.full(1000, HOUR, dtype=numpy.uint64), ids=ids)
        self.assertEqual(len(numpy.unique(ids)), 1000)
        self.assertEqual(self.wheel.cancel_many(ids), 1000)

    # In the virtual machine there is no numpy.
    if os.environ.get("QUICK") or os.environ.get("TWHEEL_BACKEND") == "kernel":
        del test_numpy

    def test_all_or_none(self):
        """Batches: with an error, none of them is armed"""
        with twheel.Wheel(limit=1000) as wheel:
            wheel.arm(HOUR)
            ids = array.array("Q", bytes(8 * 2000))
            with self.assertRaises(twheel.Full):
                wheel.arm_many(array.array("Q", [HOUR]) * 2000, ids=ids)
            self.assertEqual(wheel.info()["pending"], 1)

    def test_bad_buffers(self):
        """Batches: buffers that don't fit are refused"""
        words = array.array("Q", [HOUR] * 4)
        for call in (lambda: self.wheel.arm_many(b"1234567"),
                     lambda: self.wheel.arm_many(words, array.array("Q", [1])),
                     lambda: self.wheel.arm_many(words, ids=array.array("Q", [1])),
                     lambda: self.wheel.arm_many(array.array("i", [HOUR % 1000] * 4)),
                     lambda: self.wheel.arm_many(array.array("d", [0.5] * 4)),
                     lambda: self.wheel.arm_many(memoryview(words).cast("B").cast("H")),
                     lambda: self.wheel.arm_many(words, ids=array.array("d", [0] * 4)),
                     lambda: self.wheel.read_into(array.array("i", bytes(32))),
                     lambda: self.wheel.read_into(bytearray(31))):
            self.assertRaises(ValueError, call)
        for call in (lambda: self.wheel.arm_many(words, ids=bytes(32)),
                     lambda: self.wheel.read_into(bytes(32))):
            self.assertRaises(BufferError, call)
        self.assertRaises(TypeError, self.wheel.arm_many, 5)
        self.assertEqual(self.pending(), 0)

    def test_empty_buffers(self):
        """Batches: of empty buffers, nothing is done"""
        for empty in (array.array("Q"), bytearray(), memoryview(bytearray(64))[8:8]):
            self.assertEqual(len(self.wheel.arm_many(empty)), 0)
            self.assertIs(self.wheel.arm_many(empty, empty, empty), empty)
            self.assertEqual(self.wheel.cancel_many(empty), 0)
            self.assertEqual(self.wheel.submit(empty), 0)
            self.assertEqual(self.wheel.read_into(empty), 0)
        self.assertEqual(self.pending(), 0)

    def test_submit(self):
        """Batches: operations as they are"""
        ops = bytearray(b"".join(OP.pack(twheel.OP_ARM, 0, 0, 0, 0, HOUR, i, 0, 0, 0, 0)
                                 for i in range(300)) +
                        OP.pack(twheel.OP_CANCEL, 0, 0, 0, 77, *[0] * 6))
        self.assertEqual(self.wheel.submit(ops), 301)
        results = [op[3] for op in OP.iter_unpack(ops)]
        self.assertEqual(results, [0] * 300 + [-2])
        self.assertEqual(self.pending(), 300)

    def test_drain(self):
        """Batches: drain takes all that is pending"""
        self.wheel.arm_many(array.array("Q", [HOUR] * 500))
        self.assertEqual(len(self.wheel.drain(100)), 100)
        self.assertEqual(len(self.wheel.drain(1000)), 400)
        self.assertEqual(self.wheel.drain(), [])


class Threads(Case):
    def test_close_ends_readers(self):
        """Threads: to close a wheel ends all that read it"""
        ended = []

        def read():
            try:
                self.wheel.read()
            except ValueError as error:
                ended.append(str(error))

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        time.sleep(0.05)
        self.wheel.close()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
        self.assertTrue(all("closed" in text for text in ended))
        self.assertEqual(len(ended), 4)
        self.assertRaises(ValueError, self.wheel.arm, 0)
        self.assertTrue(self.wheel.closed)

    def test_gil(self):
        """Threads: others run while one waits; each event goes to one"""
        seen = []

        def read():
            while True:
                events = self.wheel.read(1)
                if events[0].user_data == 0:
                    self.wheel.arm(0, 0)
                    return
                seen.append(events[0].user_data)

        threads = [threading.Thread(target=read) for _ in range(4)]
        for thread in threads:
            thread.start()
        for n in range(1, 2001):
            self.wheel.arm(n % 7 * 1_000_000, n)
        while self.pending() or self.wheel.info()["ready"]:
            time.sleep(0.001)
        self.wheel.arm(0, 0)
        for thread in threads:
            thread.join(60)
        self.assertEqual(sorted(seen), list(range(1, 2001)))

    def test_batches_of_threads(self):
        """Threads: batches of several, and a close in between"""
        def work():
            try:
                while True:
                    self.wheel.cancel_many(self.wheel.arm_many(array.array("Q", [HOUR] * 5000)))
            except ValueError:
                pass

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        time.sleep(0.2)
        self.wheel.close()
        for thread in threads:
            thread.join(60)
            self.assertFalse(thread.is_alive())
