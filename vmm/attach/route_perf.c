// SPDX-License-Identifier: BSD-2-Clause
/*
 * Route "perf": the host's perf events on the VMM's vCPU threads. A hardware event counts while the guest runs, and
 * only then (exclude_host); a clock counts the thread, and what it finds outside the guest is a HYPERVISOR sample. perf
 * knows the guest's instruction pointer and mode, and no other register.
 */
#include <vprof/control.h>

#include "attach/guest_memory.h"
#include "attach/host_chain.h"
#include "attach/qemu.h"
#include "attach/vcpu_arch.h"
#include "attach/vcpu_event.h"
#include "attach/vcpu_rings.h"

#define RING_DATA_BYTES (256u << 10)

struct perf_route {
	struct counter_route_config config;
	struct vcpu_rings *rings;
	struct host_chain *host; /* NULL: the session wants the guest alone */
	bool has_kernel;         /* as in vcpu_rings_user */
};

static void take(void *data, unsigned vcpu, unsigned event, const struct record_sample *record)
{
	const struct perf_route *route = data;
	struct counter_sample sample = {
		.vcpu = vcpu,
		.overflow = {.event = event, .period = record->period},
		.time_ns = record->time_ns,
	};

	sample.in_guest = vcpu_rings_in_guest(record->misc);
	vcpu_arch_place(&sample.regs, record->misc, record->ip, route->has_kernel);
	if (route->host)
		host_chain_take(route->host, record, &sample);
	route->config.take(route->config.data, &sample);
}

/* ---- start and stop ---- */

static void route_free(struct perf_route *route)
{
	vcpu_rings_free(route->rings);
	host_chain_free(route->host);
	g_free(route);
}

static bool source_open(struct perf_route *route, const struct vcpu_rings_config *rings, unsigned vcpu, pid_t thread,
                        unsigned event, GError **error)
{
	const struct counter_event *wanted = &route->config.events[event];
	struct perf_event_attr attr;

	vcpu_event_attr(wanted, &route->config, &attr);
	vcpu_rings_attr(rings, &attr);
	int fd = vcpu_event_open(&attr, thread);

	if (fd >= 0)
		return vcpu_rings_add(route->rings, fd, vcpu, event, error);
	vcpu_event_error(wanted->name, vcpu, error);
	return false;
}

static bool sources_open(struct perf_route *route, const struct vcpu_rings_config *rings, const struct qemu_guest *qemu,
                         GError **error)
{
	for (unsigned vcpu = 0; vcpu < qemu->guest.vcpus; vcpu++)
		for (unsigned event = 0; qemu->threads[vcpu] && event < route->config.n_events; event++)
			if (!source_open(route, rings, vcpu, qemu->threads[vcpu], event, error))
				return false;
	return true;
}

static bool start(struct guest *guest, const struct counter_route_config *config, GError **error)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	struct perf_route *route = g_new0(struct perf_route, 1);
	const struct vcpu_rings_config rings = {
		.route = config,
		.sample_type = VPROF_SAMPLE_TYPE | (config->host ? PERF_SAMPLE_CALLCHAIN : 0),
		.ring_bytes = RING_DATA_BYTES,
		.ring_bytes_min = RING_DATA_BYTES,
		.sample = take,
		.data = route,
	};

	route->config = *config;
	route->has_kernel = qemu->kernel.image != NULL;
	route->host = config->host ? host_chain_new(guest_memory_file(qemu->memory)) : NULL;
	route->rings = vcpu_rings_new(&rings);
	if (!sources_open(route, &rings, qemu, error)) {
		route_free(route);
		return false;
	}
	vcpu_rings_start(route->rings);
	qemu->perf_route = route;
	return true;
}

static void stop(struct guest *guest)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	struct perf_route *route = g_steal_pointer(&qemu->perf_route);

	vcpu_rings_stop(route->rings);
	route_free(route);
}

static const char *gives(struct guest *guest G_GNUC_UNUSED)
{
	return "no tasks; kernel chains: no; user chains: no";
}

static char *unavailable(struct guest *guest)
{
	return vcpu_event_unavailable((struct qemu_guest *)guest);
}

const struct counter_route route_perf = {
	.name = "perf",
	.summary = "perf events on the VMM's vCPU threads; KVM; instruction pointer and mode, no tasks, no call chains",
	.gives = gives,
	.frequency_hz_default = VPROF_FREQUENCY_HZ_DEFAULT,
	.host = true,
	.impossible = vcpu_event_impossible,
	.unavailable = unavailable,
	.start = start,
	.stop = stop,
};
