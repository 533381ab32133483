// SPDX-License-Identifier: BSD-2-Clause
/*
 * Tables of call frame information: of sections made by hand, and of the machine's own programs, where libdw says the
 * same at both ends of every row.
 */
#include <check.h>
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <gelf.h>
#include <stdio.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/arm64/cfi_arm64.h"
#include "lib/symbol/cfi.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "run_suite.h"

/* ---- what libdw says, and what a table says, for the same registers and memory ---- */

struct machine {
	uint64_t registers[CFI_REGISTERS];
};

/* Any word, but always the same at one address. */
static uint64_t word_at(uint64_t address)
{
	uint64_t word = address * UINT64_C(0x9e3779b97f4a7c15);

	return word ^ word >> 29;
}

static void machine_init(struct machine *machine, uint64_t rip)
{
	for (unsigned i = 0; i < CFI_RIP; i++)
		machine->registers[i] = word_at(i);
	machine->registers[CFI_RIP] = rip;
}

enum outcome { LOST, KEPT, VALUE, UNKNOWN };

static enum outcome dwarf_value(const struct machine *machine, const Dwarf_Op *ops, size_t n, uint64_t cfa,
                                bool is_place, uint64_t *value)
{
	uint64_t stack[16] = {0};
	unsigned top = 0;

	for (size_t i = 0; i < n; i++) {
		const Dwarf_Op *op = &ops[i];

		ck_assert_uint_lt(top, G_N_ELEMENTS(stack) - 1);
		if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
			stack[++top] = machine->registers[op->atom - DW_OP_breg0] + op->number;
		} else if (op->atom >= DW_OP_reg0 && op->atom <= DW_OP_reg31) {
			stack[++top] = machine->registers[op->atom - DW_OP_reg0];
			is_place = false;
		} else if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31) {
			stack[++top] = op->atom - DW_OP_lit0;
		} else {
			switch (op->atom) {
			case DW_OP_regx:
				stack[++top] = machine->registers[op->number];
				is_place = false;
				break;
			case DW_OP_bregx:
				stack[++top] = machine->registers[op->number] + op->number2;
				break;
			case DW_OP_call_frame_cfa:
				stack[++top] = cfa;
				break;
			case DW_OP_const1u:
			case DW_OP_const1s:
			case DW_OP_const2u:
			case DW_OP_const2s:
			case DW_OP_constu:
			case DW_OP_consts:
				stack[++top] = op->number;
				break;
			case DW_OP_plus_uconst:
				stack[top] += op->number;
				break;
			case DW_OP_plus:
				stack[top - 1] += stack[top];
				top--;
				break;
			case DW_OP_minus:
				stack[top - 1] -= stack[top];
				top--;
				break;
			case DW_OP_and:
				stack[top - 1] &= stack[top];
				top--;
				break;
			case DW_OP_shl:
				stack[top - 1] <<= stack[top];
				top--;
				break;
			case DW_OP_ge:
				stack[top - 1] = (int64_t)stack[top - 1] >= (int64_t)stack[top];
				top--;
				break;
			case DW_OP_deref:
				stack[top] = word_at(stack[top]);
				break;
			case DW_OP_stack_value:
				is_place = false;
				break;
			default:
				return UNKNOWN;
			}
		}
	}
	*value = is_place ? word_at(stack[top]) : stack[top];
	return VALUE;
}

static uint64_t cell_value(const struct machine *machine, const struct cfi_cell *cell, uint64_t cfa)
{
	uint64_t base = cell->base == CFI_CFA ? cfa : machine->registers[cell->base];
	uint64_t at = base + (uint64_t)(int64_t)cell->offset;

	return (cell->how == CFI_MEMORY ? word_at(at) : at) + (uint64_t)(int64_t)cell->add;
}

/* ---- a program ---- */

struct program {
	Elf *elf;
	Dwarf_CFI *cfi;
	struct image *image;
	GBytes *block;
	struct cfi_table table;
	struct cfi_statistics statistics;
	uint64_t compared, differ, unknown;
};

/* The cell of a register; NULL: none. */
static const struct cfi_cell *cell_of(const struct cfi_cell *cells, unsigned target)
{
	for (unsigned i = 1; i < cells[0].count; i++)
		if (cells[i].target == target)
			return &cells[i];
	return NULL;
}

