// SPDX-License-Identifier: BSD-2-Clause
/* The routes to an attached guest (counter/route.h), one file each. */
#ifndef VPROF_ATTACH_ROUTE_H
#define VPROF_ATTACH_ROUTE_H

#include "counter/route.h"

extern const struct counter_route route_bpf;
extern const struct counter_route route_perf;
extern const struct counter_route route_monitor;

#endif
