// SPDX-License-Identifier: BSD-2-Clause
/*
 * Route "perf": the host's perf events on QEMU's vCPU threads. A hardware event counts while the guest runs, and only
 * then (exclude_host); a clock counts the thread, and what it finds outside the guest is a HYPERVISOR sample. perf
 * knows the guest's instruction pointer and mode, and no other register.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/qemu_guest.h"
#include "attach/route.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"

#define FREQUENCY_HZ_DEFAULT 999u
#define RING_DATA_BYTES (256u << 10)
#define DRAIN_INTERVAL_MS 50

/* One event on one vCPU's thread. */
struct source {
	int fd;
	unsigned vcpu, event;
	struct ring_reader *ring;
	struct counter_totals totals;
};

/* [I] immutable while the thread runs, [T] that thread only. */
struct perf_route {
	struct counter_route_config config; /* [I] */
	struct source *sources;             /* [T] one for each event and vCPU */
	size_t n;                           /* [I] */
	int wake;                           /* [I] eventfd: the thread is to stop */
	GThread *thread;                    /* [I] */
};

static int event_open(const struct counter_event *event, const struct counter_rate *rate, pid_t thread)
{
	struct perf_event_attr attr;

	counter_event_attr(event, rate, &attr);
	if (rate->frequency_hz) {
		attr.freq = 1;
		attr.sample_freq = rate->frequency_hz;
	}
	attr.wakeup_events = 0;
	attr.watermark = 1;
	attr.wakeup_watermark = RING_DATA_BYTES / 2;
	return (int)syscall(SYS_perf_event_open, &attr, thread, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

/* ---- records ---- */

/* perf's mode of a sample; false when the guest did not run. */
static bool guest_mode(uint16_t misc, uint8_t *cpl)
{
	switch (misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_GUEST_KERNEL:
		*cpl = 0;
		return true;
	case PERF_RECORD_MISC_GUEST_USER:
		*cpl = 3;
		return true;
	default:
		*cpl = 0;
		return false;
	}
}

static void sample_take(struct perf_route *route, struct source *source, const struct record_sample *record)
{
	struct counter_sample sample = {
		.vcpu = source->vcpu,
		.overflow = {.event = source->event, .period = record->period},
		.time_ns = record->time_ns,
		.regs = {.rip = record->ip, .valid = true},
	};

	sample.in_guest = guest_mode(record->misc, &sample.regs.cpl);
	source->totals.overflows++;
	source->totals.expected++;
	route->config.take(route->config.data, &sample);
}

static void source_drain(struct perf_route *route, struct source *source)
{
	const struct perf_event_header *record;
	struct record_sample sample;
	uint64_t id, lost;
	size_t bytes;

	while ((record = ring_reader_next(source->ring, &bytes))) {
		if (record->type == PERF_RECORD_SAMPLE &&
		    record_sample_decode(record, bytes, VPROF_SAMPLE_TYPE, &sample)) {
			sample_take(route, source, &sample);
		} else if (record_lost_decode(record, bytes, &id, &lost)) {
			source->totals.throttled += lost;
			source->totals.expected += lost;
		}
	}
	ring_reader_release(source->ring);
}

/* All events of a vCPU together. */
static void account(struct perf_route *route)
{
	struct counter_totals sums[GUEST_VCPUS_MAX] = {{0}};
	bool seen[GUEST_VCPUS_MAX] = {false};

	for (size_t i = 0; i < route->n; i++) {
		struct counter_totals *sum = &sums[route->sources[i].vcpu];
		const struct counter_totals *one = &route->sources[i].totals;

		sum->overflows += one->overflows;
		sum->throttled += one->throttled;
		sum->expected += one->expected;
		seen[route->sources[i].vcpu] = true;
	}
	for (unsigned i = 0; i < GUEST_VCPUS_MAX; i++)
		if (seen[i])
			route->config.account(route->config.data, i, &sums[i]);
}

static void drain(struct perf_route *route)
{
	for (size_t i = 0; i < route->n; i++)
		source_drain(route, &route->sources[i]);
	account(route);
}

static void *draining_thread(void *data)
{
	struct perf_route *route = data;
	struct pollfd wake = {.fd = route->wake, .events = POLLIN};

	while (poll(&wake, 1, DRAIN_INTERVAL_MS) <= 0)
		drain(route);
	for (size_t i = 0; i < route->n; i++)
		ioctl(route->sources[i].fd, PERF_EVENT_IOC_DISABLE, 0);
	drain(route);
	return NULL;
}

/* ---- start and stop ---- */

static void route_free(struct perf_route *route)
{
	for (size_t i = 0; i < route->n; i++) {
		ring_reader_free(route->sources[i].ring);
		close(route->sources[i].fd);
	}
	if (route->wake >= 0)
		close(route->wake);
	g_free(route->sources);
	g_free(route);
}

static bool source_open(struct perf_route *route, unsigned vcpu, pid_t thread, unsigned event, GError **error)
{
	const struct counter_event *wanted = &route->config.events[event];
	struct source *source = &route->sources[route->n];

	*source = (struct source){.vcpu = vcpu, .event = event};
	source->fd = event_open(wanted, &route->config.rate, thread);
	if (source->fd < 0) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE, "cannot count %s on vCPU %u: %s",
		            wanted->name, vcpu, g_strerror(errno));
		return false;
	}
	route->n++;
	source->ring = ring_reader_open_perf(source->fd, RING_DATA_BYTES, error);
	return source->ring != NULL;
}

