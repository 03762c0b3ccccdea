// SPDX-License-Identifier: GPL-2.0
/*
 * What timers of the Java world do in the cases of docs/pools.md: a line for each.
 *
 * make -C bench/native ../../build/bench/native/Semantics.class
 * java -cp build/bench/native:/usr/share/java/netty-common.jar Semantics
 */
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

final class Semantics {
	static final TimeUnit MS = TimeUnit.MILLISECONDS;
	static final long HOUR = 3_600_000;

	static void say(String what, String who, Object found) {
		System.out.printf("%-22s %-10s %s%n", what, who, found);
	}

	/* What it gives, or how it fails. */
	static Object attempt(Callable<?> call) {
		try {
			return call.call();
		} catch (Exception e) {
			return e.toString();
		}
	}

	static Object attempt(Runnable call) {
		return attempt(Executors.callable(call, "accepted"));
	}

	static void pause(long ms) {
		try {
			Thread.sleep(ms);
		} catch (InterruptedException e) {
			Thread.currentThread().interrupt();
		}
	}

	static TimerTask task(Runnable run) {
		return new TimerTask() {
			@Override
			public void run() {
				run.run();
			}
		};
	}

	static Timer timer() {
		return new Timer(true);
	}

	static ScheduledThreadPoolExecutor executor(int threads) {
		return new ScheduledThreadPoolExecutor(threads, r -> {
			Thread t = new Thread(r);

			t.setDaemon(true);
			return t;
		});
	}

	static HashedWheelTimer netty(long most) {
		return new HashedWheelTimer(Executors.defaultThreadFactory(), 1, MS, 512, false,
					    most);
	}

	static String ranBeside(CountDownLatch other) throws InterruptedException {
		return other.await(200, MS) ? "the other one ran meanwhile" : "the other one waited";
	}

	static void slow() throws InterruptedException {
		CountDownLatch other = new CountDownLatch(1);
		CountDownLatch more = new CountDownLatch(1);
		CountDownLatch last = new CountDownLatch(1);
		CountDownLatch nettys = new CountDownLatch(1);
		Timer timer = timer();
		ScheduledThreadPoolExecutor one = executor(1);
		ScheduledThreadPoolExecutor two = executor(2);
		HashedWheelTimer netty = netty(0);

		timer.schedule(task(() -> pause(400)), 0);
		timer.schedule(task(other::countDown), 10);
		say("slow task", "Timer", ranBeside(other));
		one.schedule(() -> pause(400), 0, MS);
		one.schedule(more::countDown, 10, MS);
		say("slow task", "executor 1", ranBeside(more));
		two.schedule(() -> pause(400), 0, MS);
		two.schedule(last::countDown, 10, MS);
		say("slow task", "executor 2", ranBeside(last));
		netty.newTimeout(t -> pause(400), 0, MS);
		netty.newTimeout(t -> nettys.countDown(), 10, MS);
		say("slow task", "Netty", ranBeside(nettys));
		netty.stop();
	}

	static void fail() {
		throw new IllegalArgumentException("of the task");
	}

	static void failing() {
		Timer timer = timer();
		AtomicInteger runs = new AtomicInteger();
		AtomicInteger others = new AtomicInteger();
		AtomicInteger nettys = new AtomicInteger();
		ScheduledThreadPoolExecutor executor = executor(1);
		HashedWheelTimer netty = netty(0);

		timer.schedule(task(Semantics::fail), 0);
		pause(50);
		say("task that fails", "Timer", attempt(() -> timer.schedule(task(() -> { }), 0)));
		executor.scheduleAtFixedRate(() -> {
			runs.incrementAndGet();
			fail();
		}, 0, 10, MS);
		executor.scheduleAtFixedRate(others::incrementAndGet, 0, 10, MS);
		pause(100);
		say("task that fails", "executor", runs + " run of it, of others " +
		    (others.get() > 1 ? "more" : "none"));
		netty.newTimeout(t -> fail(), 0, MS);
		netty.newTimeout(t -> nettys.incrementAndGet(), 20, MS);
		pause(100);
		say("task that fails", "Netty", "another one ran: " + nettys);
		netty.stop();
	}

	static void cancelRunning() throws Exception {
		Timer timer = timer();
		ScheduledThreadPoolExecutor executor = executor(1);
		HashedWheelTimer netty = netty(0);
		TimerTask once = task(() -> pause(100));
		TimerTask periodic = task(() -> pause(100));
		ScheduledFuture<?> future;
		Timeout timeout;

		timer.schedule(once, 0);
		pause(30);
		say("cancel while it runs", "Timer", "once: " + once.cancel());
		timer.schedule(periodic, 0, 10);
		pause(130);
		say("cancel while it runs", "Timer", "periodic: " + periodic.cancel());
		future = executor.schedule(() -> pause(100), 0, MS);
		pause(30);
		say("cancel while it runs", "executor", future.cancel(false) + ", done: " +
		    future.isDone() + ", while it runs: " + executor.getActiveCount());
		timeout = netty.newTimeout(t -> pause(100), 0, MS);
		pause(30);
		say("cancel while it runs", "Netty", timeout.cancel());
		netty.stop();
	}

