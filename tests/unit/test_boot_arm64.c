// SPDX-License-Identifier: BSD-2-Clause
/* A boot image of Linux in the memory of an arm64 machine, and the device tree that it gets. */
#include <check.h>
#include <glib/gstdio.h>
#include <libfdt.h>
#include <unistd.h>

#include "elf_builder.h"
#include "kvm/boot/arm64/boot_state.h"
#include "kvm/boot/boot_claims.h"
#include "run_suite.h"

#define MIB(n) ((uint64_t)(n) << 20)
#define INITRD_BYTES 5000u

static struct memory *memory;
static struct boot_config config;
static struct boot_state state;

/* The image of the fuzzing corpus, of which 0x40000 bytes are memory. */
static void setup(void)
{
	g_autofree char *path = g_build_filename(g_getenv("VPROF_SOURCE"), "tests/fuzz/corpus/image/arm64-image", NULL);
	g_autoptr(GError) error = NULL;

	memory = memory_new(MIB(128), &error);
	g_assert_no_error(error);
	config = (struct boot_config){.image = image_open(path, &error),
	                              .command_line = "console=ttyS0 quiet",
	                              .vcpus = 18,
	                              .n_virtio = 2,
	                              .uart = BOOT_UART_16550,
	                              .pmu = true};
	g_assert_no_error(error);
}

static void teardown(void)
{
	image_free((struct image *)config.image);
	memory_free(memory);
}

static const void *property(const char *node, const char *name, int *bytes)
{
	const void *tree = memory_at(memory, (gpa_t){state.device_tree}, 4096);
	const void *value = fdt_getprop(tree, fdt_path_offset(tree, node), name, bytes);

	ck_assert_msg(value, "%s has no %s", node, name);
	return value;
}

static uint64_t number(const char *node, const char *name)
{
	int bytes;
	const void *value = property(node, name, &bytes);

	ck_assert_int_eq(bytes, 8);
	return fdt64_ld(value);
}

START_TEST(linux_finds_what_it_needs)
{
	g_autofree char *path = NULL;
	const int fd = g_file_open_tmp("vprof-initrd-XXXXXX", &path, NULL);
	g_autofree uint8_t *initrd = g_malloc(INITRD_BYTES);
	g_autoptr(GError) error = NULL;
	int bytes;

	memset(initrd, 0x5a, INITRD_BYTES);
	ck_assert_int_eq(write(fd, initrd, INITRD_BYTES), INITRD_BYTES);
	close(fd);
	config.initrd_path = path;
	ck_assert_msg(boot_load(memory, &config, &state, &error), "%s", error ? error->message : "");
	unlink(path);
	ck_assert_uint_eq(state.pc, MIB(2));
	ck_assert_uint_eq(state.device_tree, MIB(126));
	ck_assert_mem_eq((uint8_t *)memory_at(memory, (gpa_t){state.pc}, 64) + 56, "ARM\x64", 4);

	const uint64_t start = number("/chosen", "linux,initrd-start");

	ck_assert_uint_eq(number("/chosen", "linux,initrd-end") - start, INITRD_BYTES);
	ck_assert_mem_eq(memory_at(memory, (gpa_t){start}, INITRD_BYTES), initrd, INITRD_BYTES);
	ck_assert_str_eq(property("/chosen", "bootargs", &bytes), "console=ttyS0 quiet");
	ck_assert_str_eq(property("/chosen", "stdout-path", &bytes), "/serial@d0000000");
	property("/chosen", "rng-seed", &bytes);
	ck_assert_int_eq(bytes, 64);
	ck_assert_str_eq(property("/psci", "method", &bytes), "hvc");
	/* The second cluster's second vCPU. */
	ck_assert_uint_eq(fdt32_ld(property("/cpus/cpu@101", "reg", &bytes)), 0x101);
	ck_assert_str_eq(property("/pmu", "compatible", &bytes), "arm,armv8-pmuv3");
	/* Private, the seventh, high level. */
	const fdt32_t *interrupt = property("/pmu", "interrupts", &bytes);
	ck_assert_int_eq(bytes, 12);
	ck_assert_uint_eq(fdt32_ld(interrupt), 1);
	ck_assert_uint_eq(fdt32_ld(interrupt + 1), 7);
	ck_assert_uint_eq(fdt32_ld(interrupt + 2), 4);
	property("/virtio_mmio@d0011000", "interrupts", &bytes);
	ck_assert_int_eq(bytes, 12);
	ck_assert_str_eq(property("/serial@d0001000", "compatible", &bytes), "ns16550a");
}
END_TEST