static bool same_register(const struct machine *machine, Dwarf_Frame *frame, const struct cfi_cell *cell,
                          unsigned target, uint64_t cfa)
{
	Dwarf_Op memory[3], *ops;
	size_t n;
	uint64_t want = 0;

	ck_assert_int_eq(dwarf_frame_register(frame, (int)target, memory, &ops, &n), 0);
	enum outcome outcome = !ops ? KEPT : n == 0 ? LOST : dwarf_value(machine, ops, n, cfa, true, &want);

	/* What a register without a rule keeps is a matter of the ABI; libdw says so of rax instead of rbx. */
	if (!cell && target == CFI_RSP)
		return outcome == VALUE && want == cfa;
	if (!cell || cell->how == CFI_SAME)
		return outcome != VALUE;
	if (cell->how == CFI_UNDEFINED)
		return outcome == LOST;
	return outcome == VALUE && cell_value(machine, cell, cfa) == want;
}

static bool same_frame(struct program *program, Dwarf_Frame *frame, uint64_t address, const struct cfi_cell *cells)
{
	struct machine machine;
	Dwarf_Addr start, end;
	bool signal;
	Dwarf_Op *ops;
	size_t n_ops;
	uint64_t want;

	machine_init(&machine, address);
	ck_assert_int_eq(dwarf_frame_info(frame, &start, &end, &signal), CFI_RIP);
	ck_assert_int_eq(dwarf_frame_cfa(frame, &ops, &n_ops), 0);
	if (dwarf_value(&machine, ops, n_ops, 0, false, &want) != VALUE || cell_value(&machine, &cells[0], 0) != want ||
	    signal != ((cells[0].target == CFI_CFA_SIGNAL)))
		return false;
	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		if (!same_register(&machine, frame, cell_of(cells, i), i, want))
			return false;
	program->compared++;
	return true;
}

static void compare_at(struct program *program, uint64_t address, uint64_t offset)
{
	uint32_t found;
	const struct cfi_cell *cells = cfi_table_find(&program->table, offset, &found);
	Dwarf_Frame *frame = NULL;
	bool same;

	if (dwarf_cfi_addrframe(program->cfi, address, &frame) != 0)
		same = found == CFI_NONE;
	else if (found == CFI_UNKNOWN)
		same = true, program->unknown++;
	else
		same = cells && same_frame(program, frame, address, cells);
	if (!same && program->differ++ < 5)
		fprintf(stderr, "%s: 0x%" G_GINT64_MODIFIER "x: found %x, libdw has %s\n", image_path(program->image),
		        address, found, frame ? "another" : "none");
	free(frame);
}

/* Where the code at an offset of the file is. */
static bool address_of(const struct image *image, uint64_t offset, uint64_t *address)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		if (!(segments[i].flags & 1) || offset - segments[i].file_offset >= segments[i].file_bytes)
			continue;
		*address = segments[i].gva + (offset - segments[i].file_offset);
		return true;
	}
	return false;
}

static void program_compare(struct program *program)
{
	for (uint32_t i = 0; i < program->table.n_rows; i++) {
		uint64_t first = program->table.rows[i].offset, address;

		if (address_of(program->image, first, &address))
			compare_at(program, address, first);
		if (i + 1 < program->table.n_rows &&
		    address_of(program->image, program->table.rows[i + 1].offset - 1, &address))
			compare_at(program, address, program->table.rows[i + 1].offset - 1);
	}
}

