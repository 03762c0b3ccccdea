/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The life of a timer: armed, ready, read or cancelled or drained, armed again if
 * it is periodic; and of its wheel, until that is freed. Beside each step stands
 * which function of kmod/ it is.
 *
 * One process to each that may be at work on a wheel at the same time: the
 * hrtimer's callback, the queue's that gives turns, the worker, readers, a program that arms, changes and
 * cancels, one that drains, and the last close. They take turns in all ways that
 * there are, but that what is done under one hold of tw->lock is one step: that
 * the lock can do this is for locks.pml to say, and what is looked at without it
 * is for wake.pml.
 *
 * What must hold: nobody waits for ever for what has come or can't come (Spin
 * looks for that by itself); each expiry is read once at most, and by one reader;
 * none is read after a cancel that succeeded; a timer that expired is not lost,
 * whichever copy fails; no timer is on a list when it ends, nor twice on any;
 * nobody touches a wheel that was freed.
 *
 * Without RUDE the readers are killed only when there is nothing to come any more,
 * so that one that misses something waits for ever. With RUDE they are killed at
 * any time, which is about what comes after that.
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 * tests/module/protocols/run wants each of them to be found wrong (those of RUDE with that).
 */

#define TIMERS 2
#ifdef RUDE
#define READERS 1
#else
#define READERS 2
#endif
#define OPS 2		/* of the program */
#define MAX 2		/* the last time that there is */
#define NEVER 15
#define BUDGET 1	/* timers that one run expires: tw_budget */
#define BATCH 2		/* events that one hold of the lock copies: TW_EVENTS */
#define NOBODY 255

#define FREE 0
#define PENDING 1
#define READY 2
#define OUT 3		/* taken off the wheel by DRAIN, not yet freed */

/* The wheel: kmod/wheel.c. A node's gen is what tells an id from a later one. */
byte state[TIMERS];
byte due[TIMERS];
bool periodic[TIMERS];
byte gen[TIMERS];
chan ready = [TIMERS] of { byte };
byte next = NEVER;		/* tw->wheel.next: nothing to do before */

/* struct twheel: kmod/context.h */
byte lock = NOBODY;
bool closing;
byte timer_tick = NEVER;
bool alive = true;

/* The kernel: time, the hrtimer, the work item, the queue of waiting readers */
byte now;
bool enqueued, timer_running;
byte expires;
bool work_pending, work_running, work_cancelling;
bool waiting, deferred;		/* in the queue; tw->waits_for */
bool turn;			/* tw->turns */
bool asleep[2];
bool killed;

/* What was promised: kept for the assertions alone */
bool to_read[TIMERS];		/* it expired; not read, cancelled or changed since */
byte armed;			/* timers that the program counts on */
byte owed;			/* expiries that somebody is still to read */
byte users = READERS + 1;	/* calls that hold the file open */

#define OTHER(i) (1 - (i))
#define EARLIEST(i) (state[i] == PENDING && \
		     (state[OTHER(i)] != PENDING || due[i] <= due[OTHER(i)]))
#define PENDING_LEFT (state[0] == PENDING || state[1] == PENDING)

/* spin_lock(&tw->lock), spin_unlock(&tw->lock) */
inline tw_lock()
{
	atomic {
		lock == NOBODY;
		assert(alive);
		lock = _pid;
	}
}

inline tw_unlock()
{
	d_step {
		assert(alive && lock == _pid);
		lock = NOBODY;
	}
}

/* hrtimer_start() */
inline hrtimer_start(when)
{
	enqueued = true;
	expires = when;
}

/* tw_reprogram_timer() */
inline tw_reprogram_timer(when)
{
	d_step {
		assert(lock == _pid && alive);
		if
		:: when == NEVER && timer_tick != NEVER ->
			/* hrtimer_try_to_cancel() */
			enqueued = enqueued && timer_running;
			timer_tick = NEVER
		:: else
		fi;
		if
#ifdef MUTANT_RUDE_PROGRAM_WHEN_CLOSING
		:: when < timer_tick ->
#else
		:: when < timer_tick && !closing ->
#endif
			timer_tick = when;
			hrtimer_start(when)
		:: else
		fi
	}
}

