// SPDX-License-Identifier: BSD-2-Clause
/*
 * The /init of a Linux guest that profiles itself by its own PMU: it counts and samples cycles with perf_event_open(2)
 * while two functions share its time three to one, says what came of it, and ends the machine.
 */
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define PERIOD UINT64_C(20000000) /* some milliseconds: the guest's kernel may take as long for an interrupt */
#define RING_PAGES 16u
#define SLICE 200000u /* steps of spin_one at a time */
#define SLICES 1000u  /* together a quarter of a second or so: on a busy host much passes beside it */

struct sample {
	struct perf_event_header header;
	uint64_t ip;
	uint32_t pid, tid;
};

struct result {
	uint64_t samples, one, three, kernel, other, lost;
};

extern const uint8_t spin_one[], spin_one_end[], spin_three[], spin_three_end[];

/* Alike, so that a step takes both the same time. */
__asm__(".text\n"
        ".globl spin_one, spin_one_end, spin_three, spin_three_end\n"
        "spin_one: dec %rdi; jnz spin_one; ret\n"
        "spin_one_end: .balign 64\n"
        "spin_three: dec %rdi; jnz spin_three; ret\n"
        "spin_three_end:\n");

static void spin(const uint8_t *function, uint64_t steps)
{
	__asm__ volatile("call *%1" : "+D"(steps) : "r"(function) : "memory", "cc");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* `leader`: of the group that it counts with, from the same moment on; -1: it leads one. */
static int event_open(uint64_t config, bool user_only, uint64_t period, int leader)
{
	struct perf_event_attr attr = {.type = PERF_TYPE_HARDWARE,
	                               .size = sizeof(attr),
	                               .config = config,
	                               .sample_period = period,
	                               .sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_TID,
	                               .disabled = leader < 0,
	                               .exclude_kernel = user_only,
	                               .exclude_hv = 1};

	return (int)syscall(SYS_perf_event_open, &attr, 0, -1, leader, 0);
}

static void work(void)
{
	for (unsigned i = 0; i < SLICES; i++) {
		spin(spin_one, SLICE);
		spin(spin_three, 3 * SLICE);
	}
}

static bool within(uint64_t ip, const uint8_t *begin, const uint8_t *end)
{
	return ip >= (uintptr_t)begin && ip < (uintptr_t)end;
}

static void take(const struct sample *sample, struct result *result)
{
	if (sample->header.type == PERF_RECORD_LOST || sample->header.type == PERF_RECORD_THROTTLE)
		result->lost++;
	if (sample->header.type != PERF_RECORD_SAMPLE)
		return;
	result->samples++;
	if ((sample->header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL)
		result->kernel++;
	else if (within(sample->ip, spin_one, spin_one_end))
		result->one++;
	else if (within(sample->ip, spin_three, spin_three_end))
		result->three++;
	else
		result->other++;
}

/* The ring is larger than what is ever in it, so it is read once, at the end. */
static struct result ring_read(const struct perf_event_mmap_page *ring)
{
	const uint8_t *data = (const uint8_t *)ring + ring->data_offset;
	struct result result = {0};

	for (uint64_t at = ring->data_tail; at < ring->data_head;) {
		struct sample sample = {0};

		memcpy(&sample.header, data + at, sizeof(sample.header));
		memcpy(&sample, data + at, sample.header.size < sizeof(sample) ? sample.header.size : sizeof(sample));
		take(&sample, &result);
		at += sample.header.size;
	}
	return result;
}

static void profile(bool user_only)
{
	const char *name = user_only ? "user" : "all";
	int fd = event_open(PERF_COUNT_HW_CPU_CYCLES, user_only, PERIOD, -1);
	int counter = event_open(PERF_COUNT_HW_REF_CPU_CYCLES, false, 0, fd);

	void *ring = mmap(NULL, (1 + RING_PAGES) * 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd < 0 || counter < 0 || ring == MAP_FAILED) {
		printf("perf: %s: cannot open cycles: %m\n", name);
		return;
	}
	uint64_t begin = now_ns(), cycles = 0, reference = 0;
	ioctl(fd, PERF_EVENT_IOC_ENABLE, 0);
	work();
	ioctl(fd, PERF_EVENT_IOC_DISABLE, 0);
	uint64_t ns = now_ns() - begin;
	if (read(fd, &cycles, sizeof(cycles)) != sizeof(cycles) ||
	    read(counter, &reference, sizeof(reference)) != sizeof(reference))
		printf("perf: %s: cannot read the counters: %m\n", name);
	struct result result = ring_read(ring);
	printf("perf: %s: cycles=%lu reference=%lu ns=%lu period=%lu samples=%lu one=%lu three=%lu kernel=%lu other=%lu lost=%lu\n",
	       name, cycles, reference, ns, PERIOD, result.samples, result.one, result.three, result.kernel,
	       result.other, result.lost);
	close(counter);
	close(fd);
	munmap(ring, (1 + RING_PAGES) * 4096);
}

/* An interrupt of an emulated kernel takes milliseconds; Linux would soon take hardly any. */
static void never_throttle(void)
{
	mount("proc", "/proc", "proc", 0, NULL);
	int fd = open("/proc/sys/kernel/perf_cpu_time_max_percent", O_WRONLY);
	if (fd < 0 || write(fd, "0", 1) != 1)
		printf("perf: cannot set perf_cpu_time_max_percent: %m\n");
	close(fd);
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	prctl(PR_SET_NAME, "guest_perf");
	never_throttle();
	profile(false);
	profile(true);
	int absent = event_open(PERF_COUNT_HW_INSTRUCTIONS, false, 0, -1);
	printf("perf: instructions: %s\n", absent < 0 ? "not there" : "there");
	reboot(RB_AUTOBOOT);
	return 1;
}
