// SPDX-License-Identifier: LGPL-2.1-or-later
//! What the headers of libtwheel say, as far as it is used here. That it is the same is
//! tested by `tests/layout.rs`.

use std::os::raw::{c_int, c_uint, c_void};

/// The library's own; only its address is known
#[repr(C)]
pub struct Twheel {
    private: [u8; 0],
}

/// The library's own; only its address is known
#[repr(C)]
pub struct TwheelPool {
    private: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Setup {
    pub size: u32,
    pub flags: u32,
    pub clock: u32,
    pub event_size: u32,
    pub tick: u64,
    pub limit: u64,
    pub shared: u32,
    pub __reserved: u32,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawOp {
    pub opcode: u8,
    pub flags: u8,
    pub state: u16,
    pub result: i32,
    pub id: u64,
    pub deadline: u64,
    pub user_data: u64,
    pub interval: u64,
    pub slack: u64,
    pub jitter: u64,
    pub __reserved: u64,
}

#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default)]
pub struct RawEvent {
    pub user_data: u64,
    pub id: u64,
    pub deadline: u64,
    pub overrun: u32,
    pub flags: u32,
}

/// The head of the shared area, of which only what is used after it was mapped is named
#[repr(C)]
pub struct SharedHead {
    pub constant: [u64; 8],
    pub next_wake: u64,
    pub tail: u32,
    pub __reserved_kernel: [u32; 13],
    pub head: u32,
    pub __reserved_program: [u32; 15],
}

#[repr(C)]
pub struct Area {
    pub shared: *mut SharedHead,
    pub words: *mut u64,
    pub ring: *mut u32,
    pub dirty: *mut u64,
    pub groups: *mut u64,
    pub size: u64,
    pub ring_mask: u32,
    pub nr: u32,
    pub group_shift: u32,
    pub fd: c_int,
}

#[repr(C)]
pub struct PoolOptions {
    pub size: u32,
    pub flags: u32,
    pub threads: u32,
    pub capacity: u32,
    pub clock: u32,
    pub __reserved: u32,
    pub tick: u64,
    pub spawn: Option<
        unsafe extern "C" fn(
            extern "C" fn(*mut c_void) -> *mut c_void,
            *mut c_void,
            *mut c_void,
        ) -> c_int,
    >,
    pub arg: *mut c_void,
}

#[repr(C)]
pub struct Run {
    pub deadline: u64,
    pub missed: u64,
}

#[repr(C)]
pub struct Task {
    pub run: Option<unsafe extern "C" fn(*mut Task, *const Run) -> c_int>,
    pub next: Option<unsafe extern "C" fn(*mut Task, u64, u64) -> i64>,
    pub end: Option<unsafe extern "C" fn(*mut Task, c_int)>,
    pub arg: *mut c_void,
    pub pool: *mut TwheelPool,
    pub link: *mut Task,
    pub id: u64,
    pub deadline: u64,
    pub period: u64,
    pub state: u32,
    pub flags: u32,
    pub number: u32,
    pub order: u32,
}

pub const CLOCK_REALTIME: u32 = 0x100;
pub const CLOCK_MONOTONIC: u32 = 0x101;
pub const CLOCK_BOOTTIME: u32 = 0x107;
pub const CLOCK_TAI: u32 = 0x10b;
pub const SETUP_SHARED: u32 = 1 << 1;
pub const OP_ARM: u8 = 1;
pub const OP_MODIFY: u8 = 2;
pub const OP_CANCEL: u8 = 3;
pub const OP_QUERY: u8 = 4;
pub const ABS: u8 = 1 << 0;
pub const STATE_NONE: u16 = 0;
pub const STATE_PENDING: u16 = 1;
pub const STATE_READY: u16 = 2;
pub const EVENT_PERIODIC: u32 = 1 << 0;
pub const EVENT_SHARED: u32 = 1 << 1;
pub const WORD_ARMED: u64 = 0x1;
pub const WORD_IDLE: u64 = 0x8000000000000000;
pub const WORD_FIRED: u64 = 0x4000000000000000;
pub const WORD_NEVER: u64 = 0x3fffffffffffffff;
pub const AREA_BPF: u64 = 0x8000000000000000;
pub const KERNEL: c_int = 1 << 30;
pub const USER: c_int = 1 << 29;
pub const BPF: c_int = 1 << 28;
pub const FIXED_DELAY: u32 = 1 << 1;
pub const CATCH_UP: u32 = 1 << 2;
pub const RUN_ONCE: u32 = 1 << 0;
pub const RUN_PERIODIC: u32 = 1 << 1;

// Linux's, the same on all machines that Rust and twheel know
pub const O_NONBLOCK: c_int = 0o4000;
pub const ENOENT: c_int = 2;
pub const EIO: c_int = 5;
pub const EDEADLK: c_int = 35;
pub const ESHUTDOWN: c_int = 108;
pub const EINPROGRESS: c_int = 115;
pub const ECANCELED: c_int = 125;

extern "C" {
    pub fn twheel_open(flags: c_int, twp: *mut *mut Twheel) -> c_int;
    pub fn twheel_from_fd(fd: c_int, twp: *mut *mut Twheel) -> c_int;
    pub fn twheel_close(tw: *mut Twheel);
    pub fn twheel_fd(tw: *const Twheel) -> c_int;
    pub fn twheel_backend(tw: *const Twheel) -> c_int;
    pub fn twheel_setup(tw: *mut Twheel, setup: *const Setup) -> c_int;
    pub fn twheel_now(tw: *const Twheel) -> u64;
    pub fn twheel_arm(tw: *mut Twheel, op: *mut RawOp) -> c_int;
    pub fn twheel_modify(tw: *mut Twheel, op: *mut RawOp) -> c_int;
    pub fn twheel_cancel(tw: *mut Twheel, id: u64) -> c_int;
    pub fn twheel_query(tw: *mut Twheel, op: *mut RawOp) -> c_int;
    pub fn twheel_submit(tw: *mut Twheel, ops: *mut RawOp, nr: c_uint) -> c_int;
    pub fn twheel_drain(tw: *mut Twheel, ops: *mut RawOp, nr: c_uint) -> c_int;
    pub fn twheel_read(tw: *mut Twheel, events: *mut RawEvent, nr: c_uint) -> c_int;
    pub fn twheel_shared_map(tw: *mut Twheel, area: *mut Area) -> c_int;
    pub fn twheel_shared_unmap(area: *mut Area);
    pub fn twheel_shared_recover(area: *const Area) -> c_int;
    pub fn twheel_internal_push(
        shared: *mut SharedHead,
        fd: c_int,
        group: std::os::raw::c_ulong,
        word: u64,
    ) -> c_int;
    pub fn twheel_internal_seen(area: *const Area) -> c_int;
    pub fn twheel_pool_new(options: *const PoolOptions, poolp: *mut *mut TwheelPool) -> c_int;
    pub fn twheel_pool_free(pool: *mut TwheelPool) -> c_int;
    pub fn twheel_pool_stop(
        pool: *mut TwheelPool,
        flags: u32,
        left: Option<unsafe extern "C" fn(*mut Task, *mut c_void)>,
        arg: *mut c_void,
    ) -> c_int;
    pub fn twheel_task_start(
        pool: *mut TwheelPool,
        task: *mut Task,
        flags: u32,
        when: i64,
        period: u64,
    ) -> c_int;
    pub fn twheel_task_reset(task: *mut Task, flags: u32, when: i64, period: u64) -> c_int;
    pub fn twheel_task_run_now(task: *mut Task) -> c_int;
    pub fn twheel_task_cancel(task: *mut Task) -> c_int;
    pub fn twheel_task_cancel_wait(task: *mut Task) -> c_int;
}

/// Sizes, offsets and numbers, by their names in C
pub fn layout() -> Vec<(&'static str, u64)> {
    let mut all = Vec::new();
    macro_rules! number {
        ($($c:literal = $value:expr),* $(,)?) => { $(all.push(($c, $value as u64));)* };
    }
    macro_rules! fields {
        ($c:literal, $type:ty, $($name:literal $field:ident),* $(,)?) => {{
            let place = std::mem::MaybeUninit::<$type>::uninit();
            let start = place.as_ptr();
            all.push((concat!("sizeof ", $c), std::mem::size_of::<$type>() as u64));
            $(
                // SAFETY: the field is in `place`; only its address is taken.
                let at = unsafe { std::ptr::addr_of!((*start).$field) } as usize;
                all.push((concat!($c, ".", $name), (at - start as usize) as u64));
            )*
        }};
    }
    fields!("twheel_setup", Setup, "size" size, "flags" flags, "clock" clock,
            "event_size" event_size, "tick" tick, "limit" limit, "shared" shared,
            "__reserved" __reserved);
    fields!("twheel_op", RawOp, "opcode" opcode, "flags" flags, "state" state, "result" result,
            "id" id, "deadline" deadline, "user_data" user_data, "interval" interval,
            "slack" slack, "jitter" jitter, "__reserved" __reserved);
    fields!("twheel_event", RawEvent, "user_data" user_data, "id" id, "deadline" deadline,
            "overrun" overrun, "flags" flags);
    fields!("twheel_shared", SharedHead, "next_wake" next_wake, "tail" tail, "head" head);
    fields!("twheel_area", Area, "shared" shared, "words" words, "ring" ring, "dirty" dirty,
            "groups" groups, "size" size, "ring_mask" ring_mask, "nr" nr,
            "group_shift" group_shift, "fd" fd);
    fields!("twheel_pool_options", PoolOptions, "size" size, "flags" flags, "threads" threads,
            "capacity" capacity, "clock" clock, "__reserved" __reserved, "tick" tick,
            "spawn" spawn, "arg" arg);
    fields!("twheel_run", Run, "deadline" deadline, "missed" missed);
    fields!("twheel_task", Task, "run" run, "next" next, "end" end, "arg" arg, "pool" pool,
            "link" link, "id" id, "deadline" deadline, "period" period, "state" state,
            "flags" flags, "number" number, "order" order);
    number! {
        "TWHEEL_CLOCK_REALTIME" = CLOCK_REALTIME,
        "TWHEEL_CLOCK_MONOTONIC" = CLOCK_MONOTONIC,
        "TWHEEL_CLOCK_BOOTTIME" = CLOCK_BOOTTIME,
        "TWHEEL_CLOCK_TAI" = CLOCK_TAI,
        "TWHEEL_SETUP_SHARED" = SETUP_SHARED,
        "TWHEEL_OP_ARM" = OP_ARM,
        "TWHEEL_OP_MODIFY" = OP_MODIFY,
        "TWHEEL_OP_CANCEL" = OP_CANCEL,
        "TWHEEL_OP_QUERY" = OP_QUERY,
        "TWHEEL_ABS" = ABS,
        "TWHEEL_STATE_NONE" = STATE_NONE,
        "TWHEEL_STATE_PENDING" = STATE_PENDING,
        "TWHEEL_STATE_READY" = STATE_READY,
        "TWHEEL_EVENT_PERIODIC" = EVENT_PERIODIC,
        "TWHEEL_EVENT_SHARED" = EVENT_SHARED,
        "TWHEEL_WORD_ARMED" = WORD_ARMED,
        "TWHEEL_WORD_IDLE" = WORD_IDLE,
        "TWHEEL_WORD_FIRED" = WORD_FIRED,
        "TWHEEL_WORD_NEVER" = WORD_NEVER,
        "TWHEEL_KERNEL" = KERNEL,
        "TWHEEL_USER" = USER,
        "TWHEEL_BPF" = BPF,
        "TWHEEL_AREA_BPF" = AREA_BPF,
        "TWHEEL_FIXED_DELAY" = FIXED_DELAY,
        "TWHEEL_CATCH_UP" = CATCH_UP,
        "TWHEEL_RUN_ONCE" = RUN_ONCE,
        "TWHEEL_RUN_PERIODIC" = RUN_PERIODIC,
        "O_NONBLOCK" = O_NONBLOCK,
        "ENOENT" = ENOENT,
        "EIO" = EIO,
        "EDEADLK" = EDEADLK,
        "ESHUTDOWN" = ESHUTDOWN,
        "EINPROGRESS" = EINPROGRESS,
        "ECANCELED" = ECANCELED,
    }
    all
}
