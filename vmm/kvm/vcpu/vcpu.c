// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/vcpu.h"

#include <errno.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "kvm/host/host.h"
#include "kvm/vcpu/vcpu_arch.h"
#include "kvm/vcpu/vcpu_machine.h"

struct vcpu_request {
	void (*fn)(void *data);
	void *data;
	bool done, ran;
};

bool vcpu_fail(const struct vcpu *vcpu, const char *what, GError **error)
{
	g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM, "cannot %s of vCPU %u: %s", what, vcpu->index,
	            g_strerror(errno));
	return false;
}

static bool create(struct vcpu *vcpu, GError **error)
{
	vcpu->fd = ioctl(vcpu->machine->fd, KVM_CREATE_VCPU, vcpu->index);
	if (vcpu->fd < 0)
		return vcpu_fail(vcpu, "create the KVM side", error);
	int bytes = ioctl(vcpu->machine->kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	if (bytes < (int)sizeof(struct kvm_run))
		return vcpu_fail(vcpu, "learn the size of kvm_run", error);
	void *run = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpu->fd, 0);
	if (run == MAP_FAILED)
		return vcpu_fail(vcpu, "map kvm_run", error);
	vcpu->run = run;
	vcpu->run_bytes = (size_t)bytes;
	return true;
}

bool vcpu_init(struct vcpu *vcpu, struct vcpu_machine *machine, unsigned index, struct vcpu_arch *arch, GError **error)
{
	memset(vcpu, 0, sizeof(*vcpu));
	vcpu->machine = machine;
	vcpu->index = index;
	vcpu->fd = -1;
	vcpu->arch = arch;
	vcpu->gone = true;
	atomic_init(&vcpu->attention, true);
	vcpu->clocks.statistics_fd = vcpu->clocks.schedstat_fd = -1;
	pthread_mutex_init(&vcpu->lock, NULL);
	pthread_cond_init(&vcpu->changed, NULL);
	if (!create(vcpu, error) || !vcpu_arch_init(vcpu, error)) {
		vcpu_deinit(vcpu);
		return false;
	}
	vcpu_time_init(&vcpu->clocks, vcpu->fd, index == 0);
	return true;
}

void vcpu_deinit(struct vcpu *vcpu)
{
	vcpu_arch_deinit(vcpu);
	vcpu_time_deinit(&vcpu->clocks);
	if (vcpu->run)
		munmap(vcpu->run, vcpu->run_bytes);
	if (vcpu->fd >= 0)
		close(vcpu->fd);
	pthread_cond_destroy(&vcpu->changed);
	pthread_mutex_destroy(&vcpu->lock);
}

static void set_attention(struct vcpu *vcpu)
{
	atomic_store_explicit(&vcpu->attention, true, memory_order_release);
}

static void interrupt(struct vcpu *vcpu)
{
	set_attention(vcpu);
	pthread_cond_broadcast(&vcpu->changed);
	if (!vcpu->gone && !pthread_equal(vcpu->thread, pthread_self()))
		pthread_kill(vcpu->thread, VCPU_KICK_SIGNAL);
}

void vcpu_kick(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	interrupt(vcpu);
	pthread_mutex_unlock(&vcpu->lock);
}

void vcpu_go(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	vcpu->go = true;
	interrupt(vcpu);
	pthread_mutex_unlock(&vcpu->lock);
}

bool vcpu_run_on(struct vcpu *vcpu, void (*fn)(void *data), void *data)
{
	struct vcpu_request request = {.fn = fn, .data = data};

	pthread_mutex_lock(&vcpu->lock);
	while (vcpu->request && !vcpu->gone)
		pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	if (!vcpu->gone) {
		vcpu->request = &request;
		interrupt(vcpu);
		while (!request.done)
			pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	}
	pthread_mutex_unlock(&vcpu->lock);
	return request.ran;
}

void vcpu_crash(struct vcpu *vcpu, enum guest_end_reason reason, char *message)
{
	vcpu->machine->ops->crashed(vcpu, reason, message);
}

static bool ending(const struct vcpu *vcpu)
{
	return atomic_load_explicit(&vcpu->machine->ending, memory_order_acquire);
}

void vcpu_hold(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	interrupt(vcpu);
	while (!vcpu->outside && !vcpu->gone && !ending(vcpu))
		pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	pthread_mutex_unlock(&vcpu->lock);
}

void vcpu_unhold(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	pthread_cond_broadcast(&vcpu->changed);
	pthread_mutex_unlock(&vcpu->lock);
}

/* Ends the request under way. Lock held. */
static void complete_request(struct vcpu *vcpu, bool ran)
{
	if (!vcpu->request)
		return;
	vcpu->request->ran = ran;
	vcpu->request->done = true;
	vcpu->request = NULL;
	pthread_cond_broadcast(&vcpu->changed);
}

/* Whether another vCPU runs alone. */
static bool is_held(const struct vcpu *vcpu)
{
	const struct vcpu *alone = atomic_load(&vcpu->machine->alone);

	return alone && alone != vcpu;
}

static void wait_outside(struct vcpu *vcpu)
{
	vcpu->outside = true;
	pthread_cond_broadcast(&vcpu->changed);
	pthread_cond_wait(&vcpu->changed, &vcpu->lock);
	vcpu->outside = false;
}

/* Serves requests, and waits while the VM is not started or another vCPU is alone. False when the guest has ended. */
static bool attend(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	while (!ending(vcpu)) {
		struct vcpu_request *request = vcpu->request;

		if (request) {
			pthread_mutex_unlock(&vcpu->lock);
			request->fn(request->data);
			pthread_mutex_lock(&vcpu->lock);
			complete_request(vcpu, true);
		} else if (vcpu->go && !is_held(vcpu)) {
			atomic_store_explicit(&vcpu->attention, false, memory_order_relaxed);
			break;
		} else {
			wait_outside(vcpu);
		}
	}
	pthread_mutex_unlock(&vcpu->lock);
	return !ending(vcpu);
}

bool vcpu_may_enter(struct vcpu *vcpu)
{
	if (G_LIKELY(!atomic_load_explicit(&vcpu->attention, memory_order_acquire)))
		return true;
	bool goes_on = attend(vcpu);
	vcpu_time_attended(&vcpu->clocks);
	return goes_on;
}

void vcpu_leave(struct vcpu *vcpu)
{
	pthread_mutex_lock(&vcpu->lock);
	vcpu_time_finish(&vcpu->clocks);
	vcpu->gone = true;
	complete_request(vcpu, false);
	pthread_cond_broadcast(&vcpu->changed);
	pthread_mutex_unlock(&vcpu->lock);
}
