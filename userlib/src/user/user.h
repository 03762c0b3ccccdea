/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * A wheel in the program itself: what the library does where there is no
 * /dev/twheel. Each function gives what the system call in its place would,
 * or a negative error.
 */
#ifndef TWHEEL_USER_H
#define TWHEEL_USER_H

#include <linux/twheel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct user_wheel;

/* How often this process came out of fork(2), once somebody asked to watch */
extern unsigned int user_forks;

int user_watch_forks(void);
void user_wait_for_lock(pthread_mutex_t *lock);
int user_open(int flags, struct user_wheel **uwp);
void user_set_outer(struct user_wheel *uw, pthread_mutex_t *outer);
void user_close(struct user_wheel *uw);
int user_fd(const struct user_wheel *uw);
int user_setup(struct user_wheel *uw, const struct twheel_setup *setup,
	       int (*get_shared)(void *arg, const struct twheel_setup *setup, uint64_t tick),
	       void *arg);
int user_wait(struct user_wheel *uw);
int user_info(struct user_wheel *uw, struct twheel_info *info);
uint64_t user_time(struct user_wheel *uw);
int user_stats(struct user_wheel *uw, struct twheel_stats *stats);
int user_submit(struct user_wheel *uw, void *ops, __u32 nr, __u32 op_size);
int user_do(struct user_wheel *uw, struct twheel_op *op);
int user_arm(struct user_wheel *uw, bool absolute, __u64 when, __u64 user_data, uint64_t *id);
int user_modify(struct user_wheel *uw, bool absolute, __u64 when, __u64 user_data, uint64_t *id);
int user_cancel(struct user_wheel *uw, __u64 id);
int user_drain(struct user_wheel *uw, void *ops, __u32 nr, __u32 op_size);
ssize_t user_read(struct user_wheel *uw, void *to, size_t bytes, bool nowait);

/* As pthread_mutex_lock(3), but it does not sleep at once. */
static inline void user_mutex_lock(pthread_mutex_t *lock)
{
	if (__builtin_expect(pthread_mutex_trylock(lock), 0))
		user_wait_for_lock(lock);
}

#endif
