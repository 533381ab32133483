// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu_run.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "kvm/host/host.h"
#include "kvm/host/thread.h"
#include "kvm/vcpu/vcpu_arch.h"
#include "kvm/vcpu/vcpu_machine.h"

#define STACK_BYTES (128u << 10)

/* The vCPU of this thread, for the signal handler. */
static _Thread_local struct vcpu *this_vcpu;

static void run_loop(struct vcpu *vcpu, struct vcpu_watcher *watcher)
{
	if (!vcpu_may_enter(vcpu))
		return;
	thread_works(THREAD_VCPU);
	vcpu_time_begin(&vcpu->clocks);
	do {
		vcpu_arch_enter(vcpu);
		int failed = ioctl(vcpu->fd, KVM_RUN, 0) < 0 ? errno : 0;
		vcpu_arch_left(vcpu, failed);
		vcpu_time_returned(&vcpu->clocks, vcpu->fd, failed == EINTR, failed == EAGAIN);
		vcpu->run->immediate_exit = 0;
		if (failed == EAGAIN) /* an application processor that got its INIT or SIPI */
			continue;
		vcpu_arch_look(vcpu, failed);
		vcpu_time_look(&vcpu->clocks, vcpu->fd, &vcpu->regs);
		if (watcher)
			watcher->ops->exited(watcher, &vcpu->regs, failed == EINTR);
		vcpu_arch_exited(vcpu, failed);
		uint64_t ip = vcpu_arch_handle(vcpu, failed);
		vcpu_arch_handled(vcpu);
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
	vcpu_arch_attach(vcpu);
	run_loop(vcpu, watcher);
	/* Before vcpu_leave: a caller whose request is refused from then on may free what watches this vCPU. */
	if (watcher)
		watcher->ops->stopped(watcher);
	vcpu_leave(vcpu);
	vcpu_arch_detach(vcpu);
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
	vcpu_arch_counters(vcpu, request->out);
	if (!request->reset)
		return;
	vcpu_time_reset(&vcpu->clocks);
	vcpu_arch_reset(vcpu);
}

void vcpu_read_time(struct vcpu *vcpu, bool reset, struct guest_vcpu_time *out)
{
	struct time_request request = {vcpu, reset, out};

	/* The thread has gone and has made its last update under the lock: any thread may read the clocks. */
	if (!vcpu_run_on(vcpu, read_time, &request))
		read_time(&request);
}
