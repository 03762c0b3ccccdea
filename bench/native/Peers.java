// SPDX-License-Identifier: GPL-2.0
/*
 * Timers of the Java world, for jvm.c: Netty's HashedWheelTimer, and the JDK's
 * ScheduledThreadPoolExecutor and DelayQueue.
 *
 * usage: Peers netty|jdk-executor|jdk-delayqueue TIMERS [THREADS]
 *
 * It answers each line of its input, "uniform" or "connections", with a line of
 * ns, one number for each operation. These are of the threads that do it: that of
 * the caller, that of Netty, for which the caller only leaves things in a queue, and
 * for the expiry those of the timers, of which there are THREADS (1; of a queue, who
 * take). What the collector of garbage does meanwhile is not counted.
 *
 * For bench/pools, it answers "memory" with the bytes for each timer, all objects
 * counted but what holds the tasks; "pairs N" with the ns by the clock for arm and cancel,
 * by N threads, beside all timers, and those of processor time; and "rate" with the number of timers that expired,
 * 1 ms apart.
 *
 * Time is real here. Timers that are to expire in a jump of time are armed anew,
 * and their thread is held up by a timer before them, until all are due.
 */
import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.TimerTask;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.BrokenBarrierException;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

final class Peers {
	static final long MS = 1_000_000L;
	static final long SECOND = 1000 * MS;
	static final long TIMEOUT = 60 * SECOND;
	static final int PUSHES = 20;
	static final int EXPIRES_ONE_IN = 20;

	/* Operations that stand for all, where one looks at every timer. */
	static final int SAMPLE = 1000;

	/* The compiler has seen enough after so many operations. */
	static final int WARM_UP = 20;
	static final int WARM_UP_TIMERS = 2000;

	/* What a pair of operations is measured with. */
	static final int PAIRS = 200_000;

	static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();
	static final SplittableRandom RANDOM = new SplittableRandom(1);

	/* A kind of timer; delays are in ns. */
	abstract static class Peer {
		CountDownLatch held;
		CountDownLatch released;
		CountDownLatch finished;
		long began;
		volatile long took;

		abstract void create(int timers) throws InterruptedException;

		abstract void arm(int timer, long delay);

		abstract void cancel(int timer);

		/* The nearest deadlines that many timers may have. */
		abstract long lead(int timers);

		/* Over how long they are to expire. */
		abstract long range(int timers);

		/* Expire nothing after a delay until release(). */
		abstract void hold(long delay) throws InterruptedException;

		/* Cancel what is left, those in order[] from there on. */
		void cancelRest(int from) {
			for (int i = from; i < count; i++)
				cancel(order[i]);
		}

		/* Let the thread of the timers do what was left to it. */
		void settle(int timers) throws InterruptedException {
		}

		/* How long that has worked so far. */
		long background() {
			return 0;
		}

		/* Arm and cancel a timer that is not one of the others. */
		void pair() {
			fail("has no pairs");
		}

		/* Let threads take what expires, if nobody does yet. */
		void startTakers() {
		}

		/* So many operations that look at every timer are enough. */
		int sample(int timers) {
			return timers;
		}

		/* The thread of the timers is held up. */
		void holdUp() {
			held.countDown();
			try {
				released.await();
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
			began = THREADS.getCurrentThreadCpuTime();
		}

		void newLatches() {
			held = new CountDownLatch(1);
			released = new CountDownLatch(1);
			finished = new CountDownLatch(1);
		}

		/* Let all expire that are waited for; returns what it took. */
		long release() throws InterruptedException {
			held.await();
			released.countDown();
			finished.await();
			return took;
		}

		/* The last has expired. */
		void finish() {
			took = THREADS.getCurrentThreadCpuTime() - began;
			finished.countDown();
		}
	}

	static Peer peer;
	static int threads = 1;
	static int count;
	static int[] order;
	static Task[] tasks;

	/* Timers to expire yet, and the time by which all of them are due. */
	static final AtomicInteger LEFT = new AtomicInteger();
	static volatile long due;

	static void fail(String how) {
		System.err.println("Peers: " + how);
		Runtime.getRuntime().halt(1);
	}

	/* What a timer is the timer of. */
	static class Task {
		long deadline;
		boolean waitedFor;

