// SPDX-License-Identifier: BSD-2-Clause
/* Dumps of guests, made here as QEMU writes them, ELF cores and compressed ones. */
#include <check.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "attach/core_file.h"
#include "run_suite.h"

#define STATE_BYTES 440u /* QEMUCPUState of version 1 */
#define NOTES_AT 0x400u
#define MEMORY_AT 0x1000u

struct dump {
	Elf64_Ehdr header;
	Elf64_Phdr segments[4];
};

static struct dump dump;
static uint8_t file[0x8000];
static size_t file_bytes;

static void number_put(size_t at, uint64_t value, size_t bytes)
{
	memcpy(file + at, &value, bytes);
}

/* Returns where the state is. */
static size_t note_put(size_t at, const char *name, uint32_t bytes)
{
	const Elf64_Nhdr note = {.n_namesz = (uint32_t)strlen(name) + 1, .n_descsz = bytes, .n_type = 0};

	memcpy(file + at, &note, sizeof(note));
	strcpy((char *)file + at + sizeof(note), name);
	return at + sizeof(note) + ((strlen(name) + 4) & ~(size_t)3);
}

/* Of two vCPUs, one in the kernel and one in user space. */
static void notes_put(size_t at)
{
	const size_t end = at + 0xa00;

	at = note_put(at, "CORE", 336) + 336;
	for (unsigned i = 0; i < 2; i++) {
		const size_t state = note_put(at, "QEMU", STATE_BYTES);

		number_put(state, 1, 4);
		number_put(state + 4, STATE_BYTES, 4);
		number_put(state + 8 + 6 * 8, 0x7000 + i, 8);                           /* rsp */
		number_put(state + 8 + 16 * 8, UINT64_C(0xffffffff81000000), 8);        /* rip */
		number_put(state + 152, i == 0 ? 0x10 : 0x33, 4);                       /* cs */
		number_put(state + 152 + 8, 1u << 21, 4);                               /* flags */
		number_put(state + 152 + 4 * 24 + 16, UINT64_C(0xffff888000040000), 8); /* gs base */
		number_put(state + 152 + 9 * 24 + 16, UINT64_C(0xfffffe0000000000), 8); /* idt */
		number_put(state + 392, 1, 8);                                          /* cr0 */
		number_put(state + 392 + 3 * 8, 0x1234000, 8);
		at = state + STATE_BYTES;
	}
	ck_assert_uint_le(at, end);
}

/* Two pieces of memory, not in order. */
static void setup(void)
{
	memset(file, 0, sizeof(file));
	dump = (struct dump){
		.header = {.e_type = ET_CORE,
	                   .e_machine = EM_X86_64,
	                   .e_phoff = sizeof(dump.header),
	                   .e_phentsize = sizeof(Elf64_Phdr),
	                   .e_phnum = 3},
		.segments = {
			{.p_type = PT_NOTE, .p_offset = NOTES_AT, .p_filesz = 0xa00},
			{.p_type = PT_LOAD, .p_offset = MEMORY_AT + 0x1000, .p_paddr = 0x100000, .p_filesz = 0x1000},
			{.p_type = PT_LOAD, .p_offset = MEMORY_AT, .p_paddr = 0, .p_filesz = 0x800}}};
	memcpy(dump.header.e_ident, ELFMAG, SELFMAG);
	dump.header.e_ident[EI_CLASS] = ELFCLASS64;
	dump.header.e_ident[EI_DATA] = ELFDATA2LSB;
	notes_put(NOTES_AT);
	for (unsigned i = 0; i < 0x1000; i++) {
		file[MEMORY_AT + i] = 1;
		file[MEMORY_AT + 0x1000 + i] = 2;
	}
	file_bytes = MEMORY_AT + 0x2000;
}

static struct core_file *open_dump(GError **error)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);

	memcpy(file, &dump, sizeof(dump));
	ck_assert_int_eq((int)write(fd, file, file_bytes), (int)file_bytes);
	return core_file_open_fd(fd, "dump", error);
}

static void registers_check(const struct core_file *core)
{
	ck_assert_uint_eq(core->n_vcpus, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct guest_regs *regs = &core->registers[i].regs;

		ck_assert_uint_eq(regs->rip, UINT64_C(0xffffffff81000000));
		ck_assert_uint_eq(regs->rsp, 0x7000 + i);
		ck_assert_uint_eq(regs->cr3, 0x1234000);
		ck_assert_uint_eq(regs->gs_base, UINT64_C(0xffff888000040000));
		ck_assert_uint_eq(regs->cpl, i == 0 ? 0 : 3);
		ck_assert(!regs->real_mode && regs->all && !regs->la57);
		ck_assert_uint_eq(core->registers[i].vectors, UINT64_C(0xfffffe0000000000));
		ck_assert(core->registers[i].long_mode);
	}
}