/* A file that is not on this machine is passed over. */
static bool program_check(const char *path, uint64_t rows_min)
{
	g_autoptr(GError) error = NULL;
	g_autoptr(GMappedFile) file = g_mapped_file_new(path, FALSE, &error);

	if (!file)
		return false;
	g_autoptr(GBytes) bytes = g_mapped_file_get_bytes(file);
	struct program program = {.image = image_new_program(path, bytes, &error)};
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	ck_assert_msg(program.image && fd >= 0, "%s: %s", path, error ? error->message : "cannot be opened");
	elf_version(EV_CURRENT);
	program.elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	program.cfi = dwarf_getcfi_elf(program.elf);
	ck_assert_ptr_nonnull(program.cfi);
	gint64 begin = g_get_monotonic_time();

	program.block = cfi_table_make_of_image(program.image, &program.statistics);
	gint64 us = g_get_monotonic_time() - begin;

	ck_assert_ptr_nonnull(program.block);
	ck_assert(
		cfi_table_open(g_bytes_get_data(program.block, NULL), g_bytes_get_size(program.block), &program.table));
	program_compare(&program);
	printf("%s: %" G_GUINT64_FORMAT " functions, %u rows (%" G_GUINT64_FORMAT
	       " of no known form), %u cells, %zu bytes "
	       "in %.1f ms; corrupt %" G_GUINT64_FORMAT ", overlapping %" G_GUINT64_FORMAT
	       ", outside %" G_GUINT64_FORMAT "; compared %" G_GUINT64_FORMAT ", different %" G_GUINT64_FORMAT "\n",
	       path, program.statistics.functions, program.table.n_rows, program.statistics.unknown,
	       program.table.n_cells, g_bytes_get_size(program.block), (double)us / 1000, program.statistics.corrupt,
	       program.statistics.overlapping, program.statistics.outside, program.compared, program.differ);
	ck_assert_uint_eq(program.differ, 0);
	ck_assert_uint_eq(program.statistics.corrupt, 0);
	ck_assert_uint_ge(program.table.n_rows, rows_min);
	ck_assert_uint_ge(program.compared, program.table.n_rows);
	/* Of forms that have no cell, OpenSSL's assembly has the most. */
	ck_assert_uint_le(program.statistics.unknown * 1000, program.table.n_rows);
	g_bytes_unref(program.block);
	image_free(program.image);
	dwarf_cfi_end(program.cfi);
	elf_end(program.elf);
	close(fd);
	return true;
}

START_TEST(the_programs_of_this_machine_are_as_libdw_says)
{
	ck_assert(program_check("/lib/x86_64-linux-gnu/libc.so.6", 10000) || program_check("/lib64/libc.so.6", 10000));
	ck_assert(program_check("/usr/bin/sort", 1000));
}
END_TEST

/* ---- files of which not all is known ---- */

#define PAGE_BYTES 4096u

/* A sealed copy in which every page is a hole that `is_hole` takes. */
static struct image *partial_open(const char *path, bool (*is_hole)(size_t page, size_t n))
{
	g_autofree char *bytes = NULL;
	gsize n;
	int sealed = sealed_new("partial");
	struct image *image;

	ck_assert(g_file_get_contents(path, &bytes, &n, NULL));
	ck_assert_int_eq(ftruncate(sealed, (off_t)n), 0);
	for (size_t at = 0; at < n; at += PAGE_BYTES)
		if (!is_hole(at / PAGE_BYTES, n / PAGE_BYTES))
			ck_assert_int_gt(pwrite(sealed, bytes + at, MIN(n - at, PAGE_BYTES), (off_t)at), 0);
	ck_assert(sealed_finish(sealed));
	image = image_open_partial(path, sealed, NULL);
	ck_assert_ptr_nonnull(image);
	close(sealed);
	return image;
}

static bool hole_none(size_t page G_GNUC_UNUSED, size_t n G_GNUC_UNUSED)
{
	return false;
}

static size_t frame_page; /* the first of .eh_frame */

/* Without names of sections, and with a hole behind the first entries. */
static bool hole_some(size_t page, size_t n)
{
	return page + 3 >= n || page == frame_page + 1;
}

static bool same_cells(const struct cfi_cell *one, const struct cfi_cell *other)
{
	return one && other && one->count == other->count && memcmp(one, other, one->count * sizeof(*one)) == 0;
}

/* What it finds in the table of a part, the whole one has, too. Returns how many of its rows the part has. */
static uint32_t part_compare(GBytes *whole, GBytes *part)
{
	struct cfi_table all, some;
	uint32_t n = 0, why;

	ck_assert(cfi_table_open(g_bytes_get_data(whole, NULL), g_bytes_get_size(whole), &all));
	ck_assert(cfi_table_open(g_bytes_get_data(part, NULL), g_bytes_get_size(part), &some));
	for (uint32_t i = 0; i < all.n_rows; i++) {
		const uint64_t offset = all.rows[i].offset;
		const struct cfi_cell *cells = cfi_table_find(&some, offset, &why);

		ck_assert(!cells || same_cells(cells, cfi_table_find(&all, offset, &why)));
		n += cells != NULL;
	}
	return n;
}

