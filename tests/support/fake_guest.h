// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest without KVM: each vCPU is a thread that burns CPU time where KVM_RUN would be, and tells its watcher what a
 * run loop tells it. How much it burns is measured on the thread's own clock, so that a busy machine changes nothing.
 * Where a hypervisor steals time from the host, perf's clocks count that time and the thread's clock does not. What the
 * counters say is compared with struct fake_span therefore, which knows both.
 *
 * Three quarters of the guest's time are "kernel", one quarter is "user", in turns of FAKE_TURN_NS.
 */
#ifndef VPROF_TEST_SUPPORT_FAKE_GUEST_H
#define VPROF_TEST_SUPPORT_FAKE_GUEST_H

#include <check.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "counter/counter.h"
#include "fake_systems.h"
#include "guest/guest.h"

#define FAKE_VCPUS_MAX 4u
#define FAKE_TURN_NS UINT64_C(70000)
#define FAKE_KERNEL_RIP UINT64_C(0xffffffff81000010)
#define FAKE_USER_RIP UINT64_C(0x401000)
#define FAKE_KERNEL_CR3 UINT64_C(0x10000)
#define FAKE_USER_CR3 UINT64_C(0x20000)

struct fake_guest;

struct fake_vcpu {
	struct fake_guest *fake;
	unsigned index;
	pthread_t thread;
	volatile uint8_t immediate_exit;
	/* Under fake->lock. */
	uint64_t burn_ns;
	uint64_t ran_ns;  /* in all burns */
	bool started;     /* task_clock is open */
	int task_clock;   /* perf's event of the thread, which only counts; -1: perf is not there */
	uint64_t cpu_ns;  /* of the thread, when it ended */
	uint64_t task_ns; /* and by perf's clock */
	void (*call)(void *data);
	void *call_data;
	atomic_bool called; /* wakes a vCPU that burns */
};

struct fake_guest {
	struct guest guest; /* first: guest_ops get it */
	pthread_mutex_t lock;
	pthread_cond_t changed;
	bool end;
	struct fake_vcpu vcpus[FAKE_VCPUS_MAX];
	/* Set before fake_guest_burn. */
	uint64_t exit_every_ns; /* the guest exits that often; 0: never */
	uint64_t exit_ns;       /* and the VMM works that long on it */
	uint64_t exit_ip;
	bool regs_invalid;
};

static inline uint64_t fake_clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static inline uint64_t fake_cpu_ns(void)
{
	return fake_clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

static inline bool fake_signal_pending(void)
{
	sigset_t pending;

	sigpending(&pending);
	return sigismember(&pending, counter_signal()) == 1;
}

/* Where KVM_RUN would be: until a signal, a call, or `until` of the thread's clock. True: "EINTR". */
static inline bool fake_run(struct fake_vcpu *vcpu, uint64_t until)
{
	while (fake_cpu_ns() < until) {
		if (vcpu->immediate_exit || fake_signal_pending() || atomic_load(&vcpu->called))
			return true;
	}
	return vcpu->immediate_exit;
}

static inline struct guest_regs fake_regs(const struct fake_vcpu *vcpu)
{
	bool user = fake_cpu_ns() / FAKE_TURN_NS % 4 == 3;

	return (struct guest_regs){
		.rip = user ? FAKE_USER_RIP : FAKE_KERNEL_RIP,
		.cr3 = user ? FAKE_USER_CR3 : FAKE_KERNEL_CR3,
		.cpl = user ? 3 : 0,
		.valid = !vcpu->fake->regs_invalid,
	};
}

static inline void fake_handle_exit(struct fake_vcpu *vcpu, struct vcpu_watcher *watcher)
{
	uint64_t until = fake_cpu_ns() + vcpu->fake->exit_ns;

	while (fake_cpu_ns() < until)
		;
	watcher->ops->handled(watcher, vcpu->fake->exit_ip);
}

/* The run loop, for as much of the thread's time as was asked for, or until a call. Returns how long it ran. */
static inline uint64_t fake_burn(struct fake_vcpu *vcpu, uint64_t burn_ns)
{
	struct vcpu_watcher *watcher = vcpu->fake->guest.watchers[vcpu->index];
	uint64_t every = vcpu->fake->exit_every_ns, start = fake_cpu_ns(), end = start + burn_ns;
	uint64_t exit_at = every ? start + every : end;

	while (fake_cpu_ns() < end && !atomic_load(&vcpu->called)) {
		bool interrupted = fake_run(vcpu, MIN(exit_at, end));
		struct guest_regs regs = fake_regs(vcpu);

		watcher->ops->exited(watcher, &regs, interrupted);
		if (!interrupted && every) {
			fake_handle_exit(vcpu, watcher);
			exit_at = fake_cpu_ns() + every;
		}
	}
	return fake_cpu_ns() - start;
}

/* With the lock held. */
static inline void fake_answer(struct fake_vcpu *vcpu)
{
	vcpu->call(vcpu->call_data);
	vcpu->call = NULL;
	atomic_store(&vcpu->called, false);
	pthread_cond_broadcast(&vcpu->fake->changed);
}

static inline int fake_task_clock_open(void)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_TASK_CLOCK};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static inline uint64_t fake_task_ns(const struct fake_vcpu *vcpu)
{
	uint64_t value = 0;

	return read(vcpu->task_clock, &value, sizeof(value)) == sizeof(value) ? value : vcpu->task_ns;
}

