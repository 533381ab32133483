// SPDX-License-Identifier: BSD-2-Clause
/* Instructions as text. */
#ifndef VPROF_CLI_ANNOTATE_DISASSEMBLER_H
#define VPROF_CLI_ANNOTATE_DISASSEMBLER_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/arch.h"

#define DISASSEMBLER_ERROR disassembler_error_quark()
GQuark disassembler_error_quark(void);
enum disassembler_error { DISASSEMBLER_ERROR_ABSENT, DISASSEMBLER_ERROR_FAILED };

struct instruction {
	uint64_t offset; /* into the code */
	size_t bytes;
	char *text;
	uint64_t target; /* where a jump or call leads; 0: not said by the instruction itself, or no such */
};

/*
 * All of code[0..n-1], which lies at `address` of a program for `arch`; bytes that are no instruction are ".byte".
 * intel: of x86-64, Intel's syntax, not AT&T's. Array of struct instruction, by g_array_unref;
 * DISASSEMBLER_ERROR_ABSENT when vprof was built without.
 */
GArray *disassemble(enum arch arch, bool intel, const uint8_t *code, size_t n, uint64_t address, GError **error);

#endif