	static void cancelled() {
		Timer timer = timer();
		ScheduledThreadPoolExecutor executor = executor(1);
		HashedWheelTimer netty = netty(0);
		TimerTask task = task(() -> { });
		long before;

		timer.schedule(task, HOUR);
		task.cancel();
		say("cancelled: what stays", "Timer", "found by purge(): " + timer.purge());
		executor.schedule(() -> { }, HOUR, MS).cancel(false);
		say("cancelled: what stays", "executor", "in its queue: " +
		    executor.getQueue().size());
		executor.setRemoveOnCancelPolicy(true);
		executor.schedule(() -> { }, HOUR, MS).cancel(false);
		say("cancelled: what stays", "executor", "with remove-on-cancel one more: " +
		    (executor.getQueue().size() - 1));
		netty.newTimeout(t -> { }, HOUR, MS).cancel();
		before = netty.pendingTimeouts();
		pause(50);
		say("cancelled: what stays", "Netty", before + ", some ticks later " +
		    netty.pendingTimeouts());
		netty.stop();
	}

	/* Runs within 50 ms after a pause of 20 periods of 10 ms */
	static int burst(List<Long> runs) {
		long from = runs.get(1);
		int n = 0;

		for (long run : new ArrayList<>(runs))
			n += run >= from && run < from + 50_000_000 ? 1 : 0;
		return n;
	}

	static Runnable firstSlow(List<Long> runs, long ms) {
		return () -> {
			runs.add(System.nanoTime());
			if (runs.size() == 1)
				pause(ms);
		};
	}

	static void rate() {
		List<Long> timers = Collections.synchronizedList(new ArrayList<>());
		List<Long> executors = Collections.synchronizedList(new ArrayList<>());

		timer().scheduleAtFixedRate(task(firstSlow(timers, 200)), 0, 10);
		executor(1).scheduleAtFixedRate(firstSlow(executors, 200), 0, 10, MS);
		pause(400);
		say("rate: 20 missed", "Timer", burst(timers) + " runs in the next 5 periods");
		say("rate: 20 missed", "executor", burst(executors) +
		    " runs in the next 5 periods");
	}

	static long gap(List<Long> runs) {
		return Math.round((runs.get(4) - runs.get(3)) / 1e6);
	}

	static void delay() {
		List<Long> timers = Collections.synchronizedList(new ArrayList<>());
		List<Long> executors = Collections.synchronizedList(new ArrayList<>());

		timer().schedule(task(() -> {
			timers.add(System.nanoTime());
			pause(40);
		}), 0, 50);
		executor(1).scheduleWithFixedDelay(() -> {
			executors.add(System.nanoTime());
			pause(40);
		}, 0, 50, MS);
		pause(600);
		say("delay 50, runs for 40", "Timer", gap(timers) + " ms from run to run");
		say("delay 50, runs for 40", "executor", gap(executors) + " ms from run to run");
	}

	static void delays() throws InterruptedException {
		Timer timer = timer();
		ScheduledThreadPoolExecutor executor = executor(1);
		HashedWheelTimer netty = netty(0);
		CountDownLatch ran = new CountDownLatch(2);

		say("delay < 0", "Timer", attempt(() -> timer.schedule(task(() -> { }), -1)));
		executor.schedule(ran::countDown, -1, MS);
		netty.newTimeout(t -> ran.countDown(), -1, MS);
		say("delay < 0", "exec, Netty", "both ran: " + ran.await(200, MS));
		say("delay of 2^63 - 1", "Timer",
		    attempt(() -> timer.schedule(task(() -> { }), Long.MAX_VALUE)));
		say("delay of 2^63 - 1", "executor", attempt(() ->
		    executor.schedule(() -> { }, Long.MAX_VALUE, TimeUnit.NANOSECONDS).isDone()));
		say("delay of 2^63 - 1", "Netty", attempt(() -> {
			Timeout timeout = netty.newTimeout(t -> { }, Long.MAX_VALUE,
							   TimeUnit.NANOSECONDS);

			pause(50);
			return timeout.isExpired();
		}));
		netty.stop();
	}

