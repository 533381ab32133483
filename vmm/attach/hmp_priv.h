// SPDX-License-Identifier: BSD-2-Clause
/* Lines of what QEMU's human monitor prints, for hmp.c and x86/hmp_registers.c. */
#ifndef VPROF_ATTACH_HMP_PRIV_H
#define VPROF_ATTACH_HMP_PRIV_H

#include "attach/hmp.h"

/* Up to the end of the line. */
struct hmp_line {
	const char *text;
	size_t n;
};

/* The next line of *text, which becomes what follows; false at the end. */
bool hmp_line_next(const char **text, struct hmp_line *line);
/* Where the word is in it; NULL. */
const char *hmp_line_find(struct hmp_line line, const char *word);
/* Hexadecimal digits at `at`, 16 at most; where they end, or NULL without any. */
const char *hmp_hex(const char *at, uint64_t *value);

#endif
