/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The locks, in the order in which the code takes them, and from where: a soft
 * interrupt comes between any two steps of the task on its processor, unless the
 * task has switched them off. Beside each step stands which function of kmod/ it
 * is. What must hold: no deadlock; two rules that keep it so:
 *
 *	tw_all_lock (bottom halves off), then tw->lock
 *	eventfd_lock and that of the queue: without tw->lock
 *
 * and a soft interrupt never finds tw->lock taken by the task that it came upon: it does not
 * wait for that lock, and could do nothing for the wheel.
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 */

#define NOBODY 0
#define TASK 1		/* on the processor that the hrtimer is on */
#define SOFTIRQ 2
#define OTHER 3		/* a task on another processor */
#define CLOSER 4	/* another */

byte wheel_lock, eventfd_lock, queue_lock, all_lock;
byte bh_off;		/* soft interrupts are off on the first processor */
bool in_softirq;

inline take(lock)
{
	atomic { lock == NOBODY -> lock = me }
}

inline release(lock)
{
	d_step { assert(lock == me); lock = NOBODY }
}

inline take_bh(lock)
{
	bh_off = bh_off + (me == TASK);
	take(lock)
}

inline release_bh(lock)
{
	release(lock);
	bh_off = bh_off - (me == TASK)
}

/* tw_wake() */
inline tw_wake()
{
	assert(wheel_lock != me);
	/* wake_up_poll(), which switches all interrupts off */
	atomic { queue_lock == NOBODY -> queue_lock = me; bh_off = bh_off + (me == TASK) };
	assert(wheel_lock != me);
	release_bh(queue_lock);
#ifdef MUTANT_EVENTFD_WITHOUT_BH
	take(eventfd_lock);
	release(eventfd_lock)
#else
	take_bh(eventfd_lock);
	release_bh(eventfd_lock)
#endif
}

/* tw_begin() to tw_end(), tw_read_events(), tw_set_eventfd(), tw_turn() */
active proctype task() provided (!in_softirq)
{
	byte me = TASK, n;

	do
	:: n < 2 ->
		n++;
#ifdef MUTANT_WITHOUT_BH
		take(wheel_lock);
		release(wheel_lock);
#else
		take_bh(wheel_lock);
#ifdef MUTANT_WAKE_UNDER_LOCK
		tw_wake();
#endif
		release_bh(wheel_lock);
#endif
		tw_wake()
	:: n == 2 -> break
	od
}

/* tw_timer_fn(), tw_again_fn() */
active proctype softirq()
{
	byte me = SOFTIRQ, n;

	do
	:: n < 2 ->
		atomic { !bh_off -> in_softirq = true; n++ };
		/* spin_trylock() */
		if
		:: atomic { wheel_lock == NOBODY -> wheel_lock = me };
		   release(wheel_lock)
		:: wheel_lock != NOBODY -> assert(wheel_lock != TASK)
		fi;
		tw_wake();
		in_softirq = false
	:: n == 2 -> break
	od
}

/* tw_read_wheel() */
active proctype other()
{
	byte me = OTHER;

	take(all_lock);
	/* tw_get_stats(), tw_get_info() */
	take(wheel_lock);
	release(wheel_lock);
	take(wheel_lock);
	release(wheel_lock);
	release(all_lock);
	/* tw_turn() */
	take(wheel_lock);
	release(wheel_lock);
	tw_wake()
}

/* tw_destroy(), of a wheel beside */
active proctype closer()
{
	byte me = CLOSER;

	take(wheel_lock);
#ifndef MUTANT_COUNTERS_UNDER_LOCK
	release(wheel_lock);
#endif
	/* tw_stats_del() */
	take(all_lock);
	release(all_lock);
#ifdef MUTANT_COUNTERS_UNDER_LOCK
	release(wheel_lock)
#endif
}
