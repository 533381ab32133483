// SPDX-License-Identifier: BSD-2-Clause
/* A session's context switches. */
#include "sample/session_priv.h"

/* On the vCPU's thread. */
static void on_switch(struct switch_probe *probe, unsigned vcpu, const struct task_view *view,
                      const struct task *previous, const struct task *next)
{
	struct session *session = (struct session *)probe;

	sampler_switched(&session->samplers[vcpu], view, previous, next);
}

bool session_switches_start(struct session *session, GError **error)
{
	if (session->config.no_tasks) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot record context switches of tasks that are not told apart; leave tasks=false away");
		return false;
	}
	session->switch_probe.switched = on_switch;
	return switch_probe_add(&session->switch_probe, session, "context-switches", error);
}

void session_switches_stop(struct session *session)
{
	if (session->config.switches)
		switch_probe_remove(&session->switch_probe);
}
