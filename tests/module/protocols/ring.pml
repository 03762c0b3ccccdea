/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The ring of shared timers that expired: the kernel puts a timer in when it
 * expires, unless it is there from an expiry that was withdrawn; the program takes
 * them out, one or several at a time, with one thread or, with TWO, with several, of
 * which read(2) can be one; with READ, beside read(2) as the kernel has it.
 * Here the kernel knows of each arming, and any armed timer may expire at any time:
 * who tells it is for shared.pml. Beside each step stands which function of
 * kmod/shared.c or of userlib/include/twheel_shared.h it is.
 *
 * A store is seen late, and after or before another one of its processor, unless
 * that is the other's release or there is a full barrier. An atomic operation that
 * gives back the old value is one.
 *
 * What must hold: when nobody has anything left to do, each expiry was taken that
 * was not withdrawn; and at any time, each is taken once, none after a cancel that
 * succeeded or after the timer was armed again; only what was put in is taken out;
 * the ring, with as many entries as there are timers, is never too full for one.
 *
 * What has to come before what, and the weakest order that does it:
 *
 *	kernel: word fired, then load of head		full
 *	kernel: load of head, then its entry's store	acquire (or control)
 *	kernel: entry, then tail			release
 *	program: load of head, then load of tail	acquire (with several)
 *	program: load of tail, then load of entries	acquire
 *	program: load of entries, then head		release
 *	program: head, then the looks at the words	full
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 */

#define TIMERS 2
#ifdef TWO
#define TAKERS 2
#else
#define TAKERS 1
#endif
#define OPS 4		/* of the program's other thread */
#define ENTRIES 2
#define EMPTY 255

#define ARMED 1
#define FIRED 128
#define AT(position) ((position) % ENTRIES)

byte word[TIMERS];

/* The ring, as the kernel has it; what is not yet seen; and as others see it */
byte ring[ENTRIES] = EMPTY;
byte tail;
bool ring_stored[ENTRIES], tail_stored;
byte ring_seen[ENTRIES] = EMPTY;
byte tail_seen;

/* The program's, for which the same holds. */
byte head;
bool head_stored;
byte head_seen;

/* What was promised: kept for the assertions alone */
bool owed[TIMERS];	/* armed, and not taken or cancelled since */

active proctype store_buffers()
{
end:	do
	:: atomic { ring_stored[0] -> ring_stored[0] = false; ring_seen[0] = ring[0] }
	:: atomic { ring_stored[1] -> ring_stored[1] = false; ring_seen[1] = ring[1] }
#ifdef MUTANT_TAIL_BEFORE_ENTRY
	:: atomic { tail_stored -> tail_stored = false; tail_seen = tail }
#else
	:: atomic { tail_stored && !ring_stored[0] && !ring_stored[1] ->
		tail_stored = false; tail_seen = tail }
#endif
	:: atomic { head_stored -> head_stored = false; head_seen = head }
	od
}

/* twheel_shared_arm(), twheel_shared_cancel() */
active proctype program()
{
	byte n, i, old;

	do
	:: n < OPS ->
		n++;
		if
		:: i = 0
		:: i = 1
		fi;
		if
		:: atomic {
			assert(!owed[i] == !word[i]);
			word[i] = ARMED;
			owed[i] = true
		   }
		:: atomic {
			word[i] -> old = word[i];
			word[i] = old & ~ARMED;
			assert(!owed[i] == !old);
			owed[i] = owed[i] && !(old & ARMED)
		   };
		   if
		   :: old & ARMED
		   :: else ->
			atomic {
				assert(!owed[i] == !word[i]);
				word[i] = word[i] & ~FIRED;
				owed[i] = false
			}
		   fi;
		   old = 0
		fi;
		i = 0
	:: else -> break
	od
}

/* tw_in_ring() */
#ifdef MUTANT_RING_NOT_COMPARED
#define IN_RING(i) (position[i] >= h && position[i] < tail)
#else
#define IN_RING(i) (position[i] >= h && position[i] < tail && ring[AT(position[i])] == i)
#endif

/* tw_inspect_fire(), tw_inspect_put() */
inline fire(i)
{
	atomic {
		word[i] & ARMED -> h = head_seen;
		/* Else it is tried again, late. */
#ifdef MUTANT_FULL_OF_ITSELF
		assert(tail - h < ENTRIES)
#else
		assert(tail - h < ENTRIES || IN_RING(i))
#endif
	};
	if
#ifdef MUTANT_FIRE_BY_STORE
	:: true ->
#else
	:: atomic {
		word[i] & ARMED && !ring_stored[0] && !ring_stored[1] && !tail_stored ->
#endif
		word[i] = FIRED
#ifndef MUTANT_FIRE_BY_STORE
	   }
#endif
#ifndef MUTANT_HEAD_BEFORE_FIRED
	   h = head_seen;
#endif
	   if
#ifndef MUTANT_NOT_ONCE
	   :: IN_RING(i)
#endif
	   :: else ->
		assert(tail - h < ENTRIES);
		atomic {
			position[i] = tail;
			ring[AT(tail)] = i;
			ring_stored[AT(tail)] = true;
			tail++;
			tail_stored = true
		}
	   fi
	:: !(word[i] & ARMED)
	fi;
	h = 0
}

