# SPDX-License-Identifier: LGPL-2.1-or-later
"""
Timers, millions of them on one descriptor: libtwheel for Python.

    import twheel

    with twheel.Wheel() as wheel:
        wheel.arm(500_000_000, user_data=42)    # in 0.5 s
        for event in wheel.read():              # waits
            print("timer", event.user_data, "expired")

`Wheel` is a wheel; in the kernel where /dev/twheel is there, else in the program itself
(`Wheel.backend`). `Pool` calls functions at their times, in threads of its own. Times are
integers, in ns of the wheel's clock, as time.monotonic_ns() gives them. Batches are buffers:
array.array, memoryview, numpy's arrays.

`twheel.asyncio` is an event loop for asyncio. What went wrong is an `Error`, an OSError with
a text that says what to do; `NoTimer`, `Full`, `NotReady` and `Stopped` are those that
programs tell apart.

A wheel may be used by any number of threads, and closed by any of them. In a child after
fork(2) a wheel of the program's own is not there (Error, EBADF): open another one. It may
close what it inherited, which the parent does not notice.
"""

import atexit as _atexit

from . import _twheel
from ._twheel import (
    ABS,
    BOOTTIME,
    EVENT_PERIODIC,
    EVENT_SIZE,
    MONOTONIC,
    NONE,
    OP_ARM,
    OP_CANCEL,
    OP_MODIFY,
    OP_QUERY,
    OP_SIZE,
    PENDING,
    READY,
    REALTIME,
    TAI,
    Error,
    Event,
    Full,
    NoTimer,
    NotReady,
    Pool,
    Stopped,
    Task,
    Timer,
    Timers,
    Wheel,
)

__all__ = [
    "ABS",
    "BOOTTIME",
    "EVENT_PERIODIC",
    "EVENT_SIZE",
    "MONOTONIC",
    "NONE",
    "OP_ARM",
    "OP_CANCEL",
    "OP_MODIFY",
    "OP_QUERY",
    "OP_SIZE",
    "PENDING",
    "READY",
    "REALTIME",
    "TAI",
    "Error",
    "Event",
    "Full",
    "NoTimer",
    "NotReady",
    "Pool",
    "Stopped",
    "Task",
    "Timer",
    "Timers",
    "Wheel",
]

_twheel.check_interpreter()

# Threads of pools may not call Python once it has ended.
_atexit.register(_twheel.stop_pools)
