// SPDX-License-Identifier: BSD-2-Clause
/* Perf events on the vCPU threads of another process. */
#ifndef VPROF_ATTACH_VCPU_EVENT_H
#define VPROF_ATTACH_VCPU_EVENT_H

#include "attach/qemu.h"
#include "counter/route.h"

/* As counter_event_attr, at the session's rate, and with the host's side if it wants that; the kernel
 * keeps a frequency, since the period cannot be changed from here. */
void vcpu_event_attr(const struct counter_event *event, const struct counter_route_config *config,
                     struct perf_event_attr *attr);

/* A descriptor, or below 0 with errno. */
int vcpu_event_open(struct perf_event_attr *attr, pid_t thread);

/* What to say of errno, on `what`. */
void vcpu_event_error(const char *what, unsigned vcpu, GError **error);

/* Why no events can be had on the guest's threads that say anything of it, or NULL; new string. */
char *vcpu_event_unavailable(struct qemu_guest *qemu);
/* A route's `impossible`: the guest has none that ever do. */
bool vcpu_event_impossible(struct guest *guest);

#endif
