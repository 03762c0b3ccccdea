/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tasks of a pool, its workers, and a thread besides that starts, resets, cancels and
 * stops, as a run and an end may do it, too. Beside each step stands which function of
 * userlib/src/pool*.c it is.
 *
 * The wheel is what the library promises of it: calls are one step each, and a timer
 * that is pending becomes ready at any time, also while somebody has the lock.
 *
 * What must hold: a task never runs beside itself, nor after a cancel that gave 0, nor
 * again after one that gave EINPROGRESS; its memory is not touched after its end;
 * what was started or reset is run, unless it was cancelled or stopped first; it ends
 * exactly once; cancel_wait comes back when nothing is going on for the task, stop when
 * nothing is for any; nobody waits for ever for what has come or can't come (Spin looks
 * for that by itself).
 *
 * With TWO, there are two tasks, and fewer other things.
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 */

#ifdef TWO
#define TASKS 2
#define OPS 1		/* of the other thread */
#else
#define TASKS 1
#define OPS 2
#endif
#define THREADS 3	/* two workers, and another one */
#define OTHER 2
#define INNER 1		/* of runs and ends, together */
#define ALL ((1 << TASKS) - 1)

#define IDLE 0
#define ARMED 1
#define RUNNING 2
#define LEFT 3

#define NONE 0
#define PENDING 1
#define READY 2

/* struct twheel_task */
byte state[TASKS];
bool periodic[TASKS];
bool cancelled[TASKS];
bool reset[TASKS];

/* The wheel, and the epoll: is the wheel watched, can the eventfd be read? */
byte timer[TASKS];
bool watched = true;
bool over;

/* struct twheel_pool. Of calls, a bit for each task that a thread is in. */
bool lock;
byte tasks;
byte inside = 2;
bool stopping, keep;
byte calls[THREADS];
byte awaited[THREADS];	/* calls to @target that thread waits for, a bit for each thread */
byte target[THREADS];

/* What has happened */
byte running[TASKS], ending[TASKS];
bool gone[TASKS];		/* the memory is the caller's */
bool spent[TASKS];		/* not to be run again */
bool owed[TASKS];		/* to be run */
byte started[TASKS];		/* 0, and then which start it was, of three */
bool to_end[TASKS];		/* its end is to come */
byte inner = INNER;

#define any_ready (timer[0] == READY || (TASKS > 1 && timer[TASKS - 1] == READY))
#define is_callers(t) (gone[t] || !started[t])
#define is_over (stopping && tasks == 0)
#define keeps(t) (!stopping || (keep && !periodic[t]))

inline acquire() { atomic { !lock -> lock = true } }
inline release() { lock = false }
inline touch(t) { assert(!gone[t]) }

active proctype time()
{
end:	do
	:: atomic { timer[0] == PENDING -> timer[0] = READY }
	:: atomic { TASKS > 1 && timer[TASKS - 1] == PENDING -> timer[TASKS - 1] = READY }
	od
}

/* pool_begin_call(), pool_end_call() */
inline begin_call(t) { calls[me] = calls[me] | 1 << t }
inline begin_call_if(condition, t)
{
	if
	:: condition -> begin_call(t)
	:: else
	fi
}

inline end_call(t)
{
	d_step {
		calls[me] = calls[me] & ~(1 << t);
		i = 0;
		do
		:: i < THREADS ->
			if
			:: target[i] == t -> awaited[i] = awaited[i] & ~(1 << me)
			:: else
			fi;
			i++
		:: else -> i = 0; break
		od
	}
}

/* pool_tell_over() */
inline tell_over()
{
	if
	:: is_over -> over = true
	:: else
	fi
}

