// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/disassembler.h"

#include <capstone/capstone.h>
#include <string.h>

G_DEFINE_QUARK(vprof_disassembler_error, disassembler_error)

static void instruction_clear(void *data)
{
	struct instruction *instruction = data;

	g_free(instruction->text);
}

/* Direct jumps and calls have an address for their only operand; nothing else begins with these letters. */
static uint64_t target_of(const cs_insn *instruction)
{
	if (instruction->mnemonic[0] != 'j' && !g_str_has_prefix(instruction->mnemonic, "call"))
		return 0;
	return g_str_has_prefix(instruction->op_str, "0x") ? g_ascii_strtoull(instruction->op_str, NULL, 16) : 0;
}

static GArray *all_read(csh handle, cs_insn *read, const uint8_t *code, size_t n, uint64_t address)
{
	GArray *instructions = g_array_new(FALSE, FALSE, sizeof(struct instruction));
	uint64_t at = address;

	g_array_set_clear_func(instructions, instruction_clear);
	while (n != 0 && cs_disasm_iter(handle, &code, &n, &at, read)) {
		const struct instruction instruction = {
			.offset = read->address - address,
			.bytes = read->size,
			.text = read->op_str[0] != '\0' ? g_strdup_printf("%-7s %s", read->mnemonic, read->op_str)
		                                        : g_strdup(read->mnemonic),
			.target = target_of(read),
		};

		g_array_append_val(instructions, instruction);
	}
	return instructions;
}

GArray *disassemble(const uint8_t *code, size_t n, uint64_t address, bool intel, GError **error)
{
	GArray *instructions;
	csh handle;

	cs_err failed = cs_open(CS_ARCH_X86, CS_MODE_64, &handle);
	cs_insn *read;

	if (failed != CS_ERR_OK) {
		g_set_error(error, DISASSEMBLER_ERROR, DISASSEMBLER_ERROR_FAILED, "capstone cannot start: %s",
		            cs_strerror(failed));
		return NULL;
	}
	cs_option(handle, CS_OPT_SKIPDATA, CS_OPT_ON);
	cs_option(handle, CS_OPT_SYNTAX, intel ? CS_OPT_SYNTAX_INTEL : CS_OPT_SYNTAX_ATT);
	read = cs_malloc(handle);
	instructions = all_read(handle, read, code, n, address);
	cs_free(read, 1);
	cs_close(&handle);
	return instructions;
}
