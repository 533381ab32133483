// SPDX-License-Identifier: BSD-2-Clause
/* One vCPU's watcher that passes on what it is told to several others. All of it belongs to the vCPU's thread. */
#ifndef VPROF_SAMPLE_WATCH_HUB_H
#define VPROF_SAMPLE_WATCH_HUB_H

#include "guest/guest.h"
#include "guest/task.h"

#define WATCHERS_MAX 64u

struct watch_hub {
	struct vcpu_watcher watcher; /* first: what guest->watchers points to */
	bool started;                /* `port` is valid */
	struct vcpu_port port;
	struct task_cpu cpu; /* kept up whoever watches, as it may be long until the vCPU is seen in its kernel */
	size_t n;
	struct vcpu_watcher *watchers[1 + WATCHERS_MAX]; /* told in this order; [0] from the beginning */
};

void watch_hub_init(struct watch_hub *hub, struct vcpu_watcher *first);
/* As session_watch and session_unwatch. */
bool watch_hub_add(struct watch_hub *hub, struct vcpu_watcher *watcher);
void watch_hub_remove(struct watch_hub *hub, struct vcpu_watcher *watcher);

#endif