/* pool_end_task(): with the lock, and the call noted. What ends may be freed by it. */
inline end_task(t, hand)
{
	atomic {
		touch(t);
#ifndef MUTANT_IDLE_AFTER_END
		if
		:: state[t] == LEFT
		:: else -> tasks--
		fi;
		state[t] = IDLE;
		periodic[t] = false;
		cancelled[t] = false;
		reset[t] = false;
#endif
#ifndef MUTANT_ONLY_STOP_TELLS
		tell_over();
#endif
		release()
	};
	atomic {
		ending[t]++;
		assert(to_end[t]);
		to_end[t] = false;
		gone[t] = true;
		assert(!owed[t])
	};
	if
	:: TASKS == 1 && inner && !hand -> inner--; start(t, false)
	:: true
	fi;
	atomic { !lock -> lock = true; ending[t]-- };
#ifdef MUTANT_IDLE_AFTER_END
	touch(t);
	tasks--;
	state[t] = IDLE;
	tell_over()
#endif
}

/* twheel_task_start() */
inline start(t, with_period)
{
	atomic {
		!lock ->
		if
#ifdef MUTANT_START_WHILE_STOPPING
		:: state[t] == IDLE && is_callers(t) ->
#else
		:: state[t] == IDLE && is_callers(t) && !stopping ->
#endif
			periodic[t] = with_period;
			cancelled[t] = false;
			reset[t] = false;
			state[t] = ARMED;
			timer[t] = PENDING;
			tasks++;
			assert(!to_end[t]);
			to_end[t] = true;
			started[t] = 1 + started[t] % 3;
			gone[t] = false;
			spent[t] = false;
			owed[t] = true
		:: else
		fi
	}
}

/* twheel_task_reset(), twheel_task_run_now() */
inline do_reset(t, with_period)
{
	atomic {
		!lock ->
		if
		:: state[t] == ARMED ->
			assert(timer[t] != NONE);
			periodic[t] = with_period;
			timer[t] = PENDING;
			owed[t] = true
#ifdef MUTANT_RESET_AFTER_CANCEL
		:: state[t] == RUNNING ->
			cancelled[t] = false;
#else
		:: state[t] == RUNNING && !cancelled[t] ->
#endif
			periodic[t] = with_period;
			reset[t] = true;
			owed[t] = keeps(t)
		:: else
		fi
	}
}

/* cancel(): with the lock. Sets ret: 0, 1 for EINPROGRESS, 2 for ENOENT. */
inline cancel(t)
{
	atomic {
		if
		:: state[t] == ARMED ->
			/* Who finds it armed finds its timer in the wheel */
			assert(timer[t] != NONE);
			timer[t] = NONE;
			spent[t] = true;
			owed[t] = false;
			ret = 0
		:: state[t] == RUNNING ->
#ifndef MUTANT_CANCEL_NOT_NOTED
			cancelled[t] = true;
#endif
			spent[t] = true;
			owed[t] = false;
			ret = 1
		:: state[t] == LEFT -> ret = 1
		:: else -> ret = 2
		fi
	}
}

/* twheel_task_cancel() */
inline do_cancel(t)
{
	atomic { !lock -> lock = true; cancel(t); begin_call_if(ret == 0, t) };
	if
	:: ret == 0 -> end_task(t, true); atomic { end_call(t); release() }
	:: else -> atomic { release(); ret = 0 }
	fi
}

/* twheel_task_cancel_wait() */
inline do_cancel_wait(t)
{
	atomic { !lock -> lock = true; cancel(t); begin_call_if(ret == 0, t) };
	if
	:: ret == 0 -> end_task(t, true); end_call(t)
	:: ret != 0 && calls[me] & 1 << t
	:: ret != 0 && !(calls[me] & 1 << t) ->
		d_step {
			target[me] = t;
			awaited[me] = (calls[0] >> t & 1) | (calls[1] >> t & 1) << 1 |
				      (calls[OTHER] >> t & 1) << OTHER;
			life = started[t]
		};
		do
#ifdef MUTANT_WAIT_LOOKS_AT_STATE
		:: state[t] == IDLE -> touch(t); break
		:: else -> release(); state[t] == IDLE; acquire()
#else
		:: !awaited[me] -> break
		:: else -> release(); !awaited[me]; acquire()
#endif
		od;
		awaited[me] = 0;
		/* Unless it was started again since */
		atomic {
			assert(started[t] != life ||
			       (!running[t] && !ending[t] && !to_end[t]));
			target[me] = 0;
			life = 0
		}
	fi;
	release()
}