static inline void *fake_vcpu_run(void *data)
{
	struct fake_vcpu *vcpu = data;
	struct fake_guest *fake = vcpu->fake;
	struct vcpu_watcher *watcher = fake->guest.watchers[vcpu->index];
	const struct vcpu_port port = {.vcpu_fd = -1, .immediate_exit = &vcpu->immediate_exit};

	int task_clock = fake_task_clock_open();
	watcher->ops->started(watcher, &port);
	pthread_mutex_lock(&fake->lock);
	vcpu->task_clock = task_clock;
	vcpu->started = true;
	pthread_cond_broadcast(&fake->changed);
	while (!fake->end || vcpu->call) {
		if (vcpu->call) {
			fake_answer(vcpu);
		} else if (vcpu->burn_ns) {
			uint64_t burn_ns = vcpu->burn_ns;

			pthread_mutex_unlock(&fake->lock);
			uint64_t ran_ns = fake_burn(vcpu, burn_ns);
			pthread_mutex_lock(&fake->lock);
			vcpu->ran_ns += ran_ns;
			vcpu->burn_ns = burn_ns - MIN(burn_ns, ran_ns);
			pthread_cond_broadcast(&fake->changed);
		} else {
			pthread_cond_wait(&fake->changed, &fake->lock);
		}
	}
	pthread_mutex_unlock(&fake->lock);
	watcher->ops->stopped(watcher);
	vcpu->cpu_ns = fake_cpu_ns();
	return NULL;
}

static inline bool fake_run_on_vcpu(struct guest *guest, unsigned vcpu, void (*fn)(void *data), void *data)
{
	struct fake_guest *fake = (struct fake_guest *)guest;

	if (guest->state == GUEST_ENDED)
		return false;
	pthread_mutex_lock(&fake->lock);
	fake->vcpus[vcpu].call = fn;
	fake->vcpus[vcpu].call_data = data;
	atomic_store(&fake->vcpus[vcpu].called, true);
	pthread_cond_broadcast(&fake->changed);
	while (fake->vcpus[vcpu].call)
		pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
	return true;
}

static const struct guest_ops fake_ops = {.run_on_vcpu = fake_run_on_vcpu};

static inline void fake_guest_init(struct fake_guest *fake, unsigned vcpus)
{
	*fake = (struct fake_guest){
		.guest = {.ops = &fake_ops, .kind = "fake", .vcpus = vcpus, .systems = fake_systems}};
	pthread_mutex_init(&fake->lock, NULL);
	pthread_cond_init(&fake->changed, NULL);
	for (unsigned i = 0; i < vcpus; i++)
		fake->vcpus[i] = (struct fake_vcpu){.fake = fake, .index = i, .task_clock = -1};
}

