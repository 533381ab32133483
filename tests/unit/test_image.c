// SPDX-License-Identifier: BSD-2-Clause
#include <check.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bzimage_builder.h"
#include "elf_builder.h"
#include "lib/symbol/image.h"
#include "run_suite.h"

#define TEXT_GVA UINT64_C(0xffffffff81000000)
#define TEXT_GPA UINT64_C(0x1000000)
#define DATA_GVA UINT64_C(0xffffffff81200000)
#define DATA_GPA UINT64_C(0x1200000)

static const uint8_t BUILD_ID[20] = {0xb1, 0xd0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18};
static const char BANNER[] =
	"%s version %s (%s)\0Linux version unknown\0Linux version 6.1.0-50-cloud-amd64 (root@host) #1";

/* Program headers: 0 .text, 1 .rodata, 2 .bss, 3 .notes. Sections: the same from 1 on. */
static GByteArray *build_kernel(void)
{
	static const uint8_t text[64] = {0x90, 0x0f, 0x0b};
	const uint64_t pvh_entry = 0x1000850;
	struct elf_builder builder;
	g_autoptr(GByteArray) notes = g_byte_array_new();

	elf_builder_note(notes, "Xen", 18, &pvh_entry, sizeof(pvh_entry));
	elf_builder_note(notes, "GNU", NT_GNU_BUILD_ID, BUILD_ID, sizeof(BUILD_ID));
	elf_builder_init(&builder);
	builder.entry = TEXT_GPA;
	elf_builder_section(&builder, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT_GVA,
	                                                   TEXT_GPA, text, sizeof(text), 0});
	elf_builder_section(&builder, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, DATA_GVA, DATA_GPA,
	                                                   BANNER, sizeof(BANNER), 0});
	elf_builder_section(&builder, (struct elf_section){".bss", SHT_NOBITS, SHF_ALLOC | SHF_WRITE, DATA_GVA + 0x1000,
	                                                   DATA_GPA + 0x1000, NULL, 0, 0x3000});
	elf_builder_section(&builder, (struct elf_section){".notes", SHT_NOTE, SHF_ALLOC, DATA_GVA + 0x800,
	                                                   DATA_GPA + 0x800, notes->data, notes->len, 0});

	GByteArray *file = elf_builder_finish(&builder);

	elf_builder_deinit(&builder);
	return file;
}

static struct image *open_bytes(const GByteArray *file, GError **error)
{
	/* A copy of the exact size, so that ASan sees a step beyond it. */
	g_autoptr(GBytes) bytes = g_bytes_new(file->data, file->len);

	return image_new("test-kernel", bytes, error);
}

/* Opens `file`, which it frees, and expects this failure with this text in it. */
static void assert_refused(GByteArray *file, enum image_error code, const char *text)
{
	g_autoptr(GError) error = NULL;
	struct image *image = open_bytes(file, &error);

	ck_assert_msg(!image, "opened, expected \"%s\"", text);
	ck_assert_msg(g_error_matches(error, IMAGE_ERROR, (int)code), "code %d: %s", error->code, error->message);
	ck_assert_msg(strstr(error->message, text) != NULL, "%s", error->message);
	ck_assert_msg(g_str_has_prefix(error->message, "cannot use kernel test-kernel: "), "%s", error->message);
	ck_assert_msg(strstr(error->message, "; ") != NULL, "no next step: %s", error->message);
	g_byte_array_unref(file);
}

