// SPDX-License-Identifier: BSD-2-Clause
/* What the BPF program's record says of a vCPU. */
#ifndef VPROF_ATTACH_BPF_SAMPLE_H
#define VPROF_ATTACH_BPF_SAMPLE_H

#include "counter/route.h"
#include "lib/record/record.h"

/*
 * `record`: a sample of the output event, with its raw data (bpf/guest_sample.h). `has_kernel` as in vcpu_rings_user.
 * Fills everything of *sample but its vCPU. The spans of *snapshot, which *sample points to when chains were asked for,
 * point into the record. False when the record is none of the program's.
 */
bool bpf_sample_decode(const struct record_sample *record, bool has_kernel, struct counter_sample *sample,
                       struct snapshot *snapshot);

/*
 * For a sample that was decoded so, of a program that was told to find registers in the guest's memory
 * (guest_sample_settings.by_memory): takes the page tables, the per-CPU area and the mode from there. `stacks`: filled
 * in and pointed to where the stack pointer is wanted and not known; NULL: it is not wanted.
 */
void bpf_sample_by_memory(const struct record_sample *record, struct counter_sample *sample,
                          struct unwind_stacks *stacks);

#endif
