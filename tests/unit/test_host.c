// SPDX-License-Identifier: BSD-2-Clause
/* What is made of a KVM's answers to KVM_CHECK_EXTENSION. */
#include <check.h>
#include <stdarg.h>
#include <sys/ioctl.h>

#include "kvm/host/host.h"
#include "run_suite.h"

static int answer_sync_regs, answer_other; /* 0 or 1 */

/* In place of libc's: a KVM. Only two of the extensions answer with a mask (Documentation/virt/kvm/api.rst). */
int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;

	(void)fd;
	va_start(arguments, request);
	int extension = va_arg(arguments, int);
	va_end(arguments);
	ck_assert_uint_eq(request, KVM_CHECK_EXTENSION);
	switch (extension) {
	case KVM_CAP_SYNC_REGS:
		return answer_sync_regs;
	case KVM_CAP_PMU_CAPABILITY:
		return answer_other * KVM_PMU_CAP_DISABLE;
	default:
		return answer_other;
	}
}

static void expect(const struct host_capability *capability, bool present)
{
	ck_assert_msg(host_has(-1, capability) == present, "%s", capability->name);
}

START_TEST(a_new_kvm_has_all)
{
	answer_sync_regs = KVM_SYNC_X86_VALID_FIELDS;
	answer_other = 1;
	for (const struct host_capability *capability = host_capabilities; capability->name; capability++)
		expect(capability, true);
}
END_TEST

START_TEST(what_is_not_there_is_missing)
{
	answer_sync_regs = answer_other = 0;
	for (const struct host_capability *capability = host_capabilities; capability->name; capability++)
		expect(capability, false);
}
END_TEST

/* Only the general registers are shared. */
START_TEST(a_part_of_a_mask_is_not_enough)
{
	answer_sync_regs = KVM_SYNC_X86_REGS;
	answer_other = 1;
	for (const struct host_capability *capability = host_capabilities; capability->name; capability++)
		expect(capability, capability->number != KVM_CAP_SYNC_REGS);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("host");
	TCase *tcase = tcase_create("capabilities");

	tcase_add_test(tcase, a_new_kvm_has_all);
	tcase_add_test(tcase, what_is_not_there_is_missing);
	tcase_add_test(tcase, a_part_of_a_mask_is_not_enough);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
