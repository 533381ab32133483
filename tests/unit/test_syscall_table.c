// SPDX-License-Identifier: BSD-2-Clause
/* System calls and their parameters by the tables of a kernel made by code. */
#include <asm/unistd.h>
#include <check.h>

#include "btf_builder.h"
#include "elf_builder.h"
#include "lib/probe_name/probe_spec.h"
#include "linux/syscall_table.h"
#include "run_suite.h"

#define DATA UINT64_C(0xffffffff81000000)
#define SLIDE UINT64_C(0x2000000)

enum { OPENAT, STRANGE, GETPID, CALLS };

/* struct syscall_metadata, as far as it is read. */
static struct {
	uint64_t table[CALLS + 1];
	struct {
		uint64_t name;
		int32_t number, parameters;
		uint64_t types, names;
	} calls[CALLS];
	uint64_t types[2], names[2];
	char texts[8][24];
} data;

#define AT(member) (DATA + offsetof(__typeof__(data), member))

static struct syscall_table *table;
static struct btf *btf;
static GByteArray *btf_bytes;

static void make_data(void)
{
	static const char *const texts[] = {"sys_openat", "int",         "const char *", "dfd",
	                                    "filename",   "sys_strange", "sys_getpid"};

	memset(&data, 0, sizeof(data));
	for (unsigned i = 0; i < G_N_ELEMENTS(texts); i++)
		g_strlcpy(data.texts[i], texts[i], sizeof(data.texts[i]));
	for (unsigned i = 0; i < CALLS; i++)
		data.table[i] = AT(calls[i]);
	data.table[CALLS] = 1; /* nowhere */
	data.calls[OPENAT].name = AT(texts[0]);
	data.calls[OPENAT].parameters = 2;
	data.calls[OPENAT].types = AT(types);
	data.calls[OPENAT].names = AT(names);
	data.types[0] = AT(texts[1]);
	data.types[1] = AT(texts[2]);
	data.names[0] = AT(texts[3]);
	data.names[1] = AT(texts[4]);
	data.calls[STRANGE].name = AT(texts[5]);
	data.calls[STRANGE].parameters = 7;
	data.calls[GETPID].name = AT(texts[6]);
}

static void setup(void)
{
	struct elf_builder elf;
	struct btf_builder builder;

	make_data();
	elf_builder_init(&elf);
	const uint16_t section = elf_builder_section(
		&elf, (struct elf_section){".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE | SHF_EXECINSTR, DATA,
	                                   0x1000000, &data, sizeof(data), 0});
	elf_builder_symbol(&elf, "_text", DATA, 8, (uint8_t)ELF64_ST_INFO(STB_GLOBAL, STT_FUNC), section);
	elf_builder_symbol(&elf, "__start_syscalls_metadata", DATA, 8, (uint8_t)ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT),
	                   section);
	elf_builder_symbol(&elf, "__stop_syscalls_metadata", AT(calls), 8,
	                   (uint8_t)ELF64_ST_INFO(STB_GLOBAL, STT_OBJECT), section);
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(elf_builder_finish(&elf));
	struct image *image = image_new("vmlinux", bytes, NULL);

	ck_assert_ptr_nonnull(image);
	image_set_slide(image, SLIDE);
	struct symtab *symtab = symtab_load(image, NULL);
	table = syscall_table_load(image, symtab);
	symtab_free(symtab);
	image_free(image);
	elf_builder_deinit(&elf);
	btf_builder_init(&builder);
	btf_builder_int(&builder, "int", 4);
	btf_bytes = btf_builder_finish(&builder);
	btf_builder_deinit(&builder);
	btf = btf_new(btf_bytes->data, btf_bytes->len, NULL);
	ck_assert_ptr_nonnull(btf);
}

static void teardown(void)
{
	syscall_table_free(table);
	btf_free(btf);
	g_byte_array_unref(btf_bytes);
}

static void has_parameter(const struct btf *types, unsigned i, const char *name, const char *type, unsigned bytes)
{
	struct btf_value value;
	char *found;

	ck_assert(syscall_table_parameter(table, types, "openat", i, &found, &value));
	ck_assert_str_eq(found, name);
	ck_assert_str_eq(value.type, type);
	ck_assert_uint_eq(value.bytes, bytes);
	ck_assert(value.is_pointer == g_str_has_suffix(type, "*"));
	g_free(found);
	btf_value_clear(&value);
}

START_TEST(calls_have_their_parameters)
{
	struct btf_value value;
	char *name;

	has_parameter(btf, 0, "dfd", "int", 4);
	has_parameter(NULL, 0, "dfd", "int", 8);
	has_parameter(btf, 1, "filename", "const char *", 8);
	ck_assert(!syscall_table_parameter(table, btf, "openat", 2, &name, &value));
	ck_assert(!syscall_table_parameter(table, btf, "nothing", 0, &name, &value));
	ck_assert(syscall_table_has(table, "getpid"));
	ck_assert(!syscall_table_parameter(table, btf, "getpid", 0, &name, &value));
}
END_TEST

/* One with more parameters than there are registers is not listed, and neither is one that is nowhere. */
START_TEST(names_are_in_order)
{
	const char *const *names = syscall_table_names(table);

	ck_assert_str_eq(names[0], "getpid");
	ck_assert_str_eq(names[1], "openat");
	ck_assert_ptr_null(names[2]);
}
END_TEST

/* stat is for 32-bit programs in the kernel's source, as set_thread_area is. */
START_TEST(calls_have_the_names_of_the_kernels_source)
{
	uint32_t number = 0;

	ck_assert(probe_call_number("newfstat", &number) && number == __NR_fstat);
	ck_assert(probe_call_number("futex_requeue", &number) && number == 456);
	ck_assert(!probe_call_number("fstat", &number));
	ck_assert(!probe_call_number("set_thread_area", &number));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("syscall_table");
	TCase *tcase = tcase_create("calls");

	tcase_add_checked_fixture(tcase, setup, teardown);
	tcase_add_test(tcase, calls_have_their_parameters);
	tcase_add_test(tcase, names_are_in_order);
	tcase_add_test(tcase, calls_have_the_names_of_the_kernels_source);
	suite_add_tcase(suite, tcase);
	return run_suite(suite);
}