/* tw_wheel_add() */
inline tw_wheel_add(i, when)
{
	assert(lock == _pid && (state[i] == FREE || state[i] == OUT));
	due[i] = when;
	state[i] = PENDING;
#ifndef MUTANT_ADD_FORGETS_NEXT
	if
	:: when < next -> next = when
	:: else
	fi
#endif
}

/* Where tw_arm() and tw_modify() put a timer */
inline place(i, when)
{
	if
	:: when > now -> tw_wheel_add(i, when)
	:: else -> make_ready(i)	/* tw_wheel_add_ready() */
	fi
}

/* What tw_expire() does to a node */
inline make_ready(i)
{
	state[i] = READY;
	to_read[i] = true;
	due[i] = 0;
	owed++;
	assert(!(ready??[eval(i)]));
	ready!i
}

/* tw_wheel_del() */
inline tw_wheel_del(i)
{
	assert(lock == _pid);
	if
	:: state[i] == READY -> ready??eval(i)
	:: else -> assert(state[i] == PENDING)
	fi;
	state[i] = OUT;
	if
	:: !PENDING_LEFT -> next = NEVER
	:: else
	fi
}

/* tw_free_timer() */
inline tw_free_timer(i)
{
	assert(lock == _pid && state[i] == OUT && !(ready??[eval(i)]));
	state[i] = FREE;
	due[i] = 0;
	periodic[i] = false
}

/* tw_wake(), which is for all that wait */
inline tw_wake()
{
	d_step {
		assert(alive);
		asleep[0] = false;
		asleep[1] = false
	}
}

/* tw_wheel_step(), as far as the budget goes, and the end of tw_run() */
inline tw_run()
{
	atomic {
		assert(lock == _pid && alive);
		/* tw_share_leave() */
		timer_tick = (deferred -> NEVER : timer_tick);
		waiting = false;
		deferred = false;
		left = BUDGET;
		wake = false;
		do
		:: left > 0 && EARLIEST(0) && due[0] <= now ->
			make_ready(0); wake = true; left--
		:: left > 0 && EARLIEST(1) && due[1] <= now ->
			make_ready(1); wake = true; left--
		:: else -> break
		od;
		/* What is left is due: then the wheel has something to do now. */
		next = NEVER;
		if
		:: EARLIEST(0) -> next = due[0]
		:: EARLIEST(1) -> next = due[1]
		:: else
		fi;
		more = (next <= now) && !closing;
		/* max(tw->wheel.next, step.now + 1) */
		until = (next <= now -> now + 1 : next);
		left = 0
	}
	tw_reprogram_timer(until);
	until = 0
}

/* Time passes. */
proctype clock()
{
end:	do
	:: now < MAX -> now++
	od
}

/* The hrtimer's soft interrupt: tw_timer_fn() */
proctype timer()
{
	byte left, until;
	bool wake, more;

end:	do
	:: atomic {
		enqueued && now >= expires && !timer_running ->
		enqueued = false;
		expires = 0;
		timer_running = true
	   }
	   atomic {
		tw_lock();
		timer_tick = NEVER;
		if
		:: tw_run()
		:: /* tw_throttle() */
		   more = false; wake = false;
		   if
#ifdef MUTANT_RUDE_DEFER_WHEN_CLOSING
		   :: true ->
#else
		   :: !closing ->
#endif
			timer_tick = 0;
			deferred = true;
			waiting = true
		   :: else
		   fi
#ifdef RUDE
		:: /* tw_set_back_meanwhile() */
		   more = true; wake = false
#endif
		fi;
		if
		:: more -> work_pending = !work_cancelling
		:: !more
		fi;
		more = false;
		tw_unlock();
		if
#ifndef MUTANT_TIMER_WAKES_NOBODY
		:: wake -> tw_wake()
#endif
		:: else
		fi;
		wake = false
	   };
	   timer_running = false
	od
}

