// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_run.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <vprof/exit.h>

#include "kvm/device/devices.h"
#include "kvm/host/host.h"
#include "kvm/host/kvm_vcpu.h"
#include "kvm/host/thread.h"
#include "kvm/vcpu/vcpu_debug.h"
#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vcpu/vcpu_patch.h"
#include "kvm/vcpu/vcpu_pmu.h"
#include "kvm/vcpu/vcpu_step.h"

#define STACK_BYTES (128u << 10)
#define CR4_LA57 (UINT64_C(1) << 12) /* SDM vol. 3A, 2.5 */

/* The vCPU of this thread, for the signal handler. */
static _Thread_local struct vcpu *this_vcpu;

static void read_regs(const struct vcpu *vcpu, struct guest_regs *regs)
{
	const struct kvm_sync_regs *sync = &vcpu->run->s.regs;
	const struct host_quirks *quirks = vcpu->machine->quirks;

	/* The CPL is SS's DPL (SDM vol. 3C, 25.4.1; KVM's vmx_get_cpl and svm_get_segment). */
	*regs = (struct guest_regs){.rip = sync->regs.rip,
	                            .rsp = sync->regs.rsp,
	                            .rbp = sync->regs.rbp,
	                            .rax = sync->regs.rax,
	                            .rdx = sync->regs.rdx,
	                            .rdi = sync->regs.rdi,
	                            .r10 = sync->regs.r10,
	                            .r13 = sync->regs.r13,
	                            .cr3 = sync->sregs.cr3,
	                            .gs_base = sync->sregs.gs.base,
	                            .cpl = sync->sregs.ss.dpl,
	                            .la57 = (sync->sregs.cr4 & CR4_LA57) != 0,
	                            .valid = !quirks || !quirks->owns(sync->regs.rip)};
}

static void handle_io(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	uint8_t *data = (uint8_t *)vcpu->run + run->io.data_offset;

	for (uint32_t i = 0; i < run->io.count; i++, data += run->io.size) {
		if (run->io.direction == KVM_EXIT_IO_OUT)
			devices_write(vcpu->machine->devices, vcpu->index, run->io.port, data, run->io.size);
		else
			devices_read(vcpu->machine->devices, run->io.port, data, run->io.size);
	}
}

static void handle_mmio(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	size_t bytes = MIN(run->mmio.len, sizeof(run->mmio.data));

	if (run->mmio.is_write)
		devices_mmio_write(vcpu->machine->devices, run->mmio.phys_addr, run->mmio.data, bytes);
	else
		devices_mmio_read(vcpu->machine->devices, run->mmio.phys_addr, run->mmio.data, bytes);
}

/* Does what KVM would have done. */
static void handle_msr(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	uint64_t value = 0;
	bool done;

	if (run->exit_reason == KVM_EXIT_X86_RDMSR) {
		done = kvm_msr_get(vcpu->fd, run->msr.index, &value);
		run->msr.data = value;
	} else {
		done = kvm_msr_set(vcpu->fd, run->msr.index, run->msr.data);
	}
	run->msr.error = !done; /* not 0: #GP */
}

static void handle_internal_error(struct vcpu *vcpu)
{
	static const char *const names[] = {[KVM_INTERNAL_ERROR_EMULATION] = "an instruction that it cannot emulate",
	                                    [KVM_INTERNAL_ERROR_SIMUL_EX] = "two exceptions at once",
	                                    [KVM_INTERNAL_ERROR_DELIVERY_EV] = "an exit while delivering an event",
	                                    [KVM_INTERNAL_ERROR_UNEXPECTED_EXIT_REASON] = "an exit it does not know"};
	uint32_t suberror = vcpu->run->internal.suberror;
	const char *name = suberror < G_N_ELEMENTS(names) ? names[suberror] : NULL;

	vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
	           g_strdup_printf("KVM gave up on vCPU %u: internal error %u (%s)", vcpu->index, suberror,
	                           name ? name : "unknown"));
}

