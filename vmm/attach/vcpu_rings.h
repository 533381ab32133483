// SPDX-License-Identifier: BSD-2-Clause
/*
 * The rings of perf events on another process's vCPU threads, and the thread that empties them: what the routes
 * with samples of the host's kernel have in common.
 */
#ifndef VPROF_ATTACH_VCPU_RINGS_H
#define VPROF_ATTACH_VCPU_RINGS_H

#include "counter/route.h"
#include "lib/record/record.h"

struct vcpu_rings;

/* A sample that one of the rings held; `event` as it was given to vcpu_rings_add. The record is valid for the call. */
typedef void (*vcpu_rings_sample_fn)(void *data, unsigned vcpu, unsigned event, const struct record_sample *record);
/* Samples of a vCPU that were lost before they came to a ring, since the start. */
typedef uint64_t (*vcpu_rings_lost_fn)(void *data, unsigned vcpu);

struct vcpu_rings_config {
	const struct counter_route_config *route; /* copied */
	uint64_t sample_type;                     /* of the events */
	size_t ring_bytes, ring_bytes_min; /* powers of two of at least a page: less where locked memory is limited */
	vcpu_rings_sample_fn sample;       /* on the thread */
	vcpu_rings_lost_fn lost;           /* on the thread, too; NULL: none are */
	void *data;                        /* for both */
};

struct vcpu_rings *vcpu_rings_new(const struct vcpu_rings_config *config);
/* Closes the descriptors. Not while it runs. */
void vcpu_rings_free(struct vcpu_rings *rings);

/* What an event needs so that its ring is emptied before it is full. */
void vcpu_rings_attr(const struct vcpu_rings_config *config, struct perf_event_attr *attr);

/* An event, which is disabled; takes the descriptor, also on error. */
bool vcpu_rings_add(struct vcpu_rings *rings, int fd, unsigned vcpu, unsigned event, GError **error);

/*
 * The ring of an event of this vCPU that was added also gets what the kernel says of another one on its thread, which
 * has no ring: its throttling. Not while it runs.
 */
void vcpu_rings_redirect(struct vcpu_rings *rings, int fd, unsigned vcpu, unsigned event);

/* Enables all events and takes what comes, until vcpu_rings_stop, which takes the rest. */
void vcpu_rings_start(struct vcpu_rings *rings);
void vcpu_rings_stop(struct vcpu_rings *rings);

/* Whether the guest ran at a sample, by the record's misc. */
bool vcpu_rings_in_guest(uint16_t misc);

/*
 * Whether the guest was in user mode, where only its instruction pointer is known. Before Linux 6.9, perf's mode is
 * that of when the vCPU's thread was last scheduled out (kvm_arch_vcpu_in_kernel), so it decides only what `ip` leaves
 * open: kernels of 64 bits run in the upper half, and nothing else does. `has_kernel`: the guest runs such a kernel, so
 * that what is in the lower half is user space; without, that may be firmware if it is below 4 GiB.
 */
bool vcpu_rings_user(uint16_t misc, uint64_t ip, bool has_kernel);

#endif