START_TEST(a_pl011_has_its_clocks)
{
	static const char compatible[] = "arm,pl011\0arm,primecell", names[] = "uartclk\0apb_pclk";
	g_autoptr(GError) error = NULL;
	int bytes;

	config.uart = BOOT_UART_PL011;
	ck_assert_msg(boot_load(memory, &config, &state, &error), "%s", error ? error->message : "");
	for (unsigned i = 0; i < 2; i++) {
		g_autofree char *node = g_strdup_printf("/serial@d000%u000", i);

		ck_assert_mem_eq(property(node, "compatible", &bytes), compatible, sizeof(compatible));
		ck_assert_mem_eq(property(node, "clock-names", &bytes), names, sizeof(names));
		const fdt32_t *clocks = property(node, "clocks", &bytes);
		ck_assert_int_eq(bytes, 8);
		ck_assert_mem_eq(clocks, property("/apb-pclk", "phandle", &bytes), 4);
		ck_assert_mem_eq(clocks + 1, clocks, 4);
	}
	ck_assert_str_eq(property("/apb-pclk", "compatible", &bytes), "fixed-clock");
	ck_assert_uint_gt(fdt32_ld(property("/apb-pclk", "clock-frequency", &bytes)), 16 * 115200);
	ck_assert_str_eq(property("/chosen", "stdout-path", &bytes), "/serial@d0000000");
}
END_TEST

/* The image of the corpus, and behind it the names of drivers. */
static enum boot_uart chosen(const char *drivers, size_t n, enum boot_uart asked)
{
	GByteArray *file = g_byte_array_new();
	size_t bytes;
	const uint8_t *kernel = image_bytes(config.image, &bytes);
	g_autoptr(GError) error = NULL;
	enum boot_uart uart;

	g_byte_array_append(file, kernel, (guint)bytes);
	g_byte_array_append(file, (const uint8_t *)drivers, (guint)n);
	g_autoptr(GBytes) with_drivers = g_byte_array_free_to_bytes(file);
	struct image *image = image_new("Image", with_drivers, &error);
	g_assert_no_error(error);
	ck_assert(boot_choose_uart(image, asked, &uart, &error));
	image_free(image);
	return uart;
}

START_TEST(the_kernel_has_a_driver_for_its_uart)
{
	static const char pl011[] = "\0uart-pl011", both[] = "\0uart-pl011\0of_serial",
			  parts[] = "\0xuart-pl011\0of_serial_x";

	ck_assert_int_eq(chosen(pl011, sizeof(pl011), BOOT_UART_AUTO), BOOT_UART_PL011);
	ck_assert_int_eq(chosen(pl011, sizeof(pl011), BOOT_UART_16550), BOOT_UART_16550);
	ck_assert_int_eq(chosen(both, sizeof(both), BOOT_UART_AUTO), BOOT_UART_16550);
	ck_assert_int_eq(chosen(both, sizeof(both), BOOT_UART_PL011), BOOT_UART_PL011);
	ck_assert_int_eq(chosen(parts, sizeof(parts), BOOT_UART_AUTO), BOOT_UART_16550);
}
END_TEST

START_TEST(a_vmlinux_is_refused)
{
	static const char banner[] = "Linux version 6.12.1-test (root@host) #1";
	const uint64_t linked = UINT64_C(0xffff800080000000);
	struct elf_builder builder;
	g_autoptr(GError) error = NULL;

	elf_builder_init(&builder);
	builder.entry = linked;
	elf_builder_section(&builder, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, linked, linked, banner,
	                                                   sizeof(banner), 0});
	GByteArray *file = elf_builder_finish(&builder);
	((Elf64_Ehdr *)file->data)->e_machine = EM_AARCH64;
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(file);

	elf_builder_deinit(&builder);
	image_free((struct image *)config.image);
	config.image = image_new("vmlinux", bytes, &error);
	g_assert_no_error(error);
	ck_assert(!boot_load(memory, &config, &state, &error));
	ck_assert(g_error_matches(error, BOOT_ERROR, BOOT_ERROR_PROTOCOL));
	ck_assert_str_eq(error->message,
	                 "cannot boot vmlinux: a vmlinux for arm64 does not say where it lies in memory; give the "
	                 "Image or vmlinuz that was made of it");
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("boot_arm64");
	TCase *tcase = tcase_create("boot_arm64");

	suite_add_tcase(suite, tcase);
	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, linux_finds_what_it_needs);
	tcase_add_test(tcase, a_pl011_has_its_clocks);
	tcase_add_test(tcase, the_kernel_has_a_driver_for_its_uart);
	tcase_add_test(tcase, a_vmlinux_is_refused);
	return run_suite(suite);
}
