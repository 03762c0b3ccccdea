// SPDX-License-Identifier: LGPL-2.1-or-later
//! Operations on timers, and the events that they give.

use std::io;
use std::time::Duration;

use crate::{ns, sys};

/// When a timer is to expire
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// After this time from now
    In(Duration),
    /// At that time of the wheel's clock, as [`Wheel::now`](crate::Wheel::now) gives it; what
    /// is over is ready at once
    At(Duration),
}

impl When {
    pub(crate) fn raw(self) -> (u8, u64) {
        match self {
            When::In(delay) => (0, ns(delay)),
            When::At(time) => (sys::ABS, ns(time)),
        }
    }
}

/// A timer of a wheel, as long as it is live. The id of one that is gone is never that of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Id(pub u64);

/// In which state an operation found a timer
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There was no such timer before
    None,
    /// Armed, not expired
    Pending,
    /// Expired, its event not read
    Ready,
}

impl State {
    pub(crate) fn from_raw(state: u16) -> State {
        match state {
            sys::STATE_PENDING => State::Pending,
            sys::STATE_READY => State::Ready,
            _ => State::None,
        }
    }
}

/// An operation on a timer, and what came of it
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Op(pub(crate) sys::RawOp);

impl Op {
    fn new(opcode: u8, id: u64) -> Op {
        Op(sys::RawOp { opcode, id, ..Default::default() })
    }

    fn timed(opcode: u8, id: u64, when: When, user_data: u64) -> Op {
        let mut op = Op::new(opcode, id);
        let (flags, deadline) = when.raw();
        op.0.flags = flags;
        op.0.deadline = deadline;
        op.0.user_data = user_data;
        op
    }

    /// Start a new timer; `user_data` comes with its events.
    #[must_use]
    pub fn arm(when: When, user_data: u64) -> Op {
        Op::timed(sys::OP_ARM, 0, when, user_data)
    }

    /// Give a live timer another time and user data, and, unless said here as well, no
    /// period, slack and jitter.
    #[must_use]
    pub fn modify(id: Id, when: When, user_data: u64) -> Op {
        Op::timed(sys::OP_MODIFY, id.0, when, user_data)
    }

    /// End a live timer.
    #[must_use]
    pub fn cancel(id: Id) -> Op {
        Op::new(sys::OP_CANCEL, id.0)
    }

    /// Look at a live timer.
    #[must_use]
    pub fn query(id: Id) -> Op {
        Op::new(sys::OP_QUERY, id.0)
    }

    /// Again each so long after that
    #[must_use]
    pub fn every(mut self, period: Duration) -> Op {
        self.0.interval = ns(period);
        self
    }

    /// May be up to this much later, so that neighbours share a wake-up
    #[must_use]
    pub fn slack(mut self, slack: Duration) -> Op {
        self.0.slack = ns(slack);
        self
    }

    /// Each time put off by a random part of this
    #[must_use]
    pub fn jitter(mut self, jitter: Duration) -> Op {
        self.0.jitter = ns(jitter);
        self
    }

    /// The result: the state in which it found the timer, or the error
    pub fn result(&self) -> io::Result<State> {
        match self.0.result {
            0 => Ok(State::from_raw(self.0.state)),
            error => Err(io::Error::from_raw_os_error(-error)),
        }
    }

    /// The timer, of which `None` is known before it was armed
    pub fn id(&self) -> Option<Id> {
        Some(Id(self.0.id)).filter(|id| id.0 != 0)
    }

    /// The time, as it was asked for or found
    pub fn deadline(&self) -> Duration {
        Duration::from_nanos(self.0.deadline)
    }

    /// The user data, as given or found
    pub fn user_data(&self) -> u64 {
        self.0.user_data
    }

    /// The period, as given or found
    pub fn period(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.0.interval)).filter(|period| !period.is_zero())
    }
}

/// A timer that expired
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Event(pub(crate) sys::RawEvent);

impl Event {
    /// The value that it was armed with; for a shared timer, its number
    pub fn user_data(&self) -> u64 {
        self.0.user_data
    }

    /// The timer; `None` of a shared one
    pub fn id(&self) -> Option<Id> {
        Some(Id(self.0.id)).filter(|id| id.0 != 0)
    }

    /// When it was to expire
    pub fn deadline(&self) -> Duration {
        Duration::from_nanos(self.0.deadline)
    }

    /// Periods that went by since
    pub fn overrun(&self) -> u32 {
        self.0.overrun
    }

    /// Does the timer go on?
    pub fn is_periodic(&self) -> bool {
        self.0.flags & sys::EVENT_PERIODIC != 0
    }

    /// Is it one of the shared timers?
    pub fn is_shared(&self) -> bool {
        self.0.flags & sys::EVENT_SHARED != 0
    }
}
