// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/vcpu_pmu.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/host/host.h"
#include "kvm/host/x86/kvm_vcpu.h"
#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vcpu/x86/rdpmc.h"
#include "kvm/vcpu/x86/vcpu_x86.h"
#include "lib/record/clock.h"

/* The LVT entry of the PMU (SDM vol. 3A, 11.5.1, figure 11-8), in the APIC's page and as an MSR in x2APIC mode. */
#define APIC_LVTPC 0x340u
#define APIC_ISR 0x100u /* vectors that are being handled, 32 bits in 16 bytes; and those that wait */
#define APIC_IRR 0x200u
#define X2APIC_LVTPC 0x834u
#define LVT_VECTOR 0xffu
#define LVT_DELIVERY 0x700u
#define LVT_FIXED 0x000u
#define LVT_NMI 0x400u
#define LVT_MASKED 0x10000u
#define MSI_ADDRESS 0xfee00000u   /* SDM vol. 3A, 11.11.1; the APIC id is in bits 19:12 */
#define DEBUGCTL_KVMS UINT64_C(3) /* LBR and BTF, which are KVM's to deal with; all others have their CPUID bits */
#define MISC_ENABLE_PMU (1u << 7 | 1u << 11 | 1u << 12) /* there is one; it has neither BTS nor PEBS */
#define MODE_LOOK_NS UINT64_C(500000)                   /* an interrupt waits for the guest to change its mode */
#define APIC_BASE_X2APIC (UINT64_C(1) << 10)

bool vcpu_pmu_init(struct vcpu *vcpu, const struct pmu_host_events *events, GError **error)
{
	int khz = ioctl(vcpu->fd, KVM_GET_TSC_KHZ, 0);

	if (khz <= 0) {
		g_set_error(error, HOST_ERROR, HOST_ERROR_SYSTEM,
		            "cannot learn the TSC's frequency for the guest's PMU: %s; take --pmu off",
		            khz < 0 ? g_strerror(errno) : "KVM has none");
		return false;
	}
	if (!vcpu_misc_enable(vcpu, MISC_ENABLE_PMU, error))
		return false;
	vcpu->arch->pmu = g_new0(struct vcpu_pmu, 1);
	pmu_host_init(&vcpu->arch->pmu->host, events, (uint64_t)khz);
	pmu_init(&vcpu->arch->pmu->pmu, &vcpu->arch->pmu->host.source);
	return true;
}

void vcpu_pmu_deinit(struct vcpu *vcpu)
{
	g_free(vcpu->arch->pmu);
	vcpu->arch->pmu = NULL;
}

void vcpu_pmu_attach(struct vcpu *vcpu, int signal)
{
	g_autoptr(GError) error = NULL;

	if (!pmu_host_attach(&vcpu->arch->pmu->host, signal, &error))
		vcpu->machine->ops->ended(vcpu->machine, GUEST_END_VMM_ERROR, g_strdup(error->message));
}

void vcpu_pmu_detach(struct vcpu *vcpu)
{
	pmu_host_detach(&vcpu->arch->pmu->host);
}

void vcpu_pmu_left(struct vcpu *vcpu, bool interrupted)
{
	struct vcpu_pmu *pmu = vcpu->arch->pmu;

	pmu_host_left(&pmu->host, interrupted, vcpu->run->s.regs.sregs.ss.dpl == 3);
	pmu->due = pmu_host_due(&pmu->host, interrupted);
}

static bool is_x2apic(const struct vcpu *vcpu)
{
	return (vcpu->run->s.regs.sregs.apic_base & APIC_BASE_X2APIC) != 0;
}

/*
 * Delivering the interrupt masks its LVT entry (SDM vol. 3A, 11.5.1). In x2APIC mode that is one MSR. Otherwise it
 * would take KVM_SET_LAPIC, which writes the whole APIC and loses the interrupts that others have sent meanwhile; so
 * the mask is ours then, and goes when the guest is done with the overflow.
 */
static void mask_lvt(struct vcpu *vcpu, uint32_t lvt)
{
	vcpu->arch->pmu->masked = !is_x2apic(vcpu) || !kvm_msr_set(vcpu->fd, X2APIC_LVTPC, lvt | LVT_MASKED);
}