START_TEST(memory_and_registers)
{
	GError *error = NULL;
	struct core_file *core = open_dump(&error);
	uint8_t bytes[4];

	g_assert_no_error(error);
	registers_check(core);
	ck_assert_uint_eq(core->n_ranges, 2);
	ck_assert_uint_eq(core_file_memory_bytes(core), 0x1800);
	ck_assert(core_file_read(core, (gpa_t){0x7fc}, bytes, 4));
	ck_assert_uint_eq(bytes[3], 1);
	ck_assert(core_file_read(core, (gpa_t){0x100ffc}, bytes, 4));
	ck_assert_uint_eq(bytes[0], 2);
	ck_assert(!core_file_read(core, (gpa_t){0x7fd}, bytes, 4));
	ck_assert(!core_file_read(core, (gpa_t){0xfffff}, bytes, 1));
	ck_assert(!core_file_read(core, (gpa_t){0x100ffe}, bytes, 4));
	core_file_free(core);
}
END_TEST

/* Memory that goes on in the next piece is one. */
START_TEST(pieces_next_to_each_other)
{
	uint8_t bytes[2];

	dump.segments[1].p_paddr = 0x800;
	struct core_file *core = open_dump(NULL);

	ck_assert_ptr_nonnull(core);
	ck_assert(core_file_read(core, (gpa_t){0x7ff}, bytes, 2));
	ck_assert_uint_eq(bytes[0], 1);
	ck_assert_uint_eq(bytes[1], 2);
	core_file_free(core);
}
END_TEST

static void refused(const char *why)
{
	GError *error = NULL;

	ck_assert_ptr_null(open_dump(&error));
	ck_assert(g_error_matches(error, CORE_FILE_ERROR, CORE_FILE_ERROR_FORMAT));
	ck_assert_msg(strstr(error->message, why) != NULL, "%s", error->message);
	g_clear_error(&error);
}

START_TEST(what_is_no_dump_is_refused)
{
	const struct dump good = dump;

	dump.header.e_type = ET_EXEC;
	refused("no ELF core");
	dump = good;
	dump.header.e_machine = EM_AARCH64;
	refused("not of an x86-64 guest");
	dump = good;
	dump.segments[1].p_paddr = 0x400;
	refused("the same memory twice");
	dump = good;
	dump.segments[0].p_type = PT_NULL;
	refused("no registers");
	dump = good;
	dump.header.e_phnum = 1;
	refused("has no memory");
	dump = good;
	dump.segments[0].p_offset = file_bytes - 1;
	refused("cut off in its notes");
	dump = good;
	dump.segments[0].p_filesz = UINT64_MAX;
	refused("notes are larger");
	dump = good;
	dump.segments[1].p_paddr = UINT64_MAX;
	refused("beyond all addresses");
	dump = good;
	dump.header.e_phnum = PN_XNUM;
	refused("number of its pieces");
	file_bytes = sizeof(Elf64_Ehdr);
	dump = good;
	refused("cut off in its headers");
	file_bytes = 3;
	refused("shorter");
}
END_TEST

/* ---- compressed ---- */

#define PAGE 0x1000u
#define FRAMES 302u
#define STATUS_AT 424u
#define BITMAP_AT (3u * PAGE)
#define PAGES_AT (4u * PAGE) /* their descriptions */
#define DATA_AT (5u * PAGE)

/* Frame 3, as it is, 200, packed, and 201, damaged. Frame 202 is not in the file. */
static void kdump_put(uint32_t packing, const void *packed, size_t packed_bytes)
{
	static const unsigned frames[] = {3, 200, 201};
	const uint64_t pages[][3] = {{DATA_AT, PAGE, 0},
	                             {DATA_AT + PAGE, packed_bytes | (uint64_t)packing << 32, 0},
	                             {DATA_AT, 100 | (uint64_t)packing << 32, 0}};

	memset(file, 0, sizeof(file));
	memcpy(file, "KDUMP   ", 8);
	number_put(8, 6, 4);
	strcpy((char *)file + 12 + 4 * 65, "x86_64");
	number_put(STATUS_AT, packing, 4);
	number_put(STATUS_AT + 4, PAGE, 4);
	number_put(STATUS_AT + 8, 1, 4);  /* blocks of the second header */
	number_put(STATUS_AT + 12, 2, 4); /* of the bitmaps */
	number_put(PAGE + 48, PAGE + 0x200, 8);
	number_put(PAGE + 56, 0xa00, 8);
	number_put(PAGE + 96, FRAMES, 8);
	notes_put(PAGE + 0x200);
	for (unsigned i = 0; i < G_N_ELEMENTS(frames); i++)
		file[BITMAP_AT + frames[i] / 8] |= (uint8_t)(1u << frames[i] % 8);
	memcpy(file + PAGES_AT, pages, sizeof(pages));
	memset(file + DATA_AT, 'r', PAGE);
	memcpy(file + DATA_AT + PAGE, packed, packed_bytes);
	file_bytes = DATA_AT + PAGE + packed_bytes;
}

