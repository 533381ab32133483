// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes: what a client wants to be told each time it happens in a guest. After OpenBSD's dt(4): a client has a set of
 * probes, of each one at most, that it may change while it does not record; what happens while it does goes into rings
 * of its own, one for each vCPU (vprof/ring.h), or is dropped and counted.
 *
 * An event is a PERF_RECORD_SAMPLE with the fields of VPROF_PROBE_SAMPLE_TYPE (vprof/probe.h); tasks are named by
 * PERF_RECORD_COMM as in a session's rings. Main thread only; the events are written on the vCPU threads.
 */
#ifndef VPROF_SAMPLE_PROBE_H
#define VPROF_SAMPLE_PROBE_H

#include "sample/probe_spec.h"
#include "sample/ring.h"
#include "sample/session.h"

/* What all sets of an engine share. The session is asked for the guest's tasks and unwind tables. */
struct probe_hub;
struct probe_hub *probe_hub_new(struct guest *guest, struct session *session);
void probe_hub_free(struct probe_hub *hub); /* after its sets */

/* The kernel's functions, for probes and their names; NULL and an error if there is no image or it has none. */
const struct symtab *probe_hub_symtab(struct probe_hub *hub, GError **error);

/*
 * A client has marked the begin or the end of a phase: an event, of vCPU 0, for the marker probes that this name
 * matches. Returns the number of the marker, which is the event's value; 1 and up.
 */
uint64_t probe_hub_add_marker(struct probe_hub *hub, const char *name, bool end);

struct probe_set;
struct probe_set *probe_set_new(struct probe_hub *hub);
/* Stops recording and removes the probes. */
void probe_set_free(struct probe_set *set);

#define PROBES_MAX 64u /* of one set */

struct probe_options {
	uint32_t registers;                    /* bit n: the n-th of GUEST_GPRS goes with each event */
	bool stack;                            /* so does the call chain */
	enum guest_breakpoint_kind breakpoint; /* for a probe that takes one */
};

struct probe_info {
	unsigned id; /* PERF_SAMPLE_IDENTIFIER of its events; 1 and up, not used again */
	const struct probe_spec *spec;
	struct probe_options options;
	uint64_t events;                       /* since it was last recorded, dropped ones included */
	enum guest_breakpoint_kind breakpoint; /* what it took; GUEST_BREAKPOINT_ANY: none */
	bool intact;                           /* false: the guest has written over it, and it fires no more */
};

/* Errors: PROBE_ERROR, GUEST_ERROR (it cannot be placed), those of images and symbol tables. */
bool probe_set_add(struct probe_set *set, const char *text, const struct probe_options *options,
                   struct probe_info *info, GError **error);
/* Errors: PROBE_ERROR_UNKNOWN, PROBE_ERROR_STATE. */
bool probe_set_remove(struct probe_set *set, unsigned id, GError **error);
size_t probe_set_count(const struct probe_set *set);
void probe_set_info(const struct probe_set *set, size_t index, struct probe_info *info);

/* ring_bytes: as session_config.ring_data_bytes. Errors: PROBE_ERROR_STATE, GUEST_ERROR. */
bool probe_set_record(struct probe_set *set, size_t ring_bytes, GError **error);
/* What is in the rings stays there until the next probe_set_record. Nothing when it does not record. */
void probe_set_pause(struct probe_set *set);
bool probe_set_recording(const struct probe_set *set);
/* Whether events carry the pid of the guest's task, once recorded. */
bool probe_set_has_tasks(const struct probe_set *set);
/* NULL before the first probe_set_record. */
struct ring *probe_set_ring(const struct probe_set *set, unsigned vcpu);

/* With dt's names. */
#define PROBE_STATISTICS(X)                                                                           \
	X(event, "events of the probes, those that were dropped too")                                 \
	X(readevt, "events that a reader has taken out of the rings")                                 \
	X(dropevt, "events dropped because a ring was full")                                          \
	X(skiptick, "ticks of profile and interval probes that were skipped, being late")             \
	X(quirk, "ticks of those probes that found a vCPU in a host quirk's page, not in guest code") \
	X(no_task, "events whose task could not be read, with pid -1")

struct probe_statistics {
#define X(name, help) uint64_t name;
	PROBE_STATISTICS(X)
#undef X
};
/* Since recording began last, or of the last recording. */
void probe_set_statistics(const struct probe_set *set, struct probe_statistics *out);

#endif