static void handle_exit(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;

	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		handle_io(vcpu);
		break;
	case KVM_EXIT_MMIO:
		handle_mmio(vcpu);
		break;
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		handle_msr(vcpu);
		break;
	case KVM_EXIT_DEBUG:
		vcpu_debug_exit(vcpu);
		break;
	case KVM_EXIT_INTR:
	case KVM_EXIT_IRQ_WINDOW_OPEN:
		break;
	case KVM_EXIT_SHUTDOWN:
		vcpu_crash(vcpu, GUEST_END_TRIPLE_FAULT, g_strdup_printf("triple fault on vCPU %u", vcpu->index));
		break;
	case KVM_EXIT_INTERNAL_ERROR:
		handle_internal_error(vcpu);
		break;
	case KVM_EXIT_FAIL_ENTRY:
		vcpu_crash(
			vcpu, GUEST_END_VMM_ERROR,
			g_strdup_printf("the processor refused to enter the guest on vCPU %u: hardware reason 0x%llx",
		                        vcpu->index, run->fail_entry.hardware_entry_failure_reason));
		break;
	default:
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("unhandled KVM exit %u on vCPU %u", run->exit_reason, vcpu->index));
	}
}

/* What the exit is filed under (vprof/exit.h). To be read before it is handled, which reuses kvm_run. */
static uint64_t exit_ip(const struct kvm_run *run)
{
	switch (run->exit_reason) {
	case KVM_EXIT_IO:
		return vprof_exit_ip(KVM_EXIT_IO, run->io.port);
	case KVM_EXIT_MMIO:
		return vprof_exit_ip(KVM_EXIT_MMIO, run->mmio.phys_addr);
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		return vprof_exit_ip(run->exit_reason, run->msr.index);
	case KVM_EXIT_INTERNAL_ERROR:
		return vprof_exit_ip(KVM_EXIT_INTERNAL_ERROR, run->internal.suberror);
	default:
		return vprof_exit_ip(run->exit_reason, 0);
	}
}

static bool quirks_exit(struct vcpu *vcpu)
{
	const struct vcpu_machine *machine = vcpu->machine;
	const struct host_vcpu at = {
		.index = vcpu->index, .fd = vcpu->fd, .schedstat_fd = vcpu->clocks.schedstat_fd, .run = vcpu->run};

	return machine->quirks && machine->quirks->exit(machine->quirk_state, &at);
}

/* Deals with KVM_RUN's return (failed: its errno or 0); returns what it is filed under. */
static uint64_t handle(struct vcpu *vcpu, int failed)
{
	uint64_t ip = vprof_exit_ip(VPROF_EXIT_REASON_VMM, 0);

	if (failed == 0) {
		ip = exit_ip(vcpu->run);
		if (!vcpu_patch_exit(vcpu) && !quirks_exit(vcpu) && !(vcpu->pmu && vcpu_pmu_exit(vcpu)))
			handle_exit(vcpu);
	} else if (failed != EINTR) {
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("cannot run vCPU %u: %s", vcpu->index, g_strerror(failed)));
	}
	if (vcpu->pmu)
		vcpu_pmu_handled(vcpu);
	return ip;
}

static void handled_step(struct vcpu *vcpu)
{
	struct guest_regs now;

	read_regs(vcpu, &now);
	if (!vcpu_step_handled(vcpu, &now))
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("cannot let vCPU %u halt: %s", vcpu->index, g_strerror(errno)));
}

static void run_loop(struct vcpu *vcpu, struct vcpu_watcher *watcher)
{
	if (!vcpu_may_enter(vcpu))
		return;
	vcpu_time_begin(&vcpu->clocks);
	do {
		if (vcpu->pmu)
			vcpu_pmu_enter(vcpu);
		int failed = ioctl(vcpu->fd, KVM_RUN, 0) < 0 ? errno : 0;
		if (vcpu->pmu)
			vcpu_pmu_left(vcpu, failed == EINTR);
		vcpu_time_returned(&vcpu->clocks, vcpu->fd, failed == EINTR, failed == EAGAIN);
		vcpu->run->immediate_exit = 0;
		if (failed == EAGAIN) /* an application processor that got its INIT or SIPI */
			continue;
		read_regs(vcpu, &vcpu->regs);
		vcpu_keep_registers(vcpu);
		vcpu_patch_returned(vcpu, failed);
		vcpu_time_look(&vcpu->clocks, vcpu->fd, &vcpu->regs);
		if (watcher)
			watcher->ops->exited(watcher, &vcpu->regs, failed == EINTR);
		bool observed = vcpu->debug.observers.n > 0;
		if (G_UNLIKELY(observed))
			vcpu_observe_exit(vcpu, failed != 0);
		if (G_UNLIKELY(vcpu->debug.step.stepper))
			vcpu_step_exited(vcpu, failed != 0);
		uint64_t ip = handle(vcpu, failed);
		if (G_UNLIKELY(observed))
			vcpu_observe_handled(vcpu);
		if (G_UNLIKELY(vcpu->debug.step.stepper))
			handled_step(vcpu);
		if (watcher)
			watcher->ops->handled(watcher, ip);
		vcpu_time_handled(&vcpu->clocks, ip);
	} while (vcpu_may_enter(vcpu));
}

