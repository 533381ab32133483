// SPDX-License-Identifier: BSD-2-Clause
/*
 * Hosts without VMX and SVM, with /dev/kvm from kvm_pvm: it runs guest CPL 3 natively and emulates guest CPL 0
 * with KVM's instruction emulator, some millions of instructions a second. What that emulator lacks or gets wrong is
 * mended here; each quirk has its sentence below.
 */
#include <asm/kvm_para.h>
#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/host/x86/cpuid.h"
#include "kvm/host/x86/host_pvm_emulate.h"
#include "kvm/host/x86/host_pvm_timer.h"
#include "kvm/host/x86/host_quirks.h"
#include "kvm/host/x86/kvm_vcpu.h"

/* The MSRs of SYSCALL (SDM vol. 4, table 2-2). CSTAR stands between the others, and is kept like them. */
#define MSR_STAR 0xc0000081u
#define MSR_LSTAR 0xc0000082u
#define MSR_FMASK 0xc0000084u
enum { STAR, LSTAR, CSTAR, FMASK, SYSCALL_MSRS };
_Static_assert(MSR_LSTAR - MSR_STAR == LSTAR && MSR_FMASK - MSR_STAR == FMASK, "indices into struct pvm's msrs");

/* RAM for the trampoline: two page table levels above its page table, that, and its code. */
#define RESERVED_GPA UINT64_C(0x90000)
#define PAGE_BYTES UINT64_C(0x1000)
enum { PAGE_PUD, PAGE_PMD, PAGE_PTE, PAGE_CODE, RESERVED_PAGES };

/* PGD slot 480: 16 TiB that neither Linux (Documentation/x86/x86_64/mm.rst: a hole) nor our own guests use. */
#define TRAMPOLINE_GVA UINT64_C(0xfffff00000000000)
#define TRAMPOLINE_PGD_SLOT (TRAMPOLINE_GVA >> 39 & 511)
/* In the hole below 4 GiB: an access exits with KVM_EXIT_MMIO. */
#define TRAMPOLINE_MMIO_GPA UINT64_C(0xd0000000)

/* Page table entries (SDM vol. 3A, 4.5). */
#define PTE_PRESENT UINT64_C(0x01)
#define PTE_WRITE UINT64_C(0x02)
#define PTE_USER UINT64_C(0x04)
#define PTE_ACCESSED UINT64_C(0x20)
#define PTE_DIRTY UINT64_C(0x40)
#define PTE_NO_EXECUTE (UINT64_C(1) << 63)
#define PTE_TABLE (PTE_PRESENT | PTE_WRITE | PTE_USER | PTE_ACCESSED | PTE_DIRTY)
#define CR3_ADDRESS_MASK UINT64_C(0x000ffffffffff000)

#define RFLAGS_FIXED UINT64_C(0x2)
/* The flags that a program at CPL 3 can set: CF, PF, AF, ZF, SF, TF, DF, OF, NT, AC, ID; and IF. */
#define RFLAGS_USER UINT64_C(0x244fd5)

struct pvm {
	const struct memory *memory;
	/* What the guest wrote to them; each vCPU's thread has its own element. */
	uint64_t msrs[GUEST_VCPUS_MAX][SYSCALL_MSRS];
	struct host_pvm_timer timers[GUEST_VCPUS_MAX]; /* in the same way */
};

static const char *const sentences[] = {
	"pvm: system calls enter the guest kernel by way of a trampoline page (0x90000 to 0x93fff of RAM are reserved), since the host enters LSTAR with CPL 3",
	"pvm: int3, fwait and a few more instructions at CPL 0 are carried out by the VMM",
	"pvm: CPUID ends at leaf 6 (10 with a PMU) and hides CX16, x2APIC, XSAVE and KVM's paravirtual IPI, EOI, async page fault and steal time, which do not work",
	"pvm: glibc programs are told not to use AVX, which CPL 3 sees and the guest kernel does not save",
	"pvm: the timer interrupts a vCPU at most 50 times a second",
	"pvm: kernel modules that the agent loads are without signature and types (BTF), which would be checked first",
	"pvm: the kernel command line turns off what the emulator cannot do or does too slowly",
	NULL,
};

