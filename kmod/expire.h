/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Time passes for a wheel in use.
 */
#ifndef TW_EXPIRE_H
#define TW_EXPIRE_H

#include <linux/hrtimer.h>
#include <linux/types.h>
#include <linux/workqueue.h>

struct twheel;

/* A parameter, which is read like the limits in account.h */
extern unsigned int tw_budget;

enum hrtimer_restart tw_timer_fn(struct hrtimer *timer);
enum hrtimer_restart tw_turns_fn(struct hrtimer *timer);
void tw_work_fn(struct work_struct *work);
void tw_catch_up(struct twheel *tw);
bool tw_assist(struct twheel *tw);

#endif /* TW_EXPIRE_H */
