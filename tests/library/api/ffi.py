# SPDX-License-Identifier: GPL-2.0
"""
What a language that sees symbols only has of the library: operations, callbacks and
shared timers, here in memory of the program's own, by libtwheel-ffi.so alone.
"""

import ctypes

U8, U16, U32, U64 = ctypes.c_uint8, ctypes.c_uint16, ctypes.c_uint32, ctypes.c_uint64


class Op(ctypes.Structure):
    _fields_ = [("opcode", U8), ("flags", U8), ("state", U16), ("result", ctypes.c_int32),
                ("id", U64), ("deadline", U64), ("user_data", U64), ("interval", U64),
                ("slack", U64), ("jitter", U64), ("reserved", U64)]


class Event(ctypes.Structure):
    _fields_ = [("user_data", U64), ("id", U64), ("deadline", U64), ("overrun", U32),
                ("flags", U32)]


class Area(ctypes.Structure):
    _fields_ = [("shared", ctypes.c_void_p), ("words", ctypes.POINTER(U64)),
                ("ring", ctypes.POINTER(U32)), ("dirty", ctypes.POINTER(U64)),
                ("groups", ctypes.POINTER(U64)), ("size", U64), ("ring_mask", U32),
                ("nr", U32), ("group_shift", U32), ("fd", ctypes.c_int)]


USER, ABS = 1 << 29, 1
IDLE, FIRED = 1 << 63, 1 << 62
NONE, PENDING, READY = range(3)
NEXT_WAKE, TAIL, HEAD, AREA_SIZE = 8, 9, 16, 24

lib = ctypes.CDLL("libtwheel-ffi.so.0")
lib.twheel_op_arm.restype = lib.twheel_op_modify.restype = Op
lib.twheel_op_cancel.restype = lib.twheel_op_query.restype = Op
lib.twheel_op_arm.argtypes = [U8, U64, U64, U64]
lib.twheel_op_modify.argtypes = [U64, U8, U64, U64, U64]
lib.twheel_op_cancel.argtypes = lib.twheel_op_query.argtypes = [U64]
lib.twheel_shared_arm.argtypes = [ctypes.POINTER(Area), U32, U64]
lib.twheel_shared_cancel.argtypes = [ctypes.POINTER(Area), U32]


def operations():
    """Through the library that this one needs: one CDLL is enough."""
    wheel = ctypes.c_void_p()
    assert lib.twheel_open(USER, ctypes.byref(wheel)) == 0
    op = lib.twheel_op_arm(0, 3600 * 10**9, 0, 42)
    assert lib.twheel_arm(wheel, ctypes.byref(op)) == 0
    query = lib.twheel_op_query(op.id)
    assert lib.twheel_query(wheel, ctypes.byref(query)) == 0 and query.user_data == 42
    other = lib.twheel_op_modify(op.id, ABS, 1, 0, 43)
    assert lib.twheel_modify(wheel, ctypes.byref(other)) == 0
    event = Event()
    assert lib.twheel_read(wheel, ctypes.byref(event), 1) == 1 and event.user_data == 43
    cancel = lib.twheel_op_cancel(op.id)
    assert lib.twheel_submit(wheel, ctypes.byref(cancel), 1) == 1 and cancel.result == -2
    lib.twheel_close(wheel)


def shared_timers():
    """Without the kernel: its part, an expiry, is played by hand."""
    shared, words, ring = (U64 * AREA_SIZE)(), (U64 * 64)(*[IDLE] * 64), (U32 * 64)()
    dirty, groups = (U64 * 1)(), (U64 * 1)(1)
    area = Area(ctypes.addressof(shared), words, ring, dirty, groups, 0, 63, 64, 6, -1)
    assert lib.twheel_shared_arm(area, 5, 1000) == NONE
    assert words[5] == 1000 | 1 and dirty[0] == 1 << 5
    assert lib.twheel_shared_arm(area, 5, 2000) == PENDING
    assert lib.twheel_shared_cancel(area, 5) == PENDING
    assert lib.twheel_shared_cancel(area, 5) == NONE
    words[7], ring[0] = IDLE | FIRED, 7
    ctypes.cast(shared, ctypes.POINTER(U32))[2 * TAIL] = 1
    taken = (U32 * 4)()
    assert lib.twheel_shared_take(ctypes.byref(area), taken, 4) == 1 and taken[0] == 7
    assert lib.twheel_shared_take(ctypes.byref(area), taken, 4) == 0


operations()
shared_timers()
