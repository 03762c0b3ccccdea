/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What is looked at without tw->lock: whether anything is ready, the mode of
 * read(2), and the eventfd; on processors whose stores are seen late, unless there
 * is a barrier. Beside each step stands which function of kmod/ it is.
 *
 * What must hold when nobody has anything left to do: no reader sleeps beside a
 * count or an event; an eventfd that is set was signalled if anything is ready.
 * And at any time: an eventfd is not signalled after it was given back; a reader
 * does not go round and round.
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 */

/* A store is first in its processor's buffer, one of each being enough here. */
#define STORED 1

byte ready, counted;	/* tw->wheel.ready.count, tw->counted */
bool count_mode;	/* TWHEEL_SETUP_COUNT in tw->flags */
bool asleep;
bool locked;		/* tw->lock */

byte ready_seen;	/* ready, as the other processor sees it */
bool ready_stored;
byte eventfd, eventfd_stored;
bool eventfd_locked, eventfd_freed;
byte signals;

active proctype store_buffers()
{
end:	do
	:: atomic { ready_stored -> ready_stored = false; ready_seen = 1 }
	:: atomic { eventfd_stored -> eventfd_stored = 0; eventfd = STORED }
	od
}

/* The end of tw_wake() */
inline signal_eventfd()
{
	if
	:: eventfd ->
#ifndef MUTANT_SIGNAL_UNLOCKED
		atomic { !eventfd_locked -> eventfd_locked = true };
#endif
		if
#ifdef MUTANT_SIGNAL_UNLOCKED
		:: true ->
#else
		:: eventfd ->
#endif
			assert(!eventfd_freed);
			signals++
		:: !eventfd
		fi;
		eventfd_locked = false
	:: !eventfd
	fi
}

/* A run, in whoever's time: tw_run(), tw_wake() */
active proctype run_once()
{
	atomic { !locked -> ready = 1; ready_stored = true };
	/* smp_mb() in wq_has_sleeper() */
	!ready_stored;
	asleep = false;
	signal_eventfd()
}

/* ioctl(2): TWHEEL_IOC_EVENTFD: tw_set_eventfd() */
active proctype set_eventfd()
{
	/* An unlock is no full barrier. */
	atomic { !eventfd_locked -> eventfd_stored = STORED };
#ifndef MUTANT_EVENTFD_NO_BARRIER
	!eventfd_stored;
#endif
#ifndef MUTANT_EVENTFD_WITHOUT_LOOKING
	if
	:: ready_seen -> !eventfd_stored; signal_eventfd()
	:: !ready_seen
	fi;
#endif
	!eventfd_stored;
	/* And to end it, or not */
	if
	:: true
	:: atomic { !eventfd_locked -> eventfd_locked = true };
	   eventfd = 0;
	   eventfd_locked = false;
	   eventfd_freed = true
	fi
}

/* ioctl(2): TWHEEL_IOC_SETUP: tw_setup(), before there is a timer */
active proctype setup()
{
	if
	:: atomic { !ready && !counted -> count_mode = true }
	:: atomic { ready || counted }
	fi
}

/* read(2) in count mode: tw_read_count(), once, maybe to a bad address */
active proctype counting()
{
	if
	:: count_mode ->
		atomic { !locked -> locked = true };
		/* tw_count(): seen from outside one by one */
		if
		:: ready ->
#ifdef MUTANT_COUNT_LAST
			ready = 0;
			counted++
#else
			counted++;
			ready = 0
#endif
		:: !ready
		fi;
		if
		:: counted -> counted = 0
		:: true
		fi;
		locked = false
	:: true
	fi
}

/* read(2) of another thread, before or after the set-up: tw_read_iter() */
active proctype reader()
{
	bool count;
	byte rounds;

	count = count_mode;
	do
	:: rounds++;
	   assert(rounds < 6);
#ifndef MUTANT_MODE_ONCE
	   count = count_mode;
#endif
	   /* tw_read_count(), tw_read_events() */
	   if
	   :: atomic { !locked && count && (ready || counted) ->
		ready = 0; counted = 0; break }
	   :: atomic { !locked && !count && ready -> ready = 0; break }
	   :: atomic { !locked && !ready && !(count && counted) }
	   fi;
	   /* wait_event_interruptible(): tw_readable() */
	   asleep = true;
	   if
	   :: ready
	   :: else ->
		if
		:: counted
		:: else ->
end:			!asleep
		fi
	   fi;
	   asleep = false
	od
}

active proctype nothing_left_to_do()
{
	timeout ->
	assert(!(asleep && (ready || counted)));
	assert(!(eventfd && ready_seen) || signals)
}