static void assert_kernel(const struct image *image)
{
	size_t n;
	uint32_t pvh = 0;
	struct image_start start;
	const struct image_segment *segments = image_segments(image, &n);

	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(segments[0].gpa, TEXT_GPA);
	ck_assert_uint_eq(segments[0].gva, TEXT_GVA);
	ck_assert_uint_eq(segments[0].file_bytes, 64);
	ck_assert_uint_eq(segments[0].flags, PF_R | PF_X);
	ck_assert_uint_eq(segments[1].gpa, DATA_GPA);
	ck_assert_uint_eq(segments[2].file_bytes, 0);
	ck_assert_uint_eq(segments[2].memory_bytes, 0x3000);
	ck_assert_uint_eq(image_entry(image), TEXT_GPA);
	ck_assert(image_pvh_entry(image, &pvh));
	ck_assert_uint_eq(pvh, 0x1000850);
	ck_assert(image_is_linux(image));
	image_find_start(image, &start);
	ck_assert_uint_eq(start.gpa, TEXT_GPA);
	ck_assert_uint_eq(start.gva, TEXT_GVA);
	ck_assert_uint_eq(start.bytes, 64);
	ck_assert_mem_eq(image_build_id(image, &n), BUILD_ID, sizeof(BUILD_ID));
	ck_assert_uint_eq(n, sizeof(BUILD_ID));
}

START_TEST(test_elf)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GByteArray) file = build_kernel();
	struct image *image = open_bytes(file, &error);
	size_t n = 0;
	uint64_t address = 0;

	ck_assert_msg(image, "%s", error ? error->message : "");
	assert_kernel(image);
	ck_assert_str_eq(image_path(image), "test-kernel");
	ck_assert_str_eq(image_release(image), "6.1.0-50-cloud-amd64");
	ck_assert(!image_is_bzimage(image));
	ck_assert_ptr_null(image_compression(image));
	ck_assert_ptr_null(image_setup_header(image, &n));

	ck_assert_mem_eq(image_section(image, ".rodata", &n, &address), BANNER, sizeof(BANNER));
	ck_assert_uint_eq(n, sizeof(BANNER));
	ck_assert_uint_eq(address, DATA_GVA);
	ck_assert_ptr_null(image_section(image, ".bss", &n, &address));
	ck_assert_ptr_null(image_section(image, ".data", &n, &address));

	ck_assert_uint_eq(*image_at(image, TEXT_GVA + 1, &n), 0x0f);
	ck_assert_uint_eq(n, 63);
	ck_assert_ptr_null(image_at(image, TEXT_GVA + 64, &n));
	ck_assert_ptr_null(image_at(image, TEXT_GVA - 1, &n));
	ck_assert_ptr_null(image_at(image, DATA_GVA + 0x1000, &n));
	image_free(image);
	image_free(NULL);
}
END_TEST

/* What is known of a kernel whose contents are not kept. */
START_TEST(test_forgotten)
{
	g_autoptr(GByteArray) file = build_kernel();
	struct image *image = open_bytes(file, NULL);
	uint64_t before = 0, address = 0;
	size_t n;

	ck_assert_ptr_nonnull(image);
	const bool has_address = image_build_id_address(image, &before);

	for (unsigned times = 0; times < 2; times++)
		image_forget(image);
	ck_assert_str_eq(image_path(image), "test-kernel");
	ck_assert_str_eq(image_release(image), "6.1.0-50-cloud-amd64");
	ck_assert_mem_eq(image_build_id(image, &n), BUILD_ID, sizeof(BUILD_ID));
	ck_assert_int_eq(image_build_id_address(image, &address), has_address);
	ck_assert_uint_eq(address, before);
	const struct image_segment *segments = image_segments(image, &n);

	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(segments[0].gva, TEXT_GVA);
	ck_assert_uint_eq(segments[2].memory_bytes, 0x3000);
	ck_assert(image_is_linux(image));
	ck_assert_ptr_null(image_section(image, ".rodata", &n, &address));
	ck_assert_ptr_null(image_at(image, TEXT_GVA + 1, &n));
	ck_assert_ptr_null(image_frame_header(image, &n, &address));
	ck_assert(!image_code_address(image, 0, &address));
	(void)image_bytes(image, &n);
	ck_assert_uint_eq(n, 0);
	image_free(image);
}
END_TEST

