// SPDX-License-Identifier: BSD-2-Clause
/*
 * What it costs on arm64 to read a vCPU's registers for a sample: KVM shares none in kvm_run there.
 *
 * The guest stores to an address without memory, again and again. Figures are medians over slices that alternate
 * between the things compared.
 *
 *   round trip    KVM_RUN that returns for such a store, nothing else done
 *   of the core   one KVM_GET_ONE_REG, of the program counter
 *   of the system one KVM_GET_ONE_REG, of TTBR1_EL1
 *   a sample's    all that vprof reads for a sample
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>

#include "kvm/vcpu/arm64/vcpu_arm64.h"

#define RAM_GPA UINT64_C(0x40000000)
#define RAM_BYTES 0x10000u
#define CALLS 200u
#define SLICES 51u
#define PC (KVM_REG_ARM64 | KVM_REG_SIZE_U64 | KVM_REG_ARM_CORE | KVM_REG_ARM_CORE_REG(regs.pc))
#define TTBR1_EL1 ARM64_SYS_REG(3, 0, 2, 0, 1)

/* 1: str wzr, [x0]; b 1b. x0 is 0, where there is no memory. */
static const uint32_t code[] = {0xb900001f, 0x17ffffff};

static struct machine {
	struct vcpu vcpu;
	struct kvm_run *run;
} machine;

static void must(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "bench_registers: cannot %s: %s\n", what, strerror(errno));
	exit(errno == ENOENT || errno == EACCES ? 77 : 1);
}

static void machine_open(void)
{
	struct kvm_userspace_memory_region region = {.guest_phys_addr = RAM_GPA, .memory_size = RAM_BYTES};
	struct kvm_vcpu_init init;
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC), vm, bytes;
	const uint64_t start = RAM_GPA;
	const struct kvm_one_reg pc = {.id = PC, .addr = (uintptr_t)&start};

	must(kvm >= 0, "open /dev/kvm");
	must((vm = ioctl(kvm, KVM_CREATE_VM, 0)) >= 0, "create a VM");
	void *ram = mmap(NULL, RAM_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	must(ram != MAP_FAILED, "map guest memory");
	memcpy(ram, code, sizeof(code));
	region.userspace_addr = (uintptr_t)ram;
	must(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) == 0, "set guest memory");
	must((machine.vcpu.fd = ioctl(vm, KVM_CREATE_VCPU, 0)) >= 0, "create a vCPU");
	must(ioctl(vm, KVM_ARM_PREFERRED_TARGET, &init) == 0 && ioctl(machine.vcpu.fd, KVM_ARM_VCPU_INIT, &init) == 0,
	     "initialize the vCPU");
	must((bytes = ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0)) > 0, "ask for the size of kvm_run");
	machine.run = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, machine.vcpu.fd, 0);
	must(machine.run != MAP_FAILED, "map kvm_run");
	must(ioctl(machine.vcpu.fd, KVM_SET_ONE_REG, &pc) == 0, "set the program counter");
}

static void round_trip(void)
{
	must(ioctl(machine.vcpu.fd, KVM_RUN, 0) == 0, "run the guest");
	if (machine.run->exit_reason != KVM_EXIT_MMIO) {
		fprintf(stderr, "bench_registers: the guest left for reason %u\n", machine.run->exit_reason);
		exit(1);
	}
}

static void one(uint64_t id)
{
	uint64_t value;
	const struct kvm_one_reg reg = {.id = id, .addr = (uintptr_t)&value};

	must(ioctl(machine.vcpu.fd, KVM_GET_ONE_REG, &reg) == 0, "read a register");
}

static void of_core(void)
{
	one(PC);
}

static void of_system(void)
{
	one(TTBR1_EL1);
}

static void of_sample(void)
{
	struct guest_regs regs;

	vcpu_read_registers(&machine.vcpu, &regs);
	must(regs.valid, "read the registers");
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static int compare(const void *a, const void *b)
{
	const double left = *(const double *)a, right = *(const double *)b;

	return (left > right) - (left < right);
}

int main(void)
{
	static const struct {
		const char *name;
		void (*call)(void);
	} rows[] = {{"round trip", round_trip},
	            {"of the core", of_core},
	            {"of the system", of_system},
	            {"a sample's", of_sample}};
	enum { ROWS = sizeof(rows) / sizeof(rows[0]) };
	static double us[ROWS][SLICES];

	machine_open();
	for (unsigned slice = 0; slice < SLICES; slice++)
		for (unsigned row = 0; row < ROWS; row++) {
			const uint64_t begin = now_ns();

			for (unsigned i = 0; i < CALLS; i++)
				rows[row].call();
			us[row][slice] = (double)(now_ns() - begin) / 1e3 / CALLS;
		}
	for (unsigned row = 0; row < ROWS; row++)
		qsort(us[row], SLICES, sizeof(double), compare);
	for (unsigned row = 0; row < ROWS; row++)
		printf("%-14s %8.2f us, %.2f round trips\n", rows[row].name, us[row][SLICES / 2],
		       us[row][SLICES / 2] / us[0][SLICES / 2]);
	return 0;
}
