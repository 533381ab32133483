// SPDX-License-Identifier: BSD-2-Clause
/* The deliveries, and which of them works on this host. */
#include <pthread.h>
#include <string.h>

#include "counter/counter_priv.h"
#include "lib/record/clock.h"

/*
 * Cheapest first (tests/bench/bench_sample.c; a round trip through KVM_RUN is 7.2 us there). Whole sample with its
 * timer interrupt (12.9 us), and what an open session adds to an exit without a sample:
 *
 *   sigtrap  25-26 us    0.1 us   the interrupt leaves task work; the signal is raised on the way out of KVM_RUN
 *   setsig      34 us    0.1 us   perf needs a second interrupt, to itself (irq_work), before it may take locks
 *   sigmask     34 us    0.6 us   that, two sigprocmask in every KVM_RUN, and a sigtimedwait after every exit
 *
 * None of them forgets an overflow that comes just before KVM_RUN: see the files. sigtrap remembers one overflow of an
 * event at a time, the others queue; what came together is one sample in either case.
 */
const struct counter_delivery *const counter_deliveries[] = {
	&counter_delivery_sigtrap,
	&counter_delivery_setsig,
	&counter_delivery_sigmask,
	NULL,
};

#define PROBE_PERIOD_NS UINT64_C(200000)
#define PROBE_OVERFLOWS 3u
/*
 * CPU time, not wall time: on a busy host the scratch thread may wait long before it runs at all. On a host that is
 * itself a guest, CPU time goes on while its own processor waits, up to 20 ms at a time.
 */
#define PROBE_CPU_NS (1000 * PROBE_PERIOD_NS)

struct probe {
	const struct counter_delivery *delivery;
	bool works;
	GError *error;
};

/* task-clock where perf allows it, else the timer: what it is does not matter, how it arrives does. */
static bool probe_event(struct counter_event *event, GError **error)
{
	return counter_event_parse("task-clock", event, NULL) || counter_event_parse("timer", event, error);
}

static bool overflows_arrive(struct counter_set *set)
{
	struct counter_overflow overflows[COUNTER_EVENTS_MAX];
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	size_t arrived = 0;

	while (arrived < PROBE_OVERFLOWS && clock_ns(CLOCK_THREAD_CPUTIME_ID) - start < PROBE_CPU_NS)
		arrived += counter_set_collect(set, true, false, overflows);
	return arrived >= PROBE_OVERFLOWS;
}

static void *probe_run(void *data)
{
	struct probe *probe = data;
	const struct counter_rate rate = {.period = PROBE_PERIOD_NS};
	volatile uint8_t immediate_exit = 0;
	const struct vcpu_port port = {.vcpu_fd = -1, .immediate_exit = &immediate_exit};
	struct counter_event event;

	if (!probe_event(&event, &probe->error))
		return NULL;
	struct counter_set *set = counter_set_open(probe->delivery, &port, &event, 1, &rate, &probe->error);
	if (!set)
		return NULL;
	probe->works = overflows_arrive(set);
	counter_set_close(set);
	if (!probe->works)
		g_set_error(&probe->error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
		            "no overflow of %s arrived within %" G_GUINT64_FORMAT " ms of CPU time", event.name,
		            PROBE_CPU_NS / 1000000);
	return NULL;
}

static bool probe_one(const struct counter_delivery *delivery, GError **error)
{
	struct probe probe = {.delivery = delivery};
	pthread_t thread;
	int errnum = pthread_create(&thread, NULL, probe_run, &probe);

	if (errnum != 0) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_SYSTEM, "cannot start a thread: %s",
		            g_strerror(errnum));
		return false;
	}
	pthread_join(thread, NULL);
	if (!probe.works)
		g_propagate_error(error, probe.error);
	return probe.works;
}

const struct counter_delivery *counter_delivery_probe(const char *wanted, GError **error)
{
	g_autoptr(GString) reasons = g_string_new(NULL);
	bool known = false;

	for (size_t i = 0; counter_deliveries[i]; i++) {
		g_autoptr(GError) reason = NULL;

		if (wanted && strcmp(wanted, counter_deliveries[i]->name) != 0)
			continue;
		known = true;
		if (probe_one(counter_deliveries[i], &reason))
			return counter_deliveries[i];
		g_string_append_printf(reasons, "%s%s: %s", reasons->len ? "; " : "", counter_deliveries[i]->name,
		                       reason->message);
	}
	if (known)
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
		            "counter overflows do not reach their thread on this host (%s)", reasons->str);
	else
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE,
		            "unknown delivery \"%s\"; there are sigtrap, setsig and sigmask", wanted);
	return NULL;
}
