// SPDX-License-Identifier: BSD-2-Clause
/* What this host can count, and what a kernel image allows, for query-host and for the engines' --probe and
 * --list-events. */
#ifndef VPROF_CONTROL_HOST_JSON_H
#define VPROF_CONTROL_HOST_JSON_H

#include <glib.h>
#include <jansson.h>

#include "guest/guest.h"

/* [{"name", "summary", "usable", "backend"?, "why"?}] */
json_t *control_host_events(void);
/* [{"name", "usable", "counts-time", "guest-only", "events": [TEXT], "why"?}] */
json_t *control_host_backends(void);
/*
 * What profiles of a guest with this kernel can contain: {"path", "linux", "release"?, "parts": [{"name", "known",
 * "how"?, "why"?}]}. Errors: IMAGE_ERROR.
 */
json_t *control_kernel(const struct guest_os *const *systems, const char *path, GError **error);
/* {"name", "version", "general": {"counters", "width"}, "fixed"}, or null */
json_t *control_host_pmu(void);
/* [{"name", "summary", "usable", "why"?}] of a guest that has routes; NULL for another. */
json_t *control_host_routes(struct guest *guest);

#endif