static struct core_file *open_kdump(bool flat, GError **error)
{
	int fd = memfd_create("dump", MFD_CLOEXEC);
	uint8_t header[PAGE] = "makedumpfile";

	header[23] = header[31] = 1;
	if (flat)
		ck_assert_int_eq((int)write(fd, header, sizeof(header)), (int)sizeof(header));
	/* Pieces in another order, as the pages of QEMU and their descriptions are. */
	for (size_t n = file_bytes, at; n > 0; n = at) {
		at = flat && n > 0x700 ? n - 0x700 : 0;
		const uint64_t head[2] = {GUINT64_TO_BE(at), GUINT64_TO_BE(n - at)};

		if (flat)
			ck_assert_int_eq((int)write(fd, head, sizeof(head)), (int)sizeof(head));
		ck_assert_int_eq((int)write(fd, file + at, n - at), (int)(n - at));
	}
	memset(header, 0xff, 16);
	if (flat)
		ck_assert_int_eq((int)write(fd, header, 16), 16);
	return core_file_open_fd(fd, "dump", error);
}

/* The packed page is of `byte`. */
static void kdump_check(bool flat, uint8_t byte)
{
	GError *error = NULL;
	struct core_file *core = open_kdump(flat, &error);
	uint8_t bytes[PAGE];

	g_assert_no_error(error);
	registers_check(core);
	ck_assert_uint_eq(core_file_memory_bytes(core), 3 * PAGE);
	ck_assert(core_file_read(core, (gpa_t){3 * PAGE + 5}, bytes, PAGE - 5));
	ck_assert(bytes[0] == 'r' && bytes[PAGE - 6] == 'r');
	ck_assert(core_file_read(core, (gpa_t){200 * PAGE}, bytes, PAGE));
	for (unsigned i = 0; i < PAGE; i++)
		ck_assert_uint_eq(bytes[i], byte);
	ck_assert(core_file_read(core, (gpa_t){201 * PAGE - 4}, bytes, 4));
	ck_assert(!core_file_read(core, (gpa_t){201 * PAGE - 4}, bytes, 5));
	ck_assert(!core_file_read(core, (gpa_t){202 * PAGE}, bytes, 1));
	ck_assert(!core_file_read(core, (gpa_t){4 * PAGE - 1}, bytes, 2));
	ck_assert(!core_file_read(core, (gpa_t){UINT64_MAX}, bytes, 1));
	core_file_free(core);
}

static void zlib_put(void)
{
	uint8_t page[PAGE], packed[PAGE];
	uLongf n = sizeof(packed);

	memset(page, 'z', sizeof(page));
	ck_assert_int_eq(compress(packed, &n, page, sizeof(page)), Z_OK);
	kdump_put(1, packed, n);
}

START_TEST(packed_by_zlib)
{
	zlib_put();
	kdump_check(false, 'z');
	kdump_check(true, 'z');
}
END_TEST

/* 4096 bytes; one literal, and 63 copies of 64 from before it and one of 63. */
START_TEST(packed_by_snappy)
{
	uint8_t packed[4 + 64 * 3] = {0x80, 0x20, 0, 's'};

	for (size_t i = 0; i < 64; i++)
		memcpy(packed + 4 + i * 3, (uint8_t[]){(uint8_t)((i < 63 ? 63 : 62) << 2 | 2), 1, 0}, 3);
	kdump_put(4, packed, sizeof(packed));
	kdump_check(true, 's');
}
END_TEST

/* One literal; a copy of 4095 from one byte before: 2 + 31 + 15 * 255 + 237; the end. */
START_TEST(packed_by_lzo)
{
	uint8_t packed[24] = {18, 'l', 0x20, [18] = 237, [21] = 0x11};

	kdump_put(2, packed, sizeof(packed));
#ifdef VPROF_HAVE_LZO
	kdump_check(false, 'l');
#else
	GError *error = NULL;

	ck_assert_ptr_null(open_kdump(false, &error));
	ck_assert_msg(strstr(error->message, "built without liblzo2; dump the guest with") != NULL, "%s",
	              error->message);
	g_clear_error(&error);
#endif
}
END_TEST

