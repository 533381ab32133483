// SPDX-License-Identifier: BSD-2-Clause
#include "attach/vcpu_account.h"

#include <linux/perf_event.h>
#include <string.h>
#include <unistd.h>

#include "attach/thread_clock.h"
#include "attach/vcpu_event.h"
#include "attach/vcpu_statistics.h"
#include "exits/exit_clock.h"

/*
 * Counted on the thread, beside what KVM counts. Events of the PMU count while the guest runs; the kernel's own, what
 * the host does with the thread.
 */
static const struct counted {
	const char *name;
	uint32_t type;
	uint64_t config;
} counted[] = {
	{"cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES},
	{"instructions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS},
	{"task-clock", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK},
	{"context-switches", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES},
	{"cpu-migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS},
	{"page-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS},
};
#define COUNTED G_N_ELEMENTS(counted)

struct totals {
	struct thread_clock clock;
	size_t n_counters;
	struct guest_counter counters[GUEST_COUNTERS_MAX];
};

struct vcpu_account {
	pid_t thread;
	bool has_clock;
	int64_t begun_us, last_us; /* monotonic time of the readings */
	int64_t unplugged_us;      /* before: the vCPU had no thread */
	GHashTable *names;         /* of KVM's running totals; NULL: not counted */
	int events[COUNTED];
	struct exit_clock *exits; /* NULL: untraced */
	char *untraced;
	struct totals base, last;
};

/* -1 where the host has no PMU, or we may not. */
static int event_open(const struct counted *event, pid_t thread)
{
	struct perf_event_attr attr = {
		.type = event->type,
		.size = sizeof(attr),
		.config = event->config,
		.exclude_host = event->type == PERF_TYPE_HARDWARE,
		.exclude_hv = 1,
	};

	return vcpu_event_open(&attr, thread);
}

static void counter_add(struct totals *totals, const char *name, uint64_t value)
{
	if (totals->n_counters == GUEST_COUNTERS_MAX)
		return;
	g_strlcpy(totals->counters[totals->n_counters].name, name, GUEST_COUNTER_NAME_BYTES);
	totals->counters[totals->n_counters++].value = value;
}

static const struct guest_counter *counter_find(const struct totals *totals, const char *name)
{
	for (size_t i = 0; i < totals->n_counters; i++)
		if (strcmp(totals->counters[i].name, name) == 0)
			return &totals->counters[i];
	return NULL;
}

/* False, and nothing changes, once the thread has gone. */
static bool totals_read(const struct vcpu_account *account, const struct vcpu_account_source *source,
                        struct totals *totals)
{
	struct totals now = {.n_counters = 0};
	uint64_t value;

	if (account->thread == 0 || !thread_clock_read(source->pid, account->thread, &now.clock))
		return false;
	if (source->view)
		now.n_counters = kvm_view_counters(source->view, source->id, now.counters);
	else if (account->names && source->monitor && source->path)
		now.n_counters = vcpu_statistics_read(source->monitor, source->path, account->names, now.counters);
	for (size_t i = 0; i < COUNTED; i++)
		if (account->events[i] >= 0 && read(account->events[i], &value, sizeof(value)) == sizeof(value))
			counter_add(&now, counted[i].name, value);
	*totals = now;
	return true;
}

static void trace(struct vcpu_account *account, const struct vcpu_account_source *source)
{
	g_autoptr(GError) why = NULL;

	if (!source->exits || !source->thread) {
		account->untraced = g_strdup(source->untraced);
	} else if (exit_trace_attach(source->exits, &why) &&
	           exit_trace_follow(source->exits, source->vcpu, source->thread, &why)) {
		const struct exit_source counted_there = exit_trace_source(source->exits, source->vcpu);

		account->exits = exit_clock_new(&counted_there);
	} else {
		account->untraced = g_strdup(why->message);
	}
}

struct vcpu_account *vcpu_account_new(const struct vcpu_account_source *source, const struct vcpu_account *before)
{
	struct vcpu_account *account = g_new0(struct vcpu_account, 1);

	account->thread = source->thread;
	if (source->kvm && source->monitor && source->path)
		account->names = vcpu_statistics_open(source->monitor);
	for (size_t i = 0; i < COUNTED; i++)
		account->events[i] = source->thread ? event_open(&counted[i], source->thread) : -1;
	trace(account, source);
	account->has_clock = totals_read(account, source, &account->base);
	account->last = account->base;
	/* To attach the program takes a while, which is none of the wall time. */
	if (account->exits) {
		exit_clock_update(account->exits);
		exit_clock_reset(account->exits);
	}
	account->last_us = account->begun_us = g_get_monotonic_time();
	if (before && before->thread == 0)
		account->unplugged_us = account->begun_us - before->begun_us + before->unplugged_us;
	return account;
}

void vcpu_account_free(struct vcpu_account *account)
{
	if (!account)
		return;
	for (size_t i = 0; i < COUNTED; i++)
		if (account->events[i] >= 0)
			close(account->events[i]);
	if (account->names)
		g_hash_table_unref(account->names);
	exit_clock_free(account->exits);
	g_free(account->untraced);
	g_free(account);
}

pid_t vcpu_account_thread(const struct vcpu_account *account)
{
	return account->thread;
}

static void counters_between(const struct vcpu_account *account, struct guest_vcpu_time *out)
{
	for (size_t i = 0; i < account->last.n_counters; i++) {
		const struct guest_counter *now = &account->last.counters[i];
		const struct guest_counter *base = counter_find(&account->base, now->name);

		if (!base || now->value < base->value)
			continue;
		out->counters[out->n_counters] = *now;
		out->counters[out->n_counters++].value -= base->value;
	}
}

static uint64_t counted_ns(const struct guest_vcpu_time *time, const char *name)
{
	for (size_t i = 0; i < time->n_counters; i++)
		if (strcmp(time->counters[i].name, name) == 0)
			return time->counters[i].value;
	return 0;
}

/* QEMU's own share of a KVM vCPU's thread is what it runs in user mode; the rest is KVM_RUN, or asleep in it. */
static uint64_t qemu_ns(const struct vcpu_account *account, bool kvm)
{
	const struct thread_clock *base = &account->base.clock, *last = &account->last.clock;
	uint64_t user_ns = last->user_ns - MIN(base->user_ns, last->user_ns);
	uint64_t guest_ns = last->guest_ns - MIN(base->guest_ns, last->guest_ns);

	return kvm && user_ns > guest_ns ? user_ns - guest_ns : 0;
}

void vcpu_account_update(struct vcpu_account *account, const struct vcpu_account_source *source)
{
	if (!totals_read(account, source, &account->last) && account->has_clock)
		return;
	account->last_us = g_get_monotonic_time();
	if (account->exits)
		exit_clock_update(account->exits);
}

/* Since it has a thread. */
static void time_read(const struct vcpu_account *account, bool kvm, struct guest_vcpu_time *out)
{
	struct vcpu_time *time = &out->time;

	time->wall_ns = (uint64_t)(account->last_us - account->begun_us) * 1000;
	if (!account->has_clock) {
		time->offline_ns = time->run_ns = time->wall_ns;
		return;
	}
	time->vmm_ns = MIN(qemu_ns(account, kvm), time->wall_ns);
	time->run_ns = time->wall_ns - time->vmm_ns;
	time->cpu_ns = account->last.clock.cpu_ns - account->base.clock.cpu_ns;
	time->runnable_ns = account->last.clock.runnable_ns - account->base.clock.runnable_ns;
	time->halt_wait_ns = counted_ns(out, "halt_wait_ns");
	time->halt_poll_ns = counted_ns(out, "halt_poll_success_ns") + counted_ns(out, "halt_poll_fail_ns");
	if (!account->exits)
		return;
	exit_clock_read(account->exits, time->cpu_ns, true, out);
	time->vmm_ns = MIN(time->vmm_traced_ns, time->wall_ns);
	time->run_ns = time->wall_ns - time->vmm_ns;
}

void vcpu_account_read(const struct vcpu_account *account, bool kvm, struct guest_vcpu_time *out)
{
	const uint64_t unplugged_ns = (uint64_t)account->unplugged_us * 1000;

	memset(out, 0, sizeof(*out));
	out->missing = account->exits || counter_find(&account->last, "halt_wait_ns") ? NULL : "halted";
	out->untraced = account->untraced;
	counters_between(account, out);
	time_read(account, kvm, out);
	out->time.wall_ns += unplugged_ns;
	out->time.run_ns += unplugged_ns;
	out->time.offline_ns += unplugged_ns;
}
