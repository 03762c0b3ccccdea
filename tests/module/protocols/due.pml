/* SPDX-License-Identifier: GPL-2.0 */
/*
 * A wheel becomes due, is turned by whoever comes, and is closed: expire.c. Beside each step stands
 * which function of kmod/ it is. Two tasks share an epoll of the wheel, of which one may be killed;
 * with AIO, both are workers of the kernel, which do not turn it; with READER, one waits for edges,
 * and another reads what was ready before; with UNREAD, one waits for edges, and nobody reads; with
 * EVENTFD, one sets an eventfd, another makes a call, and the last one closes the wheel.
 *
 * What must hold when nobody has anything left to do: no task sleeps in epoll beside a timer, also
 * where nothing is read; all that is due in a wheel with an eventfd is ready, and signalled; a wheel
 * that is closed has no hrtimer set, and is in no queue, nor counted there.
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 */

#ifdef READER
#define POLLERS 1
byte armed = 1, ready = 1, due;
#else
#ifdef UNREAD
#define POLLERS 1
#else
#define POLLERS 2
#endif
byte armed = 2;		/* timers that are not due yet */
byte ready;
byte due = 1;		/* the hrtimer came for what was cancelled since */
#endif
byte work;		/* timers that are due, and have to be expired */
bool cascaded;
bool timer_set = true, in_timer, again_set, in_again;
bool eventfd, signalled, unattended;
bool behind, closing, closed, patient, locked;
byte queued;		/* tw->queue: that of which processor; or CLOSED */
#define CLOSED 3
byte in_list;		/* of which queue's list */
byte users_wheels;	/* how many are in those lists */
bool listed;		/* in the list of what epoll has to look at */
bool killed, untold;
byte open = 2;		/* tasks that have the descriptor */

/* tw_queue(): where another wheel of the user is before it, its hrtimer is not set yet */
inline queue(processor)
{
	atomic {
		if
#ifdef MUTANT_QUEUED_TWICE
		:: true ->
#else
		:: !queued ->
#endif
			mine = processor;
			queued = mine
		:: else
		fi
	};
	/* With the lock of that queue */
	atomic {
		if
		:: mine ->
			assert(!in_list);
			in_list = mine;
			users_wheels++;
			if
			:: again_set = true
			:: behind = true
			fi
		:: !mine
		fi;
		mine = 0
	}
}

/* tw_leave_queue() */
inline leave_queue()
{
	mine = queued;
#ifdef MUTANT_LEFT_BEFORE_IT_IS_OUT
	queued = 0;
#endif
	/* With the lock of that queue */
	atomic {
		if
#ifdef MUTANT_EVENTFD_LEAVES_ANOTHER_QUEUE
		:: mine && in_list ->
#else
		:: mine && in_list && queued == mine ->
#endif
			/* Or it would be taken out with the lock of another queue. */
			assert(in_list == mine);
			in_list = 0;
			behind = false;
			users_wheels--;
			queued = 0
		:: else
		fi;
		mine = 0
	}
}

/* tw_end_timers(): of the queues */
inline end_queue()
{
	do
	:: atomic { !queued -> queued = CLOSED; break }
	:: queued -> leave_queue()
	od
}

/* tw_run(): it expires one timer at most. The first one may have to be cascaded before. */
inline do_run()
{
	atomic { seen = due; told = (seen > 0); got = false };
	atomic {
		if
		:: work -> work--; ready++; got = true
		:: work && !ready && !cascaded -> cascaded = true
		:: else
		fi;
		left = (work > 0)
	};
	atomic {
		if
		:: left ->
			timer_set = false;
#ifndef MUTANT_EVENTFD_LEFT_IS_NOT_DUE
			due = due + !seen
#endif
		:: else ->
			/* tw_reprogram_timer(), from what it has seen so far */
#ifdef MUTANT_EVENTFD_SET_WHILE_IT_CLOSES
			timer_set = timer_set || armed || work
#else
			timer_set = timer_set || ((armed || work) && !closing)
#endif
		fi
	};
	if
#ifdef MUTANT_ALL_IS_SEEN
	:: !left -> due = 0
#else
	:: !left -> due = due - seen
#endif
	:: left
	fi
}

/* tw_turn_once() */
inline turn_once()
{
	atomic { !locked -> locked = true };
	do_run();
	locked = false;
	if
	:: left && unattended -> queue(2)
	:: else
	fi;
	told = told && !untold;
	atomic {
		if
		:: (got || left) && !told -> listed = true
		:: else
		fi;
		signalled = signalled || (got && eventfd);
		seen = 0; told = 0; got = 0; left = 0
	}
}

/* The time of a timer comes. */
active proctype clock()
{
end:	do
	:: atomic { armed -> armed--; work++ }
	od
}

/* tw_timer_fn(): it may come for what is done already, too. */
active proctype timer()
{
	byte mine;
	bool seen_unattended;

end:	do
	:: atomic {
		timer_set && (work || !armed) -> assert(!closed); timer_set = false; in_timer = true
	   };
#ifdef MUTANT_EVENTFD_TIMER_NO_BARRIER
	   seen_unattended = unattended;
	   due++;
#else
	   due++;
	   seen_unattended = unattended;
#endif
	   if
	   :: seen_unattended -> queue(1)
	   :: else
	   fi;
	   atomic { listed = true; seen_unattended = false; in_timer = false }
	od
}

