// SPDX-License-Identifier: BSD-2-Clause
/* From a probe that fires to a record, on the vCPU's thread: no lock, no allocation, no waiting. */
#include <string.h>
#include <vprof/probe.h>

#include "guest/gprs.h"
#include "guest/page_walk.h"
#include "guest/processor.h"
#include "lib/record/clock.h"
#include "probe/placement_priv.h"

_Static_assert(PROBE_CHAIN_MAX + VPROF_PROBE_VALUES_MAX <= UNWIND_CHAIN_MAX + 128u, "an event has room for its words");
_Static_assert(PROBE_ARGUMENTS_MAX + GUEST_GPRS_MAX + 1 + PROBE_PATHS_MAX * FIELD_TEXT_BYTES / sizeof(uint64_t) <=
                       VPROF_PROBE_VALUES_MAX,
               "an event has room for all of them");

void probe_count(_Atomic uint64_t *statistic)
{
	atomic_fetch_add_explicit(statistic, 1, memory_order_relaxed);
}

bool probe_records(const struct probe *probe, unsigned vcpu)
{
	return probe->set->vcpus[vcpu].recording;
}

struct firing probe_firing(struct probe *probe, unsigned vcpu, const struct guest_regs *regs,
                           const struct guest_gprs *gprs)
{
	return (struct firing){
		.probe = probe, .vcpu = vcpu, .regs = regs, .gprs = gprs, .n_values = probe->n_arguments};
}

void probe_read_arguments(const struct guest_gprs *gprs, uint64_t *arguments)
{
	for (unsigned i = 0; i < GUEST_GPR_ARGUMENTS; i++)
		arguments[i] = guest_gprs_argument(gprs, i);
}

void probe_event_fill_task(struct firing *firing, struct probe_vcpu *cpu, struct record_id *id)
{
	const struct probe_set *set = firing->probe->set;
	struct page_walk walk;
	struct task task;

	if (!set->kernel)
		return;
	if (set->kernel->tasks->read(set->kernel, &cpu->cpu, set->hub->guest, firing->regs, &walk, &task)) {
		id->pid = task.pid;
		id->tid = task.tid;
		firing->task = task.address;
		firing->code =
			sample_stream_announce(&cpu->stream, &walk, &task, id, firing->probe->options.stack, 0).code;
	} else {
		id->pid = id->tid = VPROF_PID_UNKNOWN;
		probe_count(&cpu->no_task);
	}
}

/* Whether there are tables for the code that runs: they find the caller of a function that has no frame yet. */
static bool has_tables(const struct guest_regs *regs, const struct unwind_config *config)
{
	enum unwind_end end;

	return guest_regs_user(regs) ? unwind_cells_find(config->code, guest_regs_ip(regs), &end) != NULL
	                             : config->tables != NULL;
}

/*
 * At its first instruction, a function has not made its own frame yet: a walk along frame pointers would miss the
 * return address on top of the stack.
 */
static unsigned chain_at_entry(const struct firing *firing, const struct unwind_config *config, uint64_t *chain)
{
	struct guest *guest = firing->probe->set->hub->guest;
	struct guest_regs caller = *firing->regs;
	enum unwind_end end;

	if (!processor_of(caller.processor)->frames->leave(guest, &caller))
		return 0;
	unsigned n = unwind(config, guest, &caller, NULL, chain + 1, &end);
	chain[0] = chain[1]; /* PERF_CONTEXT_KERNEL, _USER */
	chain[1] = guest_regs_ip(firing->regs);
	return n + 1;
}

unsigned probe_event_fill_chain(const struct firing *firing, uint64_t chain[PROBE_CHAIN_MAX])
{
	const struct probe *probe = firing->probe;
	struct unwind_config config = probe->set->unwind;
	enum unwind_end end;
	unsigned n = 0;

	config.user = true;
	config.code = firing->code;
	if (!probe->options.stack || !firing->regs->valid)
		return 0;
	if (firing->at_entry && !has_tables(firing->regs, &config))
		n = chain_at_entry(firing, &config, chain);
	return n > 0 ? n : unwind(&config, probe->set->hub->guest, firing->regs, NULL, chain, &end);
}

static void add_registers(struct firing *firing)
{
	for (unsigned i = 0; i < GUEST_GPRS_MAX; i++) {
		if (firing->probe->options.registers >> i & 1)
			firing->values[firing->n_values++] = guest_gprs_value(firing->gprs, i);
	}
}

