// SPDX-License-Identifier: BSD-2-Clause
/* What `vprof doctor` has found, a line each. */
#ifndef VPROF_CLI_FINDING_H
#define VPROF_CLI_FINDING_H

enum finding { FINDING_GOOD, FINDING_NOTE, FINDING_BAD };

/* `text` is printed as text_printable has it; `fix`: a command or what else to do, or NULL. */
void finding_print(enum finding verdict, const char *what, const char *text, const char *fix);

#endif
