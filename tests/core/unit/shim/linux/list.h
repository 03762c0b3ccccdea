/* SPDX-License-Identifier: GPL-2.0 */
/* Lists that are linked both ways, for a program. */
#ifndef SHIM_LINUX_LIST_H
#define SHIM_LINUX_LIST_H

#include <linux/types.h>

struct list_head {
	struct list_head *next, *prev;
};

#define list_entry(ptr, type, member) \
	((type *)((char *)(ptr) - offsetof(type, member)))

#define list_first_entry(head, type, member) \
	list_entry((head)->next, type, member)

#define list_first_entry_or_null(head, type, member) \
	((head)->next == (head) ? NULL : list_first_entry(head, type, member))

#define list_next_entry(pos, member) \
	list_entry((pos)->member.next, __typeof__(*(pos)), member)

#define list_for_each_entry(pos, head, member)				\
	for (pos = list_first_entry(head, __typeof__(*pos), member);	\
	     &pos->member != (head);					\
	     pos = list_next_entry(pos, member))

static inline void INIT_LIST_HEAD(struct list_head *list)
{
	list->next = list;
	list->prev = list;
}

static inline void __list_del(struct list_head *prev, struct list_head *next)
{
	prev->next = next;
	next->prev = prev;
}

static inline void list_splice_tail_init(struct list_head *list,
					 struct list_head *head)
{
	struct list_head *first = list->next, *last = list->prev;

	if (first == list)
		return;
	head->prev->next = first;
	first->prev = head->prev;
	last->next = head;
	head->prev = last;
	INIT_LIST_HEAD(list);
}

#endif /* SHIM_LINUX_LIST_H */
