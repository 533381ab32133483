// SPDX-License-Identifier: BSD-2-Clause
/*
 * Route "bpf": a BPF program where the events on the VMM's vCPU threads overflow. It sees the vCPU's registers in KVM
 * and its stack in the VMM's memory while the vCPU stands there, and copies them, and which task the vCPU runs. Names
 * of tasks are read afterwards, as by the other routes.
 */
#include <errno.h>
#include <unistd.h>
#include <vprof/control.h>

#include "attach/bpf_sample_priv.h"
#include "attach/guest_memory.h"
#include "attach/guest_program.h"
#include "attach/host_chain.h"
#include "attach/kvm_vendor.h"
#include "attach/qemu.h"
#include "attach/vcpu_event.h"
#include "attach/vcpu_rings.h"

#define RING_DATA_BYTES (1u << 20)      /* a call chain's memory has some 100 bytes to 8 KiB, */
#define RING_DATA_BYTES_USER (4u << 20) /* and 20 KiB more with the stack of user space */

struct bpf_counter {
	int fd; /* -1: its link has it */
	unsigned vcpu, event;
};

struct bpf_route {
	struct counter_route_config config;
	bool by_memory;                /* registers are found in the guest's memory */
	bool withholds;                /* each sample is taken twice: by what KVM has, and by memory */
	struct guest_program *program; /* the guest's */
	struct vcpu_rings *rings;
	struct host_chain *host;                 /* NULL: the session wants the guest alone */
	bool has_kernel;                         /* as in vcpu_rings_user */
	GArray *counters;                        /* of struct bpf_counter */
	GPtrArray *links;                        /* of struct guest_program_link: an event on a vCPU each */
	uint64_t unsent_before[GUEST_VCPUS_MAX]; /* by earlier sessions */
};

/* ---- samples; on the rings' thread ---- */

/* For tests: what memory says is compared with this. Without a stack pointer, frame pointers say where the callers are.
 */
static void take_as_known(const struct bpf_route *route, const struct counter_sample *sample)
{
	struct counter_sample known = *sample;

	known.by_frames = !guest_regs_user(&sample->regs) && guest_regs_stack(&sample->regs) == 0;
	route->config.take(route->config.data, &known);
}

static void take(void *data, unsigned vcpu, unsigned event G_GNUC_UNUSED, const struct record_sample *record)
{
	const struct bpf_route *route = data;
	const struct unwind_config *unwind = route->config.unwind;
	struct counter_sample sample = {.vcpu = vcpu};
	struct unwind_stacks stacks;
	struct snapshot snapshot;

	if (!bpf_sample_decode(record, route->has_kernel, &sample, &snapshot) ||
	    sample.overflow.event >= route->config.n_events)
		return;
	if (route->host)
		host_chain_take(route->host, record, &sample);
	if (route->withholds)
		take_as_known(route, &sample);
	if (route->by_memory && sample.in_guest)
		bpf_sample_by_memory(record, &sample,
		                     unwind && (unwind->tables || guest_regs_user(&sample.regs)) ? &stacks : NULL);
	route->config.take(route->config.data, &sample);
}

static uint64_t unsent(void *data, unsigned vcpu)
{
	const struct bpf_route *route = data;

	return guest_program_unsent(route->program, vcpu) - route->unsent_before[vcpu];
}

/* ---- what the program has to know ---- */

bool route_bpf_withholds(void)
{
	return g_getenv("VPROF_TEST_WITHHOLD") != NULL;
}

static struct guest_sample_settings settings(struct qemu_guest *qemu, const struct counter_route_config *config)
{
	const struct unwind_config *unwind = config->unwind;
	enum guest_sample_vendor vendor;
	struct guest_sample_settings settings = {
		.memory = GUEST_SAMPLE_NO_MEMORY,
		.current_task = config->tasks ? config->kernel->places.current_task : 0,
		.page_shift = (unsigned)__builtin_ctzl((unsigned long)sysconf(_SC_PAGESIZE)),
	};

	if (config->kernel) {
		settings.interrupt_stack = config->kernel->places.interrupt_stack;
		settings.interrupt_stack_behind = config->kernel->places.interrupt_stack_behind;
		settings.stack_padding = config->kernel->places.stack_padding;
	}
	if (kvm_vendor_find(&vendor))
		settings.vendor = vendor;
	if (unwind) {
		settings.memory = unwind->tables ? GUEST_SAMPLE_STACK : GUEST_SAMPLE_FRAMES;
		settings.depth = unwind->depth;
		settings.user = unwind->user;
		settings.user_stack = config->user_stack;
	}
	route_bpf_settings(qemu, config, &settings);
	return settings;
}

/* Once for a guest: what it is asked to do can change. */
static bool program_load(struct qemu_guest *qemu, GError **error)
{
	if (!qemu->program)
		qemu->program = guest_program_load(error);
	return qemu->program != NULL;
}

/* ---- start and stop ---- */

static bool output_open(struct bpf_route *route, const struct vcpu_rings_config *rings, unsigned vcpu, pid_t thread,
                        GError **error)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_BPF_OUTPUT,
		.sample_period = 1,
		.disabled = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	vcpu_rings_attr(rings, &attr);
	int fd = vcpu_event_open(&attr, thread);

	if (fd < 0) {
		vcpu_event_error("samples of the BPF program", vcpu, error);
		return false;
	}
	return vcpu_rings_add(route->rings, fd, vcpu, 0, error) &&
	       guest_program_output(route->program, vcpu, fd, error);
}

