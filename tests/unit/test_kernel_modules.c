// SPDX-License-Identifier: BSD-2-Clause
/* Kernel modules for an initramfs: which, in which order, from which files; seen in the archive that comes out. */
#include <archive.h>
#include <archive_entry.h>
#include <check.h>
#include <elf.h>
#include <glib/gstdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/initramfs/kernel_modules.h"
#include "lib/record/arch.h"
#include "run_suite.h"

#define RELEASE "6.1.0-56-cloud-amd64"

static char *folder;
static struct initramfs *initramfs;

/* A module: an ELF file with nothing but .modinfo. */
static GByteArray *module_build(const char *depends, const char *release)
{
	static const char names[] = "\0.shstrtab\0.modinfo";
	GByteArray *bytes = g_byte_array_new();
	g_autofree char *vermagic = g_strdup_printf("vermagic=%s SMP preempt mod_unload", release);
	g_autofree char *depends_text = g_strdup_printf("depends=%s", depends);
	Elf64_Ehdr header = {.e_ident = {ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
	                     .e_type = ET_REL,
	                     .e_machine = arch_elf(arch_here()),
	                     .e_version = EV_CURRENT,
	                     .e_ehsize = sizeof(Elf64_Ehdr),
	                     .e_shentsize = sizeof(Elf64_Shdr),
	                     .e_shnum = 3,
	                     .e_shstrndx = 1};
	Elf64_Shdr sections[3] = {{0}};

	g_byte_array_append(bytes, (const guint8 *)&header, sizeof(header));
	sections[1] =
		(Elf64_Shdr){.sh_name = 1, .sh_type = SHT_STRTAB, .sh_offset = bytes->len, .sh_size = sizeof(names)};
	g_byte_array_append(bytes, (const guint8 *)names, sizeof(names));
	sections[2] = (Elf64_Shdr){.sh_name = 11, .sh_type = SHT_PROGBITS, .sh_offset = bytes->len};
	g_byte_array_append(bytes, (const guint8 *)"license=GPL", 12);
	g_byte_array_append(bytes, (const guint8 *)depends_text, (guint)strlen(depends_text) + 1);
	g_byte_array_append(bytes, (const guint8 *)vermagic, (guint)strlen(vermagic) + 1);
	sections[2].sh_size = bytes->len - sections[2].sh_offset;
	((Elf64_Ehdr *)(void *)bytes->data)->e_shoff = bytes->len;
	g_byte_array_append(bytes, (const guint8 *)sections, sizeof(sections));
	return bytes;
}

static void file_write(const char *name, const void *bytes, size_t n)
{
	g_autofree char *path = g_build_filename(folder, name, NULL), *above = g_path_get_dirname(path);

	ck_assert_int_eq(g_mkdir_with_parents(above, 0755), 0);
	ck_assert(g_file_set_contents(path, bytes, (gssize)n, NULL));
}

static void module_write(const char *name, const char *depends)
{
	GByteArray *bytes = module_build(depends, RELEASE);

	file_write(name, bytes->data, bytes->len);
	g_byte_array_unref(bytes);
}

/* As Fedora's and others' modules are. */
static void module_write_packed(const char *name, const char *depends, int (*filter)(struct archive *))
{
	GByteArray *bytes = module_build(depends, RELEASE);
	g_autofree char *packed = g_malloc(1 << 20);
	size_t n = 0;
	struct archive *archive = archive_write_new();
	struct archive_entry *entry = archive_entry_new();

	ck_assert_int_eq(filter(archive), ARCHIVE_OK);
	archive_write_set_format_raw(archive);
	archive_write_set_bytes_in_last_block(archive, 1);
	ck_assert_int_eq(archive_write_open_memory(archive, packed, 1 << 20, &n), ARCHIVE_OK);
	archive_entry_set_filetype(entry, AE_IFREG);
	archive_write_header(archive, entry);
	ck_assert_int_eq(archive_write_data(archive, bytes->data, bytes->len), (la_ssize_t)bytes->len);
	archive_write_close(archive);
	archive_entry_free(entry);
	archive_write_free(archive);
	file_write(name, packed, n);
	g_byte_array_unref(bytes);
}

static void set_up(void)
{
	folder = g_dir_make_tmp("vprof-modules-XXXXXX", NULL);
	initramfs = initramfs_new();
	module_write("kernel/drivers/virtio/virtio.ko", "");
	module_write("kernel/drivers/virtio/virtio_ring.ko", "");
	module_write_packed("kernel/drivers/virtio/virtio_mmio.ko.xz", "virtio,virtio_ring",
	                    archive_write_add_filter_xz);
	module_write_packed("kernel/drivers/block/virtio_blk.ko.gz", "virtio_ring,virtio",
	                    archive_write_add_filter_gzip);
	module_write("kernel/fs/with-dash.ko", "");
	module_write("kernel/a.ko", "b");
	module_write("kernel/b.ko", "a");
	module_write("kernel/needs.ko", "nothing_like_it");
	file_write("kernel/text.ko", "this is no module", 17);
	file_write("kernel/empty.ko", "", 0);
	file_write("modules.builtin", "kernel/fs/ext4/ext4.ko\nkernel/crypto/crc32c-generic.ko\n", 56);
}

static void folder_remove(const char *path)
{
	GDir *dir = g_dir_open(path, 0, NULL);

	for (const char *name; dir && (name = g_dir_read_name(dir)) != NULL;) {
		g_autofree char *below = g_build_filename(path, name, NULL);

		if (g_remove(below) != 0)
			folder_remove(below);
	}
	g_clear_pointer(&dir, g_dir_close);
	g_rmdir(path);
}

static void tear_down(void)
{
	folder_remove(folder);
	g_free(folder);
	initramfs_free(initramfs);
}

/* The modules in the archive, as "000-virtio 001-...". */
static char *archived(void)
{
	GString *names = g_string_new(NULL);
	struct archive *archive = archive_read_new();
	struct archive_entry *entry;
	int fd = initramfs_write(initramfs, NULL, NULL);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq((int)lseek(fd, 0, SEEK_SET), 0);
	archive_read_support_format_cpio(archive);
	archive_read_set_options(archive, "cpio:read_concatenated_archives");
	ck_assert_int_eq(archive_read_open_fd(archive, fd, 1 << 16), ARCHIVE_OK);
	/* Two archives stand one behind the other; the modules are in the second. */
	for (int parts = 0; parts < 2; parts++) {
		while (archive_read_next_header(archive, &entry) == ARCHIVE_OK) {
			g_autofree char *name = g_path_get_basename(archive_entry_pathname(entry));
			char magic[SELFMAG];

			if (!g_str_has_suffix(name, ".ko"))
				continue;
			ck_assert_int_eq(archive_read_data(archive, magic, sizeof(magic)), SELFMAG);
			ck_assert_mem_eq(magic, ELFMAG, SELFMAG); /* unpacked */
			g_string_append_printf(names, "%s%.*s", names->len ? " " : "", (int)strlen(name) - 3, name);
		}
		off_t at = (off_t)archive_filter_bytes(archive, -1);
		archive_read_free(archive);
		archive = archive_read_new();
		archive_read_support_format_cpio(archive);
		lseek(fd, at, SEEK_SET);
		if (archive_read_open_fd(archive, fd, 512) != ARCHIVE_OK)
			break;
	}
	archive_read_free(archive);
	close(fd);
	return g_string_free(names, FALSE);
}

static void check_added(const char *const *names, const char *expected)
{
	g_autoptr(GError) error = NULL;
	struct kernel_modules *modules = kernel_modules_new(folder, RELEASE, &error);

	ck_assert_ptr_nonnull(modules);
	for (; *names; names++)
		ck_assert_msg(kernel_modules_add(modules, *names, initramfs, &error), "%s",
		              error ? error->message : "");
	kernel_modules_free(modules);
	g_autofree char *found = archived();
	ck_assert_str_eq(found, expected);
}

START_TEST(dependencies_come_first)
{
	check_added((const char *const[]){"virtio_mmio", "virtio_blk", "virtio_mmio", "ext4", "crc32c_generic",
	                                  "with_dash", NULL},
	            "000-virtio 001-virtio_ring 002-virtio_mmio 003-virtio_blk 004-with_dash");
}
END_TEST

START_TEST(circles_end)
{
	check_added((const char *const[]){"a", NULL}, "000-b 001-a");
}
END_TEST

static void check_refused(const char *name, const char *release, enum kernel_modules_error code, const char *part)
{
	g_autoptr(GError) error = NULL;
	struct kernel_modules *modules = kernel_modules_new(folder, release, NULL);

	ck_assert_ptr_nonnull(modules);
	ck_assert(!kernel_modules_add(modules, name, initramfs, &error));
	ck_assert_msg(g_error_matches(error, KERNEL_MODULES_ERROR, (gint)code), "%s", error->message);
	ck_assert_msg(strstr(error->message, part) != NULL, "%s", error->message);
	kernel_modules_free(modules);
}

START_TEST(errors_say_which)
{
	check_refused("xfs", NULL, KERNEL_MODULES_ERROR_MISSING, "module xfs");
	check_refused("needs", NULL, KERNEL_MODULES_ERROR_MISSING, "nothing_like_it");
	check_refused("text", NULL, KERNEL_MODULES_ERROR_FORMAT, "text.ko is not a kernel module");
	check_refused("empty", NULL, KERNEL_MODULES_ERROR_FORMAT, "empty.ko");
	check_refused("virtio", "6.12.0", KERNEL_MODULES_ERROR_RELEASE, "is for Linux " RELEASE);

	g_autoptr(GError) error = NULL;
	ck_assert_ptr_null(kernel_modules_new("/nowhere", NULL, &error));
	ck_assert(g_error_matches(error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FOLDER));
}
END_TEST

START_TEST(chains_have_a_limit)
{
	for (unsigned i = 0; i < 100; i++) {
		g_autofree char *file = g_strdup_printf("kernel/chain%u.ko", i),
				*next = g_strdup_printf("chain%u", i + 1);

		module_write(file, i < 99 ? next : "");
	}
	check_added((const char *const[]){"chain96", NULL}, "000-chain99 001-chain98 002-chain97 003-chain96");
	check_refused("chain0", NULL, KERNEL_MODULES_ERROR_FORMAT, "and so on for 64 modules");
}
END_TEST

/* Every way to cut a module off, and every byte of its headers damaged: refused or taken, and no more. */
START_TEST(damaged_modules)
{
	GByteArray *whole = module_build("b", RELEASE);

	for (guint i = 0; i < whole->len; i++) {
		g_autofree guint8 *copy = g_memdup2(whole->data, whole->len);
		struct kernel_modules *modules;

		copy[i] ^= 0xff;
		file_write("kernel/damaged.ko", i % 2 ? copy : whole->data, i % 2 ? whole->len : i);
		modules = kernel_modules_new(folder, NULL, NULL);
		(void)kernel_modules_add(modules, "damaged", initramfs, NULL);
		kernel_modules_free(modules);
	}
	g_byte_array_unref(whole);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel_modules");
	TCase *tests = tcase_create("modules");
	tcase_set_timeout(tests, 60);
	tcase_add_checked_fixture(tests, set_up, tear_down);
	tcase_add_test(tests, dependencies_come_first);
	tcase_add_test(tests, circles_end);
	tcase_add_test(tests, errors_say_which);
	tcase_add_test(tests, chains_have_a_limit);
	tcase_add_test(tests, damaged_modules);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
