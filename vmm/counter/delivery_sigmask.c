// SPDX-License-Identifier: BSD-2-Clause
/*
 * Delivery without a handler: the signal is blocked on the thread, KVM_SET_SIGNAL_MASK unblocks it for the time of
 * KVM_RUN (virt/kvm/kvm_main.c, kvm_sigset_activate), which therefore returns EINTR also for one that was pending
 * before, and sigtimedwait takes it from the queue.
 */
#include <errno.h>
#include <limits.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#include "counter/counter_priv.h"

#define KERNEL_SIGSET_BYTES 8u /* _NSIG / 8; KVM refuses any other length */
#define SIGNALS_TAKEN_MAX 64u  /* at a time; what is left interrupts the next KVM_RUN */

static void signal_set(sigset_t *set)
{
	sigemptyset(set);
	sigaddset(set, counter_signal());
}

/* Signals that KVM_RUN runs with: those of the thread without ours. */
static bool kvm_mask_set(int vcpu_fd, const sigset_t *blocked)
{
	union {
		struct kvm_signal_mask mask;
		uint8_t bytes[sizeof(struct kvm_signal_mask) + KERNEL_SIGSET_BYTES];
	} argument = {.mask.len = KERNEL_SIGSET_BYTES};
	sigset_t in_guest = *blocked;

	sigdelset(&in_guest, counter_signal());
	memcpy(argument.mask.sigset, &in_guest, KERNEL_SIGSET_BYTES);
	return ioctl(vcpu_fd, KVM_SET_SIGNAL_MASK, &argument) == 0;
}

static bool sigmask_attach(struct counter_set *set, GError **error)
{
	sigset_t ours, before;

	counter_signal_install();
	signal_set(&ours);
	pthread_sigmask(SIG_BLOCK, &ours, &before);
	counter_signal_attach(set);
	if (set->port.vcpu_fd < 0 || kvm_mask_set(set->port.vcpu_fd, &before))
		return true;
	g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_SYSTEM,
	            "cannot set the signal mask of the vCPU (KVM_SET_SIGNAL_MASK): %s; try another delivery",
	            g_strerror(errno));
	return false;
}

/* Takes the signals that wait for any set of this thread; at most `n`. */
static void drain(unsigned n)
{
	const struct timespec now = {0};
	siginfo_t info;
	sigset_t ours;

	signal_set(&ours);
	for (unsigned i = 0; i < n && sigtimedwait(&ours, &info, &now) > 0; i++)
		counter_signal_note(&info);
}

static void sigmask_detach(struct counter_set *set)
{
	counter_signal_detach(set);
	if (set->port.vcpu_fd >= 0 && !counter_signal_shared(set))
		ioctl(set->port.vcpu_fd, KVM_SET_SIGNAL_MASK, NULL);
	/* The events are closed: nothing of theirs comes after these. The signal stays blocked, which does no harm. */
	drain(UINT_MAX);
}

static void sigmask_prepare(struct perf_event_attr *attr, uint32_t cookie)
{
	(void)attr;
	(void)cookie;
}

static bool sigmask_route(int perf_fd, const struct perf_event_attr *attr)
{
	(void)attr;
	return counter_signal_route(perf_fd);
}

static bool sigmask_take(struct counter_set *set, bool interrupted, bool after_exit, unsigned taken[COUNTER_EVENTS_MAX])
{
	if (interrupted || after_exit)
		drain(SIGNALS_TAKEN_MAX);
	return counter_signal_take(set, taken);
}

static const struct counter_delivery_ops sigmask_ops = {
	.attach = sigmask_attach,
	.detach = sigmask_detach,
	.prepare = sigmask_prepare,
	.route = sigmask_route,
	.take = sigmask_take,
};

const struct counter_delivery counter_delivery_sigmask = {
	.name = "sigmask",
	.summary = "KVM_SET_SIGNAL_MASK: a real-time signal that only KVM_RUN unblocks, taken by sigtimedwait",
	.ops = &sigmask_ops,
};
