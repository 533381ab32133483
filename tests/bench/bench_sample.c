// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a sample costs, against an empty KVM_RUN round trip in the same run, for each delivery.
 *
 * The guest is 16-bit code at CPL0: either an endless `out` (one exit each) or an endless count. Figures are medians
 * over slices that alternate between the things compared, so that a load on the machine meets both.
 *
 *   round trip    KVM_RUN that returns for an `out`, nothing else done
 *   exits with    the same with a session open that hardly ever samples: what a delivery costs each exit
 *   sample        thread time that the counting guest did not get, for each sample: interrupt, signal, exit,
 *                 registers, record, re-entry
 *   chain         walking a kernel's stack of so many frames in guest memory, by ORC tables and by frame pointers
 *   task          reading which task runs in guest memory, and which cgroup that is in
 *   N Hz          samples of a second of the guest's thread, with a client that drains the ring
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vprof/exit.h>

#include "bench_chain.h"
#include "bench_task.h"
#include "counter/counter.h"
#include "fake_systems.h"
#include "lib/record/record.h"
#include "lib/record/ring_reader.h"
#include "sample/session.h"
#include "stream/ring.h"

#define RAM_BYTES 0x10000u
#define CODE_OUT 0x1000u
#define CODE_COUNT 0x2000u
#define EXITS 2000u
#define SLICES 15u
#define SLICE_NS UINT64_C(30000000)
#define SAMPLE_HZ 20000u
#define RECORDS 100000u
#define RATE_NS UINT64_C(1000000000)

static const uint32_t rates_hz[] = {100, 1000, 5000, 10000};
static const unsigned depths[] = {1, 4, 16, 64, 127};

static const uint8_t code_out[] = {0xe6, 0x10, 0xeb, 0xfc};   /* 1: out %al, $0x10; jmp 1b */
static const uint8_t code_count[] = {0x66, 0x40, 0xeb, 0xfc}; /* 1: inc %eax; jmp 1b */

static struct machine {
	struct guest guest; /* first */
	int kvm_fd, vm_fd, vcpu_fd;
	struct kvm_run *run;
	uint8_t *ram;
	struct vcpu_watcher *watcher;
} machine;

static volatile sig_atomic_t slice_over;

static void die(const char *what)
{
	fprintf(stderr, "bench_sample: cannot %s: %s\n", what, strerror(errno));
	exit(errno == ENOENT || errno == EACCES ? 77 : 1);
}

static void must(bool ok, const char *what)
{
	if (!ok)
		die(what);
}

static uint64_t clock_ns(clockid_t clock)
{
	struct timespec now;

	clock_gettime(clock, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* The bench is the vCPU's thread: a call on it is a call. */
static bool run_on_vcpu(struct guest *guest, unsigned vcpu, void (*fn)(void *data), void *data)
{
	(void)guest;
	(void)vcpu;
	fn(data);
	return true;
}

static void machine_open(void)
{
	static const struct guest_ops ops = {.run_on_vcpu = run_on_vcpu};
	struct kvm_userspace_memory_region region = {.memory_size = RAM_BYTES};

	machine.guest = (struct guest){.ops = &ops, .kind = "kvm", .vcpus = 1, .systems = fake_systems};
	machine.kvm_fd = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	must(machine.kvm_fd >= 0, "open /dev/kvm");
	machine.vm_fd = ioctl(machine.kvm_fd, KVM_CREATE_VM, 0);
	must(machine.vm_fd >= 0, "create a VM");
	machine.ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	must(machine.ram != MAP_FAILED, "map guest memory");
	memcpy(machine.ram + CODE_OUT, code_out, sizeof(code_out));
	memcpy(machine.ram + CODE_COUNT, code_count, sizeof(code_count));
	region.userspace_addr = (uintptr_t)machine.ram;
	must(ioctl(machine.vm_fd, KVM_SET_USER_MEMORY_REGION, &region) == 0, "set guest memory");
	machine.vcpu_fd = ioctl(machine.vm_fd, KVM_CREATE_VCPU, 0);
	must(machine.vcpu_fd >= 0, "create a vCPU");
	int bytes = ioctl(machine.kvm_fd, KVM_GET_VCPU_MMAP_SIZE, 0);
	must(bytes > 0, "ask for the size of kvm_run");
	machine.run = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, machine.vcpu_fd, 0);
	must(machine.run != MAP_FAILED, "map kvm_run");
	machine.run->kvm_valid_regs = KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
}

static void machine_enter_at(uint16_t rip)
{
	struct kvm_regs regs = {.rip = rip, .rflags = 2};
	struct kvm_sregs sregs;

	must(ioctl(machine.vcpu_fd, KVM_GET_SREGS, &sregs) == 0, "get registers");
	sregs.cs.base = 0;
	sregs.cs.selector = 0;
	must(ioctl(machine.vcpu_fd, KVM_SET_SREGS, &sregs) == 0, "set segment registers");
	must(ioctl(machine.vcpu_fd, KVM_SET_REGS, &regs) == 0, "set registers");
}

/* One turn of a run loop, as vmm/kvm does it. True when an exit was handled. */
static bool machine_turn(void)
{
	const struct kvm_sync_regs *sync = &machine.run->s.regs;
	bool interrupted = ioctl(machine.vcpu_fd, KVM_RUN, 0) != 0;

	must(!interrupted || errno == EINTR, "run the vCPU");
	const struct guest_regs regs = {
		.rip = sync->sregs.cs.base + sync->regs.rip,
		.rsp = sync->regs.rsp,
		.rbp = sync->regs.rbp,
		.cr3 = sync->sregs.cr3,
		.valid = true,
	};
	machine.watcher->ops->exited(machine.watcher, &regs, interrupted);
	if (interrupted)
		return false;
	must(machine.run->exit_reason == KVM_EXIT_IO, "understand the guest's exit");
	machine.watcher->ops->handled(machine.watcher, vprof_exit_ip(KVM_EXIT_IO, machine.run->io.port));
	return true;
}

/* A round trip and nothing else. */
static double bare_exit_ns(void)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	for (unsigned i = 0; i < EXITS; i++)
		must(ioctl(machine.vcpu_fd, KVM_RUN, 0) == 0, "run the vCPU");
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / EXITS;
}

