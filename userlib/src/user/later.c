// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * Timers of pools, most of which are cancelled soon: they are put off, and need not go
 * through the wheel for that.
 *
 * A timer that expires after the timerfd comes next is only noted. It is armed when that
 * is over, and before the wheel turns; or when the timerfd is set anew; or when there is
 * no room for more notes. So it is in the wheel before it is due, and the program is woken
 * by then. While that is over, and nobody has looked, nothing is put off: it may be due. For
 * each note the table has a free node, so nothing can fail then.
 *
 * The id of a note is its place, which is never that of a timer: these have a generation.
 */

#include "context.h"

/* Timers that are put off need nodes that the table keeps free. */
#if USER_LATER > TW_TABLE_KEEP
#error notes without nodes
#endif

/* Arm all that was put off. */
void user_arm_later(struct user_wheel *uw)
{
	u32 i, nr = uw->nr_later;

	uw->nr_later = 0;
	for (i = 0; i < nr; i++) {
		const struct user_later *later = &uw->later[i];
		struct tw_node *node;
		u32 index;

		node = tw_node_begin(&uw->table, &index);
		node->flags = 0;
		node->user_data = later->user_data;
		node->deadline = later->deadline;
		tw_wheel_add(&uw->wheel, node, index);
		*later->id = tw_id(node, index);
	}
}

static bool may_wait(const struct user_wheel *uw, s64 deadline, s64 now)
{
	return deadline > uw->timer_ns && now < uw->timer_ns && uw->nr_later < USER_LATER &&
	       uw->nr_later < uw->table.free && user_timers(uw) < uw->limit;
}

static noinline int arm_now(struct user_wheel *uw, s64 deadline, u64 user_data, uint64_t *id)
{
	struct twheel_op op = {
		.opcode = TWHEEL_OP_ARM,
		.flags = TWHEEL_ABS,
		.deadline = deadline,
		.user_data = user_data,
	};
	int ret;

	if (uw->nr_later == USER_LATER)
		user_arm_later(uw);
	ret = user_do(uw, &op);
	/* 0 could be the place of another one. */
	if (!ret)
		*id = op.id;
	return ret;
}

/**
 * user_arm() - arm a timer that expires once, under the outer lock
 * @uw: the wheel
 * @absolute: is @when a time, and not a delay?
 * @when: 0 to KTIME_MAX
 * @user_data: as of &struct twheel_op
 * @id: out: for user_modify() and user_cancel(); it changes as long as the timer is there
 *
 * Return: 0, -ENOSPC, -ENOMEM or -EBADF.
 */
int user_arm(struct user_wheel *uw, bool absolute, __u64 when, __u64 user_data, uint64_t *id)
{
	s64 now = user_clock(uw);
	s64 deadline = absolute ? (s64)when : tw_time_add(now, when);

	if (unlikely(!may_wait(uw, deadline, now)))
		return arm_now(uw, deadline, user_data, id);
	*id = uw->nr_later++;
	uw->later[*id] = (struct user_later){ id, deadline, user_data };
	uw->stats.armed++;
	return 0;
}

/**
 * user_modify() - give a timer another time that user_arm() armed, if it has not expired
 * @uw: the wheel
 * @absolute: is @when a time of the wheel's clock, and not one from now?
 * @when: the deadline, in ns
 * @user_data: what the event is to say
 * @id: the timer's; out: what it is called now
 *
 * Return: 0, -ENOENT or -EBADF.
 */
int user_modify(struct user_wheel *uw, bool absolute, __u64 when, __u64 user_data, uint64_t *id)
{
	struct twheel_op op = {
		.opcode = TWHEEL_OP_MODIFY,
		.flags = absolute ? TWHEEL_ABS : 0,
		.id = *id,
		.deadline = when,
		.user_data = user_data,
	};
	int ret;

	if (*id >= uw->nr_later)
		return user_do(uw, &op);
	user_take_later(uw, *id);
	ret = user_arm(uw, absolute, when, user_data, id);
	if (!ret) {
		uw->stats.armed--;
		uw->stats.modified++;
	}
	return ret;
}
