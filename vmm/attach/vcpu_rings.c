// SPDX-License-Identifier: BSD-2-Clause
#include "attach/vcpu_rings.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "lib/record/ring_reader.h"

#define DRAIN_INTERVAL_MS 50

/* One event on one vCPU's thread. */
struct source {
	int fd;
	unsigned vcpu, event;
	struct ring_reader *ring;
	struct counter_statistics statistics;
};

/* One whose throttling is told. */
struct told {
	uint64_t id; /* of PERF_EVENT_IOC_ID */
	unsigned event;
};

/* [I] immutable while the thread runs, [T] that thread only. */
struct vcpu_rings {
	struct vcpu_rings_config config;   /* [I] */
	struct counter_route_config route; /* [I] */
	GArray *sources;                   /* [T] of struct source */
	GArray *told;                      /* [I] of struct told */
	GArray *polled;                    /* [T] of struct pollfd: `wake`, and the sources' */
	int wake;                          /* [I] eventfd: the thread is to stop */
	GThread *thread;                   /* [I] NULL: none */
};

static struct source *source_at(const struct vcpu_rings *rings, size_t i)
{
	return &g_array_index(rings->sources, struct source, i);
}

/* ---- records ---- */

bool vcpu_rings_in_guest(uint16_t misc)
{
	uint16_t mode = misc & PERF_RECORD_MISC_CPUMODE_MASK;

	return mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER;
}