static void kdump_refused(bool flat, const char *why)
{
	GError *error = NULL;

	ck_assert_ptr_null(open_kdump(flat, &error));
	ck_assert(g_error_matches(error, CORE_FILE_ERROR, CORE_FILE_ERROR_FORMAT));
	ck_assert_msg(strstr(error->message, why) != NULL, "%s", error->message);
	g_clear_error(&error);
}

START_TEST(what_is_no_compressed_dump_is_refused)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t bytes;
		const char *why;
	} lies[] = {
		{8, 5, 4, "an older version"},
		{12 + 4 * 65, 'a', 1, "not of an x86-64 guest"},
		{STATUS_AT, 0x20, 4, "other means than zlib"},
		{STATUS_AT + 4, 4097, 4, "no processor has"},
		{STATUS_AT + 8, UINT32_MAX, 4, "cut off in its bitmaps"},
		{STATUS_AT + 12, 0, 4, "smaller than its memory"},
		{PAGE + 12, 1, 4, "one of several files"},
		{PAGE + 48, UINT64_MAX - 8, 8, "cut off in its notes"},
		{PAGE + 56, UINT64_MAX, 8, "notes are larger"},
		{PAGE + 56, 16, 8, "no registers"},
		{PAGE + 96, UINT64_MAX, 8, "more memory than any guest"},
		{PAGE + 96, 3, 8, "has no memory"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(lies); i++) {
		zlib_put();
		number_put(lies[i].at, lies[i].value, lies[i].bytes);
		kdump_refused(i % 2 == 0, lies[i].why);
	}
	zlib_put();
	file_bytes = PAGE + 20;
	kdump_refused(false, "second header");
	file_bytes = 20;
	kdump_refused(true, "cut off in its header");
}
END_TEST

/* More bytes than are kept of a dump, and a last block that is cut off. */
START_TEST(bytes_anywhere)
{
	enum { BYTES = 150 * 16384 + 777, READ_MAX = 40000 };
	g_autofree uint8_t *all = g_malloc(BYTES), *got = g_malloc(READ_MAX);
	g_autoptr(GRand) dice = g_rand_new_with_seed(1);
	struct dump_bytes bytes;
	int fd = memfd_create("dump", MFD_CLOEXEC);

	for (size_t i = 0; i < BYTES; i++)
		all[i] = (uint8_t)g_rand_int(dice);
	ck_assert_int_eq(write(fd, all, BYTES), BYTES);
	ck_assert(dump_bytes_open(&bytes, fd, NULL));
	for (unsigned i = 0; i < 5000; i++) {
		const size_t n = (size_t)g_rand_int_range(dice, 1, i % 10 == 0 ? READ_MAX : 64);
		const size_t from = (size_t)g_rand_int_range(dice, 0, BYTES);
		const bool there = n <= BYTES - from;

		ck_assert_int_eq(dump_bytes_read(&bytes, from, got, n), there);
		ck_assert(!there || memcmp(got, all + from, n) == 0);
	}
	ck_assert(dump_bytes_read(&bytes, BYTES - 3, got, 3));
	ck_assert(!dump_bytes_read(&bytes, BYTES - 3, got, 4));
	ck_assert(!dump_bytes_read(&bytes, UINT64_MAX - 3, got, 3));
	dump_bytes_close(&bytes);
	close(fd);
}
END_TEST

START_TEST(a_file_that_is_not_there)
{
	GError *error = NULL;

	ck_assert_ptr_null(core_file_open("/none/such", &error));
	ck_assert(g_error_matches(error, CORE_FILE_ERROR, CORE_FILE_ERROR_READ));
	g_clear_error(&error);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("core_file");
	TCase *tests = tcase_create("core_file");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, memory_and_registers);
	tcase_add_test(tests, pieces_next_to_each_other);
	tcase_add_test(tests, what_is_no_dump_is_refused);
	tcase_add_test(tests, packed_by_zlib);
	tcase_add_test(tests, packed_by_snappy);
	tcase_add_test(tests, packed_by_lzo);
	tcase_add_test(tests, what_is_no_compressed_dump_is_refused);
	tcase_add_test(tests, bytes_anywhere);
	tcase_add_test(tests, a_file_that_is_not_there);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
