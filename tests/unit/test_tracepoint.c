// SPDX-License-Identifier: BSD-2-Clause
/* Trace points of a kernel made by code: where they are, their arguments, and what a vCPU does there. */
#include <check.h>

#include "btf_builder.h"
#include "elf_builder.h"
#include "linux/tracepoint.h"
#include "run_suite.h"

#define TEXT UINT64_C(0xffffffff80000000)
#define DATA UINT64_C(0xffffffff80001000)
#define TABLES UINT64_C(0xffffffff80002000)
#define NOP 3u /* in the code */
#define BEHIND 8u
#define BLOCK 0x10u
#define FUNCTION 0x50u
#define FUNCS 0x30u /* in struct tracepoint */
#define GS_BASE (DATA + 0x800)

enum { LIST = 0x200, NAMES = 0x300, CALL_EVENT = 0x400, CLASS = 0x440 }; /* in the data */

static uint8_t code[0x100], data[0x1000];
static struct {
	int32_t tracepoint, padding;
	uint64_t event;
	struct {
		int32_t code, target;
		int64_t key;
	} labels[2];
} tables;
/* Four levels of page tables; the last two GiB are mapped one to one, at 0. */
static uint64_t page_tables[3 * 512];
#define PAGE_TABLES UINT64_C(0x100000)

static struct image *image;
static struct symtab *symtab;
static struct tracepoints *tracepoints;

static bool read_memory(struct guest *guest G_GNUC_UNUSED, gpa_t from, void *to, size_t bytes)
{
	const struct {
		uint64_t at;
		const void *bytes;
		size_t n;
	} parts[] = {{TEXT & 0x3fffffff, code, sizeof(code)},
	             {DATA & 0x3fffffff, data, sizeof(data)},
	             {PAGE_TABLES, page_tables, sizeof(page_tables)}};

	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
		if (from.value - parts[i].at < parts[i].n && bytes <= parts[i].n - (from.value - parts[i].at)) {
			memcpy(to, (const uint8_t *)parts[i].bytes + (from.value - parts[i].at), bytes);
			return true;
		}
	}
	return false;
}

static const struct guest_ops ops = {.memory_read = read_memory};
static struct guest guest = {.ops = &ops, .kind = "fake", .vcpus = 1};

static void put(uint8_t *at, const void *bytes, size_t n)
{
	memcpy(at, bytes, n);
}

static void put_distance(uint8_t *at, uint64_t from, uint64_t to)
{
	const int32_t distance = (int32_t)(to - from);

	put(at, &distance, sizeof(distance));
}

/*
 * As gcc compiles
 *   void work(struct task *task) { trace_work(task, -7, a, b, c, 11); }
 * and __DO_TRACE of linux/tracepoint.h.
 */
static void make_code(void)
{
	static const uint8_t function[] = {0x48, 0x89, 0xfb,             /* mov %rdi, %rbx */
	                                   0x0f, 0x1f, 0x44, 0x00, 0x00, /* nop */
	                                   0x48, 0x89, 0xd8,             /* mov %rbx, %rax */
	                                   0xc3};
	static const uint8_t block[] = {0x65, 0xff, 0x04, 0x25, 0x10, 0x00, 0x00, 0x00, /* incl %gs:0x10 */
	                                0x48, 0x8b, 0x05, 0x00, 0x00, 0x00, 0x00,       /* mov funcs(%rip), %rax */
	                                0x48, 0x85, 0xc0,                               /* test %rax, %rax */
	                                0x74, 0x13,                                     /* je 1f */
	                                0x48, 0x8b, 0x78, 0x08,                         /* mov 8(%rax), %rdi */
	                                0x48, 0x89, 0xde,                               /* mov %rbx, %rsi */
	                                0xba, 0xf9, 0xff, 0xff, 0xff,                   /* mov $-7, %edx */
	                                0x6a, 0x0b,                                     /* push $11 */
	                                0xe8, 0x00, 0x00, 0x00, 0x00,                   /* call FUNCTION */
	                                0x65, 0xff, 0x0c, 0x25, 0x10, 0x00, 0x00, 0x00, /* 1: decl %gs:0x10 */
	                                0xeb, 0x00};

	memset(code, 0x90, sizeof(code));
	put(code, function, sizeof(function));
	put(code + BLOCK, block, sizeof(block));
	put_distance(code + BLOCK + 11, TEXT + BLOCK + 15, DATA + FUNCS);
	put_distance(code + BLOCK + 35, TEXT + BLOCK + 39, TEXT + FUNCTION);
	code[BLOCK + 48] = (uint8_t)(BEHIND - (BLOCK + 49));
	code[FUNCTION] = 0xc3;
}

