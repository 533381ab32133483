// SPDX-License-Identifier: BSD-2-Clause
/* One counter of a client, on all vCPUs. Main thread only; what runs on the vCPUs are its samplers or countings. */
#ifndef VPROF_SAMPLE_CLIENT_COUNTER_H
#define VPROF_SAMPLE_CLIENT_COUNTER_H

#include "sample/counter_table.h"
#include "sample/counting.h"
#include "sample/switch_probe.h"

/* vCPU threads read config, targets, layout and the probe while it runs, and the main thread leaves them alone. */
struct client_counter {
	struct switch_probe probe; /* first; of an exact counter in a task mode */
	struct session *session;
	struct guest *guest;
	unsigned number;
	struct counter_owner owner;
	struct counter_request request;
	enum counter_state state;
	struct task_targets targets;
	const struct kernel_layout *kernel;      /* the session's */
	struct task_claims *claims;              /* of its samplers; NULL without rings */
	struct session_config config;            /* of its samplers */
	const struct counter_delivery *delivery; /* likewise */
	struct sampler *samplers;                /* one for each vCPU; NULL: it counts exactly */
	struct task_family *families;            /* likewise, with a task mode */
	uint64_t (*before)[SAMPLER_MODES];       /* likewise: counted until the last stop */
	struct counting *countings;              /* one for each vCPU; NULL: it samples */
	struct ring *rings[GUEST_VCPUS_MAX];     /* NULL without a sampling mode */
};

/* As in counter_table.h, for a counter that is there, its owner's, and in a state that allows it. */
struct client_counter *client_counter_new(struct session *session, unsigned number, const struct counter_owner *owner,
                                          const struct counter_request *request, GError **error);
void client_counter_free(struct client_counter *counter);
bool client_counter_start(struct client_counter *counter, GError **error);
void client_counter_stop(struct client_counter *counter);
bool client_counter_write(struct client_counter *counter, uint64_t value, GError **error);
bool client_counter_set_rate(struct client_counter *counter, const struct counter_rate *rate, GError **error);
bool client_counter_attach(struct client_counter *counter, const struct task_target *target, GError **error);
bool client_counter_detach(struct client_counter *counter, const struct task_target *target, GError **error);
void client_counter_read(struct client_counter *counter, struct counter_value *values);

#endif