		final void expired() {
			if (!waitedFor || deadline > due)
				fail("a timer expired early, unasked or twice");
			waitedFor = false;
			if (LEFT.decrementAndGet() == 0)
				peer.finish();
		}
	}

	static final class NettyTask extends Task implements TimerTask {
		Timeout timeout;

		@Override
		public void run(Timeout t) {
			expired();
		}
	}

	static final class Netty extends Peer {
		Thread thread;
		/* What its thread works each ns when there is nothing to do. */
		double idle;
		final HashedWheelTimer timer =
			new HashedWheelTimer(r -> thread = new Thread(r),
					     1, TimeUnit.MILLISECONDS);

		@Override
		void create(int timers) throws InterruptedException {
			long from;
			long worked;

			tasks = new Task[timers];
			for (int i = 0; i < timers; i++)
				tasks[i] = new NettyTask();
			timer.start();
			from = System.nanoTime();
			worked = background();
			Thread.sleep(300);
			worked = background() - worked;
			idle = (double) worked / (System.nanoTime() - from);
		}

		@Override
		long background() {
			return THREADS.getThreadCpuTime(thread.getId()) -
			       (long) (idle * System.nanoTime());
		}

		@Override
		void arm(int i, long delay) {
			NettyTask task = (NettyTask) tasks[i];

			task.timeout = timer.newTimeout(task, delay,
							TimeUnit.NANOSECONDS);
		}

		@Override
		void cancel(int i) {
			if (!((NettyTask) tasks[i]).timeout.cancel())
				fail("could not be cancelled");
		}

		@Override
		void pair() {
			timer.newTimeout(t -> { }, 150, TimeUnit.SECONDS).cancel();
		}

		@Override
		long lead(int timers) {
			return 100 * MS + timers * 3000L;
		}

		@Override
		long range(int timers) {
			return timers * MS / 256;
		}

		@Override
		void hold(long delay) {
			newLatches();
			timer.newTimeout(t -> holdUp(), delay - 20 * MS,
					 TimeUnit.NANOSECONDS);
		}

		/* Its thread takes up 100,000 a tick. */
		@Override
		void settle(int timers) throws InterruptedException {
			Thread.sleep(5 + timers / 50_000);
		}
	}

	static final class ExecutorTask extends Task implements Runnable {
		ScheduledFuture<?> future;

		@Override
		public void run() {
			expired();
		}
	}

	static final class Executor extends Peer {
		final List<Thread> workers = new ArrayList<>();
		final ScheduledThreadPoolExecutor executor =
			new ScheduledThreadPoolExecutor(threads, this::newWorker);

		private Thread newWorker(Runnable r) {
			Thread worker = new Thread(r);

			workers.add(worker);
			return worker;
		}

		@Override
		void create(int timers) {
			tasks = new Task[timers];
			for (int i = 0; i < timers; i++)
				tasks[i] = new ExecutorTask();
			executor.setRemoveOnCancelPolicy(true);
		}

		@Override
		void arm(int i, long delay) {
			ExecutorTask task = (ExecutorTask) tasks[i];

			task.future = executor.schedule(task, delay,
							TimeUnit.NANOSECONDS);
		}

		@Override
		void cancel(int i) {
			if (!((ExecutorTask) tasks[i]).future.cancel(false))
				fail("could not be cancelled");
		}

		@Override
		long lead(int timers) {
			return 0;
		}

		@Override
		long range(int timers) {
			return timers * 100L;
		}

		@Override
		void pair() {
			executor.schedule(() -> { }, 150, TimeUnit.SECONDS).cancel(false);
		}

		@Override
		void hold(long delay) throws InterruptedException {
			newLatches();
			held = new CountDownLatch(threads);
			for (int i = 0; i < threads; i++)
				executor.schedule(this::holdUp, 0, TimeUnit.NANOSECONDS);
			held.await();
		}

		private long worked() {
			long sum = 0;

			for (Thread worker : workers)
				sum += THREADS.getThreadCpuTime(worker.getId());
			return sum;
		}

		@Override
		long release() throws InterruptedException {
			long before = worked();

			super.release();
			return worked() - before;
		}
	}

	static final class DelayTask extends Task implements Delayed {
		@Override
		public long getDelay(TimeUnit unit) {
			return unit.convert(deadline - System.nanoTime(),
					    TimeUnit.NANOSECONDS);
		}