/* KVM_RUN that does not enter the guest. */
static double bare_immediate_ns(void)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	machine.run->immediate_exit = 1;
	for (unsigned i = 0; i < EXITS; i++)
		must(ioctl(machine.vcpu_fd, KVM_RUN, 0) != 0 && errno == EINTR, "leave KVM_RUN at once");
	machine.run->immediate_exit = 0;
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / EXITS;
}

static double watched_exit_ns(void)
{
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	unsigned exits = 0;

	while (exits < EXITS)
		exits += machine_turn();
	return (double)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - start) / EXITS;
}

static void on_slice_over(int signo)
{
	(void)signo;
	slice_over = 1;
	machine.run->immediate_exit = 1;
}

static timer_t slice_timer_new(void)
{
	struct sigaction action = {.sa_handler = on_slice_over};
	struct sigevent to_us = {.sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1};
	timer_t timer;

	to_us._sigev_un._tid = (pid_t)syscall(SYS_gettid);
	must(sigaction(SIGUSR1, &action, NULL) == 0, "set a signal handler");
	must(timer_create(CLOCK_MONOTONIC, &to_us, &timer) == 0, "create a timer");
	return timer;
}

/* Thread time for one count of the guest, over a slice; *cpu_ns: all of it. */
static uint64_t count_slice(timer_t timer, uint64_t *cpu_ns)
{
	const struct itimerspec once = {.it_value.tv_nsec = (long)SLICE_NS};
	uint64_t start = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	machine_enter_at(CODE_COUNT);
	slice_over = 0;
	timer_settime(timer, 0, &once, NULL);
	while (!slice_over)
		machine_turn();
	machine.run->immediate_exit = 0;
	*cpu_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID) - start;
	return machine.run->s.regs.regs.rax;
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
	qsort(values, n, sizeof(*values), by_value);
	return values[n / 2];
}

static void session_open(struct session *session, const char *event, const char *delivery, uint32_t frequency_hz)
{
	struct session_config config = {.n_events = 1, .rate.frequency_hz = frequency_hz, .delivery = delivery};
	GError *error = NULL;

	if (!counter_event_parse(event, &config.events[0], &error) || !session_start(session, &config, &error)) {
		fprintf(stderr, "bench_sample: %s\n", error->message);
		exit(1);
	}
}

static uint64_t session_close(struct session *session)
{
	struct session_statistics statistics;

	session_stop(session, NULL);
	machine.run->immediate_exit = 0; /* an overflow after the last turn */
	session_statistics_read(session, 0, &statistics);
	return statistics.sample;
}

/* What the guest lost in a slice of `cpu_ns`, if a count takes count_ns, for each of n. */
static double lost_ns(uint64_t cpu_ns, uint64_t counts, double count_ns, uint64_t n)
{
	return ((double)cpu_ns - (double)counts * count_ns) / (double)n;
}

