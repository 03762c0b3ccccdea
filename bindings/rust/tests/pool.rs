// SPDX-License-Identifier: LGPL-2.1-or-later
//! Pools: what is run, what is dropped when, and by whom. Memory is looked at by the
//! sanitizer that these are linked to, see tests/bindings/rust/run.

use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use twheel::pool::{Builder, Keep, Periods, Pool, Run, Task};
use twheel::When;

const MS: Duration = Duration::from_millis(1);
const LONG: Duration = Duration::from_secs(3600);
const PATIENCE: Duration = Duration::from_secs(60);

const EDEADLK: i32 = 35;
const EINPROGRESS: i32 = 115;

fn pool(threads: u32) -> Pool {
    Builder::new(threads).tick(MS).build().unwrap()
}

fn error<T: std::fmt::Debug>(result: std::io::Result<T>) -> i32 {
    result.unwrap_err().raw_os_error().unwrap()
}

/// Says where it is dropped
struct Dropped<F: FnMut()>(F);

impl<F: FnMut()> Drop for Dropped<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Has the closure that this is called in own something
fn owns<T>(_: &T) {}

/// Counts how often it, which a closure owns, was dropped
fn counted(count: &Arc<AtomicUsize>) -> Dropped<impl FnMut()> {
    let count = Arc::clone(count);
    Dropped(move || {
        count.fetch_add(1, Ordering::SeqCst);
    })
}

