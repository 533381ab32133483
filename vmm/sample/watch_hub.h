// SPDX-License-Identifier: BSD-2-Clause
/* The watcher of a vCPU that calls several others. Only the vCPU's thread uses it. */
#ifndef VPROF_SAMPLE_WATCH_HUB_H
#define VPROF_SAMPLE_WATCH_HUB_H

#include "guest/guest.h"
#include "guest/task.h"

#define WATCHERS_MAX 64u

struct watch_hub {
	struct vcpu_watcher watcher; /* first: what guest->watchers points to */
	bool started;                /* `port` is valid */
	struct vcpu_port port;
	struct task_cpu cpu; /* updated at every exit, since the vCPU may not be seen in its kernel again for long */
	size_t n;
	struct vcpu_watcher *watchers[1 + WATCHERS_MAX]; /* called in this order; [0] from the beginning */
};

void watch_hub_init(struct watch_hub *hub, struct vcpu_watcher *first);
/* As session_watch and session_unwatch. */
bool watch_hub_add(struct watch_hub *hub, struct vcpu_watcher *watcher);
void watch_hub_remove(struct watch_hub *hub, struct vcpu_watcher *watcher);

#endif
