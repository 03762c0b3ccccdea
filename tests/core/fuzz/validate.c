// SPDX-License-Identifier: GPL-2.0
/*
 * The fuzzer's bytes as what a program asks for: what kmod/validate.[ch] says of
 * it, against the rules of uapi/linux/twheel.h. These are written down here in
 * another way, since a second one written like the first could have the same
 * mistake.
 */
#include <linux/errno.h>
#include <linux/ktime.h>
#include <linux/mm.h>
#include <string.h>

#include "host.h"
#include "input.h"
#include "validate.h"

/* "a time of more than KTIME_MAX"; "Not more than @interval in a periodic timer" */
static int expected_of_more(u64 interval, u64 slack, u64 jitter)
{
	if (interval >> 63 || slack >> 63 || jitter >> 63)
		return -EINVAL;
	return interval == 0 || jitter <= interval ? 0 : -EINVAL;
}

static void check_more(struct input *in)
{
	u64 interval = take_number(in);
	u64 slack = take_number(in);
	u64 jitter = take_number(in);

	ASSERT_EQ(tw_check_more(interval, slack, jitter),
		  expected_of_more(interval, slack, jitter));
	ASSERT_EQ(tw_time_ok(interval), !(interval >> 63));
}

static bool one_of(u32 x, const u32 *list, unsigned int n)
{
	while (n--)
		if (list[n] == x)
			return true;
	return false;
}

static int expected_of_setup(const struct twheel_setup *setup)
{
	static const u32 clocks[] = { 0x100, 0x101, 0x107, 0x10b };
	static const u32 sizes[] = { 0, 16, 32 };
	bool tick_ok = setup->tick == 0 ||
		       (setup->tick >= 1000 && setup->tick <= 1000000000);

	/* "1 to %TWHEEL_SHARED_MAX; else 0", and not with %TWHEEL_SETUP_COUNT */
	if (setup->flags == 2 ? !setup->shared || setup->shared > 1U << 24 :
				setup->flags > 1 || setup->shared)
		return -EINVAL;
	/* "0 with %TWHEEL_SETUP_COUNT" */
	if (!one_of(setup->event_size, sizes, setup->flags == 1 ? 1 : ARRAY_SIZE(sizes)))
		return -EINVAL;
	/* "which is always said; %EINVAL for any other" */
	if (setup->tick >> 63 || setup->__reserved ||
	    !one_of(setup->clock, clocks, ARRAY_SIZE(clocks)))
		return -EINVAL;
	return tick_ok ? 0 : -EOPNOTSUPP;
}

static void check_setup(struct input *in)
{
	struct twheel_setup setup = {
		.size = take_number(in),
		.flags = take_number(in),
		.clock = 0x100 ^ take_number(in),
		.event_size = take_number(in),
		.tick = take_number(in),
		.limit = take_number(in),
		.shared = take_number(in),
		.__reserved = take_number(in),
	};
	struct twheel_setup before = setup;

	ASSERT_EQ(tw_check_setup(&setup), expected_of_setup(&setup));
	ASSERT_TRUE(!memcmp(&setup, &before, sizeof(setup)));
}

static int expected_of_array(u32 flags, u32 nr, u32 op_size)
{
	static const u32 sizes[] = { 16, 32, 64 };

	if (flags || nr >> 31)
		return -EINVAL;
	return one_of(op_size, sizes, ARRAY_SIZE(sizes)) ? 0 : -EINVAL;
}

static void check_array(struct input *in)
{
	u32 flags = take_number(in);
	u32 nr = take_number(in);
	u32 op_size = take_number(in);

	ASSERT_EQ(tw_check_array(flags, nr, op_size),
		  expected_of_array(flags, nr, op_size));
}

int fuzz_one_input(const u8 *data, size_t size)
{
	struct input in = { .at = data, .end = data + size };

	fuzz_abort_on_failure();
	while (in.at < in.end) {
		switch (take_choice(&in, 3)) {
		case 0:
			check_more(&in);
			break;
		case 1:
			check_setup(&in);
			break;
		default:
			check_array(&in);
			break;
		}
	}
	return 0;
}