static void put_pointer(unsigned at, uint64_t value)
{
	put(data + at, &value, sizeof(value));
}

static void make_data(void)
{
	memset(data, 0, sizeof(data));
	put_pointer(0, DATA + NAMES);
	put_pointer(0x20, TEXT + FUNCTION);
	put(data + NAMES, "work", 5);
	put(data + NAMES + 16, "sched", 6);
	put_pointer(CALL_EVENT + 16, DATA + CLASS);
	put_pointer(CALL_EVENT + 24, DATA);
	put_pointer(CLASS, DATA + NAMES + 16);
	tables.tracepoint = (int32_t)(DATA - TABLES);
	tables.event = DATA + CALL_EVENT;
	for (unsigned i = 0; i < 2; i++) {
		const uint64_t at = TABLES + 16 + 16 * i;

		tables.labels[i].code = (int32_t)(TEXT + NOP - at);
		tables.labels[i].target = (int32_t)(TEXT + BLOCK - (at + 4));
		tables.labels[i].key = (int64_t)(DATA + 8 - (at + 8)) | 2;
	}
	/* The key of another label is something else. */
	tables.labels[1].code = (int32_t)(TEXT + 0x80 - (TABLES + 32));
	tables.labels[1].key += 0x100;
}

static GByteArray *make_btf(void)
{
	struct btf_builder builder;

	btf_builder_init(&builder);
	const uint32_t word = btf_builder_int(&builder, "int", 4),
		       address = btf_builder_reference(&builder, BTF_BUILDER_POINTER, "", 0);
	const uint32_t byte = btf_builder_int(&builder, "unsigned char", 1);
	const uint32_t task =
		btf_builder_struct(&builder, "task", (struct btf_member_spec[]){{"pid", word, 0}, {NULL}});
	const uint32_t constant = btf_builder_reference(&builder, BTF_BUILDER_CONST, "", task);
	const uint32_t pointer = btf_builder_reference(&builder, BTF_BUILDER_POINTER, "", constant);

	btf_builder_struct(&builder, "tracepoint",
	                   (struct btf_member_spec[]){{"name", address, 0},
	                                              {"key", address, 8 * 8},
	                                              {"iterator", address, 8 * 0x20},
	                                              {"regfunc", address, 8 * 0x28},
	                                              {"funcs", address, 8 * FUNCS},
	                                              {NULL}});
	btf_builder_struct(&builder, "trace_event_call",
	                   (struct btf_member_spec[]){{"class", address, 8 * 16}, {"tp", address, 8 * 24}, {NULL}});
	btf_builder_struct(&builder, "trace_event_class", (struct btf_member_spec[]){{"system", address, 0}, {NULL}});
	const uint32_t types[] = {address, pointer, word, word, word, word, byte};
	static const char *const names[] = {"__data", "task", "change", "a", "b", "c", "last"};
	const uint32_t prototype =
		btf_builder_type(&builder, "", (uint32_t)BTF_BUILDER_FUNC_PROTO << 24 | G_N_ELEMENTS(types), 0);

	for (size_t i = 0; i < G_N_ELEMENTS(types); i++) {
		btf_builder_u32(builder.types, btf_builder_name(&builder, names[i]));
		btf_builder_u32(builder.types, types[i]);
	}
	btf_builder_type(&builder, "__traceiter_work", (uint32_t)BTF_BUILDER_FUNC << 24, prototype);
	GByteArray *file = btf_builder_finish(&builder);

	btf_builder_deinit(&builder);
	return file;
}

