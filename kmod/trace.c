// SPDX-License-Identifier: GPL-2.0
/*
 * Definition of the tracepoints of trace.h.
 */
#define CREATE_TRACE_POINTS
#include "trace.h"
