// SPDX-License-Identifier: BSD-2-Clause
/*
 * What bpf_sample.c and route_bpf.c have of the processor: x86/bpf_sample_x86.c and x86/route_bpf_x86.c, and those of
 * arm64/.
 */
#ifndef VPROF_ATTACH_BPF_SAMPLE_PRIV_H
#define VPROF_ATTACH_BPF_SAMPLE_PRIV_H

#include "attach/bpf/guest_sample.h"
#include "attach/bpf_sample.h"
#include "attach/qemu.h"

/* sample->regs, in_guest and nested. */
void bpf_sample_registers(const struct record_sample *record, const struct guest_sample *raw, bool has_kernel,
                          struct counter_sample *sample);

/* For counter_route: `gives` and `lacks_stack`. */
const char *route_bpf_gives(struct guest *guest);
bool route_bpf_lacks_stack(struct guest *guest);
/* What the program has to know of the guest, beyond `memory`, `depth`, `user` and `user_stack`. */
void route_bpf_settings(struct qemu_guest *qemu, const struct counter_route_config *config,
                        struct guest_sample_settings *settings);

/* For tests: what VMX withholds is found in memory on other hosts, too, and each sample is taken twice, first as it is.
 */
bool route_bpf_withholds(void);

#endif
