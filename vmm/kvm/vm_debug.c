// SPDX-License-Identifier: BSD-2-Clause
/* A VM's guest_debug_ops. What vCPUs need is copied to each of them, on its thread. */
#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/vcpu/patch.h"
#include "kvm/vcpu/vcpu_debug.h"
#include "kvm/vcpu/vcpu_patch.h"
#include "kvm/vm_arch.h"
#include "kvm/vm_parts.h"

struct vcpu_change {
	struct vcpu *vcpu;
	const struct breakpoints *breakpoints;
	const struct observers *observers;
	int errnum;
};

static void change_breakpoints(void *data)
{
	struct vcpu_change *change = data;

	change->errnum = vcpu_debug_set(change->vcpu, change->breakpoints) ? 0 : errno;
}

static void change_observers(void *data)
{
	const struct vcpu_change *change = data;

	change->vcpu->debug.observers = *change->observers;
}

/* A vCPU without its thread executes nothing any more, so there is nothing to change. */
static int set_breakpoints(struct vm *vm, const struct breakpoints *breakpoints)
{
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++) {
		struct vcpu_change change = {.vcpu = &vm->machine.vcpus[i], .breakpoints = breakpoints};

		if (vcpu_run_on(change.vcpu, change_breakpoints, &change) && change.errnum != 0)
			return change.errnum;
	}
	return 0;
}

/* "function:vfs_read, function:vfs_write" */
static char *takers(const struct breakpoints *breakpoints)
{
	uint64_t addresses[GUEST_BREAKPOINT_ADDRESSES_MAX];
	size_t n = breakpoints_addresses(breakpoints, addresses), at = 0;
	GString *names = g_string_new(NULL);

	for (size_t i = 0; i < breakpoints->n && at < n; i++) {
		if (breakpoints->all[i]->patched || breakpoints->all[i]->at.value != addresses[at])
			continue;
		g_string_append_printf(names, "%s%s", at++ > 0 ? ", " : "", breakpoints->all[i]->what);
	}
	return g_string_free(names, FALSE);
}

static const struct guest_breakpoint *find_shared(const struct breakpoints *breakpoints, gva_t at)
{
	for (size_t i = 0; i < breakpoints->n; i++)
		if (!breakpoints->all[i]->in_file && breakpoints->all[i]->at.value == at.value)
			return breakpoints->all[i];
	return NULL;
}

static size_t registers_free(const struct vm *vm, const struct breakpoints *breakpoints)
{
	uint64_t addresses[GUEST_BREAKPOINT_ADDRESSES_MAX];

	return vcpu_arch_breakpoints(&vm->machine) - breakpoints_addresses(breakpoints, addresses);
}

static bool has_register(const struct vm *vm, const struct breakpoints *breakpoints)
{
	return registers_free(vm, breakpoints) > 0;
}

static size_t breakpoints_free(struct guest *guest)
{
	return registers_free(vm_of(guest), &vm_of(guest)->breakpoints);
}

/* Decides of which kind; what that needs is checked later. */
static bool choose_kind(const struct vm *vm, const struct breakpoints *breakpoints, struct guest_breakpoint *more,
                        GError **error)
{
	const struct guest_breakpoint *shared = more->in_file ? NULL : find_shared(breakpoints, more->at);

	if (breakpoints->n == GUEST_BREAKPOINTS_MAX) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN,
		            "cannot place %s: there are %u breakpoints, the most there can be; remove one", more->what,
		            GUEST_BREAKPOINTS_MAX);
		return false;
	}
	more->patched = shared ? shared->patched
	                       : more->kind == GUEST_BREAKPOINT_PATCH ||
	                                 (more->kind == GUEST_BREAKPOINT_ANY && !has_register(vm, breakpoints));
	if (shared || more->patched || has_register(vm, breakpoints))
		return true;
	g_autofree char *names = takers(breakpoints);
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN,
	            "cannot place %s: the processor has %zu breakpoints, and they are taken by %s; remove one",
	            more->what, vcpu_arch_breakpoints(&vm->machine), names);
	return false;
}

