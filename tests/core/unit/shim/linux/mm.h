/* SPDX-License-Identifier: GPL-2.0 */
/* The size of a page, for a program. */
#ifndef SHIM_LINUX_MM_H
#define SHIM_LINUX_MM_H

#define PAGE_SIZE 4096UL

#endif /* SHIM_LINUX_MM_H */
