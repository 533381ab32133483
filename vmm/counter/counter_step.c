// SPDX-License-Identifier: BSD-2-Clause
/*
 * Steps: every instruction of the guest is an overflow. Nothing counts here; the guest executes them one by one
 * (guest_debug_ops.step), which excludes other counters.
 */
#include "counter/counter_priv.h"

static const char *step_unavailable(const struct counter_event *event)
{
	(void)event;
	return NULL;
}

static bool step_open(struct counter *counter, const struct counter_delivery *delivery,
                      const struct perf_event_attr *attr, GError **error)
{
	(void)delivery;
	(void)attr;
	g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
	            "cannot count %s beside something else: a session of its own takes them, vprof run --exact",
	            counter->event.name);
	return false;
}

static const struct counter_backend_ops step_ops = {.open = step_open};

const struct counter_backend counter_backend_step = {
	.name = "step",
	.guest_only = true,
	.steps = true,
	.unavailable = step_unavailable,
	.ops = &step_ops,
};
