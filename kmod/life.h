/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The life of a wheel in use.
 */
#ifndef TW_LIFE_H
#define TW_LIFE_H

struct twheel;
struct twheel_setup;

struct twheel *tw_create(void);
void tw_destroy(struct twheel *tw);
int tw_setup(struct twheel *tw, const struct twheel_setup *setup);
int tw_set_eventfd(struct twheel *tw, int fd);

#endif /* TW_LIFE_H */
