// SPDX-License-Identifier: BSD-2-Clause
/* The guest kernel's command line, and ours. */
#include <check.h>

#include "kvm/boot/boot_devices.h"
#include "kvm/boot/command_line.h"
#include "kvm/host/x86/host_quirks.h"
#include "kvm/options.h"
#include "run_suite.h"

static void check_line(bool is_linux, const char *const *options, const char *user, const char *expected)
{
	char *line = command_line_build(is_linux, BOOT_UART_16550, options, 0, user);

	ck_assert_str_eq(line, expected);
	g_free(line);
}

static const char *const some[] = {"mitigations=off", "nowatchdog", "clearcpuid=a,b", NULL};

START_TEST(defaults_come_first)
{
	check_line(true, NULL, NULL, "console=ttyS0 panic=-1 reboot=k");
	check_line(true, NULL, "quiet", "console=ttyS0 panic=-1 reboot=k quiet");
	g_autofree char *pl011 = command_line_build(true, BOOT_UART_PL011, NULL, 0, "quiet");
	ck_assert_str_eq(pl011, "console=ttyAMA0 panic=-1 reboot=k quiet");
	check_line(true, some, "quiet",
	           "console=ttyS0 panic=-1 reboot=k mitigations=off nowatchdog clearcpuid=a,b quiet");
}
END_TEST

START_TEST(the_user_has_the_last_word)
{
	check_line(true, NULL, "console=tty0 panic=5", "reboot=k console=tty0 panic=5");
	check_line(true, some, "nowatchdog clearcpuid=c",
	           "console=ttyS0 panic=-1 reboot=k mitigations=off nowatchdog clearcpuid=c");
	check_line(true, some, "mitigations=auto\tx",
	           "console=ttyS0 panic=-1 reboot=k nowatchdog clearcpuid=a,b mitigations=auto\tx");
	/* Not the same option, */
	check_line(true, NULL, "panic_on_oops=1", "console=ttyS0 panic=-1 reboot=k panic_on_oops=1");
	/* and not the kernel's. */
	check_line(true, NULL, "quiet -- panic=1", "console=ttyS0 panic=-1 reboot=k quiet -- panic=1");
}
END_TEST

START_TEST(virtio_devices_are_told_of)
{
	char *line = command_line_build(true, BOOT_UART_16550, some, 2, "quiet");

	ck_assert_str_eq(line, "console=ttyS0 panic=-1 reboot=k mitigations=off nowatchdog clearcpuid=a,b"
	                       " virtio_mmio.device=0x1000@0xd0010000:5 virtio_mmio.device=0x1000@0xd0011000:6 quiet");
	g_free(line);
}
END_TEST

START_TEST(others_get_what_the_user_says)
{
	check_line(false, some, "--verbose", "--verbose");
	check_line(false, some, NULL, "");
}
END_TEST

/* Linux reads clearcpuid= into 128 bytes (arch/x86/kernel/fpu/init.c and cpu/common.c), and 2 KiB in all. */
START_TEST(pvm_options_fit_linux)
{
	const char *const *options = host_quirks_find(HOST_PVM)->options;
	size_t clearcpuid = 0;
	for (size_t i = 0; options[i]; i++) {
		if (g_str_has_prefix(options[i], "clearcpuid="))
			clearcpuid = strlen(options[i]) - strlen("clearcpuid=");
	}
	ck_assert_uint_gt(clearcpuid, 0);
	ck_assert_uint_lt(clearcpuid, 128);
	char *line = command_line_build(true, BOOT_UART_16550, options, BOOT_VIRTIO_MAX, NULL);
	ck_assert_uint_lt(strlen(line), 1536);
	g_free(line);
}
END_TEST

START_TEST(hardware_hosts_have_no_quirks)
{
	ck_assert_ptr_null(host_quirks_find(HOST_VMX));
	ck_assert_ptr_null(host_quirks_find(HOST_SVM));
	ck_assert_ptr_null(host_quirks_find(HOST_UNKNOWN));
}
END_TEST

