// SPDX-License-Identifier: BSD-2-Clause
#include "sample/trace_exits.h"

#include "lib/record/exit_name.h"

/* For one vCPU. [v] on its thread only. */
struct exit_watcher {
	struct vcpu_watcher watcher; /* first: what the session calls */
	struct trace_exits *exits;
	unsigned vcpu;
	bool watches; /* [v] */
};

struct trace_exits {
	struct guest *guest;
	struct session *session;
	struct trace *trace;
	struct exit_watcher watchers[GUEST_VCPUS_MAX];
};

static void on_started(struct vcpu_watcher *watcher, const struct vcpu_port *port)
{
	(void)watcher;
	(void)port;
}

static void on_exited(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted)
{
	(void)watcher;
	(void)regs;
	(void)interrupted;
}

static void on_handled(struct vcpu_watcher *watcher, uint64_t exit_ip)
{
	const struct exit_watcher *self = (const struct exit_watcher *)watcher;
	char name[EXIT_NAME_BYTES];

	exit_name_format(exit_ip, name);
	trace_add(self->exits->trace, self->vcpu, name);
}

static void on_stopped(struct vcpu_watcher *watcher)
{
	((struct exit_watcher *)watcher)->watches = false;
}

static const struct vcpu_watcher_ops ops = {
	.started = on_started, .exited = on_exited, .handled = on_handled, .stopped = on_stopped};

static void watch(void *data)
{
	struct exit_watcher *self = data;

	self->watches = session_watch(self->exits->session, self->vcpu, &self->watcher);
}

static void unwatch(void *data)
{
	struct exit_watcher *self = data;

	if (self->watches)
		session_unwatch(self->exits->session, self->vcpu, &self->watcher);
}

struct trace_exits *trace_exits_new(struct guest *guest, struct session *session, struct trace *trace)
{
	struct trace_exits *exits = g_new0(struct trace_exits, 1);

	exits->guest = guest;
	exits->session = session;
	exits->trace = trace;
	for (unsigned i = 0; i < guest->vcpus; i++) {
		struct exit_watcher *self = &exits->watchers[i];

		*self = (struct exit_watcher){.watcher.ops = &ops, .exits = exits, .vcpu = i};
		if (guest->ops->run_on_vcpu(guest, i, watch, self) && self->watches)
			continue;
		trace_exits_free(exits);
		return NULL;
	}
	return exits;
}

void trace_exits_free(struct trace_exits *exits)
{
	if (!exits)
		return;
	bool told = true;

	for (unsigned i = 0; i < exits->guest->vcpus; i++)
		if (exits->watchers[i].exits)
			told &= exits->guest->ops->run_on_vcpu(exits->guest, i, unwatch, &exits->watchers[i]);
	if (told)
		g_free(exits);
	else /* a thread that is ending may still call its watcher */
		session_free_later(exits->session, exits);
}
