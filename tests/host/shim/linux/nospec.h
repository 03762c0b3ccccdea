/* SPDX-License-Identifier: GPL-2.0 */
/* Guards against speculation, of which a test needs none, for a program. */
#ifndef SHIM_LINUX_NOSPEC_H
#define SHIM_LINUX_NOSPEC_H

#define array_index_nospec(index, size) ((void)(size), (index))

#endif /* SHIM_LINUX_NOSPEC_H */
