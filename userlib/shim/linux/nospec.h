/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What keeps speculation within bounds: for a program, the bounds alone. */
#ifndef SHIM_LINUX_NOSPEC_H
#define SHIM_LINUX_NOSPEC_H

#define array_index_nospec(index, size) ({	\
	unsigned long _i = (index);		\
						\
	_i < (size) ? _i : 0;			\
})

static inline unsigned long array_index_mask_nospec(unsigned long index,
						    unsigned long size)
{
	return -(unsigned long)(index < size);
}

#endif /* SHIM_LINUX_NOSPEC_H */
