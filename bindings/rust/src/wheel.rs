// SPDX-License-Identifier: LGPL-2.1-or-later
//! A wheel with ordinary timers.

use std::io;
use std::os::raw::{c_int, c_uint};
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, IntoRawFd, OwnedFd, RawFd};
use std::ptr::{self, NonNull};
use std::time::Duration;

use crate::{result, sys, tick_ns, Event, Id, Op, State, When};

/// A clock
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Time since boot without suspend
    Monotonic,
    /// Time since boot with suspend
    Boottime,
    /// The wall clock; timers follow it when it is set
    Realtime,
    /// International atomic time
    Tai,
}

impl Clock {
    pub(crate) fn raw(self) -> u32 {
        match self {
            Clock::Monotonic => sys::CLOCK_MONOTONIC,
            Clock::Boottime => sys::CLOCK_BOOTTIME,
            Clock::Realtime => sys::CLOCK_REALTIME,
            Clock::Tai => sys::CLOCK_TAI,
        }
    }
}

/// Where a wheel is
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// In the kernel
    Kernel,
    /// In the program itself, but shared timers in a BPF program, see twheel-loader(8)
    Bpf,
    /// In the program itself
    User,
}

impl Backend {
    pub(crate) fn raw(self) -> c_int {
        match self {
            Backend::Kernel => sys::KERNEL,
            Backend::Bpf => sys::BPF,
            Backend::User => sys::USER,
        }
    }
}

/// The options of a wheel
#[derive(Clone, Debug)]
#[must_use]
pub struct Options {
    backend: Option<Backend>,
    nonblocking: bool,
    clock: Clock,
    tick: Duration,
    limit: u64,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            backend: None,
            nonblocking: false,
            clock: Clock::Monotonic,
            tick: Duration::ZERO,
            limit: 0,
        }
    }
}

impl Options {
    /// As usual: in the kernel where that can be, reads that wait, [`Clock::Monotonic`], one
    /// jiffy a tick
    pub fn new() -> Options {
        Options::default()
    }

    /// Only there
    pub fn backend(mut self, backend: Backend) -> Options {
        self.backend = Some(backend);
        self
    }

    /// Reads don't wait, but give [`io::ErrorKind::WouldBlock`].
    pub fn nonblocking(mut self) -> Options {
        self.nonblocking = true;
        self
    }

    /// Another clock
    pub fn clock(mut self, clock: Clock) -> Options {
        self.clock = clock;
        self
    }

    /// Length of a tick, 1 µs to 1 s; else there is no wheel, but [`io::ErrorKind::InvalidInput`]
    pub fn tick(mut self, tick: Duration) -> Options {
        self.tick = tick;
        self
    }

    /// Most timers
    pub fn limit(mut self, timers: u64) -> Options {
        self.limit = timers;
        self
    }

    /// A new wheel that is so
    pub fn open(&self) -> io::Result<Wheel> {
        self.open_with_shared(0)
    }

    pub(crate) fn open_with_shared(&self, shared: u32) -> io::Result<Wheel> {
        let tick = tick_ns(self.tick)?;
        let nonblocking = if self.nonblocking { sys::O_NONBLOCK } else { 0 };
        let wheel = Wheel::open_flags(nonblocking | self.backend.map_or(0, Backend::raw))?;
        let setup = sys::Setup {
            size: std::mem::size_of::<sys::Setup>() as u32,
            flags: if shared > 0 { sys::SETUP_SHARED } else { 0 },
            clock: self.clock.raw(),
            tick,
            limit: self.limit,
            shared,
            ..Default::default()
        };
        // SAFETY: the wheel is there, and nobody else has it yet, as the call asks for.
        result(unsafe { sys::twheel_setup(wheel.raw(), &setup) })?;
        Ok(wheel)
    }
}

/// A wheel. Any number of threads may use it; each event goes to one of those who read.
///
/// In a child after `fork`, a wheel in the program itself gives errors.
#[derive(Debug)]
pub struct Wheel {
    raw: NonNull<sys::Twheel>,
}

// SAFETY: all functions that are called with a wheel, but for those that set it up and close
// it, may be called by any number of threads at once; these two have it alone.
unsafe impl Send for Wheel {}
// SAFETY: as above
unsafe impl Sync for Wheel {}

impl Wheel {
    /// A new wheel, as [`Options::new`] has it
    pub fn open() -> io::Result<Wheel> {
        Options::new().open()
    }

