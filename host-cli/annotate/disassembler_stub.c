// SPDX-License-Identifier: BSD-2-Clause
#include "annotate/disassembler.h"

G_DEFINE_QUARK(vprof_disassembler_error, disassembler_error)

GArray *disassemble(enum arch arch, bool intel, const uint8_t *code, size_t n, uint64_t address, GError **error)
{
	(void)arch, (void)code, (void)n, (void)address, (void)intel;
	g_set_error_literal(
		error, DISASSEMBLER_ERROR, DISASSEMBLER_ERROR_ABSENT,
		"this vprof was built without capstone, which reads instructions; install libcapstone-dev and build again");
	return NULL;
}
