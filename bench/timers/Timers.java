// SPDX-License-Identifier: GPL-2.0
// What cases.h asks, of the timers of the JDK and of Netty: Timers NAME

import io.netty.util.HashedWheelTimer;
import io.netty.util.Timeout;
import io.netty.util.Version;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.DelayQueue;
import java.util.concurrent.Delayed;
import java.util.concurrent.ScheduledFuture;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.function.IntConsumer;

class Timers {
	static final int TIMERS = 100;
	static final long NEVER = Long.MAX_VALUE;
	static volatile IntConsumer onTimer;
	static final Semaphore done = new Semaphore(0);
	static final List<Integer> order = new ArrayList<>();
	static final List<Double> times = new ArrayList<>();
	static final String JDK = "JDK " + System.getProperty("java.version");

	interface Peer {
		String name();
		void start(int i, long delay, long period);
		void stop(int i);
		default double left(int i) { return Double.NaN; }
		default String over(int i) { return "not said"; }
	}

	static class OfTimer implements Peer {
		final Timer timer = new Timer(true);
		final TimerTask[] tasks = new TimerTask[TIMERS];

		public String name() { return "Timer, " + JDK; }

		public void start(int i, long delay, long period) {
			TimerTask task = new TimerTask() {
				public void run() { onTimer.accept(i); }
			};

			tasks[i] = task;
			if (period > 0)
				timer.scheduleAtFixedRate(task, delay, period);
			else
				timer.schedule(task, delay);
		}

		public void stop(int i) {
			if (tasks[i] != null)
				tasks[i].cancel();
		}

		public double left(int i) {
			return tasks[i].scheduledExecutionTime() - System.currentTimeMillis();
		}
	}

	static class Executor implements Peer {
		final ScheduledThreadPoolExecutor executor = new ScheduledThreadPoolExecutor(1);
		final ScheduledFuture<?>[] futures = new ScheduledFuture<?>[TIMERS];

		Executor() { executor.setRemoveOnCancelPolicy(true); }
		public String name() { return "ScheduledThreadPoolExecutor(1), " + JDK; }

		public void start(int i, long delay, long period) {
			Runnable run = () -> onTimer.accept(i);

			futures[i] = period > 0 ?
				executor.scheduleAtFixedRate(run, delay, period, TimeUnit.MILLISECONDS) :
				executor.schedule(run, delay, TimeUnit.MILLISECONDS);
		}

		public void stop(int i) {
			if (futures[i] != null)
				futures[i].cancel(false);
		}

		public double left(int i) { return futures[i].getDelay(TimeUnit.MICROSECONDS) / 1e3; }

		public String over(int i) {
			boolean before = futures[i].isDone();

			futures[i].cancel(false);
			return "isDone in the callback " + before + ", once cancelled there " +
			       futures[i].isDone();
		}
	}

	static class Queue implements Peer {
		class Item implements Delayed {
			final int i;
			final long at;

			Item(int i, long delay) {
				this.i = i;
				at = delay == NEVER ? NEVER : System.nanoTime() + delay * 1000000;
			}

			public long getDelay(TimeUnit unit) {
				return at == NEVER ? NEVER :
				       unit.convert(at - System.nanoTime(), TimeUnit.NANOSECONDS);
			}

			public int compareTo(Delayed other) { return Long.compare(at, ((Item)other).at); }
		}

		final DelayQueue<Item> queue = new DelayQueue<>();
		final Item[] items = new Item[TIMERS];

		Queue() {
			Thread thread = new Thread(() -> {
				try {
					for (;;) {
						int i = queue.take().i;

						onTimer.accept(i);
					}
				} catch (InterruptedException e) {
				}
			});

			thread.setDaemon(true);
			thread.start();
		}

		public String name() { return "DelayQueue, " + JDK; }

		public void start(int i, long delay, long period) {
			items[i] = new Item(i, delay);
			queue.add(items[i]);
		}

		public void stop(int i) {
			if (items[i] != null)
				queue.remove(items[i]);
		}

		public double left(int i) { return items[i].getDelay(TimeUnit.MICROSECONDS) / 1e3; }
		public String over(int i) { return "not in the queue"; }
	}

	static class Wheel implements Peer {
		final HashedWheelTimer timer = new HashedWheelTimer(1, TimeUnit.MILLISECONDS);
		final Timeout[] timeouts = new Timeout[TIMERS];

		public String name() {
			return "HashedWheelTimer, Netty " +
			       Version.identify().get("netty-common").artifactVersion();
		}

		public void start(int i, long delay, long period) {
			timeouts[i] = timer.newTimeout(timeout -> onTimer.accept(i), delay,
						       TimeUnit.MILLISECONDS);
		}