START_TEST(test_pvh_entry_of_4_bytes)
{
	struct image_start start;
	const uint32_t entry = 0x100020;
	const uint64_t too_high = UINT64_C(0x100000000);
	struct elf_builder builder;
	g_autoptr(GByteArray) notes = g_byte_array_new();
	uint32_t got = 0;

	elf_builder_note(notes, "Xen", 18, &too_high, sizeof(too_high)); /* no GPA of 32-bit code: not taken */
	elf_builder_note(notes, "Xen", 6, "guest", 5);
	elf_builder_note(notes, "Xen", 18, &entry, sizeof(entry));
	elf_builder_init(&builder);
	elf_builder_section(&builder, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, 0x100000,
	                                                   0x100000, "\xf4", 1, 0});
	elf_builder_section(&builder, (struct elf_section){".notes", SHT_NOTE, SHF_ALLOC, 0x101000, 0x101000,
	                                                   notes->data, notes->len, 0});

	g_autoptr(GByteArray) file = elf_builder_finish(&builder);
	struct image *image = open_bytes(file, NULL);

	ck_assert_ptr_nonnull(image);
	ck_assert(image_pvh_entry(image, &got));
	ck_assert_uint_eq(got, entry);
	ck_assert(!image_is_linux(image));
	image_find_start(image, &start);
	ck_assert_uint_eq(start.bytes, 0);
	ck_assert_ptr_null(image_release(image));
	image_free(image);
	elf_builder_deinit(&builder);
}
END_TEST

START_TEST(test_elf_refused)
{
	GByteArray *file = g_byte_array_new();

	assert_refused(file, IMAGE_ERROR_FORMAT, "neither an ELF file nor a bzImage (0 bytes");
	file = g_byte_array_new();
	g_byte_array_append(file, (const uint8_t *)"#!/bin/sh\n", 10);
	assert_refused(file, IMAGE_ERROR_FORMAT, "starting with 23 21 2f 62");

	file = build_kernel();
	elf_header(file)->e_ident[EI_CLASS] = ELFCLASS32;
	g_byte_array_set_size(file, 52); /* all of a 32-bit header */
	assert_refused(file, IMAGE_ERROR_CLASS, "32-bit ELF");
	file = build_kernel();
	elf_header(file)->e_machine = EM_RISCV;
	assert_refused(file, IMAGE_ERROR_CLASS, "machine 243");
	file = build_kernel();
	elf_header(file)->e_ident[EI_DATA] = ELFDATA2MSB;
	assert_refused(file, IMAGE_ERROR_CLASS, "big-endian");
	file = build_kernel();
	elf_header(file)->e_type = ET_REL;
	assert_refused(file, IMAGE_ERROR_SEGMENTS, "type 1, not an executable");
}
END_TEST

START_TEST(test_architectures)
{
	g_autoptr(GByteArray) file = build_kernel();
	g_autoptr(GError) error = NULL;
	struct image *image = open_bytes(file, NULL);

	ck_assert_int_eq(image_arch(image), ARCH_X86_64);
	ck_assert(image_check_arch(image, ARCH_X86_64, "this host", NULL));
	image_free(image);
	elf_header(file)->e_machine = EM_AARCH64;
	image = open_bytes(file, NULL);
	ck_assert_int_eq(image_arch(image), ARCH_ARM64);
	assert_kernel(image);
	ck_assert(!image_check_arch(image, ARCH_X86_64, "this host", &error));
	ck_assert(g_error_matches(error, IMAGE_ERROR, IMAGE_ERROR_CLASS));
	ck_assert_str_eq(error->message,
	                 "cannot use kernel test-kernel: it is for arm64, this host is x86-64; give one for x86-64");
	image_free(image);
}
END_TEST