/* One slice without and one with samples. */
static double sample_cost_slice(struct session *session, timer_t timer, const char *event, const char *delivery)
{
	uint64_t free_ns, sampled_ns;
	uint64_t free_counts = count_slice(timer, &free_ns);

	session_open(session, event, delivery, SAMPLE_HZ);
	uint64_t counts = count_slice(timer, &sampled_ns);
	uint64_t samples = session_close(session);

	return lost_ns(sampled_ns, counts, (double)free_ns / (double)free_counts, samples);
}

/* The same with a clock that overflows and sends no signal: the host's interrupt, a cost of every delivery. */
static double interrupt_cost_slice(timer_t timer)
{
	const struct counter_rate rate = {.frequency_hz = SAMPLE_HZ};
	struct counter_event event;
	struct perf_event_attr attr;
	uint64_t free_ns, interrupted_ns;

	must(counter_event_parse("task-clock", &event, NULL), "count task-clock");
	counter_event_attr(&event, &rate, &attr);
	attr.disabled = 0;
	uint64_t free_counts = count_slice(timer, &free_ns);
	int fd = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	must(fd >= 0, "open task-clock");
	uint64_t counts = count_slice(timer, &interrupted_ns);
	close(fd);

	return lost_ns(interrupted_ns, counts, (double)free_ns / (double)free_counts,
	               interrupted_ns / attr.sample_period);
}

static void bench_delivery(struct session *session, timer_t timer, const char *event, const char *delivery,
                           double round_trip_ns, double interrupt_ns)
{
	double bare[SLICES], watched[SLICES], sample[SLICES];

	for (unsigned i = 0; i < SLICES; i++) {
		machine_enter_at(CODE_OUT);
		bare[i] = bare_exit_ns();
		session_open(session, event, delivery, 1);
		watched[i] = watched_exit_ns();
		session_close(session);
		sample[i] = sample_cost_slice(session, timer, event, delivery);
	}
	double added = median(watched, SLICES) - median(bare, SLICES);
	double cost = median(sample, SLICES);

	printf("%-11s %-8s  exits with it %+5.0f ns   sample %6.0f ns, without its interrupt %6.0f ns = %.2f round trips\n",
	       event, delivery, added, cost, cost - interrupt_ns, (cost - interrupt_ns) / round_trip_ns);
}

/* A direct call: encode and write one record, with a reader that keeps up (not timed). */
static double record_ns(void)
{
	struct ring *ring = ring_new(1u << 20, NULL);
	struct ring_reader *reader = ring ? ring_reader_open(ring_memfd(ring), NULL) : NULL;
	uint64_t record[16], spent = 0;
	size_t bytes;

	must(reader, "make a ring");
	for (unsigned i = 0; i < RECORDS; i += 1000) {
		uint64_t start = clock_ns(CLOCK_MONOTONIC);

		for (unsigned j = 0; j < 1000; j++) {
			const struct record_sample sample = {.id = 1, .ip = i, .time_ns = clock_ns(CLOCK_MONOTONIC)};
			const struct record_id id = {.id = 1, .time_ns = sample.time_ns};

			bytes = record_sample_encode(&sample, false, record, sizeof(record));
			must(ring_write(ring, record, bytes, &id), "write a record");
		}
		spent += clock_ns(CLOCK_MONOTONIC) - start;
		while (ring_reader_next(reader, &bytes))
			;
		ring_reader_release(reader);
	}
	ring_reader_free(reader);
	ring_free(ring);
	return (double)spent / RECORDS;
}

struct drain {
	const struct ring *ring;
	atomic_bool end;
	uint64_t records;
};

/* A client: takes what is there, every few milliseconds. */
static void *drain_run(void *data)
{
	const struct timespec pause = {.tv_nsec = 2000000};
	struct drain *drain = data;
	struct ring_reader *reader = ring_reader_open(ring_memfd(drain->ring), NULL);
	size_t bytes;
	bool end;

	must(reader, "map a ring");
	do {
		end = atomic_load(&drain->end);
		while (ring_reader_next(reader, &bytes))
			drain->records++;
		ring_reader_release(reader);
		nanosleep(&pause, NULL);
	} while (!end);
	ring_reader_free(reader);
	return NULL;
}

