// SPDX-License-Identifier: BSD-2-Clause
/* The part of a session on a guest that a route samples: nothing of ours is on its vCPU threads. Main thread only. */
#ifndef VPROF_SAMPLE_SESSION_ROUTE_H
#define VPROF_SAMPLE_SESSION_ROUTE_H

#include "counter/route.h"
#include "sample/sampler.h"

/* Takes out of the configuration what the route does not see; an error when it was asked for. Error: SESSION_ERROR. */
bool session_route_restrict(const struct counter_route *route, struct session_config *config, GError **error);

/* samplers and rings: one for each vCPU of the guest. */
bool session_route_start(struct guest *guest, const struct counter_route *route, struct sampler *samplers,
                         const struct sampler_config *config, struct ring *const *rings, GError **error);
void session_route_stop(struct guest *guest, const struct counter_route *route, struct sampler *samplers);

#endif