static void make_image(void)
{
	g_autoptr(GByteArray) btf = make_btf();
	struct elf_builder elf;

	elf_builder_init(&elf);
	const uint16_t text =
		elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                                       TEXT & 0x3fffffff, code, sizeof(code), 0});
	const uint16_t in_data =
		elf_builder_section(&elf, (struct elf_section){".data", SHT_PROGBITS, SHF_ALLOC | SHF_WRITE, DATA,
	                                                       DATA & 0x3fffffff, data, sizeof(data), 0});
	const uint16_t in_tables =
		elf_builder_section(&elf, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, TABLES,
	                                                       TABLES & 0x3fffffff, &tables, sizeof(tables), 0});
	elf_builder_section(&elf, (struct elf_section){".BTF", SHT_PROGBITS, 0, 0, 0, btf->data, btf->len, 0});
	const struct {
		const char *name;
		uint64_t address, bytes;
		unsigned type;
		uint16_t section;
	} symbols[] = {
		{"work", TEXT, FUNCTION, STT_FUNC, text},
		{"__traceiter_work", TEXT + FUNCTION, 1, STT_FUNC, text},
		{"__tracepoint_work", DATA, 0x38, STT_OBJECT, in_data},
		{"__start___tracepoints_ptrs", TABLES, 4, STT_OBJECT, in_tables},
		{"__stop___tracepoints_ptrs", TABLES + 4, 4, STT_OBJECT, in_tables},
		{"__start_ftrace_events", TABLES + 8, 8, STT_OBJECT, in_tables},
		{"__stop_ftrace_events", TABLES + 16, 8, STT_OBJECT, in_tables},
		{"__start___jump_table", TABLES + 16, 8, STT_OBJECT, in_tables},
		{"__stop___jump_table", TABLES + sizeof(tables), 1, STT_OBJECT, in_tables},
	};
	for (size_t i = 0; i < G_N_ELEMENTS(symbols); i++)
		elf_builder_symbol(&elf, symbols[i].name, symbols[i].address, symbols[i].bytes,
		                   (uint8_t)ELF64_ST_INFO(STB_GLOBAL, symbols[i].type), symbols[i].section);
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(elf_builder_finish(&elf));
	elf_builder_deinit(&elf);
	image = image_new("vmlinux", bytes, NULL);
	ck_assert_ptr_nonnull(image);
	symtab = symtab_load(image, NULL);
	ck_assert_ptr_nonnull(symtab);
}

static const struct tracepoint *load(void)
{
	g_autoptr(GError) error = NULL;

	make_image();
	tracepoints = tracepoints_load(image, symtab, &error);
	ck_assert_msg(tracepoints != NULL, "%s", error ? error->message : "");
	return tracepoints_find(tracepoints, "sched:work");
}

static void setup(void)
{
	make_code();
	make_data();
	page_tables[511] = PAGE_TABLES + 0x1007;
	page_tables[512 + 510] = 0x87;
}

static void teardown(void)
{
	tracepoints_free(g_steal_pointer(&tracepoints));
	symtab_free(symtab);
	image_free(image);
}

static const struct tracepoint_site *only_site(const struct tracepoint *tracepoint)
{
	ck_assert_ptr_nonnull(tracepoint);
	ck_assert_uint_eq(tracepoint->sites->len, 1);
	return &g_array_index(tracepoint->sites, struct tracepoint_site, 0);
}

static enum tracepoint_outcome pass(const struct tracepoint *tracepoint, unsigned at, uint64_t *arguments)
{
	const struct guest_regs regs = {.rip = TEXT + at, .cr3 = PAGE_TABLES, .gs_base = GS_BASE, .valid = true};
	const struct guest_gprs gprs = {.rbx = 0x1234, .rcx = 5, .r8 = 6, .r9 = 7, .rsp = DATA + 0xf00};

	return tracepoint_site_run(tracepoint, only_site(tracepoint), &guest, &regs, &gprs, 6, arguments);
}

START_TEST(the_tables_are_read)
{
	const struct tracepoint *tracepoint = load();
	const struct tracepoint_site *site = only_site(tracepoint);

	ck_assert_uint_eq(tracepoints_all(tracepoints)->len, 1);
	ck_assert_uint_eq(site->nop, TEXT + NOP);
	ck_assert_uint_eq(site->behind, TEXT + BEHIND);
	ck_assert_uint_eq(site->block, TEXT + BLOCK);
	ck_assert(!site->joins && !tracepoint->needs_kernel && tracepoint_has_arguments(tracepoint));
	ck_assert_ptr_null(tracepoints_find(tracepoints, "raw:work"));
}
END_TEST

START_TEST(arguments_have_names_and_types)
{
	const struct tracepoint *tracepoint = load();
	g_autoptr(GByteArray) bytes = make_btf();
	struct btf *btf = btf_new(bytes->data, bytes->len, NULL);
	g_autoptr(GArray) arguments = tracepoint_arguments(tracepoint, btf);
	g_autoptr(GArray) numbers = tracepoint_arguments(tracepoint, NULL);
	static const struct {
		const char *name, *type;
		unsigned bytes;
	} expected[] = {
		{"task", "struct task *", 8}, {"change", "int", 4}, {"a", "int", 4}, {"b", "int", 4}, {"c", "int", 4},
		{"last", "unsigned char", 1}};

	btf_free(btf);
	ck_assert_uint_eq(arguments->len, G_N_ELEMENTS(expected));
	ck_assert_uint_eq(numbers->len, 5);
	ck_assert_str_eq(g_array_index(numbers, struct tracepoint_argument, 4).name, "arg4");
	for (guint i = 0; i < arguments->len; i++) {
		const struct tracepoint_argument *argument = &g_array_index(arguments, struct tracepoint_argument, i);

		ck_assert_str_eq(argument->name, expected[i].name);
		ck_assert_str_eq(argument->value.type, expected[i].type);
		ck_assert_uint_eq(argument->value.bytes, expected[i].bytes);
	}
}
END_TEST