static struct image *program_open(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image *image = image_open_fd(path, IMAGE_PROGRAM, fd, NULL);

	ck_assert_ptr_nonnull(image);
	close(fd);
	return image;
}

/* One that is linked statically has no .eh_frame_hdr. */
START_TEST(a_file_without_a_header)
{
	static const char path[] = "/bin/busybox";
	struct image *image = program_open(path), *same = partial_open(path, hole_none);
	struct cfi_statistics statistics, again;
	size_t n;
	uint64_t address;
	g_autoptr(GBytes) table = cfi_table_make_of_image(image, &statistics);
	g_autoptr(GBytes) part = cfi_table_make_of_partial(same, &again);

	if (image_frame_header(image, &n, &address))
		printf("%s has a header\n", path);
	ck_assert(table && part);
	ck_assert_uint_eq(again.functions, statistics.functions);
	ck_assert_uint_eq(again.missing, 0);
	ck_assert(g_bytes_equal(table, part));
	image_free(image);
	image_free(same);
}
END_TEST

START_TEST(a_file_in_part_has_part_of_its_rows)
{
	static const char path[] = "/usr/bin/sort";
	struct image *image = program_open(path), *none = partial_open(path, hole_none);
	struct cfi_statistics statistics, whole, part;
	size_t n_bytes;
	uint64_t address;

	frame_page = (size_t)(image_section(image, ".eh_frame", &n_bytes, &address) - image_bytes(image, &n_bytes)) /
	             PAGE_BYTES;
	struct image *some = partial_open(path, hole_some);
	g_autoptr(GBytes) table = cfi_table_make_of_image(image, &statistics);
	g_autoptr(GBytes) same = cfi_table_make_of_partial(none, &whole);
	g_autoptr(GBytes) less = cfi_table_make_of_partial(some, &part);
	uint32_t n;

	ck_assert(table && same && less);
	ck_assert_uint_eq(whole.functions, statistics.functions);
	ck_assert_uint_eq(whole.missing, 0);
	ck_assert_uint_eq(part_compare(table, same), part_compare(table, table));
	ck_assert_uint_gt(part.missing, 0);
	ck_assert_uint_eq(part.functions + part.missing, statistics.functions);
	n = part_compare(table, less);
	printf("%s: %u rows in part, %" G_GUINT64_FORMAT " functions missing of %" G_GUINT64_FORMAT "\n", path, n,
	       part.missing, statistics.functions);
	ck_assert_uint_gt(n, part_compare(table, table) / 10);
	ck_assert_uint_lt(n, part_compare(table, table));
	/* vprof-parse finds the same holes, where none has been read here: that fills them. */
	struct cfi_statistics of_part, of_whole;
	g_autoptr(GBytes) table_apart = cfi_table_load(image, &of_whole, NULL);
	struct image *again = partial_open(path, hole_some);
	g_autoptr(GBytes) less_apart = cfi_table_load(again, &of_part, NULL);

	ck_assert(table_apart && g_bytes_equal(table, table_apart));
	ck_assert(less_apart && g_bytes_equal(less, less_apart));
	ck_assert_mem_eq(&of_part, &part, sizeof(part));
	image_free(image);
	image_free(none);
	image_free(some);
	image_free(again);
}
END_TEST

/* ---- sections made by hand ---- */

#define CODE UINT64_C(0x401000) /* of 256 bytes, at 0x1000 of the file */
#define FRAME UINT64_C(0x402000)

static const struct image_segment code = {
	.gva = CODE, .file_offset = 0x1000, .file_bytes = 0x100, .memory_bytes = 0x100, .flags = 5};

/* CFA = rsp + 8, return address at CFA - 8. */
#define CIE_PROGRAM DW_CFA_def_cfa, CFI_RSP, 8, DW_CFA_offset | CFI_RIP, 1

