// SPDX-License-Identifier: BSD-2-Clause
/* A VM's guest_debug_ops. What vCPUs need is copied to each of them, on its thread. */
#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/vm_priv.h"

static struct vm *vm_of(struct guest *guest)
{
	return (struct vm *)guest;
}

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

/* A vCPU whose thread has gone executes nothing any more, so there is nothing to change. */
static int set_breakpoints(struct vm *vm, const struct breakpoints *breakpoints)
{
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		struct vcpu_change change = {.vcpu = &vm->vcpus[i], .breakpoints = breakpoints};
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
		if (breakpoints->all[i]->at.value != addresses[at])
			continue;
		g_string_append_printf(names, "%s%s", at++ > 0 ? ", " : "", breakpoints->all[i]->what);
	}
	return g_string_free(names, FALSE);
}

static bool has_room(const struct breakpoints *breakpoints, const struct guest_breakpoint *more, GError **error)
{
	uint64_t addresses[GUEST_BREAKPOINT_ADDRESSES_MAX];
	size_t n = breakpoints_addresses(breakpoints, addresses);
	bool shares = false;
	for (size_t i = 0; i < n; i++)
		shares |= addresses[i] == more->at.value;
	if (breakpoints->n < GUEST_BREAKPOINTS_MAX && (shares || n < GUEST_BREAKPOINT_ADDRESSES_MAX))
		return true;
	g_autofree char *names = takers(breakpoints);
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN,
	            "cannot place %s: the processor has %u breakpoints, and they are taken by %s; remove one",
	            more->what, GUEST_BREAKPOINT_ADDRESSES_MAX, names);
	return false;
}

static bool may_debug(const struct vm *vm, const struct guest_breakpoint *breakpoint, GError **error)
{
	if (vm->guest.state == GUEST_ENDED) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_ENDED, "cannot place %s: the guest has ended",
		            breakpoint->what);
		return false;
	}
	if (ioctl(vm->kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_SET_GUEST_DEBUG) > 0)
		return true;
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED,
	            "cannot place %s: this host's KVM lacks KVM_CAP_SET_GUEST_DEBUG", breakpoint->what);
	return false;
}

static bool breakpoint_add(struct guest *guest, struct guest_breakpoint *breakpoint, GError **error)
{
	struct vm *vm = vm_of(guest);
	struct breakpoints more = vm->breakpoints;
	if (!may_debug(vm, breakpoint, error) || !has_room(&more, breakpoint, error))
		return false;
	more.all[more.n++] = breakpoint;
	int errnum = set_breakpoints(vm, &more);
	if (errnum != 0) {
		set_breakpoints(vm, &vm->breakpoints);
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_SYSTEM, "cannot place %s at 0x%" G_GINT64_MODIFIER "x: %s",
		            breakpoint->what, breakpoint->at.value, g_strerror(errnum));
		return false;
	}
	vm->breakpoints = more;
	return true;
}

static void breakpoint_remove(struct guest *guest, struct guest_breakpoint *breakpoint)
{
	struct vm *vm = vm_of(guest);
	struct breakpoints *left = &vm->breakpoints;
	size_t kept = 0;
	for (size_t i = 0; i < left->n; i++) {
		if (left->all[i] != breakpoint)
			left->all[kept++] = left->all[i];
	}
	left->n = kept;
	set_breakpoints(vm, left);
}

static void set_observers(struct vm *vm)
{
	for (unsigned i = 0; i < vm->n_vcpus; i++) {
		struct vcpu_change change = {.vcpu = &vm->vcpus[i], .observers = &vm->observers};
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
	return msr_filter_set(&vm_of(guest)->msr_filter, MSR_OWNER_PROBES, ranges, n, error);
}

static bool step(struct guest *guest, unsigned vcpu, struct guest_stepper *stepper, GError **error)
{
	struct vm *vm = vm_of(guest);
	if ((vm->step_control & KVM_GUESTDBG_BLOCKIRQ) == 0) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED,
		            "cannot step vCPU %u: this host's KVM lacks KVM_GUESTDBG_BLOCKIRQ (Linux 5.16)", vcpu);
		return false;
	}
	if (vcpu_step_set(&vm->vcpus[vcpu], stepper))
		return true;
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_SYSTEM, "cannot step vCPU %u: %s", vcpu, g_strerror(errno));
	return false;
}

static bool registers_read(struct guest *guest, unsigned vcpu, struct guest_regs *regs, struct guest_gprs *gprs)
{
	const struct vcpu *from = &vm_of(guest)->vcpus[vcpu];
	if (!from->clocks.begun || !from->clocks.online)
		return false;
	*regs = from->regs;
	vcpu_read_gprs(from, gprs);
	return true;
}

const struct guest_debug_ops vm_debug_ops = {.breakpoint_add = breakpoint_add,
                                             .breakpoint_remove = breakpoint_remove,
                                             .observer_add = observer_add,
                                             .observer_remove = observer_remove,
                                             .msrs_watch = msrs_watch,
                                             .step = step,
                                             .registers_read = registers_read};

/* Without KVM_GUESTDBG_BLOCKIRQ (Linux 5.16) an interrupt may come in the middle of a step: a hit may count twice. */
uint32_t vm_step_control(int kvm_fd)
{
	int supported = ioctl(kvm_fd, KVM_CHECK_EXTENSION, KVM_CAP_SET_GUEST_DEBUG2);
	return supported > 0 ? (uint32_t)supported & KVM_GUESTDBG_BLOCKIRQ : 0;
}
