// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/disassembler.h"

#include <capstone/capstone.h>
#include <string.h>

#include "lib/process/shared_library.h"

#define CAPSTONE_FUNCTIONS(F) \
	F(cs_close) F(cs_disasm_iter) F(cs_free) F(cs_malloc) F(cs_open) F(cs_option) F(cs_strerror)

static struct {
	CAPSTONE_FUNCTIONS(SHARED_LIBRARY_POINTER)
} capstone;
SHARED_LIBRARY_NOTE(CAPSTONE_SONAME, "annotate");

G_DEFINE_QUARK(vprof_disassembler_error, disassembler_error)

static void instruction_clear(void *data)
{
	struct instruction *instruction = data;

	g_free(instruction->text);
}

/* Direct jumps and calls have an address for their only operand; nothing else begins with these letters. */
static uint64_t only_operand(const cs_insn *instruction)
{
	if (instruction->mnemonic[0] != 'j' && !g_str_has_prefix(instruction->mnemonic, "call"))
		return 0;
	return g_str_has_prefix(instruction->op_str, "0x") ? g_ascii_strtoull(instruction->op_str, NULL, 16) : 0;
}

/* "b", "bl", "b.eq", "cbz w0,", "tbnz x1, #3,": the last operand is the address. */
static uint64_t last_operand(const cs_insn *instruction)
{
	static const char *const compares[] = {"cbz", "cbnz", "tbz", "tbnz"};
	const char *name = instruction->mnemonic, *last = strrchr(instruction->op_str, '#');
	bool branches = strcmp(name, "b") == 0 || strcmp(name, "bl") == 0 || g_str_has_prefix(name, "b.");

	for (size_t i = 0; i < G_N_ELEMENTS(compares); i++)
		branches |= strcmp(name, compares[i]) == 0;
	return branches && last ? g_ascii_strtoull(last + 1, NULL, 16) : 0;
}

/* What capstone has to be told, and what its text means. */
struct dialect {
	cs_arch arch;
	cs_mode mode;
	uint64_t (*target_of)(const cs_insn *instruction);
	bool syntaxes; /* Intel's and AT&T's */
};

static const struct dialect dialects[] = {
	[ARCH_X86_64] = {CS_ARCH_X86, CS_MODE_64, only_operand, true},
	[ARCH_ARM64] = {CS_ARCH_ARM64, CS_MODE_LITTLE_ENDIAN, last_operand, false},
};

static GArray *all_read(csh handle, const struct dialect *dialect, cs_insn *read, const uint8_t *code, size_t n,
                        uint64_t address)
{
	GArray *instructions = g_array_new(FALSE, FALSE, sizeof(struct instruction));
	uint64_t at = address;

	g_array_set_clear_func(instructions, instruction_clear);
	while (n != 0 && capstone.cs_disasm_iter(handle, &code, &n, &at, read)) {
		const struct instruction instruction = {
			.offset = read->address - address,
			.bytes = read->size,
			.text = read->op_str[0] != '\0' ? g_strdup_printf("%-7s %s", read->mnemonic, read->op_str)
		                                        : g_strdup(read->mnemonic),
			.target = dialect->target_of(read),
		};

		g_array_append_val(instructions, instruction);
	}
	return instructions;
}

GArray *disassemble(enum arch arch, bool intel, const uint8_t *code, size_t n, uint64_t address, GError **error)
{
	const struct dialect *dialect = &dialects[arch];
	static const char *const names[] = {CAPSTONE_FUNCTIONS(SHARED_LIBRARY_NAME)};
	g_autoptr(GError) missing = NULL;
	GArray *instructions;
	cs_insn *read;
	cs_err failed;
	csh handle;

	if (!shared_library_load(CAPSTONE_SONAME, names, G_N_ELEMENTS(names), &capstone, sizeof(capstone), &missing)) {
		g_set_error_literal(error, DISASSEMBLER_ERROR, DISASSEMBLER_ERROR_ABSENT, missing->message);
		return NULL;
	}
	failed = capstone.cs_open(dialect->arch, dialect->mode, &handle);
	if (failed != CS_ERR_OK) {
		g_set_error(error, DISASSEMBLER_ERROR, DISASSEMBLER_ERROR_FAILED, "capstone cannot start: %s",
		            capstone.cs_strerror(failed));
		return NULL;
	}
	capstone.cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
	if (dialect->syntaxes)
		capstone.cs_option(handle, CS_OPT_SYNTAX, intel ? CS_OPT_SYNTAX_INTEL : CS_OPT_SYNTAX_ATT);
	read = capstone.cs_malloc(handle);
	instructions = all_read(handle, dialect, read, code, n, address);
	capstone.cs_free(read, 1);
	capstone.cs_close(&handle);
	return instructions;
}