/* An .eh_frame: a CIE of 20 bytes, and an FDE for CODE + 0x10 of 0x20 bytes with this program. */
static GByteArray *eh_frame_new(const uint8_t *program, uint8_t n)
{
	static const uint8_t cie[] = {20,  0, 0, 0,    0,       0, 0,    0,           1, 'z',
	                              'R', 0, 1, 0x78, CFI_RIP, 1, 0x1b, CIE_PROGRAM, 0, 0};
	GByteArray *frame = g_byte_array_new();
	uint32_t bytes = 13u + n, back = sizeof(cie) + 4;
	int32_t start = (int32_t)(CODE + 0x10 - (FRAME + sizeof(cie) + 8));
	uint32_t length = 0x20;

	ck_assert_uint_eq(sizeof(cie), 24);
	g_byte_array_append(frame, cie, sizeof(cie));
	g_byte_array_append(frame, (const uint8_t *)&bytes, 4);
	g_byte_array_append(frame, (const uint8_t *)&back, 4);
	g_byte_array_append(frame, (const uint8_t *)&start, 4);
	g_byte_array_append(frame, (const uint8_t *)&length, 4);
	g_byte_array_append(frame, (const uint8_t[]){0}, 1);
	g_byte_array_append(frame, program, n);
	return frame;
}

static GBytes *table_for(const struct cfi_arch *arch, const GByteArray *eh_frame, const GByteArray *debug_frame,
                         struct cfi_statistics *statistics)
{
	const struct cfi_source source = {
		.arch = arch,
		.eh_frame = {eh_frame ? eh_frame->data : NULL, eh_frame ? eh_frame->len : 0, FRAME},
		.debug_frame = {debug_frame ? debug_frame->data : NULL, debug_frame ? debug_frame->len : 0, 0},
		.segments = &code,
		.n_segments = 1,
	};

	return cfi_table_make(&source, statistics);
}

static GBytes *table_of(const GByteArray *eh_frame, const GByteArray *debug_frame, struct cfi_statistics *statistics)
{
	return table_for(NULL, eh_frame, debug_frame, statistics);
}

static const struct cfi_cell *found_at(GBytes *block, uint64_t offset, uint32_t *why)
{
	static struct cfi_table table;

	ck_assert(cfi_table_open(g_bytes_get_data(block, NULL), g_bytes_get_size(block), &table));
	return cfi_table_find(&table, offset, why);
}

/* Where the stack pointer of the caller is, of a row with an offset only; 0: without a row. */
static int cfa_at(GBytes *block, uint64_t offset)
{
	uint32_t why;
	const struct cfi_cell *cells = found_at(block, offset, &why);

	ck_assert(cells || why == CFI_NONE);
	return cells ? cells[0].offset : 0;
}

/* eh_frame_new's with the CIE of a compiler for arm64: CFA = sp. */
static GByteArray *eh_frame_new_arm64(const uint8_t *program, uint8_t n)
{
	static const uint8_t fields[] = {4, 0x78, 30, 1, 0x1b, DW_CFA_def_cfa, 31, 0, DW_CFA_nop, DW_CFA_nop};
	GByteArray *frame = eh_frame_new(program, n);

	memcpy(frame->data + 12, fields, sizeof(fields));
	return frame;
}

static void assert_cell(const struct cfi_cell *cells, uint8_t target, uint8_t how, uint8_t base, int32_t offset)
{
	const struct cfi_cell *cell = target == CFI_CFA ? cells : cell_of(cells, target);

	ck_assert_ptr_nonnull(cell);
	ck_assert_uint_eq(cell->how, how);
	ck_assert_uint_eq(cell->base, base);
	ck_assert_int_eq(cell->offset, offset);
}

