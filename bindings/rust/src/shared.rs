// SPDX-License-Identifier: LGPL-2.1-or-later
//! Shared timers: their deadlines are words of memory that the program and the kernel
//! share, so that a timeout is pushed ahead by one atomic operation. twheel(7) has the
//! protocol, and says why nothing is lost.
//!
//! One thread at a time may start or cancel a timer: here a [`Timer`] belongs to who has it.
//!
//! ```
//! use std::time::Duration;
//! use twheel::{shared::SharedWheel, Options};
//!
//! # fn main() -> std::io::Result<()> {
//! let wheel = match SharedWheel::open(&Options::new(), 1000) {
//!     Err(_) => return Ok(()), // only where the module is
//!     Ok(wheel) => wheel,
//! };
//! let mut timeout = wheel.timer().expect("there are 1,000");
//! timeout.arm(wheel.now() + Duration::from_secs(30))?;
//! timeout.arm(wheel.now() + Duration::from_secs(60))?; // pushed ahead
//! timeout.cancel();
//!
//! let mut numbers = [0; 256];
//! assert!(wheel.take(&mut numbers).is_empty()); // nothing has expired
//! # Ok(())
//! # }
//! ```

use std::fmt;
use std::io;
use std::mem::MaybeUninit;
use std::os::raw::c_ulong;
use std::os::unix::io::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::{ns, result, sys, Options, State, Wheel};

/// Numbers that nobody has
#[derive(Default)]
struct Numbers {
    next: u32,
    free: Vec<u32>,
}

struct Inner {
    area: sys::Area,
    numbers: Mutex<Numbers>,
    /// After the area, which it must outlive
    wheel: Wheel,
}

// SAFETY: what the area points to is changed by atomic operations only, and stays mapped
// until `Inner` is dropped; the area itself is constant.
unsafe impl Send for Inner {}
// SAFETY: as above
unsafe impl Sync for Inner {}

impl Inner {
    /// The atomic word number `i` of one of the arrays of the area
    fn at(&self, array: *mut u64, i: u32) -> &AtomicU64 {
        // SAFETY: the callers pass an array of the area and an index within it, as the kernel
        // laid the area out; it is aligned, mapped as long as `self` is there, and nobody
        // uses it but by atomic operations.
        unsafe { &*array.add(i as usize).cast::<AtomicU64>() }
    }

    fn word(&self, n: u32) -> &AtomicU64 {
        assert!(n < self.area.nr);
        self.at(self.area.words, n)
    }

    fn head(&self) -> &AtomicU32 {
        // SAFETY: as in `at`; the head of the area is there
        unsafe { &*std::ptr::addr_of!((*self.area.shared).head).cast::<AtomicU32>() }
    }

    fn tail(&self) -> &AtomicU32 {
        // SAFETY: as in `head`
        unsafe { &*std::ptr::addr_of!((*self.area.shared).tail).cast::<AtomicU32>() }
    }

    fn next_wake(&self) -> &AtomicU64 {
        // SAFETY: as in `head`
        unsafe { &*std::ptr::addr_of!((*self.area.shared).next_wake).cast::<AtomicU64>() }
    }

    fn is_bpf(&self) -> bool {
        // SAFETY: as in `head`; the second word has the features, which do not change.
        unsafe { (*self.area.shared).constant[1] & sys::AREA_BPF != 0 }
    }

    fn entry(&self, i: u32) -> u32 {
        let at = (i & self.area.ring_mask) as usize;
        // SAFETY: the mask keeps it within the ring; the rest as in `at`
        unsafe { &*self.area.ring.add(at).cast::<AtomicU32>() }.load(Ordering::Relaxed)
    }

    /// Steps 2 to 5 of "Arm and arm again" in twheel(7)
    fn arm(&self, n: u32, deadline: u64) -> io::Result<State> {
        let word = deadline.min(sys::WORD_NEVER) | sys::WORD_ARMED;
        let old = self.word(n).swap(word, Ordering::SeqCst);
        if old > word {
            self.at(self.area.dirty, n / 64).fetch_or(1 << (n % 64), Ordering::SeqCst);
            let group = n >> self.area.group_shift;
            let marked = self.at(self.area.groups, group / 64).load(Ordering::SeqCst);
            if (marked >> (group % 64)) & 1 == 0 || word < self.next_wake().load(Ordering::SeqCst) {
                self.push(group, word)?;
            }
        }
        Ok(match old {
            _ if old & sys::WORD_FIRED != 0 => State::Ready,
            _ if old & sys::WORD_ARMED != 0 => State::Pending,
            _ => State::None,
        })
    }

    #[cold]
    fn push(&self, group: u32, word: u64) -> io::Result<()> {
        let area = &self.area;
        // SAFETY: the area is mapped, and the group is one of it.
        let ret = unsafe {
            sys::twheel_internal_push(area.shared, area.fd, c_ulong::from(group), word)
        };
        result(ret).map(drop)
    }

    fn cancel(&self, n: u32) -> State {
        let word = self.word(n);
        if word.fetch_and(!sys::WORD_ARMED, Ordering::SeqCst) & sys::WORD_ARMED != 0 {
            State::Pending
        } else if self.fired(n) {
            State::Ready
        } else {
            State::None
        }
    }

    /// Take the expiry of that timer, if it is there to be taken
    fn fired(&self, n: u32) -> bool {
        self.word(n).fetch_and(!sys::WORD_FIRED, Ordering::SeqCst) & sys::WORD_FIRED != 0
    }

    fn numbers(&self) -> std::sync::MutexGuard<'_, Numbers> {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        // SAFETY: nobody uses the mapping any more: references to it don't outlive `Inner`.
        unsafe { sys::twheel_shared_unmap(&mut self.area) }
    }
}

