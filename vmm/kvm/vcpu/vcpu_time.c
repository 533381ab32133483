// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_time.h"

#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <vprof/exit.h>

#include "kvm/host/thread.h"
#include "kvm/vcpu/kvm_statistics.h"
#include "lib/record/clock.h"

#define IP_RUN_LOOP vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0)

static void read_totals(const struct vcpu_time_clocks *clocks, struct vcpu_time_totals *totals)
{
	totals->cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	totals->runnable_ns = thread_waited_ns(clocks->schedstat_fd);
	totals->n_counters = kvm_statistics_read(clocks->statistics_fd, totals->counters);
}

void vcpu_time_init(struct vcpu_time_clocks *clocks, int vcpu_fd, bool online)
{
	memset(clocks, 0, sizeof(*clocks));
	clocks->statistics_fd = kvm_statistics_open(vcpu_fd);
	clocks->schedstat_fd = -1;
	clocks->online = online;
}

void vcpu_time_trace(struct vcpu_time_clocks *clocks, struct exit_clock *exits)
{
	exit_clock_free(clocks->exits);
	clocks->exits = exits;
}

void vcpu_time_deinit(struct vcpu_time_clocks *clocks)
{
	if (clocks->statistics_fd >= 0)
		close(clocks->statistics_fd);
	if (clocks->schedstat_fd >= 0)
		close(clocks->schedstat_fd);
	exit_clock_free(clocks->exits);
}

void vcpu_time_attach(struct vcpu_time_clocks *clocks, int signal)
{
	mode_clock_attach(&clocks->mode_clock, signal);
	clocks->schedstat_fd = thread_schedstat_open();
}

void vcpu_time_begin(struct vcpu_time_clocks *clocks)
{
	clocks->begun = true;
	read_totals(clocks, &clocks->base);
	clocks->last = clocks->base;
	if (clocks->exits) {
		exit_clock_update(clocks->exits);
		exit_clock_reset(clocks->exits);
	}
	exit_account_begin(&clocks->account, clock_ns(CLOCK_MONOTONIC));
	if (clocks->online)
		mode_clock_begin(&clocks->mode_clock, clocks->account.mark_ns);
	else
		mode_clock_await(&clocks->mode_clock);
}

/* KVM_MP_STATE_*; RUNNABLE when KVM does not say. */
static uint32_t mp_state(int vcpu_fd)
{
	struct kvm_mp_state state;

	return ioctl(vcpu_fd, KVM_GET_MP_STATE, &state) == 0 ? state.mp_state : KVM_MP_STATE_RUNNABLE;
}

/* KVM does not count this wait as halted (kvm_vcpu_block in its kvm_arch_vcpu_ioctl_run). */
static bool waits_for_startup(int vcpu_fd)
{
	uint32_t state = mp_state(vcpu_fd);

	return state == KVM_MP_STATE_UNINITIALIZED || state == KVM_MP_STATE_INIT_RECEIVED ||
	       state == KVM_MP_STATE_STOPPED;
}

/*
 * PSCI starts a vCPU while its thread is in KVM_RUN, where it has slept up to then, and KVM_RUN goes on; the mode
 * clock, which waited for that, is what ends it if nothing else does.
 */
static void started_inside(struct vcpu_time_clocks *clocks, uint64_t inside_ns)
{
	uint64_t awake_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - clocks->base.cpu_ns +
	                    thread_waited_ns(clocks->schedstat_fd) - clocks->base.runnable_ns;

	exit_account_waited(&clocks->account, inside_ns - MIN(inside_ns, awake_ns));
	mode_clock_begin(&clocks->mode_clock, clocks->account.mark_ns);
}

void vcpu_time_returned(struct vcpu_time_clocks *clocks, int vcpu_fd, bool interrupted, bool startup)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC), inside_ns = now_ns - clocks->account.mark_ns;
	bool was_online = clocks->online;

	if (G_UNLIKELY(!was_online) && !startup)
		clocks->online = !interrupted || !waits_for_startup(vcpu_fd);
	exit_account_returned(&clocks->account, now_ns, startup || !clocks->online);
	/* Not before: a vCPU that was not started must not be woken. */
	if (startup) {
		clocks->told = true;
		mode_clock_begin(&clocks->mode_clock, now_ns);
	} else if (G_UNLIKELY(clocks->online && !was_online && !clocks->told)) {
		started_inside(clocks, inside_ns);
	}
}