/* The soft interrupt of a queue's hrtimer: tw_turns_fn() */
proctype turns()
{
	byte left, until;
	bool wake, more;

end:	do
	:: atomic {
		/* tw_share_next() */
		waiting -> waiting = false;
		turn = true
	   }
	   atomic {
		/* tw_softirq_run() */
		tw_lock();
		tw_run();
		if
		:: more -> work_pending = !work_cancelling
		:: !more
		fi;
		more = false;
		tw_unlock();
		if
#ifndef MUTANT_TURN_WAKES_NOBODY
		:: wake -> tw_wake()
#endif
		:: else
		fi;
		wake = false
	   };
	   /* tw_turn_over() */
	   turn = false
	od
}

/* The workqueue: tw_work_fn() */
proctype worker()
{
	byte left, until;
	bool wake, more;

end:	do
	:: atomic {
		work_pending && !work_running ->
		work_pending = false;
		work_running = true
	   }
	   do
	   :: atomic {
		tw_lock();
		tw_run();
		tw_unlock();
		if
		:: wake -> tw_wake()
		:: else
		fi;
		wake = false
	      };
	      if
	      :: !more -> break
	      :: else
	      fi
	   od;
	   work_running = false
	od
}

/* A copy to a program's memory: all of it, or as much as there are no faults. */
inline copy_to_user(copied, wanted)
{
	if
	:: copied = wanted
	:: wanted > 0 -> copied = wanted - 1
	:: wanted > 1 -> copied = 0
	fi
}

/* The event of timer @i, of gen @g, is in a program's hands. */
inline handed_out(i, g)
{
	assert(gen[i] == g && to_read[i]);
	to_read[i] = false;
	owed--;
	armed = armed - !periodic[i]
}

/* The program wants no event of the timer's last expiry. */
inline withdraw(i)
{
	owed = owed - to_read[i];
	to_read[i] = false
}

/* tw_read_commit(): the timer goes on, or it is gone */
inline tw_read_commit(i)
{
	assert(state[i] == READY);
	ready??eval(i);
	state[i] = OUT;
	if
	:: periodic[i] -> tw_wheel_add(i, now + 1)
	:: else -> tw_free_timer(i)
	fi
}

/* read(2): tw_read_iter(), tw_read_events() */
proctype reader(byte me)
{
	byte i, n, copied;
	byte event[BATCH], event_gen[BATCH];

	do
	:: atomic {
		tw_lock();
		/* tw_fill_events() */
		n = len(ready);
		do
		:: i < n ->
			ready?event[i];
			ready!event[i];
			event_gen[i] = gen[event[i]];
			i++
		:: else -> break
		od;
		i = 0;
#ifdef MUTANT_COPY_UNLOCKED
		tw_unlock()
	   }
	   atomic {
		lock == NOBODY;
#endif
		/* tw_copy_nofault() */
		copy_to_user(copied, n);
		do
		:: i < copied -> handed_out(event[i], event_gen[i]); i++
		:: else -> break
		od;
		i = 0;
#ifdef MUTANT_COPY_UNLOCKED
	   }
	   atomic {
		tw_lock();
#endif
		do
#ifdef MUTANT_TAKE_UNCOPIED
		:: i < n -> tw_read_commit(event[i]); i++
#else
		:: i < copied -> tw_read_commit(event[i]); i++
#endif
		:: else -> break
		od;
		/* tw_finish_batch() */
		tw_reprogram_timer(next);
		tw_unlock();
		i = 0;
		copied = 0;
		event[0] = 0; event[1] = 0;
		event_gen[0] = 0; event_gen[1] = 0
	   }
	   if
	   :: n == 0 ->
		/* wait_event_interruptible(tw->wait, tw_readable(tw)) */
		asleep[me] = true;
		if
#ifndef MUTANT_SLEEP_WITHOUT_LOOKING
		:: len(ready) > 0 || killed
		:: else ->
#else
		:: true ->
#endif
			!asleep[me] || killed
		fi;
		asleep[me] = false
	   :: n > 0 -> n = 0
	   fi;
	   if
	   :: killed -> break
	   :: !killed
	   fi
	od;
	users--
}

