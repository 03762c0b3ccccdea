// SPDX-License-Identifier: LGPL-2.1-or-later
//! Shared timers, which only the kernel has: with `--ignored`, where the module is.

use std::os::unix::io::AsRawFd;
use std::thread;
use std::time::{Duration, Instant};

use twheel::shared::{SharedWheel, Timer};
use twheel::{Options, State};

const MS: Duration = Duration::from_millis(1);

fn open(timers: u32) -> SharedWheel {
    SharedWheel::open(&Options::new().nonblocking().tick(MS), timers).unwrap()
}

/// What is taken until there were `count`
fn take_all(wheel: &SharedWheel, nr: usize) -> Vec<u32> {
    let end = Instant::now() + Duration::from_secs(60);
    let mut numbers = [0; 64];
    let mut all = Vec::new();
    while all.len() < nr {
        assert!(Instant::now() < end, "lost: {} of {}", nr - all.len(), nr);
        all.extend_from_slice(wheel.take(&mut numbers));
        thread::yield_now();
    }
    all
}

#[test]
#[ignore = "wants the module"]
fn states() {
    let wheel = open(3);
    let mut timer = wheel.timer().unwrap();
    assert_eq!(timer.cancel(), State::None);
    assert_eq!(timer.arm(wheel.now() + 1000 * MS).unwrap(), State::None);
    assert_eq!(timer.arm(wheel.now() + 2000 * MS).unwrap(), State::Pending);
    assert_eq!(timer.cancel(), State::Pending);
    assert_eq!(timer.arm(Duration::ZERO).unwrap(), State::None);
    assert_eq!(take_all(&wheel, 1), [timer.number()]);
    assert_eq!(timer.cancel(), State::None);
    timer.arm(Duration::ZERO).unwrap();
    // The timer has expired, but is not taken
    assert_eq!(timer.arm(Duration::MAX).unwrap(), State::Ready);
    assert_eq!(timer.cancel(), State::Pending);
    assert!(wheel.take(&mut [0; 8]).is_empty());
    assert!(wheel.as_raw_fd() >= 0);
    wheel.recover().unwrap();
}

#[test]
#[ignore = "wants the module"]
fn numbers_are_given_back() {
    let wheel = open(2);
    let (a, b) = (wheel.timer().unwrap(), wheel.timer().unwrap());
    assert!(wheel.timer().is_none());
    assert_ne!(a.number(), b.number());
    let number = a.number();
    drop(a);
    assert_eq!(wheel.timer().unwrap().number(), number);
    // A timer keeps the wheel
    drop(wheel);
    drop(b);
}

#[test]
#[ignore = "wants the module"]
fn a_dropped_timer_does_not_expire() {
    let wheel = open(2);
    let mut timer = wheel.timer().unwrap();
    timer.arm(Duration::ZERO).unwrap();
    drop(timer);
    let mut other = wheel.timer().unwrap();
    assert!(wheel.take(&mut [0; 8]).is_empty());
    other.arm(wheel.now() + 5 * MS).unwrap();
    assert_eq!(take_all(&wheel, 1), [other.number()]);
}

#[test]
#[ignore = "wants the module"]
fn each_once_and_none_early() {
    let wheel = open(10_000);
    let mut timers: Vec<Timer> = (0..10_000).map(|_| wheel.timer().unwrap()).collect();
    let start = wheel.now();
    let deadline = |n: u32| start + MS * (20 + n % 100);
    thread::scope(|scope| {
        for part in timers.chunks_mut(2_500) {
            scope.spawn(move || {
                for timer in part {
                    timer.arm(deadline(timer.number()) - 5 * MS).unwrap();
                    if timer.arm(deadline(timer.number())).unwrap() == State::None {
                        panic!("taken by nobody");
                    }
                }
            });
        }
    });
    let mut seen = vec![0; 10_000];
    let end = Instant::now() + Duration::from_secs(60);
    let mut numbers = [0; 100];
    while seen.iter().sum::<u32>() < 10_000 {
        assert!(Instant::now() < end);
        let now_before = wheel.now();
        for &n in wheel.take(&mut numbers) {
            seen[n as usize] += 1;
            assert!(wheel.now() >= deadline(n), "early, at {:?}", now_before);
        }
    }
    assert!(seen.iter().all(|&times| times == 1));
}

#[test]
#[ignore = "wants the module"]
fn wrong_numbers_of_timers() {
    assert!(SharedWheel::open(&Options::new(), 0).is_err());
    assert!(SharedWheel::open(&Options::new(), u32::MAX).is_err());
    assert!(SharedWheel::map(Options::new().open().unwrap()).is_err());
}