#ifdef READ
/* The places that tw_ring_fill() found: first the head, then the word */
inline take_event(j)
{
#ifdef MUTANT_READ_TAKES_FIRST
	word[k[j]] = word[k[j]] & ~FIRED;
#endif
	if
	:: atomic {
		head == h + j && !head_stored && !ring_stored[0] && !ring_stored[1] &&
		!tail_stored -> head = h + j + 1; head_seen = h + j + 1
	   };
	   atomic {
		if
#ifdef MUTANT_READ_TAKES_FIRST
		:: old[j] & FIRED ->
			assert(owed[k[j]]);
			owed[k[j]] = false
#else
#ifdef MUTANT_READ_WITHDRAWN
		:: old[j] & FIRED ->
#else
		:: old[j] & FIRED && word[k[j]] == old[j] ->
#endif
			assert(owed[k[j]]);
			owed[k[j]] = false;
			word[k[j]] = word[k[j]] & ~FIRED
#endif
		:: else -> n = 0
		fi
	   }
	:: atomic { !head_stored && head != h + j -> n = 0 }
	fi
}

/*
 * tw_ring_take(), of read(2): events are written from the words as they were before, and taken
 * after that. It holds the lock, as who has timers expire does, so these two take turns.
 */
inline read_events()
{
	atomic {
		head_seen != tail -> h = head_seen; k[0] = ring[AT(h)]; old[0] = word[k[0]];
		n = 1
	};
	if
	:: atomic { old[0] & FIRED && tail - h > 1 -> k[1] = ring[AT(h + 1)]; old[1] = word[k[1]] };
	   if
	   :: atomic { old[1] & FIRED -> n = 2 }
	   :: else
	   fi
	:: true
	fi;
	take_event(0);
	if
	:: n == 2 -> take_event(1)
	:: else
	fi;
	atomic { h = 0; n = 0; k[0] = 0; k[1] = 0; old[0] = 0; old[1] = 0 }
}
#endif

active proctype kernel()
{
	byte position[TIMERS], h;
#ifdef READ
	byte k[2], old[2], n;
#endif

end:	do
	:: fire(0)
	:: fire(1)
#ifdef READ
	:: read_events()
#endif
	od
}

inline load_entries()
{
	i[0] = ring_seen[AT(h)];
	if
	:: n == 2 -> i[1] = ring_seen[AT(h + 1)]
	:: else
	fi
}

/* Move the head, or go back if somebody else has. */
inline move_head()
{
#ifdef MUTANT_TWO_HEAD_BY_STORE
	atomic { head = h + n; head_stored = true };
#else
	if
	:: atomic { head == h -> head = h + n; head_stored = true }
	:: atomic { head != h -> goto again }
	fi;
#endif
#ifndef MUTANT_HEAD_WITHOUT_BARRIER
	!head_stored;
#endif
	assert(h + n <= tail)
}

inline look_at_word(k)
{
	assert(i[k] < TIMERS);
#ifdef MUTANT_TAKE_BY_STORE
	old = word[i[k]];
	atomic {
#else
	atomic {
		old = word[i[k]];
#endif
#ifdef MUTANT_WITHDRAWN_IS_TAKEN
		old = FIRED;
#endif
		word[i[k]] = old & ~FIRED;
		if
		:: old & FIRED ->
			assert(owed[i[k]]);
			owed[i[k]] = false
		:: else
		fi;
		old = 0
	}
}

inline look_at_words()
{
	look_at_word(0);
	if
	:: n == 2 -> look_at_word(1)
	:: else
	fi
}

/* twheel_shared_take() */
active [TAKERS] proctype taker()
{
	byte h, n, i[2], old;

again:
	atomic { h = 0; n = 0; i[0] = 0; i[1] = 0 };
#ifdef MUTANT_ENTRY_BEFORE_TAIL
	h = head;
	n = 2;
	load_entries();
#endif
	/* poll(2) */
end:	do
	:: head != tail_seen ->
#ifdef MUTANT_TWO_TAIL_BEFORE_HEAD
		old = tail_seen;
		h = head;
		if
		:: h == old -> old = 0; goto again
		:: h != old -> old = 0; n = 1
		fi;
#else
		h = head;
		if
		:: h == tail_seen -> goto again
		:: h != tail_seen -> n = 1
#ifdef MUTANT_BEYOND_TAIL
		:: h != tail_seen -> n = 2
#else
		:: tail_seen - h > 1 -> n = 2
#endif
		fi;
#endif
#if !defined(MUTANT_ENTRY_BEFORE_TAIL) && !defined(MUTANT_ENTRY_AFTER_HEAD)
		load_entries();
#endif
#ifdef MUTANT_LOOK_BEFORE_HEAD
		look_at_words();
		move_head();
#else
		move_head();
#ifdef MUTANT_ENTRY_AFTER_HEAD
		load_entries();
#endif
		look_at_words();
#endif
		goto again
	od
}

active proctype nothing_left_to_do()
{
	timeout -> assert(!owed[0] && !owed[1] && !word[0] && !word[1])
}
