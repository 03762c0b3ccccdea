# SPDX-License-Identifier: GPL-2.0
"""
What a language that sees symbols only has of the library, by libtwheel-ffi.so alone: here
operations, which are passed and returned as they are. (What else it has is compared by name.)
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


USER, ABS = 1 << 29, 1
lib = ctypes.CDLL("libtwheel-ffi.so.0")
lib.twheel_op_arm.restype = lib.twheel_op_modify.restype = Op
lib.twheel_op_cancel.restype = lib.twheel_op_query.restype = Op
lib.twheel_op_arm.argtypes = [U8, U64, U64, U64]
lib.twheel_op_modify.argtypes = [U64, U8, U64, U64, U64]
lib.twheel_op_cancel.argtypes = lib.twheel_op_query.argtypes = [U64]

# Through the library that this one needs: one CDLL is enough.
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
