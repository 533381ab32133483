// SPDX-License-Identifier: BSD-2-Clause
/* What a guest gets of its own debug exceptions while breakpoints of ours are set. */
#include <check.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vcpu/x86/vcpu_x86.h"
#include "run_suite.h"

#define DR6_FIXED UINT64_C(0xffff0ff0)

static struct vcpu_machine machine;
static struct machine_arch machine_arch;
static struct vcpu_arch arch;
static struct vcpu vcpu;
static struct kvm_run run;
static struct kvm_debugregs registers; /* the vCPU's, and what was asked of KVM last */
static struct kvm_guest_debug debug;
static unsigned hits;

/* In place of libc's: a vCPU in KVM. */
int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	(void)fd;
	va_start(arguments, request);
	void *data = va_arg(arguments, void *);
	va_end(arguments);
	switch (request) {
	case KVM_GET_DEBUGREGS:
		memcpy(data, &registers, sizeof(registers));
		return 0;
	case KVM_SET_DEBUGREGS:
		memcpy(&registers, data, sizeof(registers));
		return 0;
	case KVM_SET_GUEST_DEBUG:
		memcpy(&debug, data, sizeof(debug));
		return 0;
	default:
		ck_abort_msg("ioctl 0x%lx", request);
	}
}

static void hit(struct guest_breakpoint *breakpoint, unsigned index, const struct guest_regs *regs,
                const struct guest_gprs *gprs)
{
	(void)breakpoint;
	(void)index;
	(void)regs;
	(void)gprs;
	hits++;
}

static struct guest_breakpoint ours = {.at = {0x1000}, .hit = hit};

static void setup(void)
{
	hits = 0;
	memset(&run, 0, sizeof(run));
	run.exit_reason = KVM_EXIT_DEBUG;
	registers = (struct kvm_debugregs){.db = {1, 2, 3, 4}, .dr6 = DR6_FIXED, .dr7 = 0x401};
	memset(&vcpu, 0, sizeof(vcpu));
	vcpu.machine = &machine;
	vcpu.run = &run;
	vcpu.fd = -1;
	vcpu.arch = &arch;
	machine.arch = &machine_arch;
	arch = (struct vcpu_arch){0};
	vcpu.debug.breakpoints = (struct breakpoints){.n = 1, .all = {&ours}};
}

static void leave(uint32_t exception, uint64_t pc, uint64_t dr6)
{
	run.debug.arch = (struct kvm_debug_exit_arch){.exception = exception, .pc = pc, .dr6 = DR6_FIXED | dr6};
	vcpu_debug_exit(&vcpu);
}

static void expect(uint32_t injected, uint64_t dr6)
{
	ck_assert_uint_eq(debug.control & (KVM_GUESTDBG_INJECT_DB | KVM_GUESTDBG_INJECT_BP), injected);
	ck_assert_uint_eq(registers.dr6, DR6_FIXED | dr6);
	ck_assert_uint_eq(registers.dr7, 0x401);
	ck_assert_uint_eq(registers.db[3], 4);
}

/* A step (TF), its own breakpoint 1, MOV to a debug register with DR7.GD, a task switch. */
START_TEST(its_own_exceptions_say_what_they_are)
{
	static const uint64_t bits[] = {1u << 14, 1u << 1, 1u << 13, 1u << 15, 1u << 14 | 1u << 2};

	for (size_t i = 0; i < G_N_ELEMENTS(bits); i++) {
		setup();
		leave(1, 0x2000, bits[i]);
		expect(KVM_GUESTDBG_INJECT_DB, bits[i]);
	}
	ck_assert_uint_eq(hits, 0);
}
END_TEST

/* The processor clears bits 3:0 only; the guest clears BS itself. */
START_TEST(the_processor_clears_the_breakpoints_only)
{
	registers.dr6 = DR6_FIXED | 1u << 14 | 1u << 3;
	leave(1, 0x2000, 1u << 1);
	expect(KVM_GUESTDBG_INJECT_DB, 1u << 14 | 1u << 1);
}
END_TEST

START_TEST(an_int3_leaves_dr6_alone)
{
	leave(3, 0x2000, 1u << 14);
	expect(KVM_GUESTDBG_INJECT_BP, 0);
}
END_TEST

START_TEST(ours_are_not_seen)
{
	leave(1, 0x1000, 1);
	ck_assert_uint_eq(hits, 1);
	expect(0, 0);
	leave(1, 0x1001, 1u << 14); /* the step over it */
	expect(0, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("debug exits");
	TCase *tcase = tcase_create("DR6");

	tcase_add_checked_fixture(tcase, setup, NULL);
	tcase_add_test(tcase, its_own_exceptions_say_what_they_are);
	tcase_add_test(tcase, the_processor_clears_the_breakpoints_only);
	tcase_add_test(tcase, an_int3_leaves_dr6_alone);
	tcase_add_test(tcase, ours_are_not_seen);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
