// SPDX-License-Identifier: LGPL-2.1-or-later
//! Pools: closures that are run later, by threads.
//!
//! ```
//! use std::{sync::mpsc, time::Duration};
//! use twheel::pool::{Pool, Run};
//!
//! # fn main() -> std::io::Result<()> {
//! let pool = Pool::new(2)?;
//! let (send, receive) = mpsc::channel();
//! pool.start(Duration::from_millis(20), move |_: &Run<'_>| send.send("now").unwrap())?;
//! assert_eq!(receive.recv().unwrap(), "now");
//!
//! let lease = pool.every(Duration::ZERO, Duration::from_secs(10), |_: &Run<'_>| { /* renew */ })?;
//! lease.cancel()?;
//! # Ok(())
//! # }
//! ```
//!
//! # Memory
//!
//! A task's closure is dropped as the last thing of its life: after its last run, within
//! [`Task::cancel`] when that took it out, or within [`Pool::stop`]. A [`Task`] that is dropped
//! leaves the task going. A [`Pool`] that is dropped is stopped, and waits for what runs; if
//! that is done by one of its own tasks, nobody waits.

use std::any::Any;
use std::cell::UnsafeCell;
use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::os::raw::{c_int, c_void};
use std::panic::{self, AssertUnwindSafe};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use crate::{invalid, ns, result, sys, tick_ns, Backend, Clock, When};