/* After guest.watchers is set. */
static inline void fake_guest_start(struct fake_guest *fake)
{
	for (unsigned i = 0; i < fake->guest.vcpus; i++)
		ck_assert_int_eq(pthread_create(&fake->vcpus[i].thread, NULL, fake_vcpu_run, &fake->vcpus[i]), 0);
	pthread_mutex_lock(&fake->lock);
	for (unsigned i = 0; i < fake->guest.vcpus; i++)
		while (!fake->vcpus[i].started)
			pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
	fake->guest.state = GUEST_RUNNING;
}

static inline void fake_guest_burn_begin(struct fake_guest *fake, uint64_t cpu_ns)
{
	pthread_mutex_lock(&fake->lock);
	for (unsigned i = 0; i < fake->guest.vcpus; i++)
		fake->vcpus[i].burn_ns = cpu_ns;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
}

static inline bool fake_guest_burning(struct fake_guest *fake)
{
	bool burning = false;

	pthread_mutex_lock(&fake->lock);
	for (unsigned i = 0; i < fake->guest.vcpus; i++)
		burning |= fake->vcpus[i].burn_ns != 0;
	pthread_mutex_unlock(&fake->lock);
	return burning;
}

/* Every vCPU runs for `cpu_ns` of its thread's time; returns when all have. */
static inline void fake_guest_burn(struct fake_guest *fake, uint64_t cpu_ns)
{
	fake_guest_burn_begin(fake, cpu_ns);
	pthread_mutex_lock(&fake->lock);
	for (unsigned i = 0; i < fake->guest.vcpus; i++)
		while (fake->vcpus[i].burn_ns)
			pthread_cond_wait(&fake->changed, &fake->lock);
	pthread_mutex_unlock(&fake->lock);
}

/*
 * How long a vCPU ran: at least in the burns alone; at most all that its thread did, by the one of the two clocks that
 * says more. Begins before what is measured starts, and ends when that has stopped.
 */
struct fake_span {
	uint64_t least_ns, most_ns;
	uint64_t task_ns; /* by perf's clock: fake_span_since has it in most_ns */
};

static inline struct fake_span fake_span_so_far(struct fake_guest *fake, unsigned vcpu)
{
	struct fake_span span = {.most_ns = fake->vcpus[vcpu].cpu_ns, .task_ns = fake_task_ns(&fake->vcpus[vcpu])};
	clockid_t clock;

	pthread_mutex_lock(&fake->lock);
	span.least_ns = fake->vcpus[vcpu].ran_ns;
	pthread_mutex_unlock(&fake->lock);
	if (fake->guest.state != GUEST_ENDED && pthread_getcpuclockid(fake->vcpus[vcpu].thread, &clock) == 0)
		span.most_ns = fake_clock_ns(clock);
	return span;
}

static inline struct fake_span fake_span_since(struct fake_guest *fake, unsigned vcpu, const struct fake_span *begin)
{
	struct fake_span span = fake_span_so_far(fake, vcpu);

	return (struct fake_span){.least_ns = span.least_ns - begin->least_ns,
	                          .most_ns = MAX(span.most_ns - begin->most_ns, span.task_ns - begin->task_ns)};
}

static inline void fake_guest_end(struct fake_guest *fake)
{
	if (fake->guest.state != GUEST_RUNNING)
		return;
	pthread_mutex_lock(&fake->lock);
	fake->end = true;
	pthread_cond_broadcast(&fake->changed);
	pthread_mutex_unlock(&fake->lock);
	for (unsigned i = 0; i < fake->guest.vcpus; i++) {
		struct fake_vcpu *vcpu = &fake->vcpus[i];

		pthread_join(vcpu->thread, NULL);
		vcpu->task_ns = fake_task_ns(vcpu);
		if (vcpu->task_clock >= 0)
			close(vcpu->task_clock);
		vcpu->task_clock = -1;
	}
	fake->guest.state = GUEST_ENDED;
}

#endif
