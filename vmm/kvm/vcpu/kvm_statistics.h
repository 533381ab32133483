// SPDX-License-Identifier: BSD-2-Clause
/* What KVM counts of a vCPU: Documentation/virt/kvm/api.rst, 4.133 KVM_GET_STATS_FD. */
#ifndef VPROF_KVM_VCPU_KVM_STATISTICS_H
#define VPROF_KVM_VCPU_KVM_STATISTICS_H

#include <stddef.h>

#include "guest/guest.h"

/* -1 before Linux 5.14, whose KVM lacks it. */
int kvm_statistics_open(int vcpu_fd);
/* Reads the counters that only grow, in KVM's order; returns their number, 0 with fd -1. */
size_t kvm_statistics_read(int fd, struct guest_counter counters[GUEST_COUNTERS_MAX]);

/* The value of that name, or 0. */
uint64_t kvm_statistic(const struct guest_counter *counters, size_t n, const char *name);

#endif