START_TEST(test_segments_refused)
{
	GByteArray *file = build_kernel();

	elf_header(file)->e_phnum = 0;
	assert_refused(file, IMAGE_ERROR_SEGMENTS, "no segment to load");
	file = build_kernel();
	elf_header(file)->e_phnum = 257;
	assert_refused(file, IMAGE_ERROR_SEGMENTS, "257 program headers");
	file = build_kernel();
	elf_header(file)->e_phentsize = 32;
	assert_refused(file, IMAGE_ERROR_SEGMENTS, "of 32 bytes");
	file = build_kernel();
	elf_header(file)->e_phoff = UINT64_MAX - 56;
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "program header 0");

	file = build_kernel();
	elf_program(file, 1)->p_offset = file->len;
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "program header 1 names");
	file = build_kernel();
	elf_program(file, 1)->p_offset = UINT64_MAX;
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "at offset 0xffffffffffffffff");
	file = build_kernel();
	elf_program(file, 1)->p_memsz = elf_program(file, 1)->p_filesz - 1;
	assert_refused(file, IMAGE_ERROR_SEGMENTS, "impossible sizes");
	file = build_kernel();
	elf_program(file, 2)->p_paddr = UINT64_MAX - 0x2fff;
	assert_refused(file, IMAGE_ERROR_SEGMENTS, "impossible sizes");

	file = build_kernel();
	elf_program(file, 1)->p_paddr = TEXT_GPA + 63;
	assert_refused(file, IMAGE_ERROR_SEGMENTS, "0x1000000 (0x40 bytes) and 0x100003f");
}
END_TEST

START_TEST(test_sections_refused)
{
	GByteArray *file = build_kernel();

	elf_header(file)->e_shentsize = 40;
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "section headers of 40 bytes");
	file = build_kernel();
	elf_section_header(file, 2)->sh_size = UINT64_MAX;
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "section 2 names 0xffffffffffffffff bytes");
	file = build_kernel();
	elf_section_header(file, 2)->sh_offset = file->len + 1;
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "section 2");
}
END_TEST

START_TEST(test_cut_anywhere)
{
	g_autoptr(GByteArray) whole = build_kernel();

	for (guint n = 0; n < whole->len; n++) {
		g_autoptr(GByteArray) cut = g_byte_array_new();
		g_autoptr(GError) error = NULL;

		g_byte_array_append(cut, whole->data, n);
		ck_assert_ptr_null(open_bytes(cut, &error));
		ck_assert_msg(error->code == (n < 4 ? IMAGE_ERROR_FORMAT : IMAGE_ERROR_TRUNCATED), "%u bytes: %s", n,
		              error->message);
	}
}
END_TEST

/* Hostile notes are not followed outside, and never an error. */
START_TEST(test_broken_notes)
{
	for (unsigned word = 0; word < 2; word++) {
		g_autoptr(GByteArray) file = build_kernel();
		uint32_t *note = (uint32_t *)(void *)(file->data + elf_program(file, 3)->p_offset);
		uint32_t pvh;

		note[word] = UINT32_MAX - 3;

		struct image *image = open_bytes(file, NULL);

		ck_assert_ptr_nonnull(image);
		ck_assert(!image_pvh_entry(image, &pvh));
		image_free(image);
	}
}
END_TEST

static const char *const COMPRESSIONS[] = {"gzip", "bzip2", "lzma", "xz", "lz4", "zstd", "lz4-legacy"};

static GByteArray *build_bzimage(const char *compression)
{
	g_autoptr(GByteArray) payload = build_kernel();

	/* Relocation data follows the ELF. */
	for (unsigned i = 0; i < 1000; i++)
		g_byte_array_append(payload, (const uint8_t *)&i, sizeof(i));

	g_autoptr(GByteArray) packed = bzimage_pack(payload->data, payload->len, compression);

	ck_assert_msg(packed, "libarchive cannot write %s", compression);
	return bzimage_build(packed, payload->len, compression, "6.9.1-test (root@host) #1 SMP");
}