/*
 * What the command line can spare the emulator. Measured with Debian's 6.1 cloud kernel, with the longest boot;
 * kernels that lack one of these skip it.
 */
static const char *const options[] = {
	"mitigations=off", /* also page table isolation, which would hide the trampoline */
	"tsc=reliable",    /* the emulator's speed makes the clocksource watchdog doubt the TSC */
	"nowatchdog",
	"cryptomgr.notests", /* RSA with 4096 bits takes minutes */
	"init_on_alloc=0",
	"rodata=off",  /* no splitting of large pages, and no walk through the page tables to check on it */
	"highres=off", /* a quarter of the timer tick, which takes up to half of the boot */
	"8250.nr_uarts=2",
	"pty.legacy_count=0",
	"noreplace-smp",     /* no search for LOCK prefixes, to take them away where there is one processor */
	"percpu_alloc=page", /* no 2 MiB to clear for each processor */
	/* CPUID bits that the host puts back: string instructions go byte by byte, SIMD does not go at all at CPL 0. */
	"clearcpuid=rep_good,erms,fsrm,popcnt,ssse3,pclmulqdq,aes,sse4_1,sse4_2,"
	"smap,smep,umip,fsgsbase,invpcid,pku,la57", /* seen with a PMU, as its leaf follows theirs */
	/* Linux passes what it does not know to init's environment. */
	"GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX_Fast_Unaligned_Load,-AVX2,-AVX,-AVX512F,-AVX512VL,-AVX512BW",
	"VPROF_MODULES=bare", /* to vprof-agent: their hashes and types take minutes, and there is no key to check with
                               */
	/* Tables of ftrace, tracing events and BTF; certificates; slab caches in sysfs; self-tests; no i8042 is there.
         */
	"initcall_blacklist=ftrace_check_for_weak_functions,tracer_init_tracefs,trace_eval_init,"
	"load_system_certificate_list,kfunc_init,bpf_rstat_kfunc_init,bpf_key_sig_kfuncs_init,bpf_tcp_ca_kfunc_init,"
	"cubictcp_register,bpf_prog_test_run_init,slab_sysfs_init,blake2s_mod_init,crypto_kdf108_init,i8042_init",
	NULL,
};

/* CPUID. The command line turns off the features whose bits the host always sets. */
static void edit_cpuid(struct kvm_cpuid2 *cpuid)
{
	struct kvm_cpuid_entry2 *leaf = cpuid_find(cpuid, 0, 0);
	const struct kvm_cpuid_entry2 *pmu = cpuid_find(cpuid, 0xa, 0);

	if (leaf)
		leaf->eax = MIN(leaf->eax, pmu && pmu->eax ? 0xau : 6u);
	leaf = cpuid_find(cpuid, 1, 0);
	if (leaf) /* CX16, x2APIC, XSAVE, OSXSAVE, AVX */
		leaf->ecx &= ~(1u << 13 | 1u << 21 | 1u << 26 | 1u << 27 | 1u << 28);
	leaf = cpuid_find(cpuid, KVM_CPUID_FEATURES, 0);
	if (leaf)
		leaf->eax &= 1u << KVM_FEATURE_CLOCKSOURCE | 1u << KVM_FEATURE_NOP_IO_DELAY |
		             1u << KVM_FEATURE_CLOCKSOURCE2 | 1u << KVM_FEATURE_CLOCKSOURCE_STABLE_BIT;
}

/* Exits for instructions that the host fails to emulate. */
static bool ask_for_exits(int vm_fd, GError **error)
{
	struct kvm_enable_cap failures = {.cap = KVM_CAP_EXIT_ON_EMULATION_FAILURE, .args = {1}};

	if (ioctl(vm_fd, KVM_ENABLE_CAP, &failures) < 0)
		return host_fail(error, "have exits for instructions that the host cannot emulate");
	return true;
}

