// SPDX-License-Identifier: BSD-2-Clause
/*
 * Short options: one table for all commands, so that a letter means the same everywhere. Where perf or bpftrace has
 * the letter, its meaning is theirs.
 */
#ifndef VPROF_CLI_UI_OPTION_LETTER_H
#define VPROF_CLI_UI_OPTION_LETTER_H

#include <stdbool.h>

#define OPTION_LETTERS_MAX 3u /* of one option, with the zero */

/* The letters of a long option, mostly one; "" for none. */
void option_letters(const char *name, char letters[OPTION_LETTERS_MAX]);
/*
 * Whether a user may mean that long option by the letter, which means another: perf or an older vprof has it so, or it
 * is the option's initial.
 */
bool option_letter_lost(char letter, const char *name);
/* The first long option that the letter means; NULL: none. By g_free. */
char *option_letter_meaning(char letter);

#endif
