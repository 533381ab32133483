// SPDX-License-Identifier: BSD-2-Clause
/*
 * What KVM's trace points say in the answers to query-vcpu-time: the processor's exits by reason, and the ports and
 * addresses that are emulated. `from`: earlier answers, from which on it counts; NULL: all. `vcpu`: of which; -1: all.
 */
#ifndef VPROF_CLI_READING_KVM_EXITS_H
#define VPROF_CLI_READING_KVM_EXITS_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>

#define KVM_EXITS_BUCKETS 32u

/* Why the answers have none of it; NULL: they have. Belongs to the answers. */
const char *kvm_exits_untraced(const json_t *answers);

/* As struct guest_kvm_exit has it. */
struct kvm_exit_row {
	const char *name; /* belongs to the answers */
	uint64_t count, ns, kvm_ns, vmm_ns, poll_ns, halt_ns, waiting_ns;
	uint64_t max_ns; /* since the guest's start */
	uint64_t histogram[KVM_EXITS_BUCKETS];
};

/* Of all vCPUs, the longest first. Array of struct kvm_exit_row. */
GArray *kvm_exit_rows(const json_t *from, const json_t *to, int vcpu);
/* A table; `wall_ns`: of these vCPUs. Nothing without rows. */
void kvm_exit_rows_print(const GArray *rows, uint64_t wall_ns, FILE *stream);
json_t *kvm_exit_rows_json(const GArray *rows);

struct kvm_access_row {
	char name[40]; /* as perf kvm stat has it: "0x3f8:POUT", "0xfee000b0:W"; "other" */
	uint64_t count, ns;
};

/* Of "ioport" or "mmio", the longest first. Array of struct kvm_access_row. */
GArray *kvm_access_rows(const json_t *from, const json_t *to, int vcpu, const char *space);
void kvm_access_rows_print(const GArray *rows, const char *space, FILE *stream);
json_t *kvm_access_rows_json(const GArray *rows);

#endif