/* False: its LVT entry is masked, and the interrupt is discarded. */
static bool deliver(struct vcpu *vcpu)
{
	struct kvm_lapic_state lapic;
	uint32_t lvt;

	if (vcpu->arch->pmu->masked || ioctl(vcpu->fd, KVM_GET_LAPIC, &lapic) < 0)
		return false;
	memcpy(&lvt, lapic.regs + APIC_LVTPC, sizeof(lvt));
	/* A message from the vCPU to itself: KVM_INTERRUPT is not for vCPUs with an APIC in the kernel. */
	const struct kvm_msi msi = {.address_lo = MSI_ADDRESS | vcpu->index << 12, .data = lvt & LVT_VECTOR};
	if (lvt & LVT_MASKED)
		return false;
	if ((lvt & LVT_DELIVERY) == LVT_NMI)
		ioctl(vcpu->fd, KVM_NMI);
	else if ((lvt & LVT_DELIVERY) == LVT_FIXED)
		ioctl(vcpu->machine->fd, KVM_SIGNAL_MSI, &msi);
	vcpu->arch->pmu->lvt = lvt;
	mask_lvt(vcpu, lvt);
	return true;
}

static bool vector_is_in(const struct kvm_lapic_state *lapic, unsigned first, unsigned vector)
{
	uint32_t bits;

	memcpy(&bits, lapic->regs + first + vector / 32 * 16, sizeof(bits));
	return (bits >> vector % 32 & 1) != 0;
}

/* Whether the last interrupt has not come to its end: the IRET of an NMI, the EOI of another. */
static bool guest_handles(const struct vcpu *vcpu)
{
	struct kvm_vcpu_events events;
	struct kvm_lapic_state lapic;
	unsigned vector = vcpu->arch->pmu->lvt & LVT_VECTOR;

	if ((vcpu->arch->pmu->lvt & LVT_DELIVERY) == LVT_NMI)
		return ioctl(vcpu->fd, KVM_GET_VCPU_EVENTS, &events) == 0 &&
		       (events.nmi.masked || events.nmi.pending || events.nmi.injected);
	return ioctl(vcpu->fd, KVM_GET_LAPIC, &lapic) == 0 &&
	       (vector_is_in(&lapic, APIC_ISR, vector) || vector_is_in(&lapic, APIC_IRR, vector));
}

/* Whether an interrupt that is delivered now finds the guest in user mode. An event that KVM delivers first leaves it.
 */
static bool user_is_next(const struct vcpu *vcpu)
{
	struct kvm_vcpu_events events;

	return vcpu->regs.valid && vcpu->run->s.regs.sregs.ss.dpl == 3 &&
	       ioctl(vcpu->fd, KVM_GET_VCPU_EVENTS, &events) == 0 && !events.interrupt.injected &&
	       !events.exception.injected && !events.exception.pending;
}

static void interrupt(struct vcpu *vcpu, uint64_t now_ns)
{
	struct vcpu_pmu *pmu = vcpu->arch->pmu;

	if (!pmu_throttle_open(&pmu->throttle, now_ns)) {
		pmu->figures.held += !pmu->held;
		pmu->held = true;
		return;
	}
	if (!pmu_interrupt_fits(&pmu->pmu, user_is_next(vcpu)))
		return;
	pmu_delivered(&pmu->pmu);
	if (!deliver(vcpu))
		return;
	pmu->figures.interrupts++;
	pmu_throttle_delivered(&pmu->throttle, now_ns);
}

void vcpu_pmu_handled(struct vcpu *vcpu)
{
	struct vcpu_pmu *pmu = vcpu->arch->pmu;

	if (pmu->due)
		pmu_sync(&pmu->pmu);
	pmu->held &= pmu->pmu.state.interrupt;
	if (!pmu->throttle.handling && !pmu->pmu.state.interrupt)
		return;
	uint64_t now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (pmu_throttle_looks(&pmu->throttle, now_ns))
		pmu_throttle_found(&pmu->throttle, now_ns, guest_handles(vcpu));
	if (pmu->pmu.state.interrupt)
		interrupt(vcpu, now_ns);
}

/* How long the guest may run until the interrupt that waits, or the last one, is to be looked at. */
static uint64_t look_in_ns(const struct vcpu_pmu *pmu)
{
	bool waits = pmu->pmu.state.interrupt;

	if (!pmu->throttle.handling && !waits)
		return UINT64_MAX;
	uint64_t now_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);
	if (waits && pmu_throttle_open(&pmu->throttle, now_ns))
		return MODE_LOOK_NS;
	return pmu_throttle_in_ns(&pmu->throttle, now_ns, waits);
}

void vcpu_pmu_enter(struct vcpu *vcpu)
{
	pmu_host_enter(&vcpu->arch->pmu->host, look_in_ns(vcpu->arch->pmu));
}

static void add_counter(struct guest_vcpu_time *out, const char *name, uint64_t value)
{
	if (out->n_counters == GUEST_COUNTERS_MAX)
		return;
	struct guest_counter *counter = &out->counters[out->n_counters++];
	*counter = (struct guest_counter){.value = value};
	g_strlcpy(counter->name, name, sizeof(counter->name));
}

