/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Shared timers: the words that programs change without a system call, the bits
 * that tell the kernel which of them to look at, and when it looks. What expired is
 * taken here without the ring, which ring.pml has. Beside each step stands which
 * function of kmod/shared.c or of userlib/include/twheel_shared.h it is.
 *
 * The program does not take tw->lock, so here each access by anybody of
 * what is shared is a step. An atomic operation that gives back the old value is a
 * full barrier. The kernel's one store that is none, of next_wake, is seen late.
 * That loads may be early is what mutants are for. Whenever time goes on while all
 * are at rest, it is looked at whether all is right.
 *
 * What must hold when all are at rest, or have nothing left to do: no timer is armed
 * whose deadline is past; each that is not idle is known, and the node at its
 * deadline or before, or it is dirty; and the kernel wakes up by then. And at any
 * time: none expires early; an expiry is taken once, and not after a cancel that
 * succeeded or after the timer was armed again; arm and cancel tell truly what they
 * found.
 *
 * Each thread has a timer of its own, as one at a time may change one; and the first
 * may stop wherever it is, until nobody else has anything to do: that must be of no
 * harm but to its own timer. With ALONE only the second does anything, but more.
 * With APART the timers are in two groups.
 *
 * The kernel has an entry for each timer. Here is one node for both, at the first of
 * their deadlines, at which both are looked at: so one is looked at more often, at
 * moments at which it may be by the deadlines of the other. What it is like with an
 * entry of its own is seen with ALONE.
 *
 * What has to come before what, and the weakest order that does it:
 *
 *	program: word, then dirty bit			release
 *	program: dirty bit, then test of groups		full
 *	program: bit of groups, or test that finds it
 *		set, then load of next_wake		full (seq_cst loads)
 *	kernel: bit of groups cleared, then dirty	full
 *	kernel: dirty bit cleared, then load of word	acquire
 *	kernel: next_wake, then load of groups		full
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 */

#define TIMERS 2
#define START 1
#define SOON 3
#define MAX 5		/* the last time that there is */
#define NEVER 63
#define NONE 0		/* nothing owed */

/* The bits of the timers that are in one group */
#ifdef APART
#define GROUP(i) (1 << (i))
#else
#define GROUP(i) 3
#endif

#ifdef ALONE
#define OPS(i) (4 * (i))	/* of its thread */
#define OTHER NEVER		/* a tick at which the kernel wakes up anyway */
#else
#define OPS(i) 1
#define OTHER SOON
#endif

/* Is the first thread stopped? */
#define NOT_YET 0
#define NOW 1
#define OVER 2

#define ARMED 1
#define FIRED 64
#define IDLE 128
#define STATES (IDLE | FIRED)
#define DEADLINE(w) (((w) & ~STATES) | ARMED)

/* What is shared: struct twheel_shared */
byte word[TIMERS] = IDLE;
byte dirty;			/* a bit for each timer */
byte groups;			/* a bit for each group: all those of GROUP() */
byte next_wake = OTHER;		/* as the kernel has stored it */
bool next_wake_stored;		/* but it is not yet seen */
byte next_wake_seen = OTHER;

/* The kernel's own: struct twheel, struct tw_shared */
byte now = START;
byte node = NEVER;		/* when it comes to both timers */
byte known;			/* a bit for each timer that it looks at then */
byte scan;			/* the bits of the group that is scanned just now */
byte timer = OTHER;
byte other = OTHER;		/* the tick of a timer that is not shared */
bool running;			/* tw->lock */
bool rung;			/* TWHEEL_IOC_DOORBELL */

/* What was promised: kept for the assertions alone */
byte owed[TIMERS] = NONE;	/* armed to when, and not taken or cancelled since */
bool busy[TIMERS];		/* its thread is in the middle of something */
byte halted = NOT_YET;

/*
 * The first step of twheel_shared_arm() and of twheel_shared_cancel(): an exchange
 * for what is to be armed, or to clear a bit
 */
inline change(i)
{
	word[i] = (new -> new : old & ~ARMED);
	busy[i] = true;
	assert(!owed[i] == !(old & (ARMED | FIRED)));
	if
	:: new -> owed[i] = new
	:: !new && old & ARMED -> owed[i] = NONE
	:: else
	fi
}

/* The rest of twheel_shared_cancel() */
inline cancel(i)
{
	atomic {
		assert(!owed[i] == !(word[i] & FIRED));
		word[i] = word[i] & ~FIRED;
		owed[i] = NONE
	}
}