		@Override
		public int compareTo(Delayed other) {
			return Long.compare(deadline, ((DelayTask) other).deadline);
		}
	}

	static final class Queue extends Peer {
		final DelayQueue<DelayTask> queue = new DelayQueue<>();

		@Override
		void create(int timers) {
			tasks = new Task[timers];
			for (int i = 0; i < timers; i++)
				tasks[i] = new DelayTask();
		}

		@Override
		void arm(int i, long delay) {
			tasks[i].deadline = System.nanoTime() + delay;
			queue.put((DelayTask) tasks[i]);
		}

		@Override
		void cancel(int i) {
			if (!queue.remove(tasks[i]))
				fail("could not be cancelled");
		}

		@Override
		long lead(int timers) {
			return 0;
		}

		@Override
		long range(int timers) {
			return timers * 100L;
		}

		@Override
		void hold(long delay) {
			newLatches();
		}

		@Override
		void cancelRest(int from) {
			queue.clear();
		}

		/* cancel() looks for it from the first to the last. */
		@Override
		int sample(int timers) {
			return timers <= 10 * SAMPLE ? timers : SAMPLE;
		}

		@Override
		void startTakers() {
			for (int i = 0; i < threads; i++) {
				Thread taker = new Thread(this::take);

				taker.setDaemon(true);
				taker.start();
			}
		}

		private void take() {
			try {
				for (;;)
					queue.take().expired();
			} catch (InterruptedException e) {
				throw new IllegalStateException(e);
			}
		}

		private void pollAll(LongAdder sum) {
			long from = THREADS.getCurrentThreadCpuTime();
			DelayTask task;

			while ((task = queue.poll()) != null)
				task.expired();
			sum.add(THREADS.getCurrentThreadCpuTime() - from);
		}

		@Override
		long release() throws InterruptedException {
			LongAdder sum = new LongAdder();
			Thread[] takers = new Thread[threads];

			for (int i = 0; i < threads; i++) {
				takers[i] = new Thread(() -> pollAll(sum));
				takers[i].start();
			}
			for (Thread taker : takers)
				taker.join();
			return sum.sum();
		}
	}

	interface Operation {
		void run(int timer);
	}

	static void shuffle() {
		for (int i = count - 1; i > 0; i--) {
			int j = RANDOM.nextInt(i + 1);
			int timer = order[i];

			order[i] = order[j];
			order[j] = timer;
		}
	}

	/* For the first @n in order; returns the ns that it took. */
	static long each(int n, Operation operation) throws InterruptedException {
		long background = peer.background();
		long began = THREADS.getCurrentThreadCpuTime();
		long took;

		for (int i = 0; i < n; i++)
			operation.run(order[i]);
		took = THREADS.getCurrentThreadCpuTime() - began;
		peer.settle(n);
		return took + peer.background() - background;
	}

	/* The same, of which some stand for all. */
	static long sample(int n, Operation operation) throws InterruptedException {
		int some = peer.sample(n);

		return (long) ((double) each(some, operation) * n / some);
	}

	static long arm(long from, long range) throws InterruptedException {
		for (int i = 0; i < count; i++)
			order[i] = i;
		return each(count, i -> peer.arm(i, from + RANDOM.nextLong(range)));
	}

	static long modify(long from, long range) throws InterruptedException {
		return sample(count, i -> {
			peer.cancel(i);
			peer.arm(i, from + RANDOM.nextLong(range));
		});
	}

	static void waitUntil(long time) throws InterruptedException {
		while (System.nanoTime() <= time)
			Thread.sleep(1);
		due = time;
	}

	/* Those in order[] from there on. */
	static long expire(int from) throws InterruptedException {
		long lead = peer.lead(count);
		long range = peer.range(count);

		LEFT.set(count - from);
		peer.hold(lead);
		for (int i = from; i < count; i++) {
			tasks[order[i]].waitedFor = true;
			peer.arm(order[i], lead + RANDOM.nextLong(range));
		}
		waitUntil(System.nanoTime() + lead + range + 10 * MS);
		return peer.release();
	}