type Panics = dyn Fn(Box<dyn Any + Send>) + Send + Sync;
type Closure = dyn FnMut(&Run<'_>) -> ControlFlow<()> + Send;

/// What shall become of a task after a run: `()` for whatever was said before,
/// [`ControlFlow::Break`] for no further run
pub trait Outcome {
    /// A period as a [`ControlFlow`]
    fn flow(self) -> ControlFlow<()>;
}

impl Outcome for () {
    fn flow(self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

impl Outcome for ControlFlow<()> {
    fn flow(self) -> ControlFlow<()> {
        self
    }
}

/// How the periods of a task follow each other
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Periods {
    /// From its first time on, without drift; those that were missed are counted
    #[default]
    Fixed,
    /// Each from the end of the run before
    Delay,
    /// As `Fixed`, with a run for each that was missed
    CatchUp,
}

impl Periods {
    fn raw(self) -> u32 {
        match self {
            Periods::Fixed => 0,
            Periods::Delay => sys::FIXED_DELAY,
            Periods::CatchUp => sys::CATCH_UP,
        }
    }
}

/// Which tasks a pool that is stopped still runs, at their times
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Run tasks that have no period
    pub once: bool,
    /// Run tasks that have one
    pub periodic: bool,
}

/// The options of a pool
#[must_use]
pub struct Builder {
    threads: u32,
    capacity: u32,
    backend: Option<Backend>,
    clock: Option<Clock>,
    tick: Duration,
    on_panic: Option<Box<Panics>>,
}

impl Builder {
    /// A pool with `threads` threads, 1 to 4,096
    pub fn new(threads: u32) -> Builder {
        Builder {
            threads,
            capacity: 0,
            backend: None,
            clock: None,
            tick: Duration::ZERO,
            on_panic: None,
        }
    }

    /// Most tasks
    pub fn capacity(mut self, tasks: u32) -> Builder {
        self.capacity = tasks;
        self
    }

    /// Its wheel only there
    pub fn backend(mut self, backend: Backend) -> Builder {
        self.backend = Some(backend);
        self
    }

    /// Another clock than [`Clock::Monotonic`]
    pub fn clock(mut self, clock: Clock) -> Builder {
        self.clock = Some(clock);
        self
    }

    /// Length of a tick, 1 µs to 1 s
    pub fn tick(mut self, tick: Duration) -> Builder {
        self.tick = tick;
        self
    }

    /// Called with what a task panicked with. Such a task has no further run, whatever is here.
    pub fn on_panic(
        mut self,
        handler: impl Fn(Box<dyn Any + Send>) + Send + Sync + 'static,
    ) -> Builder {
        self.on_panic = Some(Box::new(handler));
        self
    }

    /// The pool
    pub fn build(self) -> io::Result<Pool> {
        if self.threads == 0 {
            return Err(invalid("a pool has 1 to 4,096 threads"));
        }
        let options = sys::PoolOptions {
            size: std::mem::size_of::<sys::PoolOptions>() as u32,
            flags: self.backend.map_or(0, |backend| backend.raw() as u32),
            threads: self.threads,
            capacity: self.capacity,
            clock: self.clock.map_or(0, Clock::raw),
            __reserved: 0,
            tick: tick_ns(self.tick)?,
            spawn: None,
            arg: ptr::null_mut(),
        };
        let mut raw = ptr::null_mut();
        // SAFETY: the options are whole, and `raw` is where the pool is to be written to.
        result(unsafe { sys::twheel_pool_new(&options, &mut raw) })?;
        // SAFETY: with success, it was.
        let raw = unsafe { NonNull::new_unchecked(raw) };
        Ok(Pool { inner: Arc::new(Inner { raw, on_panic: self.on_panic }) })
    }
}

/// The library's pool, which is there as long as a task may ask for it: all have a share.
struct Inner {
    raw: NonNull<sys::TwheelPool>,
    on_panic: Option<Box<Panics>>,
}

// SAFETY: all functions of a pool may be called by any thread, but for the one that frees it,
// which is called when nobody else has it; and `on_panic` is `Send` and `Sync`.
unsafe impl Send for Inner {}
// SAFETY: as above
unsafe impl Sync for Inner {}

impl Inner {
    fn stop(&self, flags: u32) -> c_int {
        // SAFETY: the pool is there. Without `left`, the end of each task is called.
        unsafe { sys::twheel_pool_stop(self.raw.as_ptr(), flags, None, ptr::null_mut()) }
    }
}

/// A pool that is to be freed by a thread that is not its own
struct ToFree(NonNull<sys::TwheelPool>);

// SAFETY: as for `Inner`
unsafe impl Send for ToFree {}

impl ToFree {
    fn free(&self) -> c_int {
        // SAFETY: nobody has the pool any more but its own workers, which don't have it for
        // long: no task is in it, as each of these has a share of `Inner`.
        unsafe { sys::twheel_pool_free(self.0.as_ptr()) }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let pool = ToFree(self.raw);
        if pool.free() == -sys::EDEADLK {
            // The last share was that of a task which ends here, in a worker. Another thread
            // waits for it. (If there can be none, the pool stays: it can't be freed here.)
            let freed = thread::Builder::new().spawn(move || {
                // (The whole of it is to be moved.)
                let pool = pool;
                pool.free()
            });
            drop(freed);
        }
    }
}

/// A task's memory. Its place does not change: it is in an `Arc`, of which the library has a
/// share from the start of the task until its end.
struct Node {
    /// The library's, under the lock of its pool
    task: UnsafeCell<sys::Task>,
    /// Used by the run and the end of the task only, of which there is one at a time
    closure: UnsafeCell<Option<Box<Closure>>>,
    pool: Arc<Inner>,
}

// SAFETY: `task` is changed by the library only, under its lock; `closure` is used by one thread
// at a time, one after the other by that lock, and may be sent to each.
unsafe impl Send for Node {}
// SAFETY: as above
unsafe impl Sync for Node {}

impl Node {
    fn task(&self) -> *mut sys::Task {
        self.task.get()
    }
}

/// Call something that must not panic; if it does, that goes to the handler.
fn guarded<T>(pool: &Inner, call: impl FnOnce() -> T) -> Option<T> {
    let payload = match panic::catch_unwind(AssertUnwindSafe(call)) {
        Ok(value) => return Some(value),
        Err(payload) => payload,
    };
    let told = panic::catch_unwind(AssertUnwindSafe(|| match &pool.on_panic {
        Some(handler) => handler(payload),
        None => drop(payload),
    }));
    if let Err(payload) = told {
        discard(payload);
    }
    None
}

/// What somebody panicked with, and may panic when it is dropped: that is not dropped any more.
fn discard(payload: Box<dyn Any + Send>) {
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(payload);
    }
}

/// The run of each task. The library calls it by one thread at a time.
unsafe extern "C" fn run(task: *mut sys::Task, why: *const sys::Run) -> c_int {
    // SAFETY: `arg` is the node, of which the library has a share until `end`.
    let node = unsafe { &*(*task).arg.cast::<Node>() };
    // SAFETY: the library says it for as long as this call lasts.
    let why = unsafe { &*why };
    // SAFETY: nobody else uses the closure: the library runs a task by one thread at a time,
    // and calls its end afterwards.
    let closure = unsafe { &mut *node.closure.get() };
    let run = Run { node, why };
    let flow = guarded(&node.pool, || closure.as_mut().map(|closure| closure(&run)));
    match flow {
        Some(Some(ControlFlow::Continue(()))) => 0,
        Some(_) => -sys::ECANCELED,
        None => -sys::EIO,
    }
}

/// The end of each task, which is called once for its start.
unsafe extern "C" fn end(task: *mut sys::Task, _why: c_int) {
    // SAFETY: this is the share that `Pool::launch` gave away, and the library does not look at
    // the task any more.
    let node = unsafe { Arc::from_raw((*task).arg as *const Node) };
    // SAFETY: as in `run`
    let closure = unsafe { (*node.closure.get()).take() };
    guarded(&node.pool, || drop(closure));
    // The pool outlives this, which has a share; when it is the last, see `Inner::drop`. Then
    // it is the handler's end as well, and that may panic.
    if let Err(payload) = panic::catch_unwind(AssertUnwindSafe(|| drop(node))) {
        discard(payload);
    }
}

/// A pool of threads that run tasks
pub struct Pool {
    inner: Arc<Inner>,
}

impl Pool {
    /// A pool with `threads` threads
    pub fn new(threads: u32) -> io::Result<Pool> {
        Builder::new(threads).build()
    }

    /// Run that once, so long from now. [`io::ErrorKind::BrokenPipe`] when the pool was stopped.
    pub fn start<F, O>(&self, delay: Duration, closure: F) -> io::Result<Task>
    where
        F: FnMut(&Run<'_>) -> O + Send + 'static,
        O: Outcome,
    {
        self.start_at(When::In(delay), None, Periods::Fixed, closure)
    }

    /// Run that so long from now, and again each period.
    pub fn every<F, O>(&self, delay: Duration, period: Duration, closure: F) -> io::Result<Task>
    where
        F: FnMut(&Run<'_>) -> O + Send + 'static,
        O: Outcome,
    {
        self.start_at(When::In(delay), Some(period), Periods::Fixed, closure)
    }

    /// Run that then, and if there is a period, again.
    pub fn start_at<F, O>(
        &self,
        when: When,
        period: Option<Duration>,
        periods: Periods,
        mut closure: F,
    ) -> io::Result<Task>
    where
        F: FnMut(&Run<'_>) -> O + Send + 'static,
        O: Outcome,
    {
        self.launch(when, period, periods, Box::new(move |run| closure(run).flow()))
    }

    fn launch(
        &self,
        when: When,
        period: Option<Duration>,
        periods: Periods,
        closure: Box<Closure>,
    ) -> io::Result<Task> {
        let node = Arc::new(Node {
            task: UnsafeCell::new(sys::Task {
                run: Some(run),
                next: None,
                end: Some(end),
                arg: ptr::null_mut(),
                pool: ptr::null_mut(),
                link: ptr::null_mut(),
                id: 0,
                deadline: 0,
                period: 0,
                state: 0,
                flags: 0,
                number: 0,
                order: 0,
            }),
            closure: UnsafeCell::new(Some(closure)),
            pool: Arc::clone(&self.inner),
        });
        let shared = Arc::into_raw(Arc::clone(&node));
        let (flags, time) = raw_times(when, periods);
        // SAFETY: nobody else has the node yet. The pool is there; the task is in its place
        // until `end`, as the library has a share of it from here on.
        let ret = unsafe {
            (*node.task()).arg = shared as *mut c_void;
            sys::twheel_task_start(self.inner.raw.as_ptr(), node.task(), flags, time, raw(period))
        };
        if let Err(error) = result(ret) {
            // SAFETY: it was not started, so nobody else takes that share back.
            drop(unsafe { Arc::from_raw(shared) });
            return Err(if ret == -sys::ESHUTDOWN {
                io::Error::new(io::ErrorKind::BrokenPipe, "the pool was stopped")
            } else {
                error
            });
        }
        Ok(Task { node })
    }

    /// Let no task be started any more, run only those that are said, and wait until all is
    /// over. From within a run it gives the error number `EDEADLK`: then
    /// nobody waited.
    pub fn stop(&self, keep: Keep) -> io::Result<()> {
        let once = if keep.once { sys::RUN_ONCE } else { 0 };
        let periodic = if keep.periodic { sys::RUN_PERIODIC } else { 0 };
        result(self.inner.stop(once | periodic)).map(drop)
    }
}

fn raw_times(when: When, periods: Periods) -> (u32, i64) {
    let (flags, time) = when.raw();
    // (It is no more than that.)
    (u32::from(flags) | periods.raw(), i64::try_from(time).unwrap_or(i64::MAX))
}

/// A period of less than a nanosecond is none
fn raw(period: Option<Duration>) -> u64 {
    period.map_or(0, |period| ns(period).max(1))
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.inner.stop(0);
    }
}

impl fmt::Debug for Pool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pool").finish_non_exhaustive()
    }
}

/// What was begun by [`Pool::start`]. A clone is the same task; that all are dropped leaves it
/// going.
#[derive(Clone)]
pub struct Task {
    node: Arc<Node>,
}

impl Task {
    /// Cancel it: `Ok` when it was waiting, and then its closure is dropped, and it is not run
    /// any more. [`io::ErrorKind::NotFound`] when it is over; the error number `EINPROGRESS`
    /// while it runs: then there is no further run.
    pub fn cancel(&self) -> io::Result<()> {
        // SAFETY: the task's memory is there as long as `self`, and its pool too, as the node
        // has a share of it.
        result(unsafe { sys::twheel_task_cancel(self.node.task()) }).map(drop)
    }

    /// The same, and wait until what runs is over. `Ok` when it was waiting or running; from
    /// within its own run the error number `EDEADLK`: then there is no further run.
    pub fn cancel_wait(&self) -> io::Result<()> {
        // SAFETY: as in `cancel`; its end does not free it, as `self` has a share, and does not
        // start it again.
        result(unsafe { sys::twheel_task_cancel_wait(self.node.task()) }).map(drop)
    }

    /// Give it another time, and maybe a period. While it runs, these are for its next run.
    /// [`io::ErrorKind::NotFound`] when it is over.
    pub fn reset(&self, when: When, period: Option<Duration>, periods: Periods) -> io::Result<()> {
        let (flags, time) = raw_times(when, periods);
        // SAFETY: as in `cancel`
        let ret = unsafe { sys::twheel_task_reset(self.node.task(), flags, time, raw(period)) };
        result(ret).map(drop)
    }

    /// Run it at once; its period goes on from here. While it runs, once more.
    pub fn run_now(&self) -> io::Result<()> {
        // SAFETY: as in `cancel`
        result(unsafe { sys::twheel_task_run_now(self.node.task()) }).map(drop)
    }
}

impl fmt::Debug for Task {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Task").finish_non_exhaustive()
    }
}

/// The run for which a closure is called
pub struct Run<'a> {
    node: &'a Node,
    why: &'a sys::Run,
}

impl Run<'_> {
    /// For which time it was to be run
    pub fn deadline(&self) -> Duration {
        Duration::from_nanos(self.why.deadline)
    }

    /// Periods that went by since, and have no run of their own
    pub fn missed(&self) -> u64 {
        self.why.missed
    }

    /// The task itself: to be run again at another time, or not
    pub fn task(&self) -> Task {
        let node: *const Node = self.node;
        // SAFETY: the node is in an `Arc`, of which the library has a share while it runs; this
        // is one more.
        unsafe {
            Arc::increment_strong_count(node);
            Task { node: Arc::from_raw(node) }
        }
    }
}

impl fmt::Debug for Run<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Run").field("deadline", &self.deadline()).finish_non_exhaustive()
    }
}