bool vcpu_rings_user(uint16_t misc, uint64_t ip, bool has_kernel)
{
	if (ip >> 63)
		return false;
	return has_kernel || ip >> 32 || (misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_GUEST_USER;
}

static void throttle_take(const struct vcpu_rings *rings, unsigned vcpu, const struct record_throttle *throttle)
{
	for (size_t i = 0; i < rings->told->len; i++) {
		const struct told *told = &g_array_index(rings->told, struct told, i);
		const struct counter_throttle of_event = {told->event, throttle->ends, throttle->time_ns};

		if (told->id == throttle->id)
			rings->route.throttle(rings->route.data, vcpu, &of_event);
	}
}

static void source_drain(struct vcpu_rings *rings, struct source *source)
{
	const struct perf_event_header *record;
	struct record_sample sample;
	struct record_throttle throttle;
	struct record_lost lost;
	size_t bytes;

	while ((record = ring_reader_next(source->ring, &bytes))) {
		if (record->type == PERF_RECORD_SAMPLE &&
		    record_sample_decode(record, bytes, rings->config.sample_type, &sample)) {
			source->statistics.overflows++;
			source->statistics.expected++;
			rings->config.sample(rings->config.data, source->vcpu, source->event, &sample);
		} else if (record_lost_decode(record, bytes, &lost)) {
			source->statistics.throttled += lost.lost;
			source->statistics.expected += lost.lost;
		} else if (record_throttle_decode(record, bytes, &throttle)) {
			throttle_take(rings, source->vcpu, &throttle);
		}
	}
	ring_reader_release(source->ring);
}

/* All events of a vCPU together. */
static void statistics_report(struct vcpu_rings *rings)
{
	struct counter_statistics sums[GUEST_VCPUS_MAX] = {{0}};
	bool seen[GUEST_VCPUS_MAX] = {false};

	for (size_t i = 0; i < rings->sources->len; i++) {
		const struct source *source = source_at(rings, i);
		struct counter_statistics *sum = &sums[source->vcpu];

		sum->overflows += source->statistics.overflows;
		sum->throttled += source->statistics.throttled;
		sum->expected += source->statistics.expected;
		seen[source->vcpu] = true;
	}
	for (unsigned i = 0; i < GUEST_VCPUS_MAX; i++) {
		if (!seen[i])
			continue;
		uint64_t lost = rings->config.lost ? rings->config.lost(rings->config.data, i) : 0;

		sums[i].throttled += lost;
		sums[i].expected += lost;
		rings->route.statistics(rings->route.data, i, &sums[i]);
	}
}

static void drain(struct vcpu_rings *rings)
{
	for (size_t i = 0; i < rings->sources->len; i++)
		source_drain(rings, source_at(rings, i));
	statistics_report(rings);
}

static void poll_add(struct vcpu_rings *rings, int fd)
{
	const struct pollfd one = {.fd = fd, .events = POLLIN};

	g_array_append_val(rings->polled, one);
}

/* When its thread has ended, an event says so for ever (POLLHUP): its ring is then read by time alone. */
static void poll_forget_ended(struct vcpu_rings *rings)
{
	for (size_t i = 1; i < rings->polled->len; i++) {
		struct pollfd *one = &g_array_index(rings->polled, struct pollfd, i);

		if (one->revents & (POLLHUP | POLLERR | POLLNVAL))
			one->fd = -1;
	}
}

static bool is_to_stop(const struct vcpu_rings *rings)
{
	return g_array_index(rings->polled, struct pollfd, 0).revents != 0;
}

static void *draining_thread(void *data)
{
	struct vcpu_rings *rings = data;

	do {
		if (poll((struct pollfd *)(void *)rings->polled->data, rings->polled->len, DRAIN_INTERVAL_MS) > 0)
			poll_forget_ended(rings);
		drain(rings);
	} while (!is_to_stop(rings));
	for (size_t i = 0; i < rings->sources->len; i++)
		ioctl(source_at(rings, i)->fd, PERF_EVENT_IOC_DISABLE, 0);
	drain(rings);
	return NULL;
}

/* ---- start and stop ---- */

struct vcpu_rings *vcpu_rings_new(const struct vcpu_rings_config *config)
{
	struct vcpu_rings *rings = g_new0(struct vcpu_rings, 1);

	rings->config = *config;
	rings->route = *config->route;
	rings->sources = g_array_new(FALSE, FALSE, sizeof(struct source));
	rings->told = g_array_new(FALSE, FALSE, sizeof(struct told));
	rings->polled = g_array_new(FALSE, FALSE, sizeof(struct pollfd));
	rings->wake = eventfd(0, EFD_CLOEXEC);
	poll_add(rings, rings->wake);
	return rings;
}

void vcpu_rings_free(struct vcpu_rings *rings)
{
	if (!rings)
		return;
	for (size_t i = 0; i < rings->sources->len; i++) {
		ring_reader_free(source_at(rings, i)->ring);
		close(source_at(rings, i)->fd);
	}
	if (rings->wake >= 0)
		close(rings->wake);
	g_array_unref(rings->sources);
	g_array_unref(rings->told);
	g_array_unref(rings->polled);
	g_free(rings);
}

void vcpu_rings_attr(const struct vcpu_rings_config *config, struct perf_event_attr *attr)
{
	attr->sample_type = config->sample_type;
	attr->wakeup_events = 0;
	attr->watermark = 1;
	attr->wakeup_watermark = (uint32_t)(config->ring_bytes_min / 4);
}

static void told_add(struct vcpu_rings *rings, int fd, unsigned event)
{
	struct told told = {.event = event};

	if (ioctl(fd, PERF_EVENT_IOC_ID, &told.id) == 0)
		g_array_append_val(rings->told, told);
}

bool vcpu_rings_add(struct vcpu_rings *rings, int fd, unsigned vcpu, unsigned event, GError **error)
{
	struct source source = {.fd = fd, .vcpu = vcpu, .event = event};
	g_autoptr(GError) why = NULL;

	for (size_t bytes = rings->config.ring_bytes; !source.ring && bytes >= rings->config.ring_bytes_min;
	     bytes /= 2) {
		g_clear_error(&why);
		source.ring = ring_reader_open_perf(fd, bytes, &why);
	}
	if (!source.ring) {
		g_propagate_error(error, g_steal_pointer(&why));
		close(fd);
		return false;
	}
	g_array_append_val(rings->sources, source);
	told_add(rings, fd, event);
	poll_add(rings, fd);
	return true;
}

void vcpu_rings_redirect(struct vcpu_rings *rings, int fd, unsigned vcpu, unsigned event)
{
	for (size_t i = 0; i < rings->sources->len; i++)
		if (source_at(rings, i)->vcpu == vcpu &&
		    ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, source_at(rings, i)->fd) == 0) {
			told_add(rings, fd, event);
			return;
		}
}

void vcpu_rings_start(struct vcpu_rings *rings)
{
	for (size_t i = 0; i < rings->sources->len; i++)
		ioctl(source_at(rings, i)->fd, PERF_EVENT_IOC_ENABLE, 0);
	rings->thread = g_thread_new("rings", draining_thread, rings);
}

void vcpu_rings_stop(struct vcpu_rings *rings)
{
	const uint64_t one = 1;

	while (write(rings->wake, &one, sizeof(one)) < 0 && errno == EINTR)
		continue;
	g_thread_join(g_steal_pointer(&rings->thread));
}