static bool may_debug(const struct vm *vm, const struct guest_breakpoint *breakpoint, GError **error)
{
	if (vm->guest.state == GUEST_ENDED) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_ENDED, "cannot place %s: the guest has ended",
		            breakpoint->what);
		return false;
	}
	if (ioctl(vm->machine.kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_SET_GUEST_DEBUG) > 0)
		return true;
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED,
	            "cannot place %s: this host's KVM lacks KVM_CAP_SET_GUEST_DEBUG", breakpoint->what);
	return false;
}

/* Where the patch goes; NULL when there can be none. */
static uint8_t *patch_place(struct vm *vm, const struct guest_breakpoint *breakpoint, GError **error)
{
	const char *why = vcpu_arch_why_no_patch(&vm->machine);
	uint8_t *byte = why ? NULL : vcpu_patch_find(&vm->machine, breakpoint->at);

	if (byte)
		return byte;
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED, "cannot place %s by patching%s: %s", breakpoint->what,
	            breakpoint->kind == GUEST_BREAKPOINT_ANY ? ", the processor's breakpoints being taken" : "",
	            why ? why : "the guest has no memory mapped there now; try again once its kernel runs");
	return NULL;
}

/* Every vCPU stops at it already. They leave the guest for it, so that none has the instruction of before in hand. */
static bool patch(struct vm *vm, const struct guest_breakpoint *breakpoint, uint8_t *byte, GError **error)
{
	if (patches_insert(&vm->machine.patches, breakpoint->at, byte)) {
		set_breakpoints(vm, &vm->breakpoints);
		return true;
	}
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN,
	            "cannot place %s by patching: there is a breakpoint instruction at 0x%" G_GINT64_MODIFIER
	            "x already",
	            breakpoint->what, breakpoint->at.value);
	return false;
}

/* In memory, or in a file's page, where `byte` is NULL. */
static bool patch_any(struct vm *vm, const struct guest_breakpoint *breakpoint, uint8_t *byte, GError **error)
{
	return breakpoint->in_file ? vm_file_patch_add(vm, breakpoint, error) : patch(vm, breakpoint, byte, error);
}

static bool breakpoint_add(struct guest *guest, struct guest_breakpoint *breakpoint, GError **error)
{
	struct vm *vm = vm_of(guest);
	g_autofree struct breakpoints *before = g_memdup2(&vm->breakpoints, sizeof(*before));
	g_autofree struct breakpoints *more = g_memdup2(before, sizeof(*more));
	uint8_t *byte = NULL;

	if (!may_debug(vm, breakpoint, error) || !choose_kind(vm, more, breakpoint, error))
		return false;
	if (breakpoint->patched && !breakpoint->in_file && !(byte = patch_place(vm, breakpoint, error)))
		return false;
	more->all[more->n++] = breakpoint;
	int errnum = set_breakpoints(vm, more);
	if (errnum != 0) {
		set_breakpoints(vm, &vm->breakpoints);
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_SYSTEM, "cannot place %s at 0x%" G_GINT64_MODIFIER "x: %s",
		            breakpoint->what, breakpoint->at.value, g_strerror(errnum));
		return false;
	}
	vm->breakpoints = *more;
	if (!breakpoint->patched || patch_any(vm, breakpoint, byte, error))
		return true;
	vm->breakpoints = *before;
	set_breakpoints(vm, before);
	return false;
}

static bool breakpoint_intact(struct guest *guest, const struct guest_breakpoint *breakpoint)
{
	if (breakpoint->in_file)
		return vm_file_patch_intact(vm_of(guest), breakpoint);
	return !breakpoint->patched || patches_intact(&vm_of(guest)->machine.patches, breakpoint->at);
}

