// SPDX-License-Identifier: BSD-2-Clause
#include "exits/exit_clock.h"

#include <stdlib.h>
#include <string.h>
#include <vprof/exit.h>

#include "exits/exit_reason.h"
#include "lib/record/clock.h"

#define TRIES 64u /* of a read without a change meanwhile */

_Static_assert(EXIT_TIMES_REASONS + 2 == GUEST_KVM_EXITS_MAX, "every reason, and the one that is open, has room");
_Static_assert(EXIT_TIMES_ADDRESSES + 1 == GUEST_ACCESSES_MAX, "every address has room");
_Static_assert(EXIT_TIMES_CAUSES + 1 <= GUEST_EXITS_MAX, "every cause has room");
_Static_assert(EXIT_TIMES_BUCKETS == GUEST_KVM_EXIT_BUCKETS, "a histogram is copied");

struct exit_clock {
	struct exit_source source;
	struct exit_times_vcpu base, last; /* `last`: its `now` is brought up to the time of the reading */
};

/* ---- reading what is being written ---- */

static uint64_t load(const unsigned long long *from)
{
	return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

_Static_assert(sizeof(struct exit_times_vcpu) % sizeof(uint64_t) == 0, "it is copied by words");
_Static_assert(sizeof(struct exit_times_now) % sizeof(uint64_t) == 0, "it is copied by words");

/* Word by word, so that what is loaded later is not older. */
static void copy(const void *from, void *to, size_t bytes)
{
	const unsigned long long *words = from;

	for (size_t i = 0; i < bytes / sizeof(*words); i++)
		((unsigned long long *)to)[i] = load(&words[i]);
}

/* The writer is a BPF program on another processor: its side is change_begin and change_end. */
static void now_read(const struct exit_times_vcpu *source, struct exit_times_now *now)
{
	for (unsigned i = 0; i < TRIES; i++) {
		uint64_t before = load(&source->now.sequence);

		copy(&source->now, now, sizeof(*now));
		if (before % 2 == 0 && load(&source->now.sequence) == before)
			return;
	}
}

/* A torn reading of the tables is short of an exit or two, which the next one has. */
static void tables_read(const struct exit_times_vcpu *source, struct exit_times_vcpu *to)
{
	for (unsigned i = 0; i < TRIES; i++) {
		now_read(source, &to->now);
		copy((const char *)source + sizeof(source->now), (char *)to + sizeof(to->now),
		     sizeof(*to) - sizeof(to->now));
		if (load(&source->now.events) == to->now.events)
			return;
	}
}

static void spend(struct exit_times_now *now, uint64_t until_ns)
{
	if (until_ns <= now->since_ns)
		return;
	now->ns[now->part < EXIT_TIMES_PARTS ? now->part : EXIT_TIMES_UNKNOWN] += until_ns - now->since_ns;
	now->since_ns = until_ns;
}

/* What the program will only count at the next event. */
static void bring_up(struct exit_times_now *now)
{
	const uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	if (now->run == EXIT_TIMES_ASLEEP && now->state != EXIT_TIMES_STATE_VMM && now->woken_ns > now->since_ns) {
		spend(now, MIN(now->woken_ns, now_ns));
		now->part = EXIT_TIMES_WAITING;
	}
	spend(now, now_ns);
}

struct exit_clock *exit_clock_new(const struct exit_source *source)
{
	struct exit_clock *clock = g_new0(struct exit_clock, 1);

	clock->source = *source;
	exit_clock_update(clock);
	exit_clock_reset(clock);
	return clock;
}

void exit_clock_free(struct exit_clock *clock)
{
	g_free(clock);
}

void exit_clock_update(struct exit_clock *clock)
{
	if (clock->source.copy)
		clock->source.copy(clock->source.data, clock->source.vcpu, &clock->last);
	else
		tables_read(clock->source.memory, &clock->last);
	bring_up(&clock->last.now);
}

void exit_clock_reset(struct exit_clock *clock)
{
	clock->base = clock->last;
}

/* ---- differences ---- */

static uint64_t minus(uint64_t a, uint64_t b)
{
	return a > b ? a - b : 0;
}

/* Time before the beginning that was known for what it was only after: as a part, which base does not have it in. */
static uint64_t late_ns(const struct exit_clock *clock, enum exit_times_part part)
{
	const struct exit_times_now *base = &clock->base.now, *last = &clock->last.now;

	if (base->state != EXIT_TIMES_STATE_UNKNOWN || last->state == EXIT_TIMES_STATE_UNKNOWN ||
	    part != last->resolved)
		return 0;
	return base->ns[EXIT_TIMES_UNKNOWN];
}

/* Since the beginning. */
static uint64_t part_ns(const struct exit_clock *clock, enum exit_times_part part)
{
	return minus(minus(clock->last.now.ns[part], clock->base.now.ns[part]), late_ns(clock, part));
}

/* In the open exit. */
static uint64_t open_ns(const struct exit_times_now *now, enum exit_times_part part)
{
	return now->open ? minus(now->ns[part], now->at_exit[part]) : 0;
}

/* Asleep, as far as it is not known to be a halt. In an exit by HLT, it will be one. */
static bool blocked_is_halt(const struct exit_times_now *now)
{
	return now->open && exit_reason_is_halt(now->isa, now->reason);
}

static void open_add(const struct exit_times_now *now, struct guest_kvm_exit *exit)
{
	const uint64_t blocked_ns = open_ns(now, EXIT_TIMES_BLOCKED);

	exit->kvm_ns += open_ns(now, EXIT_TIMES_KVM) + (blocked_is_halt(now) ? 0 : blocked_ns);
	exit->halt_ns += open_ns(now, EXIT_TIMES_HALT) + (blocked_is_halt(now) ? blocked_ns : 0);
	exit->vmm_ns += open_ns(now, EXIT_TIMES_VMM);
	exit->poll_ns += open_ns(now, EXIT_TIMES_POLL);
	exit->waiting_ns += open_ns(now, EXIT_TIMES_WAITING);
	exit->ns += minus(now->since_ns, now->exit_ns);
}

static struct guest_kvm_exit reason_between(const struct exit_times_reason *from, const struct exit_times_reason *to)
{
	struct guest_kvm_exit exit = {
		.count = minus(to->count, from->count),
		.ns = minus(to->ns, from->ns),
		.kvm_ns = minus(to->kvm_ns, from->kvm_ns),
		.vmm_ns = minus(to->vmm_ns, from->vmm_ns),
		.halt_ns = minus(to->halt_ns, from->halt_ns),
		.poll_ns = minus(to->poll_ns, from->poll_ns),
		.waiting_ns = minus(to->waiting_ns, from->waiting_ns),
		.max_ns = to->max_ns,
	};

	for (size_t i = 0; i < EXIT_TIMES_BUCKETS; i++)
		exit.histogram[i] = minus(to->histogram[i], from->histogram[i]);
	return exit;
}

static void exit_sub(struct guest_kvm_exit *exit, const struct guest_kvm_exit *less)
{
	exit->ns = minus(exit->ns, less->ns);
	exit->kvm_ns = minus(exit->kvm_ns, less->kvm_ns);
	exit->vmm_ns = minus(exit->vmm_ns, less->vmm_ns);
	exit->halt_ns = minus(exit->halt_ns, less->halt_ns);
	exit->poll_ns = minus(exit->poll_ns, less->poll_ns);
	exit->waiting_ns = minus(exit->waiting_ns, less->waiting_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct guest_kvm_exit *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

/* The key that the open exit has, or will have, in the tables. */
static bool is_open(const struct exit_times_now *now, const struct exit_times_reason *reason)
{
	return now->open && reason->key == (uint64_t)now->reason + 1;
}

static void exits_read(const struct exit_clock *clock, struct guest_vcpu_time *out)
{
	const struct exit_times_vcpu *base = &clock->base, *last = &clock->last;
	bool open_seen = false;

	out->n_kvm_exits = 0;
	for (size_t i = 0; i <= EXIT_TIMES_REASONS; i++) {
		const struct exit_times_reason *reason = &last->reasons[i];
		struct guest_kvm_exit exit = reason_between(&base->reasons[i], reason);
		struct guest_kvm_exit before = {0};

		if (is_open(&base->now, reason))
			open_add(&base->now, &before);
		if (is_open(&last->now, reason)) {
			open_add(&last->now, &exit);
			open_seen = true;
		}
		exit_sub(&exit, &before);
		if (exit.count == 0 && exit.ns == 0)
			continue;
		if (reason->key == EXIT_TIMES_OTHER)
			g_strlcpy(exit.name, "other", sizeof(exit.name));
		else
			exit_reason_name(last->now.isa, (uint32_t)(reason->key - 1), exit.name);
		out->kvm_exits[out->n_kvm_exits++] = exit;
	}
	if (last->now.open && !open_seen && out->n_kvm_exits < GUEST_KVM_EXITS_MAX) {
		struct guest_kvm_exit exit = {0};

		open_add(&last->now, &exit);
		exit_reason_name(last->now.isa, last->now.reason, exit.name);
		out->kvm_exits[out->n_kvm_exits++] = exit;
	}
	qsort(out->kvm_exits, out->n_kvm_exits, sizeof(*out->kvm_exits), by_time);
}

static void accesses_read(const struct exit_clock *clock, struct guest_vcpu_time *out)
{
	out->n_accesses = 0;
	for (size_t i = 0; i <= EXIT_TIMES_ADDRESSES; i++) {
		const struct exit_times_slot *from = &clock->base.accesses[i], *to = &clock->last.accesses[i];
		const uint64_t key = to->key - 1;

		if (to->count <= from->count)
			continue;
		out->accesses[out->n_accesses++] = (struct guest_access_count){
			.other = to->key == EXIT_TIMES_OTHER,
			.mmio = (key & EXIT_TIMES_ACCESS_MMIO) != 0,
			.write = (key & EXIT_TIMES_ACCESS_WRITE) != 0,
			.address = EXIT_TIMES_ACCESS_ADDRESS(key),
			.count = to->count - from->count,
			.ns = minus(to->ns, from->ns),
		};
	}
}

static void causes_read(const struct exit_clock *clock, struct guest_vcpu_time *out)
{
	out->n_exits = 0;
	for (size_t i = 0; i <= EXIT_TIMES_CAUSES; i++) {
		const struct exit_times_slot *from = &clock->base.causes[i], *to = &clock->last.causes[i];

		if (to->count <= from->count)
			continue;
		out->exits[out->n_exits++] = (struct guest_exit){
			.ip = to->key == EXIT_TIMES_OTHER ? vprof_exit_ip(VPROF_EXIT_REASON_VMM, VPROF_EXIT_DETAIL_MASK)
		                                          : to->key - 1,
			.count = to->count - from->count,
			.ns = minus(to->ns, from->ns),
		};
	}
	guest_exits_sort(out);
}

void exit_clock_read(const struct exit_clock *clock, uint64_t cpu_ns, bool causes, struct guest_vcpu_time *out)
{
	struct vcpu_time *time = &out->time;
	const uint64_t blocked_ns = part_ns(clock, EXIT_TIMES_BLOCKED), unknown_ns = part_ns(clock, EXIT_TIMES_UNKNOWN);
	const bool halted = blocked_is_halt(&clock->last.now);
	const uint64_t halting_ns = halted ? MIN(open_ns(&clock->last.now, EXIT_TIMES_BLOCKED), blocked_ns) : 0;

	time->guest_ns = part_ns(clock, EXIT_TIMES_GUEST) + MIN(unknown_ns, cpu_ns);
	time->kvm_ns = part_ns(clock, EXIT_TIMES_KVM) + blocked_ns - halting_ns;
	time->vmm_traced_ns = part_ns(clock, EXIT_TIMES_VMM);
	time->halt_poll_ns = part_ns(clock, EXIT_TIMES_POLL);
	time->halt_wait_ns = part_ns(clock, EXIT_TIMES_HALT) + halting_ns + minus(unknown_ns, cpu_ns);
	time->runnable_ns = part_ns(clock, EXIT_TIMES_WAITING);
	time->offline_ns = part_ns(clock, EXIT_TIMES_OFFLINE);
	out->lost = minus(clock->last.now.lost, clock->base.now.lost);
	exits_read(clock, out);
	accesses_read(clock, out);
	if (causes)
		causes_read(clock, out);
}