static void store_u64(uint8_t *page, unsigned slot, uint64_t value)
{
	memcpy(page + slot * sizeof(value), &value, sizeof(value));
}

/* One page of code, and behind it one that is no RAM: movb $0, PAGE_BYTES - 7(%rip), 7 bytes, writes to its first byte.
 */
static bool write_trampoline(const struct memory *memory, GError **error)
{
	static const uint8_t code[] = {0xc6, 0x05, 0xf9, 0x0f, 0x00, 0x00, 0x00, /* movb */
	                               0x0f, 0x0b};                              /* ud2: never reached */
	uint8_t *pages = memory_at(memory, (gpa_t){RESERVED_GPA}, RESERVED_PAGES * PAGE_BYTES);

	if (!pages) {
		errno = EFAULT;
		return host_fail(error, "place the system call trampoline");
	}
	memset(pages, 0, RESERVED_PAGES * PAGE_BYTES);
	uint8_t *pte = pages + PAGE_PTE * PAGE_BYTES;
	store_u64(pages + PAGE_PUD * PAGE_BYTES, 0, (RESERVED_GPA + PAGE_PMD * PAGE_BYTES) | PTE_TABLE);
	store_u64(pages + PAGE_PMD * PAGE_BYTES, 0, (RESERVED_GPA + PAGE_PTE * PAGE_BYTES) | PTE_TABLE);
	store_u64(pte, 0, (RESERVED_GPA + PAGE_CODE * PAGE_BYTES) | PTE_PRESENT | PTE_USER | PTE_ACCESSED);
	store_u64(pte, 1, TRAMPOLINE_MMIO_GPA | PTE_TABLE | PTE_NO_EXECUTE);
	memcpy(pages + PAGE_CODE * PAGE_BYTES, code, sizeof(code));
	return true;
}

static void *pvm_init(int vm_fd, const struct memory *memory, GError **error)
{
	if (!ask_for_exits(vm_fd, error) || !write_trampoline(memory, error))
		return NULL;
	struct pvm *pvm = g_new0(struct pvm, 1);
	pvm->memory = memory;
	return pvm;
}

/*
 * The guest sets its system call entry: the real LSTAR points to the trampoline, which is made visible in the address
 * space of the moment. That is the one from which Linux copies the kernel's half of every later one.
 */
static bool lstar_write(const struct pvm *pvm, const struct host_vcpu *vcpu)
{
	uint64_t cr3 = vcpu->run->s.regs.sregs.cr3;
	uint8_t *pgd = memory_at(pvm->memory, (gpa_t){cr3 & CR3_ADDRESS_MASK}, PAGE_BYTES);

	if (!pgd || !kvm_msr_set(vcpu->fd, MSR_LSTAR, TRAMPOLINE_GVA))
		return false;
	store_u64(pgd, TRAMPOLINE_PGD_SLOT, RESERVED_GPA | PTE_TABLE);
	return true;
}

static bool msr_write(struct pvm *pvm, const struct host_vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;

	if (run->msr.index == MSR_LSTAR ? !lstar_write(pvm, vcpu)
	                                : !kvm_msr_set(vcpu->fd, run->msr.index, run->msr.data))
		return false;
	pvm->msrs[vcpu->index][run->msr.index - MSR_STAR] = run->msr.data;
	return true;
}

/*
 * In the trampoline. SYSCALL has set RCX and R11, and RFLAGS too; but whenever the host interrupts this CPL 3 code, it
 * goes on with interrupts enabled, and one that came before the guest kernel's SWAPGS would be its end. So everything
 * but RCX and R11 is set as SYSCALL does (SDM vol. 2B).
 */
