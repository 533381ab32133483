// SPDX-License-Identifier: BSD-2-Clause
/* Monitors and their guests by program and command line, as each of them is started. */
#include <check.h>
#include <string.h>

#include "lib/process/vmm_name.h"
#include "run_suite.h"

/* The command line is a string literal whose arguments end with \0. */
#define ASSERT_NAMES(program, arguments, vmm_, guest_)                                            \
	do {                                                                                      \
		struct vmm_name name = vmm_name_parse(program, arguments, sizeof(arguments) - 1); \
                                                                                                  \
		ck_assert_str_eq(name.vmm, vmm_);                                                 \
		ck_assert_pstr_eq(name.guest, guest_);                                            \
		vmm_name_clear(&name);                                                            \
	} while (0)

START_TEST(guests_have_the_names_of_their_command_lines)
{
	ASSERT_NAMES("/usr/bin/qemu-system-x86_64", "qemu-system-x86_64\0-accel\0kvm\0-name\0web,debug-threads=on\0",
	             "QEMU", "web");
	ASSERT_NAMES("/usr/libexec/qemu-kvm", "qemu-kvm\0-name\0debug-threads=on,guest=a,,b\0", "QEMU", "a,b");
	ASSERT_NAMES("/usr/bin/qemu-system-x86_64", "qemu-system-x86_64\0-name\0debug-threads=on\0", "QEMU", NULL);
	ASSERT_NAMES("/usr/bin/qemu-system-x86_64",
	             "qemu-system-x86_64\0-m\0"
	             "1G\0",
	             "QEMU", NULL);
	ASSERT_NAMES("/firecracker",
	             "/firecracker\0--id=vm7\0--start-time-us\0"
	             "3\0",
	             "Firecracker", "vm7");
	ASSERT_NAMES("/opt/firecracker-v1.16.1-x86_64", "./fc\0--no-api\0--id\0vm8\0", "Firecracker", "vm8");
	ASSERT_NAMES("/usr/bin/cloud-hypervisor", "cloud-hypervisor\0--api-socket\0path=/run/db.sock,mode=1\0",
	             "Cloud Hypervisor", "db");
	ASSERT_NAMES("/usr/bin/cloud-hypervisor-static", "ch\0--api-socket=/run/db.eu.sock\0", "Cloud Hypervisor",
	             "db.eu");
	ASSERT_NAMES("/usr/bin/cloud-hypervisor", "ch\0--api-socket\0fd=7\0", "Cloud Hypervisor", NULL);
	ASSERT_NAMES("/usr/bin/crosvm", "crosvm\0run\0-s\0/run/c.sock\0vmlinux\0", "crosvm", "c");
	ASSERT_NAMES("/usr/bin/lkvm", "lkvm\0run\0--name\0t\0", "kvmtool", "t");
	ASSERT_NAMES("/usr/bin/runsc", "runsc-sandbox\0--platform=kvm\0boot\0hello\0", "gVisor", "hello");
	ASSERT_NAMES("/usr/libexec/vprof/vprof-vmm", "vprof-vmm\0--name\0demo\0", "vprof", "demo");
}
END_TEST

START_TEST(programs_are_known_when_their_file_is_not)
{
	ASSERT_NAMES(NULL, "/usr/bin/lkvm\0run\0", "kvmtool", NULL);
	ASSERT_NAMES("/memfd:runsc (deleted)", "runsc-sandbox\0boot\0id\0", "gVisor", "id");
	ASSERT_NAMES("/usr/bin/lkvm (deleted)", "x\0", "kvmtool", NULL);
	ASSERT_NAMES("/usr/bin/other (deleted)", "other\0--id\0x\0", "other", NULL);
	ASSERT_NAMES("/tmp/ (deleted)", "x\0", " (deleted)", NULL);
	ASSERT_NAMES("/usr/bin/kvmd", "kvmd\0-name\0x\0", "kvmd", NULL);
	ASSERT_NAMES(NULL, "", "?", NULL);
}
END_TEST

START_TEST(what_is_cut_off_names_nothing)
{
	char arguments[600] = "firecracker\0--id";

	ASSERT_NAMES("/firecracker", "firecracker\0--id\0", "Firecracker", NULL);
	ASSERT_NAMES("/firecracker", "firecracker\0--id", "Firecracker", NULL);
	ASSERT_NAMES("/firecracker", "firecracker\0--id\0\0", "Firecracker", NULL);
	ASSERT_NAMES("/firecracker", "firecracker\0--id\0vm", "Firecracker", "vm");
	ASSERT_NAMES("/firecracker", "firecracker\0--idx\0vm\0", "Firecracker", NULL);
	memset(arguments + sizeof("firecracker\0--id"), 'x', 400);
	struct vmm_name name = vmm_name_parse("/firecracker", arguments, sizeof(arguments));

	ck_assert_uint_eq(strlen(name.guest), VMM_NAME_MAX);
	vmm_name_clear(&name);
}
END_TEST

START_TEST(libvirt_gives_a_uuid)
{
	static const char arguments[] = "qemu-system-x86_64\0-name\0guest=web\0-uuid\0"
					"11111111-2222-3333-4444-555555555555\0";
	struct vmm_name name = vmm_name_parse("/usr/bin/qemu-system-x86_64", arguments, sizeof(arguments) - 1);

	ck_assert_str_eq(name.uuid, "11111111-2222-3333-4444-555555555555");
	vmm_name_clear(&name);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("vmm_name");
	TCase *cases = tcase_create("command lines");

	tcase_add_test(cases, guests_have_the_names_of_their_command_lines);
	tcase_add_test(cases, programs_are_known_when_their_file_is_not);
	tcase_add_test(cases, what_is_cut_off_names_nothing);
	tcase_add_test(cases, libvirt_gives_a_uuid);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
