// SPDX-License-Identifier: BSD-2-Clause
/* Dumps of guests, made here as QEMU writes them. */
#include <check.h>
#include <elf.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

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
static uint8_t file[0x3000];
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

/* Two vCPUs, one in the kernel and one in user space, and two pieces of memory, not in order. */
static void setup(void)
{
	size_t at;

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
	at = note_put(NOTES_AT, "CORE", 336) + 336;
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
	ck_assert_uint_le(at, NOTES_AT + 0xa00);
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

START_TEST(memory_and_registers)
{
	GError *error = NULL;
	struct core_file *core = open_dump(&error);
	uint8_t bytes[4];

	g_assert_no_error(error);
	ck_assert_uint_eq(core->n_vcpus, 2);
	for (unsigned i = 0; i < 2; i++) {
		const struct guest_regs *regs = &core->registers[i].regs;

		ck_assert_uint_eq(regs->rip, UINT64_C(0xffffffff81000000));
		ck_assert_uint_eq(regs->rsp, 0x7000 + i);
		ck_assert_uint_eq(regs->cr3, 0x1234000);
		ck_assert_uint_eq(regs->gs_base, UINT64_C(0xffff888000040000));
		ck_assert_uint_eq(regs->cpl, i == 0 ? 0 : 3);
		ck_assert(!regs->real_mode && regs->all && !regs->la57);
		ck_assert_uint_eq(core->registers[i].idt, UINT64_C(0xfffffe0000000000));
		ck_assert(core->registers[i].long_mode);
	}
	ck_assert_uint_eq(core->n_ranges, 2);
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
	memcpy(&dump, "KDUMP   ", 8);
	refused("compressed");
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
	tcase_add_test(tests, a_file_that_is_not_there);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
