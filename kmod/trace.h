/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Tracepoints: what happened to which timer. All times are the host's, in ns.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM twheel

#if !defined(TW_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define TW_TRACE_H

#include <linux/tracepoint.h>

#include "context.h"
#include "timer.h"

DECLARE_EVENT_CLASS(twheel_times,
	TP_PROTO(const struct twheel *tw, const struct tw_node *node, u32 index),
	TP_ARGS(tw, node, index),
	TP_STRUCT__entry(
		__field(u64, wheel)
		__field(u64, id)
		__field(u64, deadline)
		__field(u64, interval)
		__field(u64, user_data)
	),
	TP_fast_assign(
		__entry->wheel = tw->nr;
		__entry->id = tw_id(node, index);
		__entry->deadline = node->deadline;
		if (node->flags & TW_NODE_PERIODIC) {
			__entry->interval = tw_timer_period(&tw->periods, node)->interval;
			__entry->user_data = tw_timer_period(&tw->periods, node)->user_data;
		} else {
			__entry->interval = 0;
			__entry->user_data = node->user_data;
		}
	),
	TP_printk("wheel=%llu id=%#llx deadline=%llu interval=%llu user_data=%#llx",
		  __entry->wheel, __entry->id, __entry->deadline,
		  __entry->interval, __entry->user_data)
);

DEFINE_EVENT(twheel_times, twheel_arm,
	TP_PROTO(const struct twheel *tw, const struct tw_node *node, u32 index),
	TP_ARGS(tw, node, index)
);

DEFINE_EVENT(twheel_times, twheel_modify,
	TP_PROTO(const struct twheel *tw, const struct tw_node *node, u32 index),
	TP_ARGS(tw, node, index)
);

TRACE_EVENT(twheel_cancel,
	TP_PROTO(const struct twheel *tw, u64 id, u32 state),
	TP_ARGS(tw, id, state),
	TP_STRUCT__entry(
		__field(u64, wheel)
		__field(u64, id)
		__field(u32, state)
	),
	TP_fast_assign(
		__entry->wheel = tw->nr;
		__entry->id = id;
		__entry->state = state;
	),
	TP_printk("wheel=%llu id=%#llx state=%u",
		  __entry->wheel, __entry->id, __entry->state)
);

TRACE_EVENT(twheel_expire,
	TP_PROTO(const struct twheel *tw, u32 timers, u64 lateness),
	TP_ARGS(tw, timers, lateness),
	TP_STRUCT__entry(
		__field(u64, wheel)
		__field(u32, timers)
		__field(u64, lateness)
	),
	TP_fast_assign(
		__entry->wheel = tw->nr;
		__entry->timers = timers;
		__entry->lateness = lateness;
	),
	TP_printk("wheel=%llu timers=%u lateness=%llu",
		  __entry->wheel, __entry->timers, __entry->lateness)
);

TRACE_EVENT(twheel_read,
	TP_PROTO(const struct twheel *tw, u32 events),
	TP_ARGS(tw, events),
	TP_STRUCT__entry(
		__field(u64, wheel)
		__field(u32, events)
	),
	TP_fast_assign(
		__entry->wheel = tw->nr;
		__entry->events = events;
	),
	TP_printk("wheel=%llu events=%u", __entry->wheel, __entry->events)
);

#endif /* TW_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
