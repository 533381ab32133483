// SPDX-License-Identifier: BSD-2-Clause
/*
 * A profiling session on a guest: its events, one sampler and one ring for each vCPU, and what became of every sample.
 * Main thread only, except where noted; the samplers run on the vCPU threads.
 */
#ifndef VPROF_SAMPLE_SESSION_H
#define VPROF_SAMPLE_SESSION_H

#include <glib.h>

#include "counter/counter.h"
#include "guest/guest.h"
#include "sample/ring.h"

#define SESSION_ERROR session_error_quark()
GQuark session_error_quark(void);
enum session_error {
	SESSION_ERROR_STATE, /* started twice, stopped without a start */
	SESSION_ERROR_RANGE,
	SESSION_ERROR_SYSTEM,
};

struct session_config {
	struct counter_event events[COUNTER_EVENTS_MAX];
	size_t n_events; /* 1..COUNTER_EVENTS_MAX */
	struct counter_rate rate;
	size_t ring_data_bytes; /* 0: VPROF_RING_DATA_BYTES_DEFAULT */
	const char *delivery;   /* NULL: the first that works */
};

/* Ways a sample can be lost or changed; the names are the control protocol's. */
#define SESSION_STATISTICS(X)                                                             \
	X(sample, "samples written to the ring")                                          \
	X(overflow, "counter overflows seen: sample + dropbuf_sample + filtered + quirk") \
	X(in_hypervisor, "samples that fell outside the guest, written as HYPERVISOR")    \
	X(dropbuf_sample, "samples dropped because the ring was full")                    \
	X(filtered, "overflows in a mode that :u or :k leaves out, not written")          \
	X(quirk, "overflows inside a page of a host quirk, not written")                  \
	X(idle, "timer ticks that found the vCPU thread asleep, not written")             \
	X(throttled, "overflows that the host throttled or coalesced")                    \
	X(expected, "overflows that the counted events amount to")

struct session_statistics {
#define X(name, help) uint64_t name;
	SESSION_STATISTICS(X)
#undef X
};

struct session;

/* Makes the session of `guest` and hangs its samplers into guest->watchers. Before the guest's threads start. */
struct session *session_new(struct guest *guest, GError **error);
void session_free(struct session *session); /* after the guest's threads have ended */

bool session_start(struct session *session, const struct session_config *config, GError **error);
/* Closes the counters; what is in the rings stays readable. Also right after the guest has ended. */
bool session_stop(struct session *session, GError **error);
bool session_running(const struct session *session);

/* The configuration in force, or NULL before the first start. */
const struct session_config *session_configuration(const struct session *session);
/* Which delivery was chosen; NULL before the first start. */
const char *session_delivery(const struct session *session);

/* The id (PERF_SAMPLE_IDENTIFIER) of event e on vCPU v. */
uint64_t session_event_id(unsigned event, unsigned vcpu);

/* NULL before the first start. Rings live from session_start to the next session_start or session_free. */
struct ring *session_ring(const struct session *session, unsigned vcpu);

void session_statistics_read(const struct session *session, unsigned vcpu, struct session_statistics *out);

#endif