static struct vcpu_pmu_figures figures_now(const struct vcpu_pmu *pmu)
{
	struct vcpu_pmu_figures figures = pmu->figures;

	figures.merged = pmu->pmu.merged;
	return figures;
}

void vcpu_pmu_counters(const struct vcpu *vcpu, struct guest_vcpu_time *out)
{
	struct vcpu_pmu_figures now = figures_now(vcpu->arch->pmu);

	add_counter(out, "pmu_interrupts", now.interrupts - vcpu->arch->pmu->base.interrupts);
	add_counter(out, "pmu_held", now.held - vcpu->arch->pmu->base.held);
	add_counter(out, "pmu_merged", now.merged - vcpu->arch->pmu->base.merged);
}

void vcpu_pmu_reset(struct vcpu *vcpu)
{
	vcpu->arch->pmu->base = figures_now(vcpu->arch->pmu);
}

static bool read_msr(struct vcpu *vcpu, uint32_t index, uint64_t *value)
{
	struct pmu *pmu = &vcpu->arch->pmu->pmu;

	if (index != PMU_MSR_DEBUGCTL)
		return pmu_read(pmu, index, value);
	if (!kvm_msr_get(vcpu->fd, index, value))
		return false;
	*value = (*value & ~PMU_DEBUGCTL_BITS) | pmu_debugctl_read(pmu);
	return true;
}

/* The guest has acknowledged an overflow, or lets the counters run. */
static bool ends_overflow(uint32_t index, uint64_t value)
{
	return index == PMU_MSR_GLOBAL_OVF_CTRL || (index == PMU_MSR_GLOBAL_CTRL && value != 0);
}

static bool write_msr(struct vcpu *vcpu, uint32_t index, uint64_t value)
{
	struct pmu *pmu = &vcpu->arch->pmu->pmu;

	if (index != PMU_MSR_DEBUGCTL) {
		bool done = pmu_write(pmu, index, value);

		if (done && ends_overflow(index, value)) {
			vcpu->arch->pmu->masked = false;
			pmu_throttle_nearly(&vcpu->arch->pmu->throttle, clock_ns(CLOCK_THREAD_CPUTIME_ID));
		}
		return done;
	}
	/* Our own writes may set more than a guest's (KVM's host_initiated). */
	if (value & ~(PMU_DEBUGCTL_BITS | DEBUGCTL_KVMS) || !kvm_msr_set(vcpu->fd, index, value & DEBUGCTL_KVMS))
		return false;
	pmu_debugctl_write(pmu, value);
	return true;
}

static bool is_ours(uint32_t index)
{
	for (size_t i = 0; i < pmu_msr_ranges_n; i++) {
		if (index >= pmu_msr_ranges[i].first && index <= pmu_msr_ranges[i].last)
			return true;
	}
	return false;
}

static bool msr_exit(struct vcpu *vcpu)
{
	struct kvm_run *run = vcpu->run;
	uint64_t value = 0;

	if (!is_ours(run->msr.index))
		return false;
	if (run->exit_reason == KVM_EXIT_X86_WRMSR) {
		run->msr.error = !write_msr(vcpu, run->msr.index, run->msr.data);
	} else {
		run->msr.error = !read_msr(vcpu, run->msr.index, &value);
		run->msr.data = value;
	}
	return true;
}

/*
 * A replaced RDPMC. KVM has the OUT behind it or puts it there without looking at RAX and RDX again. An index that has
 * no counter reads as 0 instead of #GP: the instruction is over.
 */
static bool rdpmc_exit(struct vcpu *vcpu)
{
	const struct kvm_run *run = vcpu->run;
	struct kvm_regs *regs = &vcpu->run->s.regs.regs;
	uint64_t value = 0;

	if (run->io.port != RDPMC_PORT || run->io.direction != KVM_EXIT_IO_OUT || run->io.size * run->io.count != 1 ||
	    run->s.regs.sregs.ss.dpl != 0)
		return false;
	pmu_rdpmc(&vcpu->arch->pmu->pmu, (uint32_t)regs->rcx, &value);
	regs->rax = value & UINT32_MAX;
	regs->rdx = value >> 32;
	vcpu->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
	return true;
}

bool vcpu_pmu_exit(struct vcpu *vcpu)
{
	switch (vcpu->run->exit_reason) {
	case KVM_EXIT_X86_RDMSR:
	case KVM_EXIT_X86_WRMSR:
		return msr_exit(vcpu);
	case KVM_EXIT_IO:
		return rdpmc_exit(vcpu);
	default:
		return false;
	}
}
