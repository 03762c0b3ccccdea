// SPDX-License-Identifier: LGPL-2.1-or-later
#![doc = include_str!("../README.md")]
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

/// The result of a function of the library: a count, or an error
fn result(ret: std::os::raw::c_int) -> io::Result<usize> {
    usize::try_from(ret).map_err(|_| io::Error::from_raw_os_error(-ret))
}

/// What `tests/layout.rs` compares with the headers; not for programs.
#[doc(hidden)]
pub fn layout() -> Vec<(&'static str, u64)> {
    sys::layout()
}
