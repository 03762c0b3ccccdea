/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What loader_base.c has for loader_user.c.
 */
#ifndef LOADER_BASE_H
#define LOADER_BASE_H

int loader_base_answer(void);

#endif /* LOADER_BASE_H */
