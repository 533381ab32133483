// SPDX-License-Identifier: BSD-2-Clause
/* guest_debug_ops of a fake guest: what is placed is kept, and fires when the test says so. */
#ifndef VPROF_TEST_SUPPORT_FAKE_DEBUG_H
#define VPROF_TEST_SUPPORT_FAKE_DEBUG_H

#include "fake_guest.h"
#include "guest/guest_debug.h"

#define FAKE_BREAKPOINTS_MAX 4u

static struct fake_debug {
	size_t n_breakpoints, n_observers, n_msrs;
	struct guest_breakpoint *breakpoints[FAKE_BREAKPOINTS_MAX];
	struct guest_observer *observers[GUEST_OBSERVERS_MAX];
	struct guest_msr_range msrs[GUEST_MSR_RANGES_MAX];
	struct guest_stepper *steppers[FAKE_VCPUS_MAX];
	bool overwritten;        /* what is patched */
	bool no_register;        /* is free for a breakpoint of the processor */
	const char *cannot_step; /* the error; NULL: it can */
	struct guest_regs regs;
	struct guest_gprs gprs;
} fake_debug;

static inline bool fake_breakpoint_add(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint,
                                       GError **error)
{
	breakpoint->patched = breakpoint->kind == GUEST_BREAKPOINT_PATCH ||
	                      (breakpoint->kind == GUEST_BREAKPOINT_ANY && fake_debug.no_register);
	if (fake_debug.n_breakpoints == FAKE_BREAKPOINTS_MAX || (fake_debug.no_register && !breakpoint->patched)) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN, "cannot place %s: all taken", breakpoint->what);
		return false;
	}
	fake_debug.breakpoints[fake_debug.n_breakpoints++] = breakpoint;
	return true;
}

static inline void fake_pointer_remove(void **all, size_t *n, const void *pointer)
{
	size_t kept = 0;

	for (size_t i = 0; i < *n; i++)
		if (all[i] != pointer)
			all[kept++] = all[i];
	ck_assert_uint_eq(kept, *n - 1);
	*n = kept;
}

static inline void fake_breakpoint_remove(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint)
{
	fake_pointer_remove((void **)fake_debug.breakpoints, &fake_debug.n_breakpoints, breakpoint);
}

static inline bool fake_breakpoint_intact(struct guest *guest G_GNUC_UNUSED, const struct guest_breakpoint *breakpoint)
{
	return !breakpoint->patched || !fake_debug.overwritten;
}

/* Its patches are in no memory. */
static inline void fake_unpatch(struct guest *guest G_GNUC_UNUSED, gva_t from G_GNUC_UNUSED,
                                uint8_t *code G_GNUC_UNUSED, size_t n G_GNUC_UNUSED)
{
}

static inline bool fake_observer_add(struct guest *guest G_GNUC_UNUSED, struct guest_observer *observer,
                                     GError **error G_GNUC_UNUSED)
{
	fake_debug.observers[fake_debug.n_observers++] = observer;
	return true;
}

static inline void fake_observer_remove(struct guest *guest G_GNUC_UNUSED, struct guest_observer *observer)
{
	fake_pointer_remove((void **)fake_debug.observers, &fake_debug.n_observers, observer);
}

static inline bool fake_msrs_watch(struct guest *guest G_GNUC_UNUSED, const struct guest_msr_range *ranges, size_t n,
                                   GError **error G_GNUC_UNUSED)
{
	fake_debug.n_msrs = n;
	memcpy(fake_debug.msrs, ranges, n * sizeof(*ranges));
	return true;
}

static inline bool fake_step(struct guest *guest G_GNUC_UNUSED, unsigned vcpu, struct guest_stepper *stepper,
                             GError **error)
{
	if (stepper && fake_debug.cannot_step) {
		g_set_error_literal(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED, fake_debug.cannot_step);
		return false;
	}
	fake_debug.steppers[vcpu] = stepper;
	return true;
}

static inline bool fake_registers_read(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                                       struct guest_regs *regs, struct guest_gprs *gprs)
{
	*regs = fake_debug.regs;
	*gprs = fake_debug.gprs;
	return true;
}

static inline void fake_unpatch_file(struct guest *guest G_GNUC_UNUSED, uint64_t mapping G_GNUC_UNUSED,
                                     uint64_t offset G_GNUC_UNUSED, uint8_t *code G_GNUC_UNUSED, size_t n G_GNUC_UNUSED)
{
}

static inline const char *fake_why_not_in_files(struct guest *guest G_GNUC_UNUSED)
{
	return NULL;
}

static const struct guest_debug_ops fake_debug_ops = {.breakpoint_add = fake_breakpoint_add,
                                                      .breakpoint_remove = fake_breakpoint_remove,
                                                      .breakpoint_intact = fake_breakpoint_intact,
                                                      .unpatch = fake_unpatch,
                                                      .unpatch_file = fake_unpatch_file,
                                                      .why_not_in_files = fake_why_not_in_files,
                                                      .observer_add = fake_observer_add,
                                                      .observer_remove = fake_observer_remove,
                                                      .msrs_watch = fake_msrs_watch,
                                                      .step = fake_step,
                                                      .registers_read = fake_registers_read};

struct fake_firing {
	unsigned vcpu;
	struct guest_breakpoint *breakpoint;
	const struct guest_access *access;
};

static inline void fake_fire_on_vcpu(void *data)
{
	const struct fake_firing *firing = data;

	if (firing->breakpoint)
		firing->breakpoint->hit(firing->breakpoint, firing->vcpu, &fake_debug.regs, &fake_debug.gprs);
	for (size_t i = 0; firing->access && i < fake_debug.n_observers; i++)
		fake_debug.observers[i]->exited(fake_debug.observers[i], firing->vcpu, firing->access, &fake_debug.regs,
		                                &fake_debug.gprs);
}

static inline void fake_hit(struct fake_guest *guest, unsigned vcpu, struct guest_breakpoint *breakpoint)
{
	struct fake_firing firing = {.vcpu = vcpu, .breakpoint = breakpoint};

	ck_assert(guest->guest.ops->run_on_vcpu(&guest->guest, vcpu, fake_fire_on_vcpu, &firing));
}

static inline void fake_access(struct fake_guest *guest, unsigned vcpu, const struct guest_access *access)
{
	struct fake_firing firing = {.vcpu = vcpu, .access = access};

	ck_assert(guest->guest.ops->run_on_vcpu(&guest->guest, vcpu, fake_fire_on_vcpu, &firing));
}

#endif