/* X30 until it is saved, beside registers that lead nowhere; the signature of a return address changes nothing. */
START_TEST(arm64_has_a_link_register)
{
	static const uint8_t program[] = {0x2d /* DW_CFA_AARCH64_negate_ra_state */,
	                                  DW_CFA_advance_loc | 1,
	                                  DW_CFA_def_cfa_offset,
	                                  48,
	                                  DW_CFA_offset | 29,
	                                  6,
	                                  DW_CFA_offset | 30,
	                                  5,
	                                  DW_CFA_offset | 19,
	                                  4,
	                                  DW_CFA_advance_loc | 1,
	                                  DW_CFA_def_cfa_register,
	                                  29,
	                                  DW_CFA_advance_loc | 1,
	                                  DW_CFA_def_cfa,
	                                  19,
	                                  0,
	                                  DW_CFA_advance_loc | 1,
	                                  DW_CFA_def_cfa,
	                                  31,
	                                  0,
	                                  DW_CFA_restore | 29,
	                                  DW_CFA_restore | 30,
	                                  DW_CFA_advance_loc | 1,
	                                  DW_CFA_undefined,
	                                  30};
	g_autoptr(GByteArray) frame = eh_frame_new_arm64(program, sizeof(program));
	struct cfi_statistics statistics;
	g_autoptr(GBytes) block = table_for(&cfi_arm64, frame, NULL, &statistics);
	const struct cfi_cell *cells;
	uint32_t why;

	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq(statistics.corrupt, 0);
	for (unsigned offset = 0x1010; offset <= 0x1020; offset += 0x10) {
		cells = found_at(block, offset, &why);
		ck_assert_uint_eq(cells[0].count, 2);
		assert_cell(cells, CFI_CFA, CFI_VALUE, CFI_ARM64_SP, 0);
		assert_cell(cells, CFI_ARM64_X30, CFI_VALUE, CFI_ARM64_X30, 0);
	}
	cells = found_at(block, 0x1014, &why);
	ck_assert_uint_eq(cells[0].count, 3);
	assert_cell(cells, CFI_CFA, CFI_VALUE, CFI_ARM64_SP, 48);
	assert_cell(cells, CFI_ARM64_X29, CFI_MEMORY, CFI_CFA, -48);
	assert_cell(cells, CFI_ARM64_X30, CFI_MEMORY, CFI_CFA, -40);
	assert_cell(found_at(block, 0x1018, &why), CFI_CFA, CFI_VALUE, CFI_ARM64_X29, 48);
	/* By a register that the walk does not keep. */
	ck_assert_ptr_null(found_at(block, 0x101c, &why));
	ck_assert_uint_eq(why, CFI_UNKNOWN);
	assert_cell(found_at(block, 0x1024, &why), CFI_ARM64_X30, CFI_UNDEFINED, 0, 0);
	/* Neither the register of the return address nor that operation is x86-64's. */
	g_autoptr(GBytes) none = table_of(frame, NULL, &statistics);
	ck_assert_ptr_null(none);
	ck_assert_uint_eq(statistics.corrupt, 1);
}
END_TEST

START_TEST(rows_begin_and_end_where_the_code_does)
{
	static const uint8_t program[] = {DW_CFA_advance_loc | 4, DW_CFA_def_cfa_offset, 32};
	g_autoptr(GByteArray) frame = eh_frame_new(program, sizeof(program));
	struct cfi_statistics statistics;
	g_autoptr(GBytes) block = table_of(frame, NULL, &statistics);
	uint32_t why;

	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq(statistics.functions, 1);
	ck_assert_int_eq(cfa_at(block, 0x100f), 0);
	ck_assert_int_eq(cfa_at(block, 0x1010), 8);
	ck_assert_int_eq(cfa_at(block, 0x1014), 32);
	ck_assert_ptr_nonnull(cell_of(found_at(block, 0x1014, &why), CFI_RIP));
	ck_assert_int_ne(cfa_at(block, 0x102f), 0);
	ck_assert_int_eq(cfa_at(block, 0x1030), 0);
}
END_TEST

static const struct expression_case {
	const char *what;
	uint8_t program[20], n;
	bool found;
	struct cfi_cell cfa;
} expressions[] = {
	{"OpenSSL: *(rsp + 0x28) + 8",
         {DW_CFA_def_cfa_expression, 5, DW_OP_breg0 + CFI_RSP, 0x28, DW_OP_deref, DW_OP_plus_uconst, 8},
         7,
         true,
         {CFI_CFA, CFI_MEMORY, CFI_RSP, 2, 0x28, 8}},
	{"a realigned stack: *(rbp - 8)",
         {DW_CFA_def_cfa_expression, 3, DW_OP_breg0 + CFI_RBP, 0x78, DW_OP_deref},
         5,
         true,
         {CFI_CFA, CFI_MEMORY, CFI_RBP, 2, -8, 0}},
	{"a difference",
         {DW_CFA_def_cfa_expression, 4, DW_OP_breg0 + CFI_RBX, 8, DW_OP_lit4, DW_OP_minus},
         6,
         true,
         {CFI_CFA, CFI_VALUE, CFI_RBX, 2, 4, 0}},
	{"two words deep",
         {DW_CFA_def_cfa_expression, 4, DW_OP_breg0 + CFI_RBX, 8, DW_OP_deref, DW_OP_deref},
         6,
         false,
         {0}},
	{"nothing on the stack", {DW_CFA_def_cfa_expression, 1, DW_OP_deref}, 3, false, {0}},
	{"a constant", {DW_CFA_def_cfa_expression, 1, DW_OP_lit1}, 3, false, {0}},
	{"a register beyond", {DW_CFA_def_cfa, 17, 8}, 3, false, {0}},
	{"nothing remembered", {DW_CFA_restore_state}, 1, false, {0}},
	{"an offset beyond 32 bits", {DW_CFA_def_cfa_offset, 0x80, 0x80, 0x80, 0x80, 0x80, 0x01}, 7, false, {0}},
};