START_TEST(test_bzimage)
{
	const char *compression = COMPRESSIONS[_i];
	g_autoptr(GByteArray) file = build_bzimage(compression);
	g_autoptr(GError) error = NULL;
	struct image *image = open_bytes(file, &error);
	size_t n;

	ck_assert_msg(image, "%s", error ? error->message : "");
	assert_kernel(image);
	ck_assert(image_is_bzimage(image));
	ck_assert_str_eq(image_compression(image), g_str_has_prefix(compression, "lz4") ? "lz4" : compression);
	ck_assert_str_eq(image_release(image), "6.9.1-test");
	ck_assert_mem_eq(image_setup_header(image, &n) + 0x202 - 0x1f1, "HdrS", 4);
	ck_assert_uint_eq(n, 0x26c - 0x1f1);
	ck_assert_mem_eq(image_bytes(image, &n), ELFMAG, SELFMAG);
	image_free(image);
}
END_TEST

START_TEST(test_corrupt_payload)
{
	const char *compression = COMPRESSIONS[_i];
	GByteArray *file = build_bzimage(compression);
	uint32_t length;

	memcpy(&length, file->data + 0x24c, sizeof(length));

	/* A header that is no header, a stream that stops. lz4-legacy's block has no checksum, but its length. */
	memset(file->data + BZIMAGE_SETUP_BYTES + BZIMAGE_PAYLOAD_OFFSET + 6, 0xff, 40);
	assert_refused(file, IMAGE_ERROR_PAYLOAD, "payload");

	file = build_bzimage(compression);
	bzimage_put(file, 0x24c, length / 2, 4);
	assert_refused(file, IMAGE_ERROR_PAYLOAD, "payload");

	/* The size it was made of, one too small and one too large. */
	for (int wrong = -1; wrong <= 1; wrong += 2) {
		file = build_bzimage(compression);

		uint32_t size;

		memcpy(&size, file->data + file->len - 4, 4);
		bzimage_put(file, file->len - 4, size + (uint32_t)wrong, 4);
		assert_refused(file, IMAGE_ERROR_PAYLOAD, "payload");
	}
}
END_TEST

START_TEST(test_bzimage_refused)
{
	GByteArray *file = build_bzimage("gzip");

	bzimage_put(file, 0x206, 0x207, 2);
	assert_refused(file, IMAGE_ERROR_PAYLOAD, "boot protocol 2.07");
	file = build_bzimage("gzip");
	bzimage_put(file, 0x248, 0xffffffff, 4);
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "outside the file");
	file = build_bzimage("gzip");
	g_byte_array_set_size(file, file->len - 1);
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "outside the file");
	file = build_bzimage("gzip");
	bzimage_put(file, 0x1f1, 0, 1); /* means 4 sectors */
	assert_refused(file, IMAGE_ERROR_TRUNCATED, "(0xa00 bytes)");
	file = build_bzimage("gzip");
	file->data[BZIMAGE_SETUP_BYTES + BZIMAGE_PAYLOAD_OFFSET] = 0;
	assert_refused(file, IMAGE_ERROR_PAYLOAD, "not packed with gzip");
	file = build_bzimage("xz");
	bzimage_put(file, file->len - 4, 0xffffffff, 4);
	assert_refused(file, IMAGE_ERROR_PAYLOAD, "unpacks to 4294967295 bytes");
	file = build_bzimage("xz");
	bzimage_put(file, 0x24c, 8, 4);
	assert_refused(file, IMAGE_ERROR_PAYLOAD, "payload");
}
END_TEST

START_TEST(test_payload_is_no_elf)
{
	static const uint8_t text[100] = "not a kernel";
	g_autoptr(GByteArray) packed = bzimage_pack(text, sizeof(text), "zstd");

	assert_refused(bzimage_build(packed, sizeof(text), "zstd", "6.1"), IMAGE_ERROR_FORMAT,
	               "its payload is neither");
}
END_TEST