/*
 * A flag for the kernel: KVM_RUN returns EINTR at once while it is set (Documentation/virt/kvm/api.rst, 5), so a kick
 * between the check of `attention` and KVM_RUN is not lost.
 */
static void on_kick(int signal)
{
	(void)signal;
	if (this_vcpu)
		this_vcpu->run->immediate_exit = 1;
}

static void *thread_main(void *data)
{
	struct vcpu *vcpu = data;
	struct vcpu_machine *machine = vcpu->machine;
	struct vcpu_watcher **watchers = machine->guest->watchers;
	struct vcpu_watcher *watcher = watchers ? watchers[vcpu->index] : NULL;

	this_vcpu = vcpu;
	sigset_t kick;
	sigemptyset(&kick);
	sigaddset(&kick, VCPU_KICK_SIGNAL);
	pthread_sigmask(SIG_UNBLOCK, &kick, NULL);

	struct vcpu_port port = {.vcpu_fd = vcpu->fd, .immediate_exit = &vcpu->run->immediate_exit};
	if (watcher)
		watcher->ops->started(watcher, &port);
	vcpu_time_attach(&vcpu->clocks, VCPU_KICK_SIGNAL);
	if (vcpu->pmu)
		vcpu_pmu_attach(vcpu, VCPU_KICK_SIGNAL);
	run_loop(vcpu, watcher);
	vcpu_leave(vcpu);
	if (watcher)
		watcher->ops->stopped(watcher);
	if (vcpu->pmu)
		vcpu_pmu_detach(vcpu);
	this_vcpu = NULL;
	machine->ops->left(machine);
	return NULL;
}

static int create_thread(struct vcpu *vcpu)
{
	struct sigaction action = {.sa_handler = on_kick};

	sigemptyset(&action.sa_mask);
	sigaction(VCPU_KICK_SIGNAL, &action, NULL);
	return thread_start(&vcpu->thread, STACK_BYTES, thread_main, vcpu);
}

bool vcpu_launch(struct vcpu *vcpu, GError **error)
{
	/* The thread may ask for its own id (interrupt) before pthread_create has stored it here. */
	pthread_mutex_lock(&vcpu->lock);
	int failed = create_thread(vcpu);
	vcpu->gone = failed != 0;
	pthread_mutex_unlock(&vcpu->lock);
	if (failed) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot start the thread of vCPU %u: %s", vcpu->index,
		            g_strerror(failed));
		return false;
	}
	char name[16];
	g_snprintf(name, sizeof(name), "vcpu/%u", vcpu->index);
	pthread_setname_np(vcpu->thread, name);
	return true;
}

void vcpu_join(struct vcpu *vcpu)
{
	pthread_join(vcpu->thread, NULL);
}

struct time_request {
	struct vcpu *vcpu;
	bool reset;
	struct guest_vcpu_time *out;
};

static void read_time(void *data)
{
	const struct time_request *request = data;
	struct vcpu *vcpu = request->vcpu;

	if (!vcpu->gone)
		vcpu_time_update(&vcpu->clocks);
	vcpu_time_read(&vcpu->clocks, request->out);
	if (vcpu->pmu)
		vcpu_pmu_counters(vcpu, request->out);
	if (!request->reset)
		return;
	vcpu_time_reset(&vcpu->clocks);
	if (vcpu->pmu)
		vcpu_pmu_reset(vcpu);
}

void vcpu_read_time(struct vcpu *vcpu, bool reset, struct guest_vcpu_time *out)
{
	struct time_request request = {vcpu, reset, out};

	/* The thread has gone and has made its last update under the lock: any thread may read the clocks. */
	if (!vcpu_run_on(vcpu, read_time, &request))
		read_time(&request);
}