START_TEST(forms_of_the_frame_address)
{
	const struct expression_case *expected = &expressions[_i];
	g_autoptr(GByteArray) frame = eh_frame_new(expected->program, expected->n);
	struct cfi_statistics statistics;
	g_autoptr(GBytes) block = table_of(frame, NULL, &statistics);
	uint32_t why;

	ck_assert_ptr_nonnull(block);
	const struct cfi_cell *cells = found_at(block, 0x1010, &why);

	ck_assert_msg(!cells == !expected->found, "%s", expected->what);
	ck_assert_uint_eq(statistics.unknown, !expected->found);
	if (cells)
		ck_assert_mem_eq(&cells[0], &expected->cfa, sizeof(cells[0]));
	else
		ck_assert_uint_eq(why, CFI_UNKNOWN);
}
END_TEST

START_TEST(entries_of_the_plt_have_two_rows)
{
	static const uint8_t program[] = {DW_CFA_def_cfa_expression,
	                                  11,
	                                  DW_OP_breg0 + CFI_RSP,
	                                  8,
	                                  DW_OP_breg16,
	                                  0,
	                                  DW_OP_lit15,
	                                  DW_OP_and,
	                                  DW_OP_lit11,
	                                  DW_OP_ge,
	                                  DW_OP_lit3,
	                                  DW_OP_shl,
	                                  DW_OP_plus};
	g_autoptr(GByteArray) frame = eh_frame_new(program, sizeof(program));
	struct cfi_statistics statistics;
	g_autoptr(GBytes) block = table_of(frame, NULL, &statistics);

	ck_assert_ptr_nonnull(block);
	for (unsigned i = 0; i < 0x20; i++) {
		ck_assert_int_eq(cfa_at(block, 0x1010 + i), i % 16 >= 11 ? 16 : 8);
	}
}
END_TEST

/* The code of the .eh_frame, 16 bytes before it and 16 behind: the second section fills the gaps only. */
START_TEST(debug_frame_fills_gaps)
{
	static const uint8_t program[] = {DW_CFA_def_cfa_offset, 64};
	static const uint8_t debug[] = {
		16,   0,    0,    0, 0xff, 0xff, 0xff, 0xff, 4,    0, 8,  0, 1,    0x78, CFI_RIP, CIE_PROGRAM, 20, 0,
		0,    0,    0,    0, 0,    0,    0x00, 0x10, 0x40, 0, 0,  0, 0,    0,    0x10,    0,           0,  0,
		0,    0,    0,    0, 20,   0,    0,    0,    0,    0, 0,  0, 0x10, 0x10, 0x40,    0,           0,  0,
		0,    0,    0x20, 0, 0,    0,    0,    0,    0,    0, 20, 0, 0,    0,    0,       0,           0,  0,
		0x30, 0x10, 0x40, 0, 0,    0,    0,    0,    0x10, 0, 0,  0, 0,    0,    0,       0,
	};
	g_autoptr(GByteArray) frame = eh_frame_new(program, sizeof(program));
	g_autoptr(GByteArray) second = g_byte_array_new();
	struct cfi_statistics statistics;

	g_byte_array_append(second, debug, sizeof(debug));
	g_autoptr(GBytes) block = table_of(frame, second, &statistics);

	ck_assert_ptr_nonnull(block);
	ck_assert_uint_eq(statistics.functions, 3);
	ck_assert_uint_eq(statistics.overlapping, 1);
	for (unsigned i = 0; i < 0x40; i += 0x10) {
		ck_assert_int_eq(cfa_at(block, 0x1000 + i), i == 0x10 || i == 0x20 ? 64 : 8);
	}
	ck_assert_int_eq(cfa_at(block, 0x1040), 0);
}
END_TEST