/* A second of the guest's thread at each rate, with a client that drains. */
static void bench_rate(struct session *session, timer_t timer, uint32_t frequency_hz)
{
	struct session_statistics statistics;
	struct drain drain = {0};
	uint64_t cpu_ns = 0, slice_ns;
	pthread_t thread;

	session_open(session, "task-clock", NULL, frequency_hz);
	drain.ring = session_ring(session, 0);
	must(pthread_create(&thread, NULL, drain_run, &drain) == 0, "start a thread");
	for (; cpu_ns < RATE_NS; cpu_ns += slice_ns)
		count_slice(timer, &slice_ns);
	session_close(session);
	atomic_store(&drain.end, true);
	pthread_join(thread, NULL);
	session_statistics_read(session, 0, &statistics);
	printf("%5u Hz   expected %6lu   taken %6lu   put together by the host %5lu   lost %lu   read %6lu\n",
	       frequency_hz, (unsigned long)(cpu_ns * frequency_hz / UINT64_C(1000000000)),
	       (unsigned long)statistics.sample, (unsigned long)statistics.throttled,
	       (unsigned long)statistics.dropbuf_sample, (unsigned long)drain.records);
}

static void bench_chains(double round_trip_ns)
{
	bench_chain_open();
	for (size_t i = 0; i < sizeof(depths) / sizeof(depths[0]); i++) {
		double orc[SLICES], frame_pointers[SLICES], user[SLICES];

		for (unsigned j = 0; j < SLICES; j++) {
			orc[j] = bench_chain_ns(true, depths[i]);
			frame_pointers[j] = bench_chain_ns(false, depths[i]);
			user[j] = bench_chain_user_ns(depths[i]);
		}
		double orc_ns = median(orc, SLICES), frame_pointers_ns = median(frame_pointers, SLICES);
		double user_ns = median(user, SLICES);

		printf("chain %4u  ORC %6.0f ns = %.3f round trips   frame pointers %6.0f ns = %.3f   user %6.0f ns = %.2f ORC\n",
		       depths[i], orc_ns, orc_ns / round_trip_ns, frame_pointers_ns, frame_pointers_ns / round_trip_ns,
		       user_ns, user_ns / orc_ns);
	}
}

static void bench_tasks(double round_trip_ns)
{
	double task[SLICES], cgroup[SLICES];

	bench_task_open();
	for (unsigned i = 0; i < SLICES; i++) {
		task[i] = bench_task_ns(false);
		cgroup[i] = bench_task_ns(true);
	}
	double task_ns = median(task, SLICES), cgroup_ns = median(cgroup, SLICES);

	printf("task        %6.0f ns = %.3f round trips   with its cgroup %6.0f ns = %.3f\n", task_ns,
	       task_ns / round_trip_ns, cgroup_ns, cgroup_ns / round_trip_ns);
}

int main(void)
{
	struct vcpu_port port;
	double round_trip[SLICES], immediate[SLICES], interrupt[SLICES];

	setvbuf(stdout, NULL, _IOLBF, 0);
	machine_open();
	struct session *session = session_new(&machine.guest, NULL);
	must(session, "make a session");
	port = (struct vcpu_port){machine.vcpu_fd, &machine.run->immediate_exit};
	machine.watcher = machine.guest.watchers[0];
	machine.watcher->ops->started(machine.watcher, &port);
	timer_t timer = slice_timer_new();

	for (unsigned i = 0; i < SLICES; i++) {
		machine_enter_at(CODE_OUT);
		round_trip[i] = bare_exit_ns();
		immediate[i] = bare_immediate_ns();
		interrupt[i] = interrupt_cost_slice(timer);
	}
	double round_trip_ns = median(round_trip, SLICES);

	double interrupt_ns = median(interrupt, SLICES);

	printf("round trip  %7.0f ns (out to a port)   %7.0f ns (immediate_exit)   record %5.0f ns   interrupt %5.0f ns\n",
	       round_trip_ns, median(immediate, SLICES), record_ns(), interrupt_ns);
	bench_chains(round_trip_ns);
	bench_tasks(round_trip_ns);
	for (size_t i = 0; counter_deliveries[i]; i++)
		bench_delivery(session, timer, "task-clock", counter_deliveries[i]->name, round_trip_ns, interrupt_ns);
	bench_delivery(session, timer, "timer", counter_deliveries[0]->name, round_trip_ns, interrupt_ns);
	for (size_t i = 0; i < sizeof(rates_hz) / sizeof(rates_hz[0]); i++)
		bench_rate(session, timer, rates_hz[i]);
	machine.watcher->ops->stopped(machine.watcher);
	session_free(session);
	timer_delete(timer);
	return 0;
}
