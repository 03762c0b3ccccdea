// SPDX-License-Identifier: GPL-2.0
//! What cases.h asks, of tokio's time, on a runtime of one thread

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use tokio::time::{interval_at, sleep, timeout, Duration};

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

fn row(name: &str, text: &str) {
    print!("\t{}\t{}", name, text);
}

fn busy(n: u64) {
    let end = Instant::now() + ms(n);
    while Instant::now() < end {}
}

async fn equal() {
    let order = Arc::new(Mutex::new(Vec::new()));
    let mut tasks: Vec<Option<tokio::task::JoinHandle<()>>> = (0..100).map(|_| None).collect();
    let (mut wanted, mut random) = (Vec::new(), 1u32);
    for _ in 0..300 {
        random = random.wrapping_mul(1103515245).wrapping_add(12345);
        let i = (random >> 16) as usize % 100;
        if let Some(task) = tasks[i].take() {
            task.abort();
        }
        wanted.retain(|&one| one != i);
        wanted.push(i);
        let order = order.clone();
        let sleep = sleep(ms(200));
        tasks[i] = Some(tokio::spawn(async move {
            sleep.await;
            order.lock().unwrap().push(i);
        }));
    }
    sleep(ms(500)).await;
    row("equal", if *order.lock().unwrap() == wanted { "as started" } else { "any" });
}

async fn stall() {
    let began = tokio::time::Instant::now();
    let mut interval = interval_at(began + ms(400), ms(400));
    let mut times = Vec::new();
    loop {
        interval.tick().await;
        times.push(began.elapsed().as_millis() as u64);
        if times.len() == 1 {
            busy(2600 - times[0]);
        } else if times[times.len() - 1] > 3500 {
            break;
        }
    }
    let at_once = times[1..].iter().filter(|&&time| time < 2700).count();
    let then = if times[at_once + 1] < 2900 { "on the grid" } else { "a period later" };
    row("stall", &format!("{} at once, then {}", at_once, then));
}

async fn again() {
    let (count, seen) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (other, it) = (count.clone(), seen.clone());
    for i in 0..100 {
        if i == 0 {
            let (count, seen) = (other.clone(), it.clone());
            tokio::spawn(async move { seen.store(count.load(Ordering::SeqCst), Ordering::SeqCst) });
        }
        count.fetch_add(1, Ordering::SeqCst);
        sleep(ms(0)).await;
    }
    sleep(ms(50)).await;
    row("again", if (1..100).contains(&seen.load(Ordering::SeqCst)) {
        "others in between"
    } else {
        "before all else"
    });
}

async fn cases() {
    let waits = timeout(ms(100), sleep(Duration::MAX)).await.is_err();
    row("never", &format!("Duration::MAX: {}", if waits { "waits" } else { "at once" }));

    let ten = sleep(ms(10000));
    busy(300);
    let left = ten.deadline().saturating_duration_since(tokio::time::Instant::now());
    row("left", if left > ms(9850) { "from the turn" } else { "from now" });
    let short = sleep(ms(10));
    tokio::pin!(short);
    short.as_mut().await;
    row("done", &format!("is_elapsed {} after it", short.is_elapsed()));

    busy(300);
    let began = Instant::now();
    sleep(ms(200)).await;
    row("now", if began.elapsed() < ms(150) { "from the turn" } else { "from now" });

    equal().await;
    stall().await;
    again().await;

    let ran = Arc::new(AtomicUsize::new(0));
    let counts = ran.clone();
    let task = tokio::spawn(async move {
        sleep(ms(50)).await;
        counts.store(1, Ordering::SeqCst);
    });
    sleep(ms(1)).await;
    busy(100);
    task.abort();
    sleep(ms(100)).await;
    row("cancel", if ran.load(Ordering::SeqCst) == 0 { "does not run" } else { "runs" });
    println!();
}

fn main() {
    print!("tokio {}", env!("TOKIO"));
    tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(cases());
}