static bool sources_open(struct perf_route *route, const struct qemu_guest *qemu, GError **error)
{
	route->sources = g_new0(struct source, (size_t)qemu->guest.vcpus * route->config.n_events);
	for (unsigned vcpu = 0; vcpu < qemu->guest.vcpus; vcpu++)
		for (unsigned event = 0; qemu->threads[vcpu] && event < route->config.n_events; event++)
			if (!source_open(route, vcpu, qemu->threads[vcpu], event, error))
				return false;
	return true;
}

static bool start(struct guest *guest, const struct counter_route_config *config, GError **error)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	struct perf_route *route = g_new0(struct perf_route, 1);

	route->config = *config;
	route->wake = eventfd(0, EFD_CLOEXEC);
	if (!sources_open(route, qemu, error)) {
		route_free(route);
		return false;
	}
	for (size_t i = 0; i < route->n; i++)
		ioctl(route->sources[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	route->thread = g_thread_new("perf route", draining_thread, route);
	qemu->perf_route = route;
	return true;
}

static void stop(struct guest *guest)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	struct perf_route *route = g_steal_pointer(&qemu->perf_route);
	const uint64_t one = 1;

	while (write(route->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
	g_thread_join(route->thread);
	route_free(route);
}

/* TCG's vCPU threads run translated code, in which perf sees no guest. */
static char *unavailable(struct guest *guest)
{
	const struct qemu_guest *qemu = (const struct qemu_guest *)guest;
	const struct counter_rate rate = {.frequency_hz = 1};
	struct counter_event event;
	const char *why;

	if (g_strcmp0(qemu->accelerator, "tcg") == 0)
		return g_strdup("the guest runs by TCG, which perf cannot look into; take the route monitor");
	counter_event_default(&event, &why);
	int fd = event_open(&event, &rate, qemu->threads[0]);

	if (fd >= 0) {
		close(fd);
		return NULL;
	}
	if (errno != EACCES && errno != EPERM)
		return g_strdup_printf("perf_event_open on QEMU's vCPU thread: %s", g_strerror(errno));
	return g_strdup(
		"not permitted; run vprof as root or with CAP_PERFMON and CAP_SYS_PTRACE, or as QEMU's user with "
		"`sysctl kernel.perf_event_paranoid=1`");
}

const struct counter_route route_perf = {
	.name = "perf",
	.summary = "perf events on QEMU's vCPU threads; KVM; instruction pointer and mode, no tasks, no call chains",
	.frequency_hz_default = FREQUENCY_HZ_DEFAULT,
	.unavailable = unavailable,
	.start = start,
	.stop = stop,
};