/* What dismiss() makes of one that is out of the wheel. Kept ones go back. */
inline put_out(t)
{
	assert(state[t] == ARMED);
	if
	:: keeps(t) -> kept = kept | 1 << t
	:: else -> state[t] = LEFT; tasks--; spent[t] = true; owed[t] = false;
		   mine = mine | 1 << t
	fi
}

inline drain()
{
	atomic {
		i = 0;
		do
		:: i < TASKS ->
			if
			:: timer[i] == PENDING -> timer[i] = NONE; put_out(i)
			:: else
			fi;
			i++
		:: else -> i = 0; break
		od
	}
}

inline read_all()
{
	atomic {
		i = 0;
		do
		:: i < TASKS ->
			if
			:: timer[i] == READY -> timer[i] = NONE; put_out(i)
			:: else
			fi;
			i++
		:: else -> i = 0; break
		od
	}
}

/* All that are handed over are noted when they were taken out */
inline hand_over(t)
{
	if
	:: mine & 1 << t ->
		end_task(t, true);
		end_call(t);
		mine = mine & ~(1 << t)
	:: else
	fi
}

/* twheel_pool_stop() */
inline do_stop(keeping)
{
	acquire();
	atomic { keep = keeping && (!stopping || keep); stopping = true };
	kept = 0;
	/* pool_drain() */
#ifdef MUTANT_READ_BEFORE_DRAIN
	read_all();
	drain();
#else
	drain();
	read_all();
#endif
	/* dismiss() */
	atomic {
		/* Tasks in the hand of a worker */
		i = 0;
		do
		:: i < TASKS ->
			if
			:: kept & 1 << i -> timer[i] = PENDING
			:: else -> assert(state[i] != ARMED)
			fi;
			if
			:: state[i] == RUNNING && !keeps(i) -> owed[i] = false
			:: else
			fi;
			if
			:: state[i] == RUNNING && !keep -> spent[i] = true
			:: else
			fi;
			i++
		:: else -> i = 0; break
		od;
		calls[me] = calls[me] | mine;
		kept = 0
	};
	hand_over(0);
	hand_over(TASKS - 1);
	tell_over();
#ifdef MUTANT_STOP_WAITS_FOR_ITSELF
	if
	:: true ->
#else
	if
	:: calls[me]
	:: !calls[me] ->
#endif
		do
#ifdef MUTANT_STOP_FORGETS_CALLS
		:: is_over -> break
		:: else -> release(); is_over; acquire()
#else
		:: is_over && !inside && !calls[0] && !calls[1] && !calls[OTHER] ->
			break
		:: else -> release();
			is_over && !inside && !calls[0] && !calls[1] &&
				!calls[OTHER];
			acquire()
#endif
		od;
		assert(!inside && !running[0] && !ending[0] && !running[TASKS - 1] &&
		       !ending[TASKS - 1])
	fi;
	release()
}

/* What a task does in its run */
inline body(t)
{
	if
	:: inner -> inner--;
		if
#ifdef TWO
		:: another = 1 - t; do_cancel(another)
		:: another = 1 - t; do_reset(another, false)
#else
		:: do_reset(t, false)
		:: do_cancel(t)
		:: do_cancel_wait(t)
		:: do_stop(false)
#endif
		fi
	:: true
	fi
}

