// SPDX-License-Identifier: BSD-2-Clause
/* What the BPF program's record says of a vCPU. */
#ifndef VPROF_ATTACH_BPF_SAMPLE_H
#define VPROF_ATTACH_BPF_SAMPLE_H

#include "counter/route.h"
#include "lib/record/record.h"

/*
 * `record`: a sample of the output event, with its raw data (bpf/guest_sample.h). Fills everything of *sample but its
 * vCPU. The spans of *snapshot, which *sample points to when chains were asked for, point into the record. False when
 * the record is none of the program's.
 */
bool bpf_sample_decode(const struct record_sample *record, struct counter_sample *sample, struct snapshot *snapshot);

#endif