#[test]
fn once() {
    let pool = pool(2);
    let (send, receive) = channel();
    let task = pool
        .start(10 * MS, move |run: &Run<'_>| send.send((run.deadline(), run.missed())).unwrap())
        .unwrap();
    assert_eq!(receive.recv_timeout(PATIENCE).unwrap().1, 0);
    // Its closure is gone, and with it the sender
    assert!(receive.recv_timeout(PATIENCE).is_err());
    assert!(task.cancel().is_err());
    task.cancel_wait().ok();
    assert_eq!(task.cancel().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(task.run_now().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(Pool::new(0).is_err());
    assert_eq!(Builder::new(1).tick(LONG).build().unwrap_err().kind(), ErrorKind::InvalidInput);
    assert_eq!(Periods::default(), Periods::Fixed);
    assert!(Pool::new(5000).is_err());
}

#[test]
fn periods_until_break() {
    let pool = pool(1);
    for periods in [Periods::Fixed, Periods::Delay, Periods::CatchUp] {
        let (send, receive) = channel();
        let mut n = 0;
        pool.start_at(When::In(MS), Some(MS), periods, move |_: &Run<'_>| {
            n += 1;
            send.send(n).unwrap();
            if n == 5 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert_eq!(receive.iter().collect::<Vec<_>>(), [1, 2, 3, 4, 5]);
    }
}

#[test]
fn cancel_drops_at_once() {
    let pool = pool(2);
    let drops = Arc::new(AtomicUsize::new(0));
    let tasks: Vec<Task> = (0..1000)
        .map(|_| {
            let counted = counted(&drops);
            pool.start(LONG, move |_: &Run<'_>| owns(&counted)).unwrap()
        })
        .collect();
    for (n, task) in tasks.iter().enumerate() {
        assert_eq!(drops.load(Ordering::SeqCst), n);
        task.cancel().unwrap();
        assert_eq!(error(task.cancel()), 2);
    }
    assert_eq!(drops.load(Ordering::SeqCst), 1000);
}

#[test]
fn a_dropped_pool_drops_its_tasks() {
    let drops = Arc::new(AtomicUsize::new(0));
    let pool = pool(2);
    let mut kept = Vec::new();
    for n in 0..100 {
        let counted = counted(&drops);
        let task = pool.start(LONG, move |_: &Run<'_>| owns(&counted)).unwrap();
        if n % 2 == 0 {
            kept.push(task);
        }
    }
    assert_eq!(drops.load(Ordering::SeqCst), 0);
    drop(pool);
    assert_eq!(drops.load(Ordering::SeqCst), 100);
    // These know that it is over, in whatever order they go
    for task in &kept {
        assert_eq!(task.cancel().unwrap_err().kind(), ErrorKind::NotFound);
        assert!(task.cancel_wait().is_err() && task.reset(When::In(MS), None, Periods::Fixed).is_err());
    }
}

#[test]
fn panics_are_caught() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let to = Arc::clone(&said);
    let pool = Builder::new(1)
        .tick(MS)
        .on_panic(move |payload| {
            to.lock().unwrap().push(payload.downcast_ref::<String>().cloned());
            // Not even that
            panic!("in the handler");
        })
        .build()
        .unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    for n in 0..3 {
        let counted = counted(&drops);
        pool.every::<_, ()>(MS, MS, move |_: &Run<'_>| {
            owns(&counted);
            panic!("number {}", n);
        })
        .unwrap();
    }
    // A closure whose end panics
    let bad = Dropped(|| panic!("at the end"));
    let last = pool.start(MS, move |_: &Run<'_>| owns(&bad)).unwrap();
    pool.stop(Keep { once: true, periodic: true }).unwrap();
    assert_eq!(drops.load(Ordering::SeqCst), 3);
    let mut said = said.lock().unwrap().clone();
    said.sort();
    let numbers = (0..3).map(|n| Some(format!("number {}", n)));
    assert_eq!(said, [None].into_iter().chain(numbers).collect::<Vec<_>>());
    assert!(last.cancel().is_err());
}

#[test]
fn from_within_its_own_run() {
    let pool = pool(2);
    let (send, receive) = channel();
    pool.every(MS, MS, move |run: &Run<'_>| {
        let task = run.task();
        send.send((error(task.cancel()), error(task.cancel_wait()))).unwrap();
        assert_eq!(error(task.run_now()), 2);
    })
    .unwrap();
    assert_eq!(receive.iter().collect::<Vec<_>>(), [(EINPROGRESS, EDEADLK)]);

    // One that has no period says when it is to be run again
    let (send, receive) = channel();
    let mut n = 0;
    pool.start(MS, move |run: &Run<'_>| {
        n += 1;
        send.send(n).unwrap();
        if n < 4 {
            run.task().reset(When::In(MS), None, Periods::Fixed).unwrap();
        }
    })
    .unwrap();
    assert_eq!(receive.iter().collect::<Vec<_>>(), [1, 2, 3, 4]);
}

#[test]
fn cancel_wait_waits() {
    let pool = pool(2);
    let (begun, begins) = channel();
    let (go, goes) = channel::<()>();
    let over = Arc::new(AtomicUsize::new(0));
    let counted = counted(&over);
    let task = pool
        .every(MS, MS, move |_: &Run<'_>| {
            begun.send(()).unwrap();
            goes.recv().ok();
            owns(&counted);
        })
        .unwrap();
    begins.recv_timeout(PATIENCE).unwrap();
    assert_eq!(error(task.cancel()), EINPROGRESS);
    assert_eq!(over.load(Ordering::SeqCst), 0);
    // If that comes to it before the task is over, it waits; else there is nothing to wait for.
    let waits = thread::spawn(move || {
        let waited = task.cancel_wait();
        (waited.map_or_else(|error| error.kind() == ErrorKind::NotFound, |()| true),
         over.load(Ordering::SeqCst))
    });
    go.send(()).unwrap();
    assert_eq!(waits.join().unwrap(), (true, 1));
    assert!(begins.try_recv().is_err());
}

/// The task has itself: that ends with its closure
#[test]
fn a_task_that_has_its_own_handle() {
    let pool = pool(1);
    let own: Arc<Mutex<Option<Task>>> = Arc::default();
    let weak = Arc::downgrade(&own);
    let inside = Arc::clone(&own);
    let task = pool.start(LONG, move |_: &Run<'_>| drop(inside.lock().unwrap().take())).unwrap();
    *own.lock().unwrap() = Some(task);
    drop(own);
    assert!(weak.upgrade().is_some());
    drop(pool);
    assert!(weak.upgrade().is_none());
}

/// A pool that ends within one of its tasks, as that has the last of it
#[test]
fn a_pool_that_is_dropped_by_its_own_task() {
    for keep_handle in [false, true] {
        let (send, receive) = channel();
        let drops = Arc::new(AtomicUsize::new(0));
        let own: Arc<Mutex<Option<Pool>>> = Arc::new(Mutex::new(Some(pool(3))));
        let inside = Arc::clone(&own);
        let guard = own.lock().unwrap();
        let pool = guard.as_ref().unwrap();
        let mut others = Vec::new();
        for _ in 0..10 {
            let counted = counted(&drops);
            others.push(pool.start(LONG, move |_: &Run<'_>| owns(&counted)).unwrap());
        }
        let mine = counted(&drops);
        pool.start(MS, move |_: &Run<'_>| {
            owns(&mine);
            let pool = inside.lock().unwrap().take().unwrap();
            assert_eq!(error(pool.stop(Keep::default())), EDEADLK);
            drop(pool);
            send.send(()).unwrap();
        })
        .unwrap();
        if !keep_handle {
            others.clear();
        }
        drop(guard);
        receive.recv_timeout(PATIENCE).unwrap();
        // Gone with the closure, after its run
        assert!(receive.recv_timeout(PATIENCE).is_err());
        for task in others {
            assert_eq!(task.cancel().unwrap_err().kind(), ErrorKind::NotFound);
        }
        while drops.load(Ordering::SeqCst) < 11 {
            thread::yield_now();
        }
    }
}

#[test]
fn stop_keeps() {
    let pool = pool(2);
    let runs = Arc::new(AtomicUsize::new(0));
    for _ in 0..10 {
        let runs = Arc::clone(&runs);
        pool.start(20 * MS, move |_: &Run<'_>| {
            runs.fetch_add(1, Ordering::SeqCst);
        })
        .unwrap();
    }
    pool.every::<_, ()>(LONG, LONG, |_: &Run<'_>| panic!("not to be run")).unwrap();
    pool.stop(Keep { once: true, periodic: false }).unwrap();
    assert_eq!(runs.load(Ordering::SeqCst), 10);
    let error = pool.start(MS, |_: &Run<'_>| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::BrokenPipe);
    assert_eq!(error.to_string(), "the pool was stopped");
}

#[test]
fn capacity() {
    let pool = Builder::new(1).capacity(1).build().unwrap();
    let drops = Arc::new(AtomicUsize::new(0));
    let (a, b) = (counted(&drops), counted(&drops));
    pool.start(LONG, move |_: &Run<'_>| owns(&a)).unwrap();
    assert!(pool.start(LONG, move |_: &Run<'_>| owns(&b)).is_err());
    assert_eq!(drops.load(Ordering::SeqCst), 1);
}

/// Threads that start, reset and cancel what the others do, while it runs
#[test]
fn all_at_once() {
    let pool = pool(4);
    let made = Arc::new(AtomicUsize::new(0));
    let drops = Arc::new(AtomicUsize::new(0));
    let tasks: Arc<Mutex<Vec<Task>>> = Arc::default();
    thread::scope(|scope| {
        for thread in 0..4u32 {
            let (pool, made, drops, tasks) = (&pool, &made, &drops, &tasks);
            scope.spawn(move || {
                let mut random = thread;
                for _ in 0..5000 {
                    random = random.wrapping_mul(1664525).wrapping_add(1013904223);
                    let counted = counted(drops);
                    made.fetch_add(1, Ordering::SeqCst);
                    let others = Arc::clone(tasks);
                    let task = pool
                        .every(MS * (random >> 28), MS, move |run: &Run<'_>| {
                            owns(&counted);
                            let other = others.lock().unwrap().pop();
                            if let Some(other) = other {
                                other.cancel().ok();
                            }
                            drop(run.task());
                        })
                        .unwrap();
                    let other = tasks.lock().unwrap().pop();
                    tasks.lock().unwrap().push(task);
                    match (other, (random >> 26) & 3) {
                        (Some(other), 0) => drop(other.cancel_wait()),
                        (Some(other), 1) => drop(other.reset(When::In(MS), None, Periods::Fixed)),
                        (Some(other), 2) => drop(other.cancel()),
                        _ => (),
                    }
                }
            });
        }
    });
    drop(pool);
    assert_eq!(made.load(Ordering::SeqCst), 20_000);
    assert_eq!(drops.load(Ordering::SeqCst), 20_000);
}