/* The rest of twheel_shared_arm(), twheel_internal_push() */
inline push(i)
{
#ifdef MUTANT_GROUPS_BEFORE_DIRTY
	set = groups & GROUP(i);
#endif
#ifdef MUTANT_DIRTY_BY_STORE
	seen = dirty;
	dirty = seen | (1 << i);
#else
	dirty = dirty | (1 << i);
#endif
	may_stop(i);
#ifdef MUTANT_NEXT_WAKE_BEFORE_TEST_OF_GROUPS
	seen = next_wake_seen;
#endif
#ifndef MUTANT_GROUPS_BEFORE_DIRTY
	set = groups & GROUP(i);
#endif
	if
	:: set ->
#ifndef MUTANT_NEXT_WAKE_BEFORE_TEST_OF_GROUPS
		seen = next_wake_seen
#endif
	:: else ->
#ifdef MUTANT_NEXT_WAKE_BEFORE_GROUPS
		seen = next_wake_seen;
		groups = groups | GROUP(i)
#elif defined(MUTANT_APART_GROUPS_BY_STORE)
		seen = groups;
		groups = seen | GROUP(i);
		seen = next_wake_seen
#else
		groups = groups | GROUP(i);
		may_stop(i);
		seen = next_wake_seen
#endif
	fi
}

inline may_stop(i)
{
	if
	:: atomic { i == 0 && halted == NOT_YET -> halted = NOW }; halted == OVER
	:: true
	fi
}

active [TIMERS] proctype thread()
{
	byte i = _pid, n, new, old, seen;
	bool set;

	do
	:: atomic {
		n < OPS(i) ->
		n++;
		if
		:: new = SOON
		:: new = MAX
		:: n > 1 -> new = 0
		fi;
		old = word[i];
#ifdef MUTANT_ALONE_ARM_BY_STORE
	   }
	   atomic {
#endif
		change(i)
	   };
	   may_stop(i);
#ifdef MUTANT_REARM_OF_IDLE_UNSAID
	   old = old & ~IDLE;
#endif
#ifdef MUTANT_ALONE_REARM_OF_FIRED_UNSAID
	   old = (old & FIRED -> 0 : old);
#endif
	   seen = 0;
	   if
	   :: !new && old & ARMED
	   :: !new && !(old & ARMED) -> cancel(i)
#ifdef MUTANT_ALONE_REARM_TO_EARLIER_UNSAID
	   :: new && !(old & STATES)
	   :: new && old & STATES -> push(i)
#else
	   :: new && old <= new
	   :: new && old > new -> push(i)
#endif
	   fi;
	   atomic {
		/* twheel_shared_doorbell() */
		if
#ifndef MUTANT_NO_DOORBELL
		:: new < seen -> rung = true
#endif
		:: else
		fi;
		busy[i] = false;
		new = 0; old = 0; seen = 0; set = false
	   }
	:: else -> break
	od
}

active proctype store_buffer()
{
end:	do
	:: atomic { next_wake_stored -> next_wake_stored = false; next_wake_seen = next_wake }
	od
}

/* twheel_shared_take() */
inline take(i)
{
	assert(owed[i] && owed[i] <= now);
	word[i] = word[i] & ~FIRED;
	owed[i] = NONE
}

active proctype taker()
{
end:	do
	:: atomic { word[0] & FIRED -> take(0) }
	:: atomic { word[1] & FIRED -> take(1) }
	od
}

/* What tw_inspect() finds: w is IDLE when there is nothing to change */
inline load_word(i)
{
#ifdef MUTANT_WORD_BEFORE_DIRTY
	w = words[i];
	words[i] = word[i];
#else
	w = word[i];
#endif
	if
	:: w & STATES -> known = known & ~(1 << i); w = IDLE
#ifdef MUTANT_ALONE_FIRE_BY_NODE
	:: !(w & STATES) && w & ARMED && DEADLINE(w) > now && !asked ->
#else
	:: !(w & STATES) && w & ARMED && DEADLINE(w) > now ->
#endif
		first = (DEADLINE(w) < first -> DEADLINE(w) : first);
		known = known | (1 << i);
		w = IDLE
#ifdef MUTANT_ALONE_CANCELLED_STAYS_KNOWN
	:: !(w & (STATES | ARMED)) && known & (1 << i) && node != NEVER -> w = IDLE
#endif
	:: else
	fi
}

