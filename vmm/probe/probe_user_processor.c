// SPDX-License-Identifier: BSD-2-Clause
/*
 * Breakpoints of the processor in programs. Such a breakpoint is for an address, whichever process is there, so a hit
 * counts in the page tables of the processes that have the function at that address. A process that has ended gives
 * its breakpoints back.
 */
#include "probe/user_priv.h"

/* [M] main thread only. */
struct user_processor {
	struct user user;                                        /* with its own legend */
	struct probe_site sites[GUEST_BREAKPOINT_ADDRESSES_MAX]; /* [M] without a placement: not used */
};

/* ---- breakpoints ---- */

static bool needs(const struct user *self, const struct user_process *process, uint64_t address)
{
	for (size_t i = 0; atomic_load(&process->root) != 0 && i < self->program.n_places; i++)
		if (atomic_load(&process->base) + self->program.places[i] == address)
			return true;
	return false;
}

static bool is_needed(const struct user *self, uint64_t address)
{
	for (size_t i = 0; i < USER_PROCESSES_MAX; i++)
		if (needs(self, &self->processes[i], address))
			return true;
	return false;
}

static void sites_prune(struct user *user)
{
	struct user_processor *self = (struct user_processor *)user;

	for (size_t i = 0; i < G_N_ELEMENTS(self->sites); i++) {
		struct probe_site *site = &self->sites[i];

		if (!site->placement || is_needed(user, site->breakpoint.at.value))
			continue;
		probe_sites_remove(user->base.probe, site, 1);
		site->placement = NULL;
	}
}

/* The one at this address, and if there is none, a free one; NULL: none is free. */
static struct probe_site *site_find(struct user_processor *self, uint64_t address)
{
	struct probe_site *unused = NULL;

	for (size_t i = 0; i < G_N_ELEMENTS(self->sites); i++) {
		struct probe_site *site = &self->sites[i];

		if (site->placement && site->breakpoint.at.value == address)
			return site;
		if (!site->placement && !unused)
			unused = site;
	}
	return unused;
}

static bool too_many(const struct user *user, GError **error)
{
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
	            "cannot place %s: there are too many processes with %s; choose some by their pid, name or cgroup",
	            user->base.probe->spec.name, user->program.path);
	return false;
}

static void program_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                        const struct guest_gprs *gprs);

static bool site_add(struct user_processor *self, uint64_t address, GError **error)
{
	struct user *user = &self->user;
	const struct probe *probe = user->base.probe;
	struct guest *guest = probe->set->hub->guest;
	struct probe_site *site = site_find(self, address);

	if (!site)
		return too_many(user, error);
	if (site->placement)
		return true;
	site->breakpoint = (struct guest_breakpoint){
		.at = {address}, .what = probe->spec.name, .kind = GUEST_BREAKPOINT_PROCESSOR, .hit = program_hit};
	/* It may be hit at once. */
	site->placement = &user->base;
	if (guest->debug->breakpoint_add(guest, &site->breakpoint, error))
		return true;
	site->placement = NULL;
	return false;
}

/* ---- processes ---- */

/* All breakpoints of a process, or none. */
static bool process_enter(struct user_processor *self, struct user_looked *looked, const struct user_place *place,
                          GError **error)
{
	const struct user_program *program = &self->user.program;

	looked->process = user_process_add(&self->user, place);
	if (!looked->process)
		return too_many(&self->user, error);
	for (size_t i = 0; i < program->n_places; i++) {
		if (site_add(self, place->base + program->places[i], error))
			continue;
		user_process_leave(looked);
		sites_prune(&self->user);
		return false;
	}
	return true;
}

/* Whether adding breakpoints at these places may succeed. */
static bool has_room(struct user_processor *self, uint64_t base)
{
	struct guest *guest = self->user.base.probe->set->hub->guest;
	const struct user_program *program = &self->user.program;
	size_t more = 0;

	for (size_t i = 0; i < program->n_places; i++) {
		const struct probe_site *site = site_find(self, base + program->places[i]);

		more += !site || !site->placement;
	}
	return more <= guest->debug->breakpoints_free(guest);
}

static void enter(struct user *user, struct user_look *look, struct user_looked *looked, const struct user_place *place)
{
	struct user_processor *self = (struct user_processor *)user;

	if (look->is_first) {
		look->failed |= !process_enter(self, looked, place, look->error);
		return;
	}
	if (has_room(self, place->base) && process_enter(self, looked, place, NULL))
		return;
	/* Room may come. */
	looked->found = USER_LATER;
	user_count_unplaced(user, looked);
}

/* ---- hits ---- */

/* What this address is in the process with these tables. */
static bool find_process(const struct user *self, uint64_t root, uint64_t address, struct user_hit *hit)
{
	*hit = (struct user_hit){.mm = 0};
	for (size_t i = 0; i < USER_PROCESSES_MAX && hit->mm == 0; i++) {
		const struct user_process *process = &self->processes[i];

		if (atomic_load_explicit(&process->root, memory_order_acquire) != root)
			continue;
		const uint64_t offset = address - atomic_load_explicit(&process->base, memory_order_acquire);
		for (size_t j = 0; j < self->program.n_places; j++) {
			if (self->program.places[j] != offset)
				continue;
			hit->enters |= j == 0;
			hit->leaves |= j > 0;
			hit->place = j;
		}
		if (hit->enters || hit->leaves)
			hit->mm = atomic_load_explicit(&process->mm, memory_order_acquire);
	}
	return hit->mm != 0;
}

static void program_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                        const struct guest_gprs *gprs)
{
	const struct user *user = (const struct user *)((const struct probe_site *)breakpoint)->placement;
	struct page_walk walk;
	struct user_hit hit;
	struct task task;

	if (!probe_records(user->base.probe, vcpu) || !guest_regs_user(regs) || !user->base.probe->set->kernel ||
	    !find_process(user, user_root(regs), breakpoint->at.value, &hit))
		return;
	/* A later process may have got the tables of one that has ended. */
	if (user_task_read(user, vcpu, regs, &walk, &task) && task.mm == hit.mm)
		user_fire(user, &hit, vcpu, regs, gprs);
}

/* ---- the placement ---- */

static const struct user_means means = {.breakpoints = 1, .enter = enter, .prune = sites_prune};

static bool place(struct probe *probe, GError **error)
{
	return user_place((struct user *)placement_new(probe, sizeof(struct user_processor)), &means, error);
}

static void unplace(struct placement *placement)
{
	struct user *user = (struct user *)placement;

	user_leave_all(user);
	sites_prune(user);
	user_free(user);
}

static void describe(const struct placement *placement, struct probe_info *info)
{
	user_describe(placement, info);
	info->breakpoint = GUEST_BREAKPOINT_PROCESSOR;
}

const struct placement_ops placement_program = {
	.place = place, .remove = unplace, .describe = describe, .count = user_count, .start = user_start};
