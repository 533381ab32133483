// SPDX-License-Identifier: BSD-2-Clause
#include "support/host_features.h"

#include <fcntl.h>
#include <linux/kvm.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

/* A guest in long mode, with the first two MiB mapped to themselves and no interrupt table. */
enum {
	CODE = 0x1000,
	PML4 = 0x2000,
	PDPT = 0x3000,
	DIRECTORY = 0x4000,
	BYTES = 0x8000,
	CPUID_ENTRIES = 256,
	NOP = 0x90,
	HLT = 0xf4,
	INT3 = 0xcc,
};
#define PAGE_TABLE 3u /* present, writable: SDM volume 3, table 4-15 */
#define PAGE_2M 0x83u /* and a page: table 4-17 */
#define CR0_PE_PG 0x80000001u
#define CR4_PAE 0x20u
#define EFER_LME_LMA 0x500u
#define DR7_EXECUTE_0 0x402u /* G0, and the bit that is always set: section 18.2.4 */

static void put(uint8_t *memory, size_t at, uint64_t entry)
{
	memcpy(memory + at, &entry, sizeof(entry));
}

static void fill(uint8_t *memory, uint8_t first)
{
	memset(memory + CODE, HLT, PML4 - CODE);
	memory[CODE] = first;
	put(memory, PML4, PDPT | PAGE_TABLE);
	put(memory, PDPT, DIRECTORY | PAGE_TABLE);
	put(memory, DIRECTORY, PAGE_2M);
}

/* Without them KVM takes no long mode for legal. */
static bool give_features(int kvm, int vcpu)
{
	union {
		struct kvm_cpuid2 header;
		char bytes[sizeof(struct kvm_cpuid2) + CPUID_ENTRIES * sizeof(struct kvm_cpuid_entry2)];
	} cpuid = {.header.nent = CPUID_ENTRIES};

	return ioctl(kvm, KVM_GET_SUPPORTED_CPUID, &cpuid) == 0 && ioctl(vcpu, KVM_SET_CPUID2, &cpuid) == 0;
}

static bool enter_long_mode(int vcpu)
{
	const struct kvm_segment
		code = {.limit = UINT32_MAX, .selector = 8, .type = 11, .present = 1, .s = 1, .l = 1, .g = 1},
		data = {.limit = UINT32_MAX, .selector = 16, .type = 3, .present = 1, .s = 1, .db = 1, .g = 1};
	const struct kvm_regs regs = {.rip = CODE, .rsp = BYTES, .rflags = 2};
	struct kvm_sregs sregs;

	if (ioctl(vcpu, KVM_GET_SREGS, &sregs) < 0)
		return false;
	sregs.cr3 = PML4;
	sregs.cr4 = CR4_PAE;
	sregs.efer = EFER_LME_LMA;
	sregs.cr0 |= CR0_PE_PG;
	sregs.idt.limit = 0;
	sregs.cs = code;
	sregs.ds = sregs.es = sregs.ss = data;
	return ioctl(vcpu, KVM_SET_SREGS, &sregs) == 0 && ioctl(vcpu, KVM_SET_REGS, &regs) == 0;
}

/* Whether KVM_RUN returns as it does for a guest without a debugger. */
static bool undisturbed(int kvm, int vm, int vcpu, uint8_t *memory, const struct kvm_run *state,
                        enum host_feature feature)
{
	struct kvm_userspace_memory_region region = {.memory_size = BYTES, .userspace_addr = (uintptr_t)memory};
	struct kvm_guest_debug debug = {.control = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_SW_BP};

	fill(memory, INT3);
	if (feature == HOST_FEATURE_BREAKPOINT) {
		memory[CODE] = NOP;
		debug.control = KVM_GUESTDBG_ENABLE | KVM_GUESTDBG_USE_HW_BP;
		debug.arch.debugreg[0] = CODE;
		debug.arch.debugreg[7] = DR7_EXECUTE_0;
	}
	/* The guest's own INT3 has no handler: a triple fault. */
	return ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region) == 0 && give_features(kvm, vcpu) &&
	       enter_long_mode(vcpu) && ioctl(vcpu, KVM_SET_GUEST_DEBUG, &debug) == 0 && ioctl(vcpu, KVM_RUN, 0) == 0 &&
	       (state->exit_reason == KVM_EXIT_HLT || state->exit_reason == KVM_EXIT_SHUTDOWN);
}

/* Whether KVM runs a guest that should meet a breakpoint first, and it does not. */
static bool misses(enum host_feature feature)
{
	int kvm = open("/dev/kvm", O_RDWR | O_CLOEXEC);
	int vm = kvm < 0 ? -1 : ioctl(kvm, KVM_CREATE_VM, 0);
	int vcpu = vm < 0 ? -1 : ioctl(vm, KVM_CREATE_VCPU, 0);
	int bytes = kvm < 0 ? -1 : ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0);
	uint8_t *memory = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	void *state = vcpu < 0 || bytes < 0 ? MAP_FAILED : mmap(NULL, (size_t)bytes, PROT_READ, MAP_SHARED, vcpu, 0);
	bool missed = memory != MAP_FAILED && state != MAP_FAILED && undisturbed(kvm, vm, vcpu, memory, state, feature);

	if (state != MAP_FAILED)
		munmap(state, (size_t)bytes);
	if (memory != MAP_FAILED)
		munmap(memory, BYTES);
	for (const int *fd = (int[]){vcpu, vm, kvm, -2}; *fd != -2; fd++)
		if (*fd >= 0)
			close(*fd);
	return missed;
}

const char *host_feature_missing(enum host_feature feature)
{
	static const char *const instead[N_HOST_FEATURES] = {
		[HOST_FEATURE_BREAKPOINT] = "does not report breakpoints in debug registers",
		[HOST_FEATURE_PATCH] = "gives a guest the INT3 that a debugger has patched into it",
	};

	return misses(feature) ? instead[feature] : NULL;
}