static enum guest_mode mode_of(int vcpu_fd, const struct guest_regs *regs)
{
	uint32_t state = mp_state(vcpu_fd);

	if (state == KVM_MP_STATE_HALTED)
		return GUEST_MODE_HALTED;
	if (!regs->valid || state != KVM_MP_STATE_RUNNABLE)
		return GUEST_MODE_NONE;
	return guest_regs_user(regs) ? GUEST_MODE_USER : GUEST_MODE_KERNEL;
}

void vcpu_time_look(struct vcpu_time_clocks *clocks, int vcpu_fd, const struct guest_regs *regs)
{
	uint64_t now_ns = clocks->account.mark_ns;

	if (G_UNLIKELY(mode_clock_due(&clocks->mode_clock, now_ns)))
		mode_clock_look(&clocks->mode_clock, now_ns, mode_of(vcpu_fd, regs));
}

static void vmm_until_now(struct vcpu_time_clocks *clocks, uint64_t ip, unsigned times)
{
	uint64_t now_ns = clock_ns(CLOCK_MONOTONIC);

	exit_account_handled(&clocks->account, now_ns, ip, times);
	if (G_UNLIKELY(mode_clock_due(&clocks->mode_clock, now_ns)))
		mode_clock_look(&clocks->mode_clock, now_ns, GUEST_MODE_NONE);
}

void vcpu_time_handled(struct vcpu_time_clocks *clocks, uint64_t ip)
{
	vmm_until_now(clocks, ip, 1);
}

void vcpu_time_attended(struct vcpu_time_clocks *clocks)
{
	if (clocks->begun)
		vmm_until_now(clocks, IP_RUN_LOOP, 0);
}

void vcpu_time_update(struct vcpu_time_clocks *clocks)
{
	if (!clocks->begun)
		return;
	read_totals(clocks, &clocks->last);
	vcpu_time_attended(clocks);
	if (clocks->exits)
		exit_clock_update(clocks->exits);
}

void vcpu_time_finish(struct vcpu_time_clocks *clocks)
{
	vcpu_time_update(clocks);
	mode_clock_detach(&clocks->mode_clock);
}

static void read_counters(const struct vcpu_time_clocks *clocks, struct guest_vcpu_time *out)
{
	const struct vcpu_time_totals *base = &clocks->base, *last = &clocks->last;

	out->n_counters = MIN(base->n_counters, last->n_counters);
	for (size_t i = 0; i < out->n_counters; i++) {
		out->counters[i] = last->counters[i];
		out->counters[i].value -= base->counters[i].value;
	}
}

static const char *missing(const struct vcpu_time_clocks *clocks)
{
	if (clocks->exits)
		return NULL;
	if (clocks->schedstat_fd < 0)
		return clocks->statistics_fd < 0 ? "halted and runnable" : "runnable";
	return clocks->statistics_fd < 0 ? "halted" : NULL;
}

void vcpu_time_read(const struct vcpu_time_clocks *clocks, struct guest_vcpu_time *out)
{
	memset(out, 0, sizeof(*out));
	out->missing = missing(clocks);
	out->modes = clocks->mode_clock.modes;
	exit_account_read(&clocks->account, out);
	read_counters(clocks, out);
	struct vcpu_time *time = &out->time;
	time->cpu_ns = clocks->last.cpu_ns - clocks->base.cpu_ns;
	time->runnable_ns = clocks->last.runnable_ns - clocks->base.runnable_ns;
	time->halt_wait_ns = kvm_statistic(out->counters, out->n_counters, "halt_wait_ns");
	time->halt_poll_ns = kvm_statistic(out->counters, out->n_counters, "halt_poll_success_ns") +
	                     kvm_statistic(out->counters, out->n_counters, "halt_poll_fail_ns");
	if (clocks->exits)
		exit_clock_read(clocks->exits, time->cpu_ns, false, out);
	else
		out->untraced = clocks->untraced;
}

void vcpu_time_reset(struct vcpu_time_clocks *clocks)
{
	clocks->base = clocks->last;
	clocks->mode_clock.modes = (struct vcpu_modes){0};
	exit_account_begin(&clocks->account, clocks->account.mark_ns);
	if (clocks->exits)
		exit_clock_reset(clocks->exits);
}
