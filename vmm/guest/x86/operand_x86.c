// SPDX-License-Identifier: BSD-2-Clause
/* Operands as the GNU assembler writes them (AT&T): $5, %edi, -16(%rbp), (%rax,%rcx,8). */
#include <string.h>

#include "guest/operand.h"
#include "guest/processor.h"

#define NAME_BYTES 8u

/* Each by its names for 64, 32, 16 and 8 bits, and for bits 15:8. */
static const char registers[][5][NAME_BYTES] = {
	{"rax", "eax", "ax", "al", "ah"},    {"rbx", "ebx", "bx", "bl", "bh"},    {"rcx", "ecx", "cx", "cl", "ch"},
	{"rdx", "edx", "dx", "dl", "dh"},    {"rsi", "esi", "si", "sil", ""},     {"rdi", "edi", "di", "dil", ""},
	{"rbp", "ebp", "bp", "bpl", ""},     {"rsp", "esp", "sp", "spl", ""},     {"r8", "r8d", "r8w", "r8b", ""},
	{"r9", "r9d", "r9w", "r9b", ""},     {"r10", "r10d", "r10w", "r10b", ""}, {"r11", "r11d", "r11w", "r11b", ""},
	{"r12", "r12d", "r12w", "r12b", ""}, {"r13", "r13d", "r13w", "r13b", ""}, {"r14", "r14d", "r14w", "r14b", ""},
	{"r15", "r15d", "r15w", "r15b", ""},
};

static int8_t number_of(const char *name)
{
	const char *known;

	for (unsigned i = 0; (known = guest_gpr_name(GUEST_X86_64, i)); i++)
		if (strcmp(known, name) == 0)
			return (int8_t)i;
	return -1;
}

/* Of `n` characters behind %; -1: it is none. */
static int8_t parse_register(const char *text, size_t n, uint8_t *shift)
{
	char name[NAME_BYTES] = {0};

	if (n < 2 || n > NAME_BYTES || text[0] != '%')
		return -1;
	memcpy(name, text + 1, n - 1);
	for (size_t i = 0; i < G_N_ELEMENTS(registers); i++)
		for (size_t j = 0; j < G_N_ELEMENTS(registers[i]); j++)
			if (strcmp(registers[i][j], name) == 0) {
				*shift = j == 4 ? 8 : 0;
				return number_of(registers[i][0]);
			}
	return -1;
}

/* All of `n` characters; none are 0. */
static bool parse_number(const char *text, size_t n, int64_t *number)
{
	g_autofree char *digits = g_strndup(text, n);
	char *end;

	*number = g_ascii_strtoll(digits, &end, 0);
	return *end == '\0';
}

/* BASE, INDEX, SCALE, of which each but one may be missing. */
static bool parse_parts(const char *text, size_t n, struct guest_operand *operand)
{
	g_autofree char *inside = g_strndup(text, n);
	g_auto(GStrv) parts = g_strsplit(inside, ",", 4);
	const guint count = g_strv_length(parts);
	uint8_t shift = 0;

	if (count == 0 || count > 3)
		return false;
	if (parts[0][0] != '\0' && (operand->base = parse_register(parts[0], strlen(parts[0]), &shift)) < 0)
		return false;
	if (count > 1 && (operand->index = parse_register(parts[1], strlen(parts[1]), &shift)) < 0)
		return false;
	if (count > 2) {
		if (strlen(parts[2]) != 1 || !strchr("1248", parts[2][0]))
			return false;
		operand->scale = (uint8_t)(parts[2][0] - '0');
	}
	return operand->base >= 0 || operand->index >= 0;
}

bool operand_parse_x86(const char *text, struct guest_operand *operand)
{
	const size_t n = strlen(text);
	const char *parts = strchr(text, '(');

	if (text[0] == '$') {
		operand->kind = GUEST_OPERAND_CONSTANT;
		return n > 1 && parse_number(text + 1, n - 1, &operand->constant);
	}
	if (text[0] == '%') {
		operand->kind = GUEST_OPERAND_REGISTER;
		operand->base = parse_register(text, n, &operand->shift);
		return operand->base >= 0;
	}
	operand->kind = GUEST_OPERAND_MEMORY;
	return parts && text[n - 1] == ')' && parse_number(text, (size_t)(parts - text), &operand->constant) &&
	       parse_parts(parts + 1, (size_t)(text + n - 1 - (parts + 1)), operand);
}