START_TEST(values_have_the_bits_of_their_types)
{
	const struct btf_value signed_word = {.bytes = 4, .is_signed = true}, byte = {.bytes = 1}, all = {.bytes = 8};

	ck_assert_uint_eq(btf_value_extend(&signed_word, UINT64_C(0x1234fffffff9)), (uint64_t)-7);
	ck_assert_uint_eq(btf_value_extend(&byte, 0x1ff), 0xff);
	ck_assert_uint_eq(btf_value_extend(&all, UINT64_MAX), UINT64_MAX);
}
END_TEST

START_TEST(the_block_is_interpreted)
{
	const struct tracepoint *tracepoint = load();
	uint64_t arguments[6];

	ck_assert_int_eq(pass(tracepoint, NOP, arguments), TRACEPOINT_HIT);
	const uint64_t expected[] = {0x1234, 0xfffffff9, 5, 6, 7, 11};
	ck_assert_mem_eq(arguments, expected, sizeof(expected));
	ck_assert_int_eq(pass(tracepoint, BEHIND, arguments), TRACEPOINT_HIT);
	/* In use: the nop is a jump, and what comes out of the block passes behind it again. */
	code[NOP] = 0xe9;
	ck_assert_int_eq(pass(tracepoint, NOP, arguments), TRACEPOINT_HIT);
	ck_assert_int_eq(pass(tracepoint, BLOCK, arguments), TRACEPOINT_HIT);
	ck_assert_int_eq(pass(tracepoint, BEHIND, arguments), TRACEPOINT_PASSED);
}
END_TEST

START_TEST(memory_that_is_not_there_leaves_no_arguments)
{
	const struct tracepoint *tracepoint = load();
	uint64_t arguments[6];

	page_tables[512 + 510] = 0;
	ck_assert_int_eq(pass(tracepoint, NOP, arguments), TRACEPOINT_UNKNOWN);
}
END_TEST

START_TEST(other_code_may_lead_behind_the_nop)
{
	code[0] = 0x74; /* je BEHIND; nop */
	code[1] = BEHIND - 2;
	code[2] = 0x90;
	ck_assert(only_site(load())->joins);
}
END_TEST

/* A block that calls something else first: the arguments are unknown, and so it is while the trace point is in use. */
START_TEST(a_block_that_calls_has_no_arguments)
{
	uint64_t arguments[6];

	code[BLOCK] = 0xe8;
	put_distance(code + BLOCK + 1, TEXT + BLOCK + 5, TEXT + FUNCTION + 8);
	memset(code + BLOCK + 5, 0x90, 3);
	const struct tracepoint *tracepoint = load();
	ck_assert(!tracepoint_has_arguments(tracepoint));
	ck_assert_int_eq(pass(tracepoint, NOP, arguments), TRACEPOINT_UNKNOWN);
}
END_TEST

/* Nor is there a place where the kernel only asks if the trace point is in use. */
START_TEST(a_block_that_does_not_call_is_no_place)
{
	put_distance(code + BLOCK + 35, TEXT + BLOCK + 39, TEXT + FUNCTION + 8);
	const struct tracepoint *tracepoint = load();

	ck_assert_ptr_nonnull(tracepoint);
	ck_assert_uint_eq(tracepoint->sites->len, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("tracepoint");
	TCase *all = tcase_create("tracepoint");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, the_tables_are_read);
	tcase_add_test(all, arguments_have_names_and_types);
	tcase_add_test(all, values_have_the_bits_of_their_types);
	tcase_add_test(all, the_block_is_interpreted);
	tcase_add_test(all, memory_that_is_not_there_leaves_no_arguments);
	tcase_add_test(all, other_code_may_lead_behind_the_nop);
	tcase_add_test(all, a_block_that_calls_has_no_arguments);
	tcase_add_test(all, a_block_that_does_not_call_is_no_place);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