/* ioctl(2): DRAIN: tw_drain_batch() */
inline drain()
{
	atomic {
		tw_lock();
		/* tw_drain_one() */
		do
		:: PENDING_LEFT ->
			i = (state[0] == PENDING -> 0 : 1);
			if
			:: tw_wheel_del(i); tw_free_timer(i); armed--
			/* It can't be written. */
#ifdef MUTANT_DRAIN_LOSES
			:: tw_wheel_del(i); tw_free_timer(i); break
#else
			:: break
#endif
			fi
		:: else -> break
		od;
		/* tw_finish_batch() */
		tw_reprogram_timer(next);
		tw_unlock();
		i = 0
	}
}

/* ioctl(2): ARM, MODIFY, CANCEL: tw_begin() to tw_end() */
inline operation()
{
	atomic {
		n++;
		select(i : 0 .. 1);
		select(when : 0 .. 1);
		when = now + when;
		tw_lock();
		if
		/* tw_arm() */
		:: state[i] == FREE ->
			gen[i]++;
			armed++;
			/* To have fewer states, only one can be. */
			if
			:: i == 0 -> periodic[i] = true
			:: true
			fi;
			place(i, when)
		/* tw_modify() */
		:: state[i] != FREE ->
			withdraw(i);
			tw_wheel_del(i);
			place(i, when)
		/* tw_cancel() */
		:: state[i] != FREE ->
			withdraw(i);
			armed--;
#ifdef MUTANT_CANCEL_LEAVES_READY
			if
			:: state[i] == READY -> state[i] = FREE
			:: else -> tw_wheel_del(i); tw_free_timer(i)
			fi
#else
			tw_wheel_del(i);
			tw_free_timer(i)
#endif
		fi;
		/* tw_end() */
#ifndef MUTANT_END_PROGRAMS_NOTHING
		tw_reprogram_timer(next);
#endif
		tw_unlock();
#ifndef MUTANT_END_WAKES_NOBODY
		if
		:: state[i] == READY -> tw_wake()
		:: else
		fi
#endif
	}
}

/* A program's thread */
proctype program()
{
	byte n, i, when;

	do
	:: n < OPS && !killed ->
		operation();
		atomic { i = 0; when = 0 }
	:: n < OPS && !killed ->
		n++;
		drain();
		i = 0
	:: n == OPS || killed -> break
	od;
	atomic { n = 0; users-- }
}

/* Kills readers: when nothing more comes, or at any time. */
proctype killer()
{
	/* Nothing is ready, nor to be, and nobody arms anything. */
#define QUIET(i) (state[i] == FREE || (state[i] == PENDING && due[i] > MAX))
#ifndef RUDE
	now == MAX && users == READERS && lock == NOBODY && QUIET(0) && QUIET(1);
#endif
	killed = true
}

/* The last close: tw_release(), tw_destroy() */
proctype release()
{
	users == 0;
#ifndef MUTANT_RUDE_NOT_CLOSING
	atomic {
		tw_lock();
		closing = true;
#ifndef MUTANT_RUDE_WAITS_WHEN_CLOSED
		waiting = false;
#endif
		tw_unlock()
	}
#endif
#ifdef MUTANT_RUDE_WORKER_FIRST
	atomic { work_pending = false; work_cancelling = true };
	!work_running;
	work_cancelling = false;
#endif
	/* hrtimer_cancel() */
#ifdef MUTANT_RUDE_TIMER_NOT_AWAITED
	enqueued = enqueued && timer_running;
#else
	atomic { !timer_running -> enqueued = false };
#endif
#ifndef MUTANT_RUDE_TURN_NOT_AWAITED
	!turn;
#endif
#ifndef MUTANT_RUDE_WORKER_FIRST
	/* cancel_work_sync() */
	atomic { work_pending = false; work_cancelling = true };
#ifndef MUTANT_RUDE_WORKER_NOT_AWAITED
	!work_running;
#endif
	work_cancelling = false;
#endif
	d_step {
		assert(lock == NOBODY && !enqueued && !work_pending);
		/* All that was armed is there, or was handed out. */
		assert(armed == (state[0] != FREE) + (state[1] != FREE));
		assert(owed == len(ready));
		assert(owed == (state[0] == READY) + (state[1] == READY));
		alive = false
	}
}

init {
	atomic {
		run clock();
		run timer();
		run turns();
		run worker();
		run reader(0);
#ifndef RUDE
		run reader(1);
#endif
		run program();
		run killer();
		run release()
	}
}