/* tw_again_fn() */
active proctype again()
{
	byte seen, mine;
	bool told, got, left;

end:	do
	:: atomic { again_set -> assert(!closed); again_set = false; in_again = true };
	   leave_queue();
	   if
	   :: left = true	/* no credit */
	   :: true ->
		if
		:: due && unattended ->
			/* tw_try_run() */
			if
			:: atomic { !locked -> locked = true };
			   do_run();
			   locked = false
			:: atomic { locked -> left = true }
			fi
		:: !due || !unattended
		fi;
#ifndef MUTANT_AGAIN_TELLS_NOBODY
		if
		:: untold -> listed = true
		:: !untold
		fi
#endif
	   fi;
	   atomic { signalled = signalled || (got && eventfd); got = 0; seen = 0; told = 0 };
	   if
#ifndef MUTANT_LEFT_IS_NOT_QUEUED
	   :: left -> queue(2)
#endif
	   :: else
	   fi;
	   atomic { left = false; in_again = false }
	od
}

/* tw_leave_queue() of the wheel before it: then this one is the first. */
active proctype before()
{
end:	do
	:: atomic { behind -> assert(!closed); behind = false; again_set = true }
	od
}

#ifndef EVENTFD
/* epoll_wait(2): tw_poll(), tw_look() */
active [POLLERS] proctype poller()
{
	byte seen, mine;
	bool told, got, left, was_due, was_ready;

#ifdef READER
end_told:
	atomic { listed -> listed = false };
#endif
	do
	:: was_due = (due > 0);
	   was_ready = false;
#if defined(MUTANT_UNREAD_IS_NOT_LOOKED_AT) || defined(MUTANT_READER_LOOKS_TWICE)
	   was_ready = (ready > 0);
#endif
	   if
	   :: was_due && !was_ready ->
#ifdef AIO
#ifndef MUTANT_AIO_IS_NOT_TOLD
		untold = true;
#endif
		unattended = true;
		if
		:: due -> queue(2)
		:: else
		fi
#else
		/* tw_turn(), which does nothing for who was killed */
		if
		:: turn_once()
#if POLLERS > 1
		:: !killed
#endif
		fi;
		if
#if POLLERS > 1
		:: due && !killed ->
			killed = true;
#ifndef MUTANT_KILLED_TELLS_NOBODY
			untold = true;
			queue(2);
#endif
			break
#endif
		:: due ->
#ifndef MUTANT_LOOKS_ONCE
			listed = true
#endif
		:: else
		fi
#endif
	   :: else
	   fi;
#ifndef UNREAD
	   if
	   :: ready -> listed = true; break
	   :: !ready
	   fi;
#endif
end_asleep:
	   atomic { listed -> listed = false }
	od;
	open--
}

#ifdef READER
/* read(2): tw_read_iter(), which gives what is ready, and is short */
active proctype reader()
{
	byte seen, mine;
	bool told, got, left;

	if
	:: due -> turn_once()
	:: !due
	fi;
	atomic { !locked -> ready = 0; open-- }
}
#endif

#else
/* ioctl(2): tw_set_eventfd(), tw_set_unattended() */
active proctype setter()
{
	byte mine;
	bool seen_due;

	eventfd = true;
#ifdef MUTANT_EVENTFD_NO_BARRIER
	seen_due = (due > 0);
	unattended = true;
#else
	unattended = true;
	seen_due = (due > 0);
#endif
	if
	:: seen_due -> queue(2)
	:: !seen_due
	fi;
	atomic { signalled = signalled || (ready > 0); open-- }
}

/* ioctl(2): tw_turn() */
active proctype caller()
{
	byte seen, mine;
	bool told, got, left;

	if
	:: due -> turn_once()
	:: !due
	fi;
	open--
}

/* The last close: tw_destroy(), tw_end_timers() */
active proctype closer()
{
	byte mine;

	if
	:: patient = true
	:: true
	fi;
	!open && !patient;
	atomic { !locked -> closing = true };
	atomic { !in_timer -> timer_set = false };
#ifdef MUTANT_EVENTFD_LEAVES_THE_QUEUE_LAST
	atomic { !in_again -> again_set = false };
	end_queue();
#else
#ifdef MUTANT_EVENTFD_QUEUED_WHILE_IT_CLOSES
	leave_queue();
#elif !defined(MUTANT_EVENTFD_STAYS_IN_THE_QUEUE)
	end_queue();
#endif
#ifndef MUTANT_EVENTFD_AGAIN_GOES_ON
	atomic { !in_again -> again_set = false };
#endif
#endif
	closed = true
}
#endif

active proctype nothing_left_to_do()
{
	timeout ->
#ifdef READER
	assert(!open || !(due || ready || work || armed));
#elif defined(UNREAD)
	assert(!open || !(due || work || armed));
#else
	assert(!open);
#endif
#ifdef EVENTFD
	assert(!patient || (!armed && !work && signalled));
	patient = false;
	timeout ->
	assert(closed && !timer_set && !again_set && queued == CLOSED && !in_list && !users_wheels)
#endif
}
