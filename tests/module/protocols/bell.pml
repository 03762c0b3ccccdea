/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The doorbell and the callback of bpf/wheel.bpf.c, which touch one timer without a lock; and how
 * who waits is woken. Beside each step stands which function it is. A store is seen late, unless a
 * full barrier follows it; setting the timer is one step, as the kernel has a lock for it.
 *
 * What must hold when nobody has anything left to do: no bit is set that no callback will come to
 * look at; who waits has taken what expired.
 *
 * MUTANT_...: the model without one of the things that the code does for this.
 */

#define NEVER 0		/* the timer is not set */
#define SOON 1		/* it is set, and comes */
#define FAR 2		/* for so late that nobody waits for it here */

#define BELLS 3

bool bits;		/* dirty timers */
bool rung;		/* alarm->rung */
byte timer = NEVER;
bool wake_far = true;	/* next_wake is later than what the program arms */
bool wake_far_seen = true;

/* What expires, and who takes it */
byte tail, tail_seen, taken;
bool available;	/* something to poll for is in the ring buffer */
byte runs;

active proctype store_buffers()
{
end:	do
	:: atomic { wake_far_seen != wake_far -> wake_far_seen = wake_far }
	:: atomic { tail_seen != tail -> tail_seen = tail }
	od
}

#define barrier() wake_far_seen == wake_far && tail_seen == tail

/* tw_run() */
active proctype callback()
{
	bool again;
	byte near = 2;	/* times that something comes soon */

end:	do
	:: atomic { timer == SOON -> timer = NEVER; runs++ };
	   assert(runs < 20);
#ifndef MUTANT_RUNG_STAYS
	   rung = false;
#endif
	   /* tw_scan(), tw_turns(): what is dirty expires. */
	   if
	   :: bits -> bits = false; tail++
	   :: !bits
	   fi;
	   /* publish(), notify() */
#ifndef MUTANT_NOTIFY_NO_BARRIER
	   barrier();
#endif
	   if
	   :: !available -> available = true
	   :: available
	   fi;
	   /* set_next() */
	   if
	   :: near > 0 -> near--; wake_far = false; timer = SOON
	   :: wake_far = true; timer = FAR
	   :: wake_far = true
	   fi;
	   /* looks_again() */
#ifndef MUTANT_SLEEP_NO_BARRIER
	   barrier();
#endif
#ifdef MUTANT_SLEEP_WITHOUT_LOOKING
	   again = false;
#else
	   again = bits;
#ifndef MUTANT_RUNG_NOT_LOOKED_AT
	   again = again || rung;
#endif
#endif
	   if
	   :: again -> timer = SOON
	   :: else
	   fi
	od
}

/* twheel_shared_arm(), twheel_internal_push(), tw_doorbell() */
active proctype program()
{
	bool before;
	byte left = BELLS;

	do
	:: left > 0 -> left--;
	   bits = true;
	   if
	   :: wake_far_seen ->
		atomic { before = rung; rung = true };
		if
		:: before
		:: !before -> timer = SOON
		fi
	   :: !wake_far_seen
	   fi
	:: else -> break
	od
}

/* poll(2), twheel_bpf_clear(), twheel_shared_take() */
active proctype taker()
{
end:	do
	:: available ->
#ifdef MUTANT_TAKEN_FIRST
	   taken = tail_seen;
	   available = false
#else
	   available = false;
	   taken = tail_seen
#endif
	od
}

active proctype nothing_left_to_do()
{
	timeout ->
	assert(!bits);
	assert(taken == tail)
}