/* A release that is outside the setup sectors or none is left to the banner. */
START_TEST(test_release_falls_back_to_banner)
{
	for (unsigned i = 0; i < 3; i++) {
		g_autoptr(GByteArray) file = build_bzimage("gzip");

		if (i == 0)
			bzimage_put(file, 0x20e, 0, 2);
		else if (i == 1)
			bzimage_put(file, 0x20e, 0xffff, 2);
		else
			file->data[BZIMAGE_RELEASE_OFFSET] = '\x1b';

		struct image *image = open_bytes(file, NULL);

		ck_assert_ptr_nonnull(image);
		ck_assert_str_eq(image_release(image), "6.1.0-50-cloud-amd64");
		image_free(image);
	}
}
END_TEST

static void assert_not_opened(const char *path, const char *text)
{
	g_autoptr(GError) error = NULL;

	ck_assert_ptr_null(image_open(path, &error));
	ck_assert_msg(g_error_matches(error, IMAGE_ERROR, IMAGE_ERROR_IO), "%s", error->message);
	ck_assert_msg(strstr(error->message, text) && strstr(error->message, path), "%s", error->message);
}

/* What was opened stays as it was: a mapping would end this process by SIGBUS. */
START_TEST(test_file_cut_off)
{
	g_autoptr(GByteArray) file = build_kernel();
	g_autofree char *path = NULL;
	int fd = g_file_open_tmp("vprof-image-XXXXXX", &path, NULL);

	ck_assert_int_eq(write(fd, file->data, file->len), file->len);
	struct image *image = image_open(path, NULL);

	ck_assert_ptr_nonnull(image);
	ck_assert_int_eq(ftruncate(fd, 0), 0);
	assert_kernel(image);
	image_free(image);
	close(fd);
	unlink(path);
}
END_TEST

START_TEST(test_files)
{
	g_autofree char *folder = g_dir_make_tmp("vprof-test-image-XXXXXX", NULL);
	g_autofree char *path = g_build_filename(folder, "vmlinux", NULL);
	g_autofree char *fifo = g_build_filename(folder, "fifo", NULL);
	g_autoptr(GByteArray) file = build_kernel();
	g_autoptr(GError) error = NULL;

	assert_not_opened(path, "No such file");
	assert_not_opened(folder, "directory");
	ck_assert_int_eq(mkfifo(fifo, 0600), 0);
	assert_not_opened(fifo, "not a regular file");

	ck_assert(g_file_set_contents(path, "", 0, NULL));
	ck_assert_ptr_null(image_open(path, &error));
	ck_assert_msg(g_error_matches(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT), "%s", error->message);

	ck_assert(g_file_set_contents(path, (const char *)file->data, file->len, NULL));

	struct image *image = image_open(path, NULL);

	ck_assert_ptr_nonnull(image);
	assert_kernel(image);
	ck_assert_str_eq(image_path(image), path);
	image_free(image);
	unlink(path);
	unlink(fifo);
	rmdir(folder);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("image");
	TCase *tcase = tcase_create("image");

	suite_add_tcase(suite, tcase);
	tcase_add_test(tcase, test_elf);
	tcase_add_test(tcase, test_forgotten);
	tcase_add_test(tcase, test_pvh_entry_of_4_bytes);
	tcase_add_test(tcase, test_elf_refused);
	tcase_add_test(tcase, test_architectures);
	tcase_add_test(tcase, test_segments_refused);
	tcase_add_test(tcase, test_sections_refused);
	tcase_add_test(tcase, test_cut_anywhere);
	tcase_add_test(tcase, test_broken_notes);
	tcase_add_loop_test(tcase, test_bzimage, 0, G_N_ELEMENTS(COMPRESSIONS));
	tcase_add_loop_test(tcase, test_corrupt_payload, 0, G_N_ELEMENTS(COMPRESSIONS));
	tcase_add_test(tcase, test_bzimage_refused);
	tcase_add_test(tcase, test_payload_is_no_elf);
	tcase_add_test(tcase, test_release_falls_back_to_banner);
	tcase_add_test(tcase, test_file_cut_off);
	tcase_add_test(tcase, test_files);
	return run_suite(suite);
}
