// SPDX-License-Identifier: BSD-2-Clause
/*
 * Deliveries by a signal handler. It counts the overflow and sets kvm_run.immediate_exit, so that KVM_RUN returns
 * whether the signal came within it (KVM sees it pending) or just before.
 */
#include "counter/counter_priv.h"

static bool handler_attach(struct counter_set *set, GError **error)
{
	sigset_t ours;

	(void)error;
	counter_signal_install();
	counter_signal_attach(set);
	sigemptyset(&ours);
	sigaddset(&ours, counter_signal());
	sigaddset(&ours, SIGTRAP);
	pthread_sigmask(SIG_UNBLOCK, &ours, NULL);
	return true;
}

static void handler_detach(struct counter_set *set)
{
	counter_signal_detach(set);
}

static bool handler_take(struct counter_set *set, bool interrupted, bool after_exit, unsigned taken[COUNTER_EVENTS_MAX])
{
	(void)interrupted;
	/* After an exit it stays set: the next KVM_RUN returns at once, which is harmless, and the collect after resets
	 * it. The other way round a request of the run loop, made since, would be forgotten. */
	if (!after_exit && set->port.immediate_exit)
		*set->port.immediate_exit = 0;
	bool any = counter_signal_take(set, taken);

	/* Of another set on this thread, which collects without regard to this one. */
	if (!after_exit && set->port.immediate_exit && counter_signal_pending())
		*set->port.immediate_exit = 1;
	return any;
}

static void setsig_prepare(struct perf_event_attr *attr, uint32_t cookie)
{
	(void)attr;
	(void)cookie;
}

static void sigtrap_prepare(struct perf_event_attr *attr, uint32_t cookie)
{
	/*
	 * Linux 5.13 to 6.0 warn when an event that excludes the kernel overflows twice before the thread is back in
	 * user mode (kernel/events/core.c, __perf_event_overflow): within KVM_RUN nothing is wrong with that. It gets
	 * the other signal.
	 */
	if (attr->exclude_kernel)
		return;
	attr->sigtrap = 1;
	attr->remove_on_exec = 1; /* the kernel insists: the new program has no handler */
	attr->sig_data = cookie;
}

/* With sigtrap the signal goes to the thread that counts, by itself. */
static bool handler_route(int perf_fd, const struct perf_event_attr *attr)
{
	return attr->sigtrap || counter_signal_route(perf_fd);
}

static const struct counter_delivery_ops setsig_ops = {
	.attach = handler_attach,
	.detach = handler_detach,
	.prepare = setsig_prepare,
	.route = handler_route,
	.take = handler_take,
};

static const struct counter_delivery_ops sigtrap_ops = {
	.attach = handler_attach,
	.detach = handler_detach,
	.prepare = sigtrap_prepare,
	.route = handler_route,
	.take = handler_take,
};

const struct counter_delivery counter_delivery_setsig = {
	.name = "setsig",
	.summary = "F_SETSIG: a real-time signal to the vCPU thread, and a handler",
	.ops = &setsig_ops,
};

const struct counter_delivery counter_delivery_sigtrap = {
	.name = "sigtrap",
	.summary = "perf_event_attr.sigtrap: SIGTRAP on the vCPU thread, and a handler",
	.ops = &sigtrap_ops,
};