	static void within() {
		Timer timer = timer();
		ScheduledThreadPoolExecutor executor = executor(1);
		HashedWheelTimer netty = netty(0);
		AtomicInteger runs = new AtomicInteger();
		TimerTask again = task(() -> { });

		timer.schedule(again, HOUR);
		say("started twice", "Timer", attempt(() -> timer.schedule(again, HOUR)));
		timer.schedule(task(() -> timer.schedule(task(runs::incrementAndGet), 0)), 0);
		executor.schedule(() -> executor.schedule(runs::incrementAndGet, 0, MS), 0, MS);
		netty.newTimeout(t -> t.timer().newTimeout(u -> runs.incrementAndGet(), 0, MS),
				 0, MS);
		pause(100);
		say("start from within", "all three", runs + " ran");
		timer.schedule(task(() -> say("stop from a worker", "Timer",
					      attempt(timer::cancel))), 0);
		executor.execute(() -> say("stop from a worker", "executor",
					   attempt(executor::shutdown)));
		netty.newTimeout(t -> say("stop from a worker", "Netty",
					  attempt(() -> netty.stop())), 0, MS);
		pause(100);
		netty.stop();
	}

	static void stop() throws InterruptedException {
		ScheduledThreadPoolExecutor executor = executor(1);
		ScheduledThreadPoolExecutor other = executor(1);
		HashedWheelTimer netty = netty(0);
		AtomicInteger once = new AtomicInteger();
		AtomicInteger periodic = new AtomicInteger();
		Timer timer = timer();

		timer.schedule(task(once::incrementAndGet), 50);
		timer.cancel();
		pause(100);
		say("stop, one task left", "Timer", "ran: " + once);
		executor.schedule(once::incrementAndGet, 50, MS);
		executor.scheduleAtFixedRate(periodic::incrementAndGet, 50, 50, MS);
		executor.shutdown();
		executor.awaitTermination(1, TimeUnit.SECONDS);
		say("stop, one task left", "executor", "shutdown(): once ran " + once +
		    ", periodic " + periodic);
		other.schedule(() -> { }, HOUR, MS);
		say("stop, one task left", "executor", "shutdownNow() gave " +
		    other.shutdownNow().size());
		say("start after a stop", "executor",
		    attempt(() -> other.schedule(() -> { }, 0, MS)));
		netty.newTimeout(t -> { }, HOUR, MS);
		say("stop, one task left", "Netty", "stop() gave " + netty.stop().size());
	}

	static void capacity() {
		HashedWheelTimer netty = netty(1);

		netty.newTimeout(t -> { }, HOUR, MS);
		say("one too many", "Netty", attempt(() -> netty.newTimeout(t -> { }, HOUR, MS)));
		netty.stop();
	}

	static final class Due implements Delayed {
		final long at;

		Due(long ms) {
			at = System.nanoTime() + ms * 1_000_000;
		}

		@Override
		public long getDelay(TimeUnit unit) {
			return unit.convert(at - System.nanoTime(), TimeUnit.NANOSECONDS);
		}

		@Override
		public int compareTo(Delayed other) {
			return Long.compare(at, ((Due) other).at);
		}
	}

	static void take() throws InterruptedException {
		DelayQueue<Due> queue = new DelayQueue<>();
		AtomicInteger taken = new AtomicInteger();
		List<Thread> takers = new ArrayList<>();
		List<Due> due = new ArrayList<>();
		boolean sorted = true;
		Thread self = Thread.currentThread();

		for (int i = 0; i < 1000; i++)
			queue.put(new Due(i * 7919 % 20));
		pause(30);
		queue.drainTo(due);
		for (int i = 1; i < due.size(); i++)
			sorted &= due.get(i - 1).at <= due.get(i).at;
		say("order", "DelayQueue", due.size() + " at once, the earliest first: " + sorted);
		say("time-out", "DelayQueue", queue.poll(20, MS));
		new Thread(() -> {
			pause(30);
			self.interrupt();
		}).start();
		say("interrupt", "DelayQueue", attempt((Callable<?>) queue::take));
		for (int i = 0; i < 2; i++) {
			takers.add(new Thread(() -> {
				while (attempt((Callable<?>) queue::take) instanceof Due)
					taken.incrementAndGet();
			}));
			takers.get(i).start();
		}
		for (int i = 0; i < 1000; i++)
			queue.put(new Due(i % 20));
		pause(200);
		say("two who take", "DelayQueue", taken + " of 1000");
		takers.forEach(Thread::interrupt);
	}

	public static void main(String[] args) throws Exception {
		slow();
		failing();
		cancelRunning();
		cancelled();
		rate();
		delay();
		delays();
		within();
		stop();
		capacity();
		take();
		System.exit(0);
	}
}
