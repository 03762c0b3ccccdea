// SPDX-License-Identifier: LGPL-2.1-or-later
/*
 * libtwheel-ffi: the inline functions of the headers as functions that can be called from
 * other languages, which see symbols only. They are the headers' own: nothing is here twice.
 */

#define TWHEEL_INLINE

#include <twheel.h>
#include <twheel_pool.h>
#include <twheel_shared.h>