void probe_event_record(const struct firing *given)
{
	struct firing firing = *given;
	struct probe_vcpu *cpu = &firing.probe->set->vcpus[firing.vcpu];
	uint64_t chain[PROBE_CHAIN_MAX];
	struct record_id id = {.time_ns = clock_ns(CLOCK_MONOTONIC), .cpu = firing.vcpu, .id = firing.probe->id};

	probe_count(&cpu->event);
	probe_event_fill_task(&firing, cpu, &id);
	if (!firing.bare) {
		const unsigned faults = probe_values_read(firing.probe->values, firing.probe->set->hub->guest,
		                                          firing.regs, firing.task, firing.values, &firing.n_values);
		atomic_fetch_add_explicit(&cpu->fault, faults, memory_order_relaxed);
	}
	const struct record_sample sample = {
		.id = id.id,
		.ip = guest_regs_ip(firing.regs),
		.pid = id.pid,
		.tid = id.tid,
		.time_ns = id.time_ns,
		.cpu = id.cpu,
		.period = 1,
		.misc = firing.regs->valid && guest_regs_user(firing.regs) ? PERF_RECORD_MISC_USER
	                                                                   : PERF_RECORD_MISC_KERNEL,
		.chain = chain,
		.n_chain = probe_event_fill_chain(&firing, chain),
		.raw = firing.values,
		.raw_bytes = (uint32_t)(firing.n_values * sizeof(uint64_t)),
	};

	if (!sample_stream_write(&cpu->stream, &sample, true))
		probe_count(&cpu->dropevt);
}

void probe_event_note(const struct firing *firing)
{
	task_cpu_note(&firing->probe->set->vcpus[firing->vcpu].cpu, firing->regs);
}

void probe_event_fire(struct firing *firing)
{
	probe_count(&firing->probe->events);
	if (!firing->bare) {
		if (firing->probe->arguments)
			probe_arguments_extend(firing->probe, firing->values);
		add_registers(firing);
	}
	if (firing->probe->program)
		probe_program_run(firing);
	else
		probe_event_record(firing);
}

bool probe_fires(const struct probe *probe, const struct probe_occasion *occasion, uint64_t *arguments)
{
	const struct placement_ops *ops = probe->placement->ops;

	return ops->fires && ops->fires(probe->placement, occasion, arguments);
}

void probe_event_exited(struct guest_observer *observer, unsigned vcpu, const struct guest_access *access,
                        const struct guest_regs *regs, const struct guest_gprs *gprs)
{
	struct probe_set *set = (struct probe_set *)observer;
	struct probe_vcpu *cpu = &set->vcpus[vcpu];
	const struct probe_occasion occasion = {.access = access};

	if (!cpu->recording)
		return;
	task_cpu_note(&cpu->cpu, regs);
	for (guint i = 0; i < set->probes->len; i++) {
		struct firing firing = probe_firing(g_ptr_array_index(set->probes, i), vcpu, regs, gprs);

		if (probe_fires(firing.probe, &occasion, firing.values))
			probe_event_fire(&firing);
	}
}

/*
 * The probe fires for a reason outside the guest; `wants_code`: only when the vCPU is in the guest's own code. A vCPU
 * that has not run yet has no registers; they are 0.
 */
static void fire_outside(struct firing *firing, bool wants_code)
{
	struct probe_set *set = firing->probe->set;
	struct probe_vcpu *cpu = &set->vcpus[firing->vcpu];
	struct guest *guest = set->hub->guest;
	struct guest_regs regs = {.processor = guest->processor};
	struct guest_gprs gprs = {.processor = guest->processor};

	if (!cpu->recording)
		return;
	bool runs = guest->debug->registers_read(guest, firing->vcpu, &regs, &gprs);
	if (wants_code && !regs.valid) {
		atomic_fetch_add_explicit(&cpu->quirk, runs, memory_order_relaxed);
		return;
	}
	firing->regs = &regs;
	firing->gprs = &gprs;
	if (runs)
		task_cpu_note(&cpu->cpu, &regs);
	probe_event_fire(firing);
}

void probe_event_tick(struct probe *probe, unsigned vcpu, bool wants_code)
{
	struct firing firing = {.probe = probe, .vcpu = vcpu};

	fire_outside(&firing, wants_code);
}

void probe_event_edge(struct probe *probe, unsigned vcpu, bool knows)
{
	const struct guest_regs no_regs = {.processor = probe->set->hub->guest->processor};
	const struct guest_gprs no_gprs = {.processor = probe->set->hub->guest->processor};
	struct firing firing = {.probe = probe, .vcpu = vcpu, .regs = &no_regs, .gprs = &no_gprs, .is_edge = true};

	if (knows)
		fire_outside(&firing, false);
	else
		probe_event_fire(&firing);
}

void probe_event_marker(struct probe *probe, unsigned vcpu, const uint64_t *arguments)
{
	struct firing firing = {.probe = probe, .vcpu = vcpu, .n_values = probe->n_arguments};

	memcpy(firing.values, arguments, firing.n_values * sizeof(*arguments));
	fire_outside(&firing, false);
}

void probe_event_finish(struct probe_vcpu *cpu, unsigned vcpu)
{
	const struct record_id id = {.time_ns = clock_ns(CLOCK_MONOTONIC), .cpu = vcpu};

	ring_write_lost(cpu->stream.ring, &id, true);
	ring_wake(cpu->stream.ring);
}