/// A wheel with shared timers; ordinary ones can be used beside them ([`SharedWheel::wheel`]).
/// A clone is the same wheel.
#[derive(Clone)]
pub struct SharedWheel {
    inner: Arc<Inner>,
}

impl SharedWheel {
    /// A new wheel with `count` shared timers, up to 2^24. Fails where the module is not, with
    /// the error number `ENODEV`.
    pub fn open(options: &Options, timers: u32) -> io::Result<SharedWheel> {
        if timers == 0 {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        SharedWheel::map(options.open_with_shared(timers)?)
    }

    /// The shared timers of a wheel that came from elsewhere, as they were left there. All
    /// numbers are free at first; see [`SharedWheel::recover`] for who takes over.
    pub fn map(wheel: Wheel) -> io::Result<SharedWheel> {
        let mut area = MaybeUninit::uninit();
        // SAFETY: the wheel is there, and `area` is where it is to be written to.
        result(unsafe { sys::twheel_shared_map(wheel.raw(), area.as_mut_ptr()) })?;
        // SAFETY: with success, it was.
        let area = unsafe { area.assume_init() };
        let numbers = Mutex::default();
        Ok(SharedWheel { inner: Arc::new(Inner { area, numbers, wheel }) })
    }

    /// The wheel, for its ordinary timers, and for reading events of both kinds
    pub fn wheel(&self) -> &Wheel {
        &self.inner.wheel
    }

    /// The time of its clock
    pub fn now(&self) -> Duration {
        self.inner.wheel.now()
    }

    /// A timer that nobody has, or `None` when there is none left
    pub fn timer(&self) -> Option<Timer> {
        let mut numbers = self.inner.numbers();
        let n = match numbers.free.pop() {
            Some(n) => n,
            None if numbers.next < self.inner.area.nr => {
                numbers.next += 1;
                numbers.next - 1
            }
            None => return None,
        };
        Some(Timer { inner: Arc::clone(&self.inner), n })
    }

    /// Take expiries: numbers of timers, in no particular order, of which `numbers` has room
    /// for as many as there are to be at a time. Poll the descriptor to wait; then take until
    /// there is none.
    ///
    /// A timer can be started or cancelled until its expiry is taken. What was taken is a
    /// number: if other threads drop timers and get new ones meanwhile, it may be that of a
    /// timer that is another one by now.
    pub fn take<'a>(&self, numbers: &'a mut [u32]) -> &'a [u32] {
        let inner = &*self.inner;
        let room = u32::try_from(numbers.len()).unwrap_or(u32::MAX);
        loop {
            let head = inner.head().load(Ordering::Acquire);
            let tail = inner.tail().load(Ordering::Acquire);
            let nr = tail.wrapping_sub(head).min(room).min(inner.area.ring_mask + 1);
            if nr == 0 {
                // SAFETY: the area is mapped.
                if room > 0 && inner.is_bpf() && unsafe { sys::twheel_internal_seen(&inner.area) } != 0 {
                    continue;
                }
                return &[];
            }
            for (i, number) in (0..nr).zip(numbers.iter_mut()) {
                *number = inner.entry(head.wrapping_add(i));
            }
            let next = head.wrapping_add(nr);
            let moved =
                inner.head().compare_exchange(head, next, Ordering::Release, Ordering::Relaxed);
            if moved.is_err() {
                continue;
            }
            let taken = keep(&mut numbers[..nr as usize], |n| n < inner.area.nr && inner.fired(n));
            if taken > 0 {
                return &numbers[..taken];
            }
        }
    }

    /// Have the kernel look at all timers again, of which a process may have died while it
    /// started one. Nobody may start, cancel or take any meanwhile.
    pub fn recover(&self) -> io::Result<()> {
        // SAFETY: the area is mapped; all that this changes is changed by atomic operations.
        result(unsafe { sys::twheel_shared_recover(&self.inner.area) }).map(drop)
    }
}

/// Move what is to be kept to the front, and say how many those are
fn keep(numbers: &mut [u32], is_kept: impl Fn(u32) -> bool) -> usize {
    let mut kept = 0;
    for i in 0..numbers.len() {
        if is_kept(numbers[i]) {
            numbers[kept] = numbers[i];
            kept += 1;
        }
    }
    kept
}

impl AsFd for SharedWheel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.wheel.as_fd()
    }
}

impl AsRawFd for SharedWheel {
    fn as_raw_fd(&self) -> RawFd {
        self.inner.wheel.as_raw_fd()
    }
}

impl fmt::Debug for SharedWheel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedWheel").field("timers", &self.inner.area.nr).finish_non_exhaustive()
    }
}

/// A shared timer. It keeps the wheel; when it is dropped, it is cancelled, and its number is
/// another's.
pub struct Timer {
    inner: Arc<Inner>,
    n: u32,
}

impl Timer {
    /// Its number, as [`SharedWheel::take`] gives it
    pub fn number(&self) -> u32 {
        self.n
    }

    /// Start it, or give it another deadline: a time of the wheel's clock, of which those after
    /// the year 2116 do not come. Says in which state it was: [`State::Ready`] of one whose
    /// expiry was not taken, and is not any more. With an error it may be late.
    pub fn arm(&mut self, deadline: Duration) -> io::Result<State> {
        self.inner.arm(self.n, ns(deadline))
    }

    /// Cancel it. With another state than [`State::None`] nobody takes an expiry of it.
    pub fn cancel(&mut self) -> State {
        self.inner.cancel(self.n)
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.inner.cancel(self.n);
        self.inner.numbers().free.push(self.n);
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer").field("number", &self.n).finish_non_exhaustive()
    }
}