/* arm_again(): sets why: 1 when it is armed */
inline arm_again(t)
{
	if
	:: true -> why = 0; owed[t] = false	/* the run gave less than 0 */
	:: !reset[t] && !periodic[t] -> why = 0
#ifdef MUTANT_RESET_IS_LOST
	:: reset[t] && !periodic[t] -> why = 0
	:: periodic[t] && !cancelled[t] && keeps(t) ->
#else
	:: (reset[t] || periodic[t]) && cancelled[t] -> why = 0
#ifdef MUTANT_NOT_KEPT
	:: (reset[t] || periodic[t]) && !cancelled[t] ->
#else
	:: (reset[t] || periodic[t]) && !cancelled[t] && !keeps(t) -> why = 0
	:: (reset[t] || periodic[t]) && !cancelled[t] && keeps(t) ->
#endif
#endif
		state[t] = ARMED; timer[t] = PENDING; reset[t] = false; owed[t] = true;
		why = 1
	fi
}

inline begin(t)
{
	touch(t);
	state[t] = RUNNING;
	begin_call(t);
	running[t]++;
	assert(running[t] == 1);
	assert(!spent[t]);
	owed[t] = false
}

/* begin_run(): reads one event */
inline begin_run()
{
	if
	:: timer[0] == READY -> t = 0
	:: TASKS > 1 && timer[TASKS - 1] == READY -> t = TASKS - 1
	:: !any_ready -> t = TASKS
	fi;
	if
	:: t < TASKS ->
		timer[t] = NONE;
#ifndef MUTANT_READ_WITHOUT_LOCK
		assert(state[t] == ARMED);
		begin(t)
#endif
	:: else
	fi
}

/* pool_work() */
proctype worker(byte me)
{
	byte t, another, i, ret, why, kept, mine, life;
	bool woken;

	acquire();
	do
	:: is_over -> break
	:: !is_over ->
#ifdef MUTANT_READ_WITHOUT_LOCK
		release();
		atomic { begin_run() };
		acquire();
		if
		:: t < TASKS -> begin(t)
		:: else
		fi;
		release();
#else
		atomic { begin_run(); release() };
#endif
		/* hand_on() */
		if
#ifdef MUTANT_NOTHING_NOT_HANDED_ON
		:: woken && t < TASKS -> watched = true
		:: else
#else
#ifdef MUTANT_NOT_HANDED_ON
		:: woken && t == TASKS -> watched = true
		:: else
#else
		:: woken -> watched = true
		:: !woken
#endif
#endif
		fi;
		woken = false;
		if
		:: t < TASKS ->
			body(t);
			atomic { !lock -> lock = true; running[t]--; arm_again(t) };
			if
			:: why == 0 -> end_task(t, false)
			:: else
			fi;
			atomic { end_call(t); t = 0; why = 0; ret = 0; another = 0 }
		:: t == TASKS ->
			t = 0;
			/* wait_due() */
end_asleep:		if
			:: atomic { watched && any_ready -> watched = false; woken = true }
			:: atomic { over -> woken = true }
			fi;
			acquire()
		fi;
	od;
	inside--;
	release()
}

proctype other(byte me)
{
	byte n, i, ret, kept, mine, life;

#ifdef TWO
	start(0, false);
	start(1, false);
#endif
	do
	:: n < OPS -> n++; ret = 0;
		if
#ifndef TWO
		:: is_callers(0) -> start(0, true)
		:: is_callers(0) -> start(0, false)
		:: do_reset(0, true)
		:: do_cancel(0)
		:: do_stop(true)
#endif
		:: do_reset(0, false)
		:: do_cancel_wait(0)
		:: do_stop(false); n = OPS
		fi
	:: n == OPS -> break
	od;
	/* Tasks with a period would go on for ever */
	if
	:: do_cancel(0)
	:: !periodic[0]
	fi;
	nothing_lost: skip
}

init
{
	atomic { run worker(0); run worker(1); run other(OTHER) }
}

/* When nobody has anything to do any more: those that sleep do as nothing is due */
active proctype nothing_left_to_do()
{
	timeout ->
	assert(!owed[0] && !owed[TASKS - 1]);
	assert(!any_ready);
	assert(state[0] != RUNNING && state[TASKS - 1] != RUNNING);
	assert((state[0] == IDLE) == !to_end[0]);
	assert((state[TASKS - 1] == IDLE) == !to_end[TASKS - 1])
}
