// SPDX-License-Identifier: BSD-2-Clause
/* What this host can count, for query-host and for the engines' --probe and --list-events. */
#ifndef VPROF_CONTROL_HOST_JSON_H
#define VPROF_CONTROL_HOST_JSON_H

#include <jansson.h>

/* [{"name", "summary", "usable", "backend"?, "why"?}] */
json_t *control_host_events(void);
/* [{"name", "usable", "counts-time", "guest-only", "events": [TEXT], "why"?}] */
json_t *control_host_backends(void);
/* {"name", "version", "general": {"counters", "width"}, "fixed"}, or null */
json_t *control_host_pmu(void);

#endif