static void enter_kernel(const struct pvm *pvm, const struct host_vcpu *vcpu)
{
	const uint64_t *msrs = pvm->msrs[vcpu->index];
	struct kvm_sync_regs *sync = &vcpu->run->s.regs;
	uint16_t selector = (uint16_t)(msrs[STAR] >> 32);

	sync->sregs.cs = (struct kvm_segment){
		.limit = 0xffffffff, .selector = selector & 0xfffc, .type = 11, .present = 1, .s = 1, .l = 1, .g = 1};
	sync->sregs.ss = (struct kvm_segment){.limit = 0xffffffff,
	                                      .selector = (uint16_t)(selector + 8),
	                                      .type = 3,
	                                      .present = 1,
	                                      .db = 1,
	                                      .s = 1,
	                                      .g = 1};
	/*
	 * KVM_SYNC_REGS never clears a bit here (Linux, arch/x86/kvm/x86.c, __get_sregs), so an interrupt that was on
	 * its way at some exit long ago would be injected again: now, on the program's stack and before SWAPGS. What is
	 * on its way in truth KVM keeps to itself.
	 */
	memset(sync->sregs.interrupt_bitmap, 0, sizeof(sync->sregs.interrupt_bitmap));
	/* A program that jumps to the trampoline has RFLAGS of its choice there; SYSRET would give it IOPL 3. */
	sync->regs.r11 &= RFLAGS_USER | RFLAGS_FIXED;
	sync->regs.rip = msrs[LSTAR];
	sync->regs.rflags = (sync->regs.r11 & ~msrs[FMASK]) | RFLAGS_FIXED;
	vcpu->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS | KVM_SYNC_X86_SREGS;
}

static bool is_syscall_msr(uint32_t index)
{
	return index - MSR_STAR < SYSCALL_MSRS;
}

static bool pvm_exit(void *state, const struct host_vcpu *vcpu)
{
	struct pvm *pvm = state;
	struct kvm_run *run = vcpu->run;

	switch (run->exit_reason) {
	case KVM_EXIT_X86_RDMSR:
		if (!is_syscall_msr(run->msr.index))
			return false;
		run->msr.data = pvm->msrs[vcpu->index][run->msr.index - MSR_STAR];
		run->msr.error = 0;
		return true;
	case KVM_EXIT_X86_WRMSR:
		if (run->msr.index == MSR_IA32_TSC_DEADLINE) {
			run->msr.error = !host_pvm_timer_write(&pvm->timers[vcpu->index], vcpu, run->msr.data);
			return true;
		}
		if (!is_syscall_msr(run->msr.index))
			return false;
		run->msr.error = msr_write(pvm, vcpu) ? 0 : 1; /* 1: #GP */
		return true;
	case KVM_EXIT_MMIO:
		if (run->mmio.phys_addr != TRAMPOLINE_MMIO_GPA)
			return false;
		enter_kernel(pvm, vcpu);
		return true;
	case KVM_EXIT_INTERNAL_ERROR:
		return host_pvm_emulate(pvm->memory, vcpu);
	default:
		return false;
	}
}

static bool pvm_owns(uint64_t rip)
{
	return rip >= TRAMPOLINE_GVA && rip - TRAMPOLINE_GVA < PAGE_BYTES;
}

static const struct guest_msr_range exiting_msrs[] = {
	{MSR_STAR, MSR_FMASK, true, true},
	{MSR_IA32_TSC_DEADLINE, MSR_IA32_TSC_DEADLINE, false, true},
};

const struct host_quirks host_quirks_pvm = {
	.sentences = sentences,
	.options = options,
	.reserved = {RESERVED_GPA},
	.reserved_bytes = RESERVED_PAGES * PAGE_BYTES,
	.msrs = exiting_msrs,
	.msrs_n = G_N_ELEMENTS(exiting_msrs),
	.vm_init = pvm_init,
	.cpuid = edit_cpuid,
	.exit = pvm_exit,
	.owns = pvm_owns,
};