static bool counter_open(struct bpf_route *route, unsigned vcpu, pid_t thread, unsigned event, GError **error)
{
	const struct counter_event *wanted = &route->config.events[event];
	struct bpf_counter counter = {.vcpu = vcpu, .event = event};
	struct perf_event_attr attr;

	vcpu_event_attr(wanted, &route->config, &attr);
	counter.fd = vcpu_event_open(&attr, thread);
	if (counter.fd < 0) {
		vcpu_event_error(wanted->name, vcpu, error);
		return false;
	}
	vcpu_rings_redirect(route->rings, counter.fd, vcpu, event);
	g_array_append_val(route->counters, counter);
	return true;
}

static void counter_close(void *counter)
{
	const int fd = ((struct bpf_counter *)counter)->fd;

	if (fd >= 0)
		close(fd);
}

static bool counters_attach(struct bpf_route *route, GError **error)
{
	for (size_t i = 0; i < route->counters->len; i++) {
		struct bpf_counter *counter = &g_array_index(route->counters, struct bpf_counter, i);
		struct guest_program_link *link =
			guest_program_attach(route->program, counter->fd, counter->vcpu, counter->event, error);

		if (!link)
			return false;
		g_ptr_array_add(route->links, link);
		counter->fd = -1;
	}
	return true;
}

static bool outputs_open(struct bpf_route *route, const struct vcpu_rings_config *rings, const struct qemu_guest *qemu,
                         GError **error)
{
	for (unsigned vcpu = 0; vcpu < qemu->guest.vcpus; vcpu++) {
		route->unsent_before[vcpu] = guest_program_unsent(route->program, vcpu);
		if (qemu->threads[vcpu] && !output_open(route, rings, vcpu, qemu->threads[vcpu], error))
			return false;
	}
	return true;
}

static bool counters_open(struct bpf_route *route, const struct qemu_guest *qemu, GError **error)
{
	for (unsigned vcpu = 0; vcpu < qemu->guest.vcpus; vcpu++)
		for (unsigned event = 0; qemu->threads[vcpu] && event < route->config.n_events; event++)
			if (!counter_open(route, vcpu, qemu->threads[vcpu], event, error))
				return false;
	return true;
}

static void route_free(struct bpf_route *route)
{
	g_ptr_array_unref(route->links);
	g_array_unref(route->counters);
	vcpu_rings_free(route->rings);
	host_chain_free(route->host);
	g_free(route);
}

static void detach(void *link)
{
	guest_program_detach(link);
}

static void stop(struct guest *guest)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	struct bpf_route *route = g_steal_pointer(&qemu->bpf_route);

	g_ptr_array_set_size(route->links, 0);
	vcpu_rings_stop(route->rings);
	route_free(route);
}

/* The rings are read first: a counter counts as soon as the program is attached to it. */
static bool start(struct guest *guest, const struct counter_route_config *config, GError **error)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	struct guest_sample_settings wanted = settings(qemu, config);

	if (!program_load(qemu, error))
		return false;
	struct bpf_route *route = g_new0(struct bpf_route, 1);
	const struct vcpu_rings_config rings = {
		.route = config,
		/* perf walks the host's stack for this record where the event overflowed, as it does for the event's.
	         */
		.sample_type = VPROF_SAMPLE_TYPE | PERF_SAMPLE_RAW | (config->host ? PERF_SAMPLE_CALLCHAIN : 0),
		.ring_bytes = wanted.user_stack ? RING_DATA_BYTES_USER : RING_DATA_BYTES,
		.ring_bytes_min = RING_DATA_BYTES,
		.sample = take,
		.lost = unsent,
		.data = route,
	};

	route->config = *config;
	route->has_kernel = qemu->kernel.image != NULL;
	route->by_memory = wanted.by_memory;
	route->withholds = wanted.by_memory && route_bpf_withholds();
	route->host = config->host ? host_chain_new(guest_memory_file(qemu->memory)) : NULL;
	route->program = qemu->program;
	route->links = g_ptr_array_new_with_free_func(detach);
	route->counters = g_array_new(FALSE, FALSE, sizeof(struct bpf_counter));
	g_array_set_clear_func(route->counters, counter_close);
	route->rings = vcpu_rings_new(&rings);
	guest_program_set(route->program, &wanted);
	if (!outputs_open(route, &rings, qemu, error) || !counters_open(route, qemu, error)) {
		route_free(route);
		return false;
	}
	qemu->bpf_route = route;
	vcpu_rings_start(route->rings);
	if (counters_attach(route, error))
		return true;
	stop(guest);
	return false;
}

static char *unavailable(struct guest *guest)
{
	struct qemu_guest *qemu = (struct qemu_guest *)guest;
	g_autoptr(GError) error = NULL;
	char *why = vcpu_event_unavailable(qemu);
	enum guest_sample_vendor vendor;

	if (why)
		return why;
	if (!kvm_vendor_find(&vendor))
		return g_strdup("KVM's part for this processor is none of kvm_intel, kvm_amd and kvm_pvm");
	return program_load(qemu, &error) ? NULL : g_strdup(error->message);
}

const struct counter_route route_bpf = {
	.name = "bpf",
	.summary = "a BPF program at perf events on the VMM's vCPU threads; KVM; tasks, and call chains of one moment",
	.gives = route_bpf_gives,
	.frequency_hz_default = VPROF_FREQUENCY_HZ_DEFAULT,
	.registers = true,
	.host = true,
	.lacks_stack = route_bpf_lacks_stack,
	.impossible = vcpu_event_impossible,
	.unavailable = unavailable,
	.start = start,
	.stop = stop,
};