		public void stop(int i) {
			if (timeouts[i] != null)
				timeouts[i].cancel();
		}

		public String over(int i) {
			return "isExpired in the callback " + timeouts[i].isExpired();
		}
	}

	static double now() { return System.nanoTime() / 1e6; }

	static void busy(double delay) {
		double end = now() + delay;

		while (now() < end)
			;
	}

	static void note(int i) {
		order.add(i);
		if (i == TIMERS - 1)
			done.release();
	}

	static void row(String name, String text) { System.out.print("\t" + name + "\t" + text); }
	static double began, ended;
	static int again;

	public static void main(String[] arg) throws Exception {
		Peer peer = arg[0].equals("Timer") ? new OfTimer() : arg[0].equals("Netty") ? new Wheel() :
			    arg[0].equals("DelayQueue") ? new Queue() : new Executor();
		boolean periods = arg[0].equals("Timer") || arg[0].equals("Executor");

		System.out.print(peer.name());
		onTimer = i -> done.release();
		peer.start(0, 1, 0);
		done.acquire();

		onTimer = Timers::note;
		String never;
		try {
			peer.start(0, NEVER, 0);
			peer.start(TIMERS - 1, 100, 0);
			done.acquire();
			never = order.get(0) == 0 ? "at once" : "waits";
			peer.stop(0);
		} catch (IllegalArgumentException e) {
			never = "refused";
		}
		row("never", (arg[0].equals("DelayQueue") ? "LONG_MAX ns: " : "LONG_MAX ms: ") + never);

		peer.start(0, 10000, 0);
		busy(300);
		double at = peer.left(0);
		row("left", Double.isNaN(at) ? "not said" : at > 9850 ? "from the turn" : "from now");
		peer.stop(0);
		onTimer = i -> {
			double left = peer.left(i);

			if (!Double.isNaN(left))
				System.out.print((Math.abs(left) < 100 ? "; 0" : "; more") +
						 " in the callback");
			row("done", peer.over(i));
			done.release();
		};
		peer.start(0, 50, 0);
		done.acquire();

		onTimer = i -> {
			if (i == 0) {
				busy(300);
				began = now();
				peer.start(1, 200, 0);
			} else {
				ended = now();
				done.release();
			}
		};
		peer.start(0, 10, 0);
		done.acquire();
		row("now", ended - began < 150 ? "from the turn" : "from now");

		int[] last = new int[300];
		order.clear();
		onTimer = i -> {
			if (i != TIMERS - 1) {
				order.add(i);
			} else if (!order.isEmpty()) {
				done.release();
			} else {
				Random random = new Random(1);

				for (int n = 0; n < last.length; n++) {
					last[n] = random.nextInt(TIMERS - 1);
					peer.stop(last[n]);
					peer.start(last[n], 200, 0);
				}
				peer.start(TIMERS - 1, 400, 0);
			}
		};
		peer.start(TIMERS - 1, 10, 0);
		done.acquire();
		List<Integer> wanted = new ArrayList<>();
		for (int n = last.length - 1; n >= 0; n--)
			if (!wanted.contains(last[n]))
				wanted.add(0, last[n]);
		row("equal", order.equals(wanted) ? "as started" : "any");

		if (periods) {
			onTimer = i -> {
				times.add(now() - began);
				if (times.size() == 1) {
					busy(2600 - times.get(0));
				} else if (times.get(times.size() - 1) > 3500 && again++ == 0) {
					peer.stop(0);
					done.release();
				}
			};
			began = now();
			peer.start(0, 400, 400);
			done.acquire();
			int next = 1;
			while (times.get(next) < 2700)
				next++;
			row("stall", next - 1 + " at once, then " +
			    (times.get(next) < 2900 ? "on the grid" : "a period later"));
		} else {
			row("stall", "no periods");
		}

		again = 0;
		ended = 0;
		onTimer = i -> {
			if (i == 1) {
				ended = again;
				return;
			}
			if (again == 0)
				peer.start(1, 0, 0);
			if (++again < 100)
				peer.start(0, 0, 0);
			else
				done.release();
		};
		peer.start(0, 10, 0);
		done.acquire();
		row("again", ended > 0 && ended < 100 ? "others in between" : "before all else");

		order.clear();
		onTimer = i -> {
			if (order.isEmpty())
				busy(100);
			if (i < 2)
				peer.stop(1 - i);
			note(i);
		};
		peer.start(0, 50, 0);
		peer.start(1, 50, 0);
		peer.start(TIMERS - 1, 300, 0);
		done.acquire();
		row("cancel", order.size() == 2 ? "does not run" : "runs");
		System.out.println();
		System.exit(0);
	}
}
