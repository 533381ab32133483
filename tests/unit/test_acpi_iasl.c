// SPDX-License-Identifier: BSD-2-Clause
/*
 * ACPICA's opinion of the tables: iasl disassembles each, compiles the result without a warning, and comes out with the
 * same bytes behind the header. Skipped without iasl.
 */
#include <glib.h>
#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kvm/boot/boot_devices.h"
#include "kvm/boot/x86/acpi.h"

#define EXIT_SKIP 77
#define BASE UINT64_C(0xe0000)
#define HEADER_BYTES 36u

static const char *const names[] = {"XSDT", "FACP", "FACS", "DSDT", "APIC"};

static bool iasl_run(const char *folder, const char *option, const char *file, char **output)
{
	const char *argv[] = {"iasl", option, file, NULL};
	g_autoptr(GError) error = NULL;
	int status;

	if (!g_spawn_sync(folder, (char **)argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
	                  output, NULL, &status, &error) ||
	    !g_spawn_check_wait_status(status, &error)) {
		fprintf(stderr, "iasl %s %s: %s\n%s\n", option, file, error->message, *output ? *output : "");
		return false;
	}
	return true;
}

static bool same_again(const char *folder, const char *name, const uint8_t *table, size_t bytes)
{
	g_autofree char *binary = g_strdup_printf("%s.dat", name), *source = g_strdup_printf("%s.dsl", name);
	g_autofree char *binary_path = g_build_filename(folder, binary, NULL);
	g_autofree char *compiled_name = g_strdup_printf("%s.aml", name);
	g_autofree char *compiled_path = g_build_filename(folder, compiled_name, NULL);
	g_autofree char *disassembly = NULL, *compilation = NULL, *compiled = NULL;
	gsize compiled_bytes;

	/* -oa: no optimisation, which would shorten \_SB to _SB. */
	if (!g_file_set_contents(binary_path, (const char *)table, (gssize)bytes, NULL) ||
	    !iasl_run(folder, "-d", binary, &disassembly) || !iasl_run(folder, "-oa", source, &compilation))
		return false;
	if (!strstr(compilation, " 0 Errors, 0 Warnings, 0 Remarks")) {
		fprintf(stderr, "iasl on %s: %s\n", name, compilation);
		return false;
	}
	if (!g_file_get_contents(compiled_path, &compiled, &compiled_bytes, NULL) || compiled_bytes != bytes ||
	    memcmp(compiled + HEADER_BYTES, table + HEADER_BYTES, bytes - HEADER_BYTES) != 0) {
		fprintf(stderr, "%s is another table after iasl\n", name);
		return false;
	}
	return true;
}

static void folder_remove(const char *folder)
{
	GDir *dir = g_dir_open(folder, 0, NULL);
	const char *name;

	while (dir && (name = g_dir_read_name(dir)) != NULL) {
		g_autofree char *path = g_build_filename(folder, name, NULL);

		g_unlink(path);
	}
	g_clear_pointer(&dir, g_dir_close);
	g_rmdir(folder);
}

static bool table_check(const char *folder, const uint8_t *area, const char *name)
{
	for (size_t offset = 0; offset < ACPI_BYTES_MAX - HEADER_BYTES; offset += 4) {
		uint32_t bytes;

		memcpy(&bytes, area + offset + 4, sizeof(bytes));
		/* The DSDT's name stands nowhere else; a length keeps a chance hit from counting. */
		if (memcmp(area + offset, name, 4) == 0 && bytes >= HEADER_BYTES && bytes <= ACPI_BYTES_MAX - offset)
			return same_again(folder, name, area + offset, bytes);
	}
	fprintf(stderr, "there is no %s\n", name);
	return false;
}

int main(void)
{
	static uint8_t area[ACPI_BYTES_MAX];
	g_autofree char *iasl = g_find_program_in_path("iasl");
	int status = EXIT_SUCCESS;

	if (!iasl) {
		printf("skipped: iasl is missing; install the package acpica-tools\n");
		return EXIT_SKIP;
	}
	g_autofree char *folder = g_dir_make_tmp("acpi.XXXXXX", NULL);

	acpi_write(area, (gpa_t){BASE}, GUEST_VCPUS_MAX, BOOT_VIRTIO_MAX);
	for (size_t i = 0; i < G_N_ELEMENTS(names); i++)
		if (!table_check(folder, area, names[i]))
			status = EXIT_FAILURE;
	folder_remove(folder);
	return status;
}
