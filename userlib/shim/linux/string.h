/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory functions, for a program. */
#ifndef SHIM_LINUX_STRING_H
#define SHIM_LINUX_STRING_H

#include <string.h>

#endif /* SHIM_LINUX_STRING_H */