	static long[] uniform() throws InterruptedException {
		long[] took = new long[5];

		took[0] = arm(100 * SECOND, 100 * SECOND);
		shuffle();
		took[1] = modify(200 * SECOND, 100 * SECOND);
		shuffle();
		took[2] = modify(50 * SECOND, 100 * SECOND);
		shuffle();
		took[3] = sample(count, i -> peer.cancel(i));
		peer.cancelRest(peer.sample(count));
		took[4] = expire(0);
		return took;
	}

	static long[] connections() throws InterruptedException {
		int cancelled = count - count / EXPIRES_ONE_IN;
		long took = each(count, i -> peer.arm(i, TIMEOUT));

		for (int i = 0; i < PUSHES; i++) {
			shuffle();
			took += modify(TIMEOUT, 1);
		}
		shuffle();
		took += sample(cancelled, i -> peer.cancel(i));
		peer.cancelRest(peer.sample(cancelled));
		return new long[] { took + expire(cancelled) };
	}

	static long used() {
		System.gc();
		return Runtime.getRuntime().totalMemory() - Runtime.getRuntime().freeMemory();
	}

	static double memory() throws InterruptedException {
		long before;
		long bytes;

		/* These are counted, as others have them in the program's own. */
		tasks = null;
		before = used();
		peer.create(count);
		arm(100 * SECOND, 100 * SECOND);
		bytes = used() - before;
		sample(count, i -> peer.cancel(i));
		peer.cancelRest(peer.sample(count));
		/* Each task's place in an array is the program's own. */
		return (double) bytes / count - 4;
	}

	static void somePairs(CyclicBarrier barrier, LongAdder used) {
		long from;

		try {
			barrier.await();
		} catch (InterruptedException | BrokenBarrierException e) {
			throw new IllegalStateException(e);
		}
		from = THREADS.getCurrentThreadCpuTime();
		for (int i = 0; i < PAIRS; i++)
			peer.pair();
		used.add(THREADS.getCurrentThreadCpuTime() - from);
	}

	static String pairs(int by) throws InterruptedException {
		LongAdder used = new LongAdder();
		CyclicBarrier barrier = new CyclicBarrier(by + 1);
		Thread[] callers = new Thread[by];
		long from;

		arm(100 * SECOND, 100 * SECOND);
		for (int i = 0; i < by; i++) {
			callers[i] = new Thread(() -> somePairs(barrier, used));
			callers[i].start();
		}
		from = System.nanoTime();
		try {
			barrier.await();
		} catch (BrokenBarrierException e) {
			throw new IllegalStateException(e);
		}
		for (Thread caller : callers)
			caller.join();
		from = System.nanoTime() - from;
		sample(count, i -> peer.cancel(i));
		return (double) from / PAIRS / by + " " + (double) used.sum() / PAIRS / by;
	}

	/* One a ms. */
	static int rate() throws InterruptedException {
		peer.newLatches();
		due = Long.MAX_VALUE;
		LEFT.set(count);
		for (int i = 0; i < count; i++) {
			tasks[i].waitedFor = true;
			peer.arm(i, 100 * MS + i * MS);
		}
		peer.startTakers();
		peer.finished.await();
		return count;
	}

	static void setUp(String name, int timers)
			throws InterruptedException {
		count = timers;
		order = new int[count];
		for (int i = 0; i < count; i++)
			order[i] = i;
		peer = name.equals("netty") ? new Netty() :
		       name.equals("jdk-executor") ? new Executor() : new Queue();
		peer.create(count);
	}

	static String answer(String line) throws InterruptedException {
		StringBuilder text = new StringBuilder();

		if (line.equals("memory"))
			return String.valueOf(memory());
		if (line.equals("rate"))
			return String.valueOf(rate());
		if (line.startsWith("pairs "))
			return pairs(Integer.parseInt(line.substring(6)));
		for (long number : line.equals("uniform") ? uniform() : connections())
			text.append(number).append(' ');
		return text.toString();
	}

	public static void main(String[] args)
			throws IOException, InterruptedException {
		BufferedReader in =
			new BufferedReader(new InputStreamReader(System.in));
		String line;

		if (args.length > 2)
			threads = Integer.parseInt(args[2]);
		setUp(args[0], WARM_UP_TIMERS);
		for (int i = 0; i < WARM_UP; i++) {
			uniform();
			connections();
		}
		setUp(args[0], Integer.parseInt(args[1]));
		while ((line = in.readLine()) != null)
			System.out.println(answer(line));
		System.exit(0);
	}
}
