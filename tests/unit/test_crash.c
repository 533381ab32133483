// SPDX-License-Identifier: BSD-2-Clause
/* The report of a triple fault, from exits made by hand. */
#include <check.h>
#include <string.h>

#include "kvm/vcpu/x86/vcpu_x86.h"
#include "kvm/vm_parts.h"
#include "run_suite.h"

static struct vm vm;
static struct vcpu vcpu;
static struct kvm_run run;
static struct vcpu_arch arch;

static void setup(void)
{
	memset(&run, 0, sizeof(run));
	memset(&arch, 0, sizeof(arch));
	memset(&vm, 0, sizeof(vm));
	vm.guest.kernel_path = (char *)"/dev/null";
	vm.machine.ops = &vm_machine_ops;
	vm.machine.guest = &vm.guest;
	vm.consoles[0] = console_new(-1, NULL);
	ck_assert_ptr_nonnull(vm.consoles[0]);
	pthread_mutex_init(&vm.end_lock, NULL);
	memset(&vcpu, 0, sizeof(vcpu));
	vcpu.machine = &vm.machine;
	vcpu.index = 3;
	vcpu.run = &run;
	vcpu.fd = -1;
	vcpu.arch = &arch;
}

static void teardown(void)
{
	console_free(vm.consoles[0]);
	pthread_mutex_destroy(&vm.end_lock);
	g_free(vm.end_message);
	g_free(vm.crash.state.text);
}

static void leave(uint32_t reason, uint64_t rip)
{
	run.exit_reason = reason;
	run.s.regs.regs = (struct kvm_regs){.rip = rip, .rsp = rip + 1, .rax = rip + 2};
	run.s.regs.sregs = (struct kvm_sregs){.cr0 = 0x80000001, .cr3 = rip + 3};
	vcpu_keep_registers(&vcpu);
}

/* A triple fault after which the registers are those of INIT, as KVM leaves them on AMD processors. */
static void leave_reset(void)
{
	run.exit_reason = KVM_EXIT_SHUTDOWN;
	run.s.regs.regs = (struct kvm_regs){.rip = 0xfff0, .rdx = 0x830f10, .rflags = 2};
	run.s.regs.sregs = (struct kvm_sregs){.cr0 = 0x60000010, .cs = {.selector = 0xf000, .base = 0xffff0000}};
	vcpu_keep_registers(&vcpu);
}

static char *report(void)
{
	vcpu_crash(&vcpu, GUEST_END_TRIPLE_FAULT, g_strdup("triple fault"));
	ck_assert(vm.crashed);
	ck_assert_int_eq(vm.end_reason, GUEST_END_TRIPLE_FAULT);
	return vm_crash_report(&vm);
}

static void expect(const char *text, const char *part, bool there)
{
	ck_assert_msg((strstr(text, part) != NULL) == there, "%s", text);
}

START_TEST(a_reset_vcpu_has_the_registers_of_the_exit_before)
{
	leave(KVM_EXIT_IO, 0x1000);
	leave(KVM_EXIT_MMIO, 0x2000);
	leave_reset();
	g_autofree char *text = report();

	expect(text, "vCPU 3, ", true);
	expect(text, "last seen", true);
	expect(text, "RIP 0000000000002000  RSP 0000000000002001", true);
	expect(text, "RAX 0000000000002002", true);
	expect(text, "CR3 0000000000002003", true);
	expect(text, "fff0", false);
}
END_TEST

START_TEST(a_vcpu_that_was_not_reset_has_its_own)
{
	leave(KVM_EXIT_IO, 0x1000);
	leave(KVM_EXIT_SHUTDOWN, 0x3000);
	g_autofree char *text = report();

	expect(text, "last seen", false);
	expect(text, "RIP 0000000000003000  RSP 0000000000003001", true);
	expect(text, "CR3 0000000000003003", true);
}
END_TEST

/* The guest itself was at that address, with protection on. */
START_TEST(the_address_alone_is_no_reset)
{
	leave(KVM_EXIT_IO, 0x1000);
	leave(KVM_EXIT_SHUTDOWN, 0xfff0);
	g_autofree char *text = report();

	expect(text, "last seen", false);
	expect(text, "RIP 000000000000fff0", true);
}
END_TEST

/* Without an exit before there is nothing to tell but what is there. */
START_TEST(the_first_exit_may_be_the_reset)
{
	leave_reset();
	g_autofree char *text = report();

	expect(text, "last seen", false);
	expect(text, "RIP 000000000000fff0", true);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("crash");
	TCase *tcase = tcase_create("triple fault");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, a_reset_vcpu_has_the_registers_of_the_exit_before);
	tcase_add_test(tcase, a_vcpu_that_was_not_reset_has_its_own);
	tcase_add_test(tcase, the_address_alone_is_no_reset);
	tcase_add_test(tcase, the_first_exit_may_be_the_reset);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
