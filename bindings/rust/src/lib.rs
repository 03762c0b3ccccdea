// SPDX-License-Identifier: LGPL-2.1-or-later
//! Timers, millions on one descriptor: libtwheel in safe Rust.
//!
//! * [`Wheel`]: bare timers, one by one or many in a call, whose events the program reads
//!   when it likes. It is a descriptor for any event loop ([`AsFd`](std::os::unix::io::AsFd)).
//! * [`shared::SharedWheel`]: timers that are started, pushed ahead and cancelled without
//!   a system call. Only where the module is.
//! * [`pool::Pool`]: closures that are run later by threads, once or again and again.
//!
//! Where there is no `/dev/twheel`, a wheel is in the program itself: libtwheel(3) says
//! what is different then. A deadline is never early.
//!
//! ```
//! use std::time::Duration;
//! use twheel::{Event, Op, Wheel, When};
//!
//! # fn main() -> std::io::Result<()> {
//! let wheel = Wheel::open()?;
//! wheel.arm(When::In(Duration::from_millis(20)), 42)?;
//! let mut events = [Event::default(); 16];
//! for event in wheel.read(&mut events)? {
//!     assert_eq!(event.user_data(), 42);
//! }
//!
//! // Many in one call
//! let mut ops: Vec<Op> = (0..1000).map(|n| Op::arm(When::In(Duration::ZERO), n)).collect();
//! assert_eq!(wheel.submit(&mut ops)?, 1000);
//! # Ok(())
//! # }
//! ```

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(missing_docs)]

mod sys;

mod op;
pub mod pool;
pub mod shared;
mod wheel;

pub use op::{Event, Id, Op, State, When};
pub use wheel::{Backend, Clock, Options, Wheel};

use std::io;
use std::time::Duration;

/// The latest time, in ns: a deadline of then, or later, does not come.
pub const NEVER: u64 = i64::MAX as u64;

/// In ns, as far as the library can count
fn ns(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).map_or(NEVER, |ns| ns.min(NEVER))
}

/// An error that has words of its own
fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, what)
}

/// The length of a tick in ns, or 0 for that which the library takes
fn tick_ns(tick: Duration) -> io::Result<u64> {
    if tick.is_zero() || (Duration::from_micros(1)..=Duration::from_secs(1)).contains(&tick) {
        Ok(ns(tick))
    } else {
        Err(invalid("a tick is 1 µs to 1 s"))
    }
}

/// What a function of the library gave: a count, or an error
fn result(ret: std::os::raw::c_int) -> io::Result<usize> {
    usize::try_from(ret).map_err(|_| io::Error::from_raw_os_error(-ret))
}

/// What `tests/layout.rs` compares with the headers; not for programs.
#[doc(hidden)]
pub fn layout() -> Vec<(&'static str, u64)> {
    sys::layout()
}