/* tw_inspect() */
inline look_at(i)
{
	if
	:: atomic { bits & (1 << i) -> load_word(i) };
		do
		:: w == IDLE -> break
		/* tw_word_untrack() */
#ifdef MUTANT_ALONE_LEAVE_BY_STORE
		:: !(w & (IDLE | ARMED)) ->
			word[i] = w | IDLE;
			atomic { known = known & ~(1 << i); w = IDLE }
#else
		:: atomic {
			!(w & (IDLE | ARMED)) && w == word[i] ->
			word[i] = w | IDLE;
			known = known & ~(1 << i);
			w = IDLE
		   }
#endif
		/* tw_word_fire() */
#ifdef MUTANT_ALONE_FIRE_BY_STORE
		:: w & ARMED ->
			atomic {
#else
		:: atomic {
			w & ARMED && w == word[i] ->
#endif
#ifdef MUTANT_FIRED_STAYS_ARMED
			word[i] = w | STATES;
#else
			word[i] = (w & ~ARMED) | STATES;
#endif
			known = known & ~(1 << i);
			w = IDLE
		   }
		:: atomic { w != IDLE && w != word[i] -> load_word(i) }
		od;
		w = 0
	:: !(bits & (1 << i))
	fi
}

/* tw_scan_more(), tw_scan_next(): go to @group */
inline go_to(group)
{
	atomic {
		!scan && groups & group ->
#ifdef MUTANT_DIRTY_BEFORE_GROUPS
		took = dirty & group;
		dirty = dirty & ~group
	};
	atomic {
#endif
		scan = group;
#ifdef MUTANT_APART_GROUPS_CLEARED_BY_STORE
		left = groups & ~group
	};
	atomic {
		groups = left;
		left = 0
#else
		groups = groups & ~group
#endif
	}
}

/* tw_fetch_dirty(), tw_scan_word(): the timers of @group */
inline take_up(group)
{
	atomic {
		scan == group ->
#ifdef MUTANT_WORD_BEFORE_DIRTY
		words[0] = word[0];
		words[1] = word[1]
	};
	atomic {
#endif
#ifdef MUTANT_DIRTY_CLEARED_BY_STORE
		bits = dirty
	};
	atomic {
		dirty = 0;
#elif defined(MUTANT_DIRTY_BEFORE_GROUPS)
		bits = took;
		took = 0;
#else
		bits = dirty & group;
		dirty = dirty & ~group;
#endif
		scan = 0
	}
}

#ifdef MUTANT_SLEEP_BEFORE_THE_REST
#define REST true
#else
#define REST (!scan)
#endif

/* tw_run(), from the hrtimer, the worker and the doorbell */
active proctype kernel()
{
	byte w, wake, bits, first = NEVER;
#ifdef MUTANT_WORD_BEFORE_DIRTY
	byte words[TIMERS];
#endif
#ifdef MUTANT_DIRTY_BEFORE_GROUPS
	byte took;
#endif
#ifdef MUTANT_APART_GROUPS_CLEARED_BY_STORE
	byte left;
#endif
#ifdef MUTANT_ALONE_FIRE_BY_NODE
	bool asked;
#endif

end:	do
	:: atomic { rung || now >= timer -> rung = false; running = true };
again:
	   /* tw_shared_scan_dirty() */
	   if
	   :: go_to(GROUP(0))
#ifdef APART
	   :: go_to(GROUP(1))
#endif
	   /* What the budget did not do, or nothing. That it is so is seen later. */
	   :: scan || !groups
	   fi;
	   do
#ifdef APART
	   :: go_to(GROUP(0))
	   :: go_to(GROUP(1))
#endif
	   :: if
	      :: take_up(GROUP(0))
#ifdef APART
	      :: take_up(GROUP(1))
#endif
	      /* tw_shared_turn() */
	      :: atomic {
			REST && node <= now ->
#ifdef MUTANT_ALONE_FIRE_BY_NODE
			asked = true;
#endif
			bits = known;
			node = NEVER
		 }
	      fi;
	      /* tw_inspect_all(), tw_inspect_dirty(), tw_entries_add() */
	      look_at(0);
	      look_at(1);
	      atomic {
#ifdef MUTANT_ALONE_NODE_STAYS
		node = (node == NEVER || !known -> first : node);
#elif defined(MUTANT_NODE_OF_THE_DIRTY)
		node = first;
#else
		node = (first < node -> first : node);
		node = (known -> node : NEVER);
#endif
#ifdef MUTANT_ALONE_FIRE_BY_NODE
		asked = false;
#endif
		first = NEVER;
		bits = 0
	      }
	   :: atomic { REST && other <= now -> other = (other == MAX -> NEVER : MAX) }
	   :: atomic {
		REST && node > now && other > now ->
		/* tw_shared_sleep() */
		wake = (node < other -> node : other);
		next_wake_stored = (wake != next_wake);
		next_wake = wake;
		break
	      }
	   od;
#ifndef MUTANT_SLEEP_WITHOUT_BARRIER
	   !next_wake_stored;
#endif
	   if
#ifndef MUTANT_SLEEP_WITHOUT_LOOKING
	   :: groups -> goto again
#endif
	   :: !groups
	   fi;
	   atomic { !next_wake_stored -> timer = wake; wake = 0; running = false }
	od
}

inline right(i)
{
	assert(!owed[i] == !(word[i] & (ARMED | FIRED)));
	assert(!owed[i] || owed[i] == DEADLINE(word[i]));
	assert(!(word[i] & ARMED) || owed[i] > now);
	assert(word[i] & IDLE || timer <= DEADLINE(word[i]));
	assert(word[i] & IDLE || (known & (1 << i) && node <= DEADLINE(word[i])) ||
	       (dirty & (1 << i) && groups & GROUP(i)))
}

#define HALTED (halted == NOW)
#define QUIET (!rung && !running && now < timer && (!busy[0] || HALTED) && !busy[1])

inline all_right()
{
	if
	:: HALTED
	:: else -> right(0)
	fi;
	right(1)
}

active proctype clock()
{
	do
	:: d_step {
		now < MAX ->
		if
		:: QUIET -> all_right()
		:: else
		fi;
		now = now + 2
	   }
	:: now == MAX -> break
	od;
	timeout -> d_step { all_right(); assert(!(word[0] & FIRED) && !(word[1] & FIRED)) };
	halted = OVER;
	timeout -> d_step { all_right() }
}