static void breakpoint_remove(struct guest *guest, struct guest_breakpoint *breakpoint)
{
	struct vm *vm = vm_of(guest);
	struct breakpoints *left = &vm->breakpoints;
	size_t kept = 0;

	if (breakpoint->in_file)
		vm_file_patch_remove(vm, breakpoint);
	else if (breakpoint->patched)
		patches_drop(&vm->machine.patches, breakpoint->at);
	for (size_t i = 0; i < left->n; i++) {
		if (left->all[i] != breakpoint)
			left->all[kept++] = left->all[i];
	}
	left->n = kept;
	set_breakpoints(vm, left);
}

static void unpatch(struct guest *guest, gva_t from, uint8_t *code, size_t n)
{
	patches_put_back(&vm_of(guest)->machine.patches, from, code, n);
}

static void unpatch_file(struct guest *guest, uint64_t mapping, uint64_t offset, uint8_t *code, size_t n)
{
	file_patches_put_back(&vm_of(guest)->machine.file_patches, mapping, offset, code, n);
}

static const char *why_not_in_files(struct guest *guest)
{
	return vcpu_arch_why_no_file_patch(&vm_of(guest)->machine);
}

static void set_observers(struct vm *vm)
{
	for (unsigned i = 0; i < vm->machine.n_vcpus; i++) {
		struct vcpu_change change = {.vcpu = &vm->machine.vcpus[i], .observers = &vm->observers};

		vcpu_run_on(change.vcpu, change_observers, &change);
	}
}

static bool observer_add(struct guest *guest, struct guest_observer *observer, GError **error)
{
	struct vm *vm = vm_of(guest);

	if (guest->state == GUEST_ENDED) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_ENDED, "cannot see exits: the guest has ended");
		return false;
	}
	if (vm->observers.n == GUEST_OBSERVERS_MAX) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN,
		            "cannot see exits: %u others do, the most there can be", GUEST_OBSERVERS_MAX);
		return false;
	}
	vm->observers.all[vm->observers.n++] = observer;
	set_observers(vm);
	return true;
}

static void observer_remove(struct guest *guest, struct guest_observer *observer)
{
	struct vm *vm = vm_of(guest);
	size_t kept = 0;

	for (size_t i = 0; i < vm->observers.n; i++) {
		if (vm->observers.all[i] != observer)
			vm->observers.all[kept++] = vm->observers.all[i];
	}
	vm->observers.n = kept;
	set_observers(vm);
}

static bool msrs_watch(struct guest *guest, const struct guest_msr_range *ranges, size_t n, GError **error)
{
	return vm_arch_msrs_watch(vm_of(guest), ranges, n, error);
}

static bool step(struct guest *guest, unsigned vcpu, struct guest_stepper *stepper, GError **error)
{
	struct vm *vm = vm_of(guest);
	const char *why = vcpu_arch_why_no_step(&vm->machine);

	if (why) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED, "cannot step vCPU %u: %s", vcpu, why);
		return false;
	}
	if (vcpu_arch_step(&vm->machine.vcpus[vcpu], stepper))
		return true;
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_SYSTEM, "cannot step vCPU %u: %s", vcpu, g_strerror(errno));
	return false;
}

static bool registers_read(struct guest *guest, unsigned vcpu, struct guest_regs *regs, struct guest_gprs *gprs)
{
	const struct vcpu *from = &vm_of(guest)->machine.vcpus[vcpu];

	if (!from->clocks.begun || !from->clocks.online)
		return false;
	*regs = from->regs;
	vcpu_arch_gprs(from, gprs);
	return true;
}

const struct guest_debug_ops vm_debug_ops = {.breakpoint_add = breakpoint_add,
                                             .breakpoints_free = breakpoints_free,
                                             .breakpoint_remove = breakpoint_remove,
                                             .breakpoint_intact = breakpoint_intact,
                                             .unpatch = unpatch,
                                             .unpatch_file = unpatch_file,
                                             .why_not_in_files = why_not_in_files,
                                             .observer_add = observer_add,
                                             .observer_remove = observer_remove,
                                             .msrs_watch = msrs_watch,
                                             .step = step,
                                             .registers_read = registers_read};