START_TEST(code_outside_of_the_file_is_counted)
{
	g_autoptr(GByteArray) frame = eh_frame_new((const uint8_t[]){DW_CFA_nop}, 1);
	struct cfi_statistics statistics;

	frame->data[24 + 12 + 1] = 0x7f; /* of its length */
	ck_assert_ptr_null(table_of(frame, NULL, &statistics));
	ck_assert_uint_eq(statistics.outside, 1);
	frame->data[24 + 4] = 0x01; /* a CIE in the middle of nothing */
	ck_assert_ptr_null(table_of(frame, NULL, &statistics));
	ck_assert_uint_eq(statistics.corrupt, 1);
}
END_TEST

/* Whatever else it holds. */
START_TEST(a_table_that_lies_is_refused)
{
	g_autoptr(GByteArray) frame = eh_frame_new((const uint8_t[]){DW_CFA_nop}, 1);
	struct cfi_statistics statistics;
	g_autoptr(GBytes) block = table_of(frame, NULL, &statistics);
	const struct {
		size_t at; /* of the block: its header, two rows, two cells, two numbers of the index */
		uint8_t value;
	} lies[] = {
		{0, 'c'},
		{4, 3},                   /* rows */
		{8, 1},                   /* cells */
		{12, 3},                  /* numbers of the index */
		{16 + 4, 2},              /* the cells of the first row: none are there, */
		{16 + 4, 1},              /* or they do not begin with the CFA */
		{16 + 8, 0},              /* rows out of order */
		{16 + 16, CFI_RIP},       /* not the CFA */
		{16 + 16 + 1, CFI_SAME},  /* a CFA that is no value */
		{16 + 16 + 2, CFI_CFA},   /* that is itself */
		{16 + 16 + 3, 0},         /* no cells */
		{16 + 16 + 3, 3},         /* more than there are */
		{16 + 28, CFI_REGISTERS}, /* no register */
		{16 + 28 + 1, 99},        /* found in no way */
		{16 + 28 + 2, CFI_REGISTERS},
		{16 + 40, 2}, /* an index of no row */
	};
	gsize bytes = g_bytes_get_size(block);
	struct cfi_table table;

	ck_assert_uint_eq(bytes, 16 + 16 + 24 + 8);
	for (size_t i = 0; i < G_N_ELEMENTS(lies); i++) {
		g_autofree uint8_t *copy = g_memdup2(g_bytes_get_data(block, NULL), bytes);

		ck_assert(cfi_table_open(copy, bytes, &table));
		ck_assert(!cfi_table_open(copy, bytes - 1, &table));
		copy[lies[i].at] = lies[i].value;
		if (lies[i].at == 16 + 8)
			copy[16 + 9] = 0;
		ck_assert_msg(!cfi_table_open(copy, bytes, &table), "lie %zu", i);
	}
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("cfi");
	TCase *tables = tcase_create("tables"), *machine = tcase_create("machine");

	tcase_add_test(tables, rows_begin_and_end_where_the_code_does);
	tcase_add_test(tables, arm64_has_a_link_register);
	tcase_add_loop_test(tables, forms_of_the_frame_address, 0, G_N_ELEMENTS(expressions));
	tcase_add_test(tables, entries_of_the_plt_have_two_rows);
	tcase_add_test(tables, debug_frame_fills_gaps);
	tcase_add_test(tables, code_outside_of_the_file_is_counted);
	tcase_add_test(tables, a_table_that_lies_is_refused);
	suite_add_tcase(suite, tables);
	tcase_set_timeout(machine, 120);
	tcase_add_test(machine, the_programs_of_this_machine_are_as_libdw_says);
	tcase_add_test(machine, a_file_in_part_has_part_of_its_rows);
	if (access("/bin/busybox", R_OK) == 0)
		tcase_add_test(machine, a_file_without_a_header);
	suite_add_tcase(suite, machine);
	return run_suite(suite);
}