    fn open_flags(flags: c_int) -> io::Result<Wheel> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` is where the wheel is to be written to.
        result(unsafe { sys::twheel_open(flags, &mut raw) })?;
        // SAFETY: with success, it was.
        Ok(Wheel { raw: unsafe { NonNull::new_unchecked(raw) } })
    }

    /// A wheel of a descriptor that came from elsewhere: inherited, or received. With an error
    /// the descriptor is closed.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Wheel> {
        let mut raw = ptr::null_mut();
        // SAFETY: the descriptor is open, and `raw` is where the wheel is to be written to.
        result(unsafe { sys::twheel_from_fd(fd.as_raw_fd(), &mut raw) })?;
        // The descriptor is the wheel's from now on.
        let _ = fd.into_raw_fd();
        // SAFETY: with success, it was written.
        Ok(Wheel { raw: unsafe { NonNull::new_unchecked(raw) } })
    }

    pub(crate) fn raw(&self) -> *mut sys::Twheel {
        self.raw.as_ptr()
    }

    /// Where it is
    pub fn backend(&self) -> Backend {
        // SAFETY: the wheel is there.
        match unsafe { sys::twheel_backend(self.raw()) } {
            sys::KERNEL => Backend::Kernel,
            sys::BPF => Backend::Bpf,
            _ => Backend::User,
        }
    }

    /// The time of its clock
    pub fn now(&self) -> Duration {
        // SAFETY: the wheel is there.
        Duration::from_nanos(unsafe { sys::twheel_now(self.raw()) })
    }

    /// Start a timer that expires once.
    pub fn arm(&self, when: When, user_data: u64) -> io::Result<Id> {
        let mut op = Op::arm(when, user_data);
        self.perform(&mut op)?;
        Ok(Id(op.0.id))
    }

    /// Cancel a timer. No event of it is read after that, by anybody; what was read before
    /// gives [`io::ErrorKind::NotFound`].
    pub fn cancel(&self, id: Id) -> io::Result<()> {
        // SAFETY: the wheel is there.
        result(unsafe { sys::twheel_cancel(self.raw(), id.0) }).map(drop)
    }

    /// Do one operation. Its id, and what else it finds, is in it afterwards.
    pub fn perform(&self, op: &mut Op) -> io::Result<State> {
        let raw: *mut sys::RawOp = &mut op.0;
        // SAFETY: the wheel is there, and the operation is the caller's to be written to.
        let ret = unsafe {
            match op.0.opcode {
                sys::OP_ARM => sys::twheel_arm(self.raw(), raw),
                sys::OP_MODIFY => sys::twheel_modify(self.raw(), raw),
                sys::OP_QUERY => sys::twheel_query(self.raw(), raw),
                _ => return self.submit_one(op),
            }
        };
        result(ret)?;
        Ok(State::from_raw(op.0.state))
    }

    fn submit_one(&self, op: &mut Op) -> io::Result<State> {
        loop {
            match self.submit(std::slice::from_mut(op)) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
                Ok(_) => return op.result(),
            }
        }
    }

    /// Do many operations in one call, and say how many were done, from the first on: not all
    /// when a signal came. Each has its own [`Op::result`].
    pub fn submit(&self, ops: &mut [Op]) -> io::Result<usize> {
        let nr = count(ops.len());
        // SAFETY: `Op` is a `RawOp`, and all of the slice may be written to.
        result(unsafe { sys::twheel_submit(self.raw(), ops.as_mut_ptr().cast(), nr) })
    }

    /// Take pending timers out: each as the operation that would arm it again. What is said is
    /// the part of `ops` that was filled; when it is empty, none is pending.
    pub fn drain<'a>(&self, ops: &'a mut [Op]) -> io::Result<&'a mut [Op]> {
        let nr = count(ops.len());
        // SAFETY: as in `submit`
        let ret = unsafe { sys::twheel_drain(self.raw(), ops.as_mut_ptr().cast(), nr) };
        Ok(&mut ops[..result(ret)?])
    }

    /// Read events: waits for the first, unless the wheel is [`Options::nonblocking`].
    pub fn read<'a>(&self, events: &'a mut [Event]) -> io::Result<&'a [Event]> {
        let nr = count(events.len());
        // SAFETY: `Event` is a `RawEvent`, and all of the slice may be written to.
        let ret = unsafe { sys::twheel_read(self.raw(), events.as_mut_ptr().cast(), nr) };
        Ok(&events[..result(ret)?])
    }
}

/// As many as the library takes at a time
fn count(len: usize) -> c_uint {
    len.min(c_int::MAX as usize) as c_uint
}

impl AsFd for Wheel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the wheel owns the descriptor as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.as_raw_fd()) }
    }
}

impl AsRawFd for Wheel {
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: the wheel is there.
        unsafe { sys::twheel_fd(self.raw()) }
    }
}

impl Drop for Wheel {
    fn drop(&mut self) {
        // SAFETY: nobody has the wheel any more: all that use it borrow it, or own it.
        unsafe { sys::twheel_close(self.raw()) }
    }
}
