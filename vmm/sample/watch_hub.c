// SPDX-License-Identifier: BSD-2-Clause
#include "sample/watch_hub.h"

static struct watch_hub *hub_of(struct vcpu_watcher *watcher)
{
	return (struct watch_hub *)watcher;
}

static void hub_started(struct vcpu_watcher *watcher, const struct vcpu_port *port)
{
	struct watch_hub *hub = hub_of(watcher);

	hub->port = *port;
	hub->started = true;
	for (size_t i = 0; i < hub->n; i++)
		hub->watchers[i]->ops->started(hub->watchers[i], port);
}

static void hub_exited(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted)
{
	struct watch_hub *hub = hub_of(watcher);

	task_cpu_note(&hub->cpu, regs);
	for (size_t i = 0; i < hub->n; i++)
		hub->watchers[i]->ops->exited(hub->watchers[i], regs, interrupted);
}

static void hub_handled(struct vcpu_watcher *watcher, uint64_t exit_ip)
{
	const struct watch_hub *hub = hub_of(watcher);

	for (size_t i = 0; i < hub->n; i++)
		hub->watchers[i]->ops->handled(hub->watchers[i], exit_ip);
}

static void hub_stopped(struct vcpu_watcher *watcher)
{
	struct watch_hub *hub = hub_of(watcher);

	for (size_t i = 0; i < hub->n; i++)
		hub->watchers[i]->ops->stopped(hub->watchers[i]);
	hub->n = 1;
	hub->started = false;
}

static const struct vcpu_watcher_ops hub_ops = {
	.started = hub_started,
	.exited = hub_exited,
	.handled = hub_handled,
	.stopped = hub_stopped,
};

void watch_hub_init(struct watch_hub *hub, struct vcpu_watcher *first)
{
	*hub = (struct watch_hub){.watcher.ops = &hub_ops, .n = 1, .watchers = {first}};
}

bool watch_hub_add(struct watch_hub *hub, struct vcpu_watcher *watcher)
{
	if (hub->n == G_N_ELEMENTS(hub->watchers))
		return false;
	hub->watchers[hub->n++] = watcher;
	if (hub->started)
		watcher->ops->started(watcher, &hub->port);
	return true;
}

void watch_hub_remove(struct watch_hub *hub, struct vcpu_watcher *watcher)
{
	for (size_t i = 1; i < hub->n; i++) {
		if (hub->watchers[i] != watcher)
			continue;
		hub->n--;
		for (; i < hub->n; i++)
			hub->watchers[i] = hub->watchers[i + 1];
	}
}
