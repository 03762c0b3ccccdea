// SPDX-License-Identifier: LGPL-2.1-or-later
//! Wheels with ordinary timers, in the kernel or in the program.

use std::io::ErrorKind;
use std::os::unix::io::{AsFd, AsRawFd};
use std::thread;
use std::time::Duration;

use twheel::{Backend, Clock, Event, Id, Op, Options, State, Wheel, When, NEVER};

const MS: Duration = Duration::from_millis(1);

fn quick() -> Wheel {
    Options::new().nonblocking().tick(MS).open().unwrap()
}

#[test]
fn one_timer() {
    let wheel = Options::new().tick(MS).open().unwrap();
    let before = wheel.now();
    let id = wheel.arm(When::In(10 * MS), 7).unwrap();
    let mut events = [Event::default(); 4];
    let got = wheel.read(&mut events).unwrap();
    assert_eq!(got.len(), 1);
    assert_eq!((got[0].user_data(), got[0].id()), (7, Some(id)));
    assert!(!got[0].is_periodic() && !got[0].is_shared());
    assert!(wheel.now() >= before + 10 * MS);
    assert_eq!(wheel.cancel(id).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn nothing_to_read() {
    let mut events = [Event::default(); 1];
    assert_eq!(quick().read(&mut events).unwrap_err().kind(), ErrorKind::WouldBlock);
    assert_eq!(quick().read(&mut []).unwrap_err().kind(), ErrorKind::InvalidInput);
    assert!(quick().as_fd().as_raw_fd() >= 0);
}

#[test]
fn modified_and_queried() {
    let wheel = quick();
    let mut op = Op::arm(When::At(wheel.now() + 100 * 1000 * MS), 1).every(5 * MS).slack(MS);
    assert_eq!(op.id(), None);
    assert_eq!(wheel.perform(&mut op).unwrap(), State::None);
    let id = op.id().unwrap();

    let mut found = Op::query(id);
    assert_eq!(wheel.perform(&mut found).unwrap(), State::Pending);
    assert_eq!(found.deadline(), op.deadline());
    assert_eq!((found.user_data(), found.period()), (1, Some(5 * MS)));

    assert_eq!(wheel.perform(&mut Op::modify(id, When::In(Duration::MAX), 2)).unwrap(),
               State::Pending);
    wheel.perform(&mut found).unwrap();
    assert_eq!((found.user_data(), found.period()), (2, None));
    assert_eq!(found.deadline(), Duration::from_nanos(NEVER));
    assert_eq!(wheel.perform(&mut Op::cancel(id)).unwrap(), State::Pending);
    assert_eq!(wheel.perform(&mut Op::cancel(id)).unwrap_err().kind(), ErrorKind::NotFound);
    assert!(wheel.perform(&mut Op::default()).is_err());
}

#[test]
fn batches() {
    let wheel = quick();
    let mut ops: Vec<Op> = (0..10_000)
        .map(|n| Op::arm(When::In(Duration::from_secs(n)), n))
        .chain([Op::cancel(Id(u64::MAX))])
        .collect();
    assert_eq!(wheel.submit(&mut ops).unwrap(), 10_001);
    assert_eq!(ops.pop().unwrap().result().unwrap_err().kind(), ErrorKind::NotFound);
    assert!(ops.iter().all(|op| op.result().is_ok() && op.id().is_some()));

    let mut cancels: Vec<Op> = ops[5000..].iter().map(|op| Op::cancel(op.id().unwrap())).collect();
    assert_eq!(wheel.submit(&mut cancels).unwrap(), 5000);
    assert!(cancels.iter().all(|op| op.result().unwrap() == State::Pending));

    let mut left = vec![Op::default(); 6000];
    let mut seen: Vec<u64> =
        wheel.drain(&mut left).unwrap().iter().map(|op| op.user_data()).collect();
    seen.sort_unstable();
    // (The first was due at once, and is read.)
    assert_eq!(seen, (1..5000).collect::<Vec<u64>>());
    let mut events = [Event::default(); 8];
    assert_eq!(wheel.read(&mut events).unwrap()[0].user_data(), 0);
    assert_eq!(wheel.submit(&mut []).unwrap(), 0);
}

#[test]
fn periods() {
    let wheel = Options::new().tick(MS).open().unwrap();
    let mut op = Op::arm(When::In(MS), 3).every(MS);
    wheel.perform(&mut op).unwrap();
    let mut events = [Event::default(); 4];
    for _ in 0..5 {
        let got = wheel.read(&mut events).unwrap();
        assert!(got.iter().all(|event| event.is_periodic() && event.user_data() == 3));
    }
    thread::sleep(20 * MS);
    assert!(wheel.read(&mut events).unwrap()[0].overrun() > 5);
}

#[test]
fn options() {
    for clock in [Clock::Monotonic, Clock::Boottime, Clock::Realtime, Clock::Tai] {
        let wheel = Options::new().nonblocking().clock(clock).open().unwrap();
        wheel.arm(When::At(wheel.now()), 5).unwrap();
    }
    let wheel = Options::new().backend(Backend::User).limit(1).open().unwrap();
    assert_eq!(wheel.backend(), Backend::User);
    wheel.arm(When::In(MS), 0).unwrap();
    assert!(wheel.arm(When::In(MS), 0).is_err());
    assert!(Options::new().tick(Duration::from_nanos(1)).open().is_err());
}

#[test]
fn not_a_wheel() {
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(Wheel::from_fd(file.into()).is_err());
}

/// Each event goes to one of the threads that read
#[test]
#[allow(clippy::needless_collect)] // All are to read before there is something to be read
fn threads() {
    let wheel = Options::new().tick(MS).open().unwrap();
    let total: usize = thread::scope(|scope| {
        let readers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut events = [Event::default(); 7];
                    let mut seen = 0;
                    loop {
                        let got = wheel.read(&mut events).unwrap();
                        seen += got.iter().filter(|event| event.user_data() > 0).count();
                        if got.iter().any(|event| event.user_data() == 0) {
                            // For the next one
                            wheel.arm(When::In(Duration::ZERO), 0).unwrap();
                            return seen;
                        }
                    }
                })
            })
            .collect();
        for n in 1..=1000 {
            wheel.arm(When::In(Duration::from_micros(n * 20)), n).unwrap();
        }
        wheel.arm(When::In(100 * MS), 0).unwrap();
        readers.into_iter().map(|reader| reader.join().unwrap()).sum()
    });
    assert_eq!(total, 1000);
}