START_TEST(sizes)
{
	uint64_t bytes = 7;

	ck_assert(options_parse_size("128M", &bytes));
	ck_assert_uint_eq(bytes, UINT64_C(128) << 20);
	ck_assert(options_parse_size("64G", &bytes));
	ck_assert_uint_eq(bytes, UINT64_C(64) << 30);
	ck_assert(options_parse_size("262144K", &bytes));
	ck_assert_uint_eq(bytes, UINT64_C(256) << 20);
	static const char *const bad[] = {"", "M", "128", "128m", "128MB", "-1G", " 1G", "1.5G", "99999999999999G"};
	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++)
		ck_assert_msg(!options_parse_size(bad[i], &bytes), "\"%s\" was taken", bad[i]);
	ck_assert_uint_eq(bytes, UINT64_C(256) << 20);
}
END_TEST

static bool parse(const char *text, struct vmm_options *options, GError **error)
{
	g_auto(GStrv) words = g_strsplit(text, " ", -1);
	int argc = (int)g_strv_length(words);
	g_autofree char **argv = g_memdup2(words, (gsize)(argc + 1) * sizeof(*words));

	return options_parse(&argc, &argv, options, error);
}

START_TEST(defaults)
{
	struct vmm_options options;

	ck_assert(parse("vprof-vmm --kernel vmlinux", &options, NULL));
	ck_assert_str_eq(options.kernel, "vmlinux");
	ck_assert_uint_eq(options.memory_bytes, UINT64_C(256) << 20);
	ck_assert_uint_eq(options.vcpus, 1);
	ck_assert_int_eq(options.boot, BOOT_AUTO);
	ck_assert_int_eq(options.uart, BOOT_UART_AUTO);
	ck_assert_int_eq(options.client_fd, -1);
	ck_assert_str_eq(options.console, "stdio");
	ck_assert_int_eq(options.pmu, VM_PMU_OFF);
	ck_assert(options.quirks && !options.paused && options.on_panic == VM_PANIC_IGNORED);
	options_clear(&options);
}
END_TEST

START_TEST(usage_errors)
{
	static const char *const bad[] = {
		"vprof-vmm",
		"vprof-vmm --kernel x y",
		"vprof-vmm --kernel x --vcpus 0",
		"vprof-vmm --kernel x --vcpus 65",
		"vprof-vmm --kernel x --memory 64M",
		"vprof-vmm --kernel x --memory 129M",
		"vprof-vmm --kernel x --memory 65G",
		"vprof-vmm --kernel x --boot uefi",
		"vprof-vmm --kernel x --uart 8250",
		"vprof-vmm --kernel x --quirks maybe",
		"vprof-vmm --kernel x --pmu yes",
		"vprof-vmm --kernel x --pmu-filter cycles",
		"vprof-vmm --kernel x --pmu emulated --pmu-filter cycles",
		"vprof-vmm --kernel x --pmu kvm --pmu-filter cycle",
		"vprof-vmm --kernel x --duration -1",
		"vprof-vmm --kernel x --no-such-option",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(bad); i++) {
		struct vmm_options options;
		GError *error = NULL;

		ck_assert_msg(!parse(bad[i], &options, &error), "taken: %s", bad[i]);
		ck_assert_ptr_nonnull(error);
		ck_assert(error->domain == G_OPTION_ERROR);
		g_error_free(error);
		options_clear(&options);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("command_line");
	TCase *test = tcase_create("command_line");
	tcase_add_test(test, defaults_come_first);
	tcase_add_test(test, the_user_has_the_last_word);
	tcase_add_test(test, virtio_devices_are_told_of);
	tcase_add_test(test, others_get_what_the_user_says);
	tcase_add_test(test, pvm_options_fit_linux);
	tcase_add_test(test, hardware_hosts_have_no_quirks);
	tcase_add_test(test, sizes);
	tcase_add_test(test, defaults);
	tcase_add_test(test, usage_errors);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
