#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""
Shared timers in Python: a client written from twheel(7) alone, without the library.

Python has no atomic operations on memory, but libatomic of the C compiler has them
as functions.
"""

import ctypes
import fcntl
import mmap
import os
import select
import struct
import sys
import time

SETUP, INFO, DOORBELL = 0xF701, 0xF700, 0xF706
MONOTONIC = 0x100 + time.CLOCK_MONOTONIC
ARMED, FIRED, NEVER = 1 << 0, 1 << 62, (1 << 62) - 1
NONE, PENDING, READY = range(3)
SEQ_CST = 5

U32, U64, POINTER = ctypes.c_uint32, ctypes.c_uint64, ctypes.c_void_p
_libatomic = ctypes.CDLL("libatomic.so.1")


def _atomic(name, result, *arguments):
    function = getattr(_libatomic, "__atomic_" + name)
    function.restype, function.argtypes = result, arguments
    return lambda *values: function(*values, *[SEQ_CST] * (len(arguments) - len(values)))


_load32 = _atomic("load_4", U32, POINTER, ctypes.c_int)
_load64 = _atomic("load_8", U64, POINTER, ctypes.c_int)
_exchange = _atomic("exchange_8", U64, POINTER, U64, ctypes.c_int)
_or = _atomic("fetch_or_8", U64, POINTER, U64, ctypes.c_int)
_and = _atomic("fetch_and_8", U64, POINTER, U64, ctypes.c_int)
_compare_exchange = _atomic("compare_exchange_4", ctypes.c_bool, POINTER,
                            ctypes.POINTER(U32), U32, ctypes.c_int, ctypes.c_int)


class Timers:
    """A wheel with shared timers, numbered from 0."""

    def __init__(self, nr, clock=MONOTONIC):
        self.fd = os.open("/dev/twheel", os.O_RDWR | os.O_CLOEXEC)
        fcntl.ioctl(self.fd, SETUP, struct.pack("=4I2Q2I", 40, 2, clock, 0, 0, 0, nr, 0))
        info = bytearray(struct.pack("=I108x", 112))
        fcntl.ioctl(self.fd, INFO, info)
        size, = struct.unpack_from("=Q", info, 104)
        self.map = mmap.mmap(self.fd, size, mmap.MAP_SHARED)
        self.area = ctypes.addressof(ctypes.c_char.from_buffer(self.map))
        self.ring_mask, self.group, words, ring, dirty, groups = \
            struct.unpack_from("=2I4Q", self.map, 16)
        self.words, self.ring = self.area + words, self.area + ring
        self.dirty, self.groups = self.area + dirty, self.area + groups
        self.next_wake, self.tail = self.area + 64, self.area + 72
        self.head = self.area + 128

    def arm(self, n, deadline):
        """Start a timer, or give it another deadline; says what state it was in."""
        new = min(deadline, NEVER) | ARMED
        old = _exchange(self.words + 8 * n, new)
        if old > new:
            _or(self.dirty + n // 64 * 8, 1 << n % 64)
            group, bit = divmod(n // self.group, 64)
            group = self.groups + group * 8
            if not _load64(group) >> bit & 1:
                _or(group, 1 << bit)
            if new < _load64(self.next_wake):
                # (Python does it again when a signal comes.)
                fcntl.ioctl(self.fd, DOORBELL, struct.pack("=2I", 8, 0))
        return READY if old & FIRED else PENDING if old & ARMED else NONE

    def cancel(self, n):
        """Stop a timer; says what state it was in, NONE if there was nothing to stop."""
        word = self.words + 8 * n
        if _and(word, ~ARMED) & ARMED:
            return PENDING
        return READY if _and(word, ~FIRED) & FIRED else NONE

    def take(self):
        """The number of a timer that expired, or None."""
        while True:
            head = U32(_load32(self.head))
            if head.value == _load32(self.tail):
                return None
            n = _load32(self.ring + 4 * (head.value & self.ring_mask))
            if not _compare_exchange(self.head, ctypes.byref(head), head.value + 1):
                continue
            if _and(self.words + 8 * n, ~FIRED) & FIRED:
                return n


def main():
    """Timers that are armed, moved and cancelled end as they should."""
    ms, nr = 1000000, 10000
    timers = Timers(nr)
    start = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    deadline = [start + (50 + n % 100) * ms for n in range(nr)]
    for n in range(nr):
        assert timers.arm(n, deadline[n]) == NONE
    for n in range(0, nr, 2):
        deadline[n] += 500 * ms
        if timers.arm(n, deadline[n]) == NONE:
            sys.exit(f"timer {n} was taken by nobody")
    cancelled = sum(timers.cancel(n) != NONE for n in range(0, nr, 4))

    poll = select.poll()
    poll.register(timers.fd, select.POLLIN)
    expired = [0] * nr
    while sum(expired) + cancelled < nr:
        poll.poll()
        while (n := timers.take()) is not None:
            expired[n] += 1
            if time.clock_gettime_ns(time.CLOCK_MONOTONIC) < deadline[n]:
                sys.exit(f"timer {n} was early")
    if cancelled != nr // 4 or max(expired) > 1 or any(expired[::4]):
        sys.exit("a timer expired twice, or after it was cancelled")
    print(f"{cancelled} cancelled, {sum(expired)} expired")


if __name__ == "__main__":
    main()
