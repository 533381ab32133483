// SPDX-License-Identifier: BSD-2-Clause
/* Words that somebody has mistyped. */
#ifndef VPROF_CLI_SLIPS_H
#define VPROF_CLI_SLIPS_H

#define SLIPS_WORD_MAX 64u /* nobody is said to have meant a longer word */

/*
 * How many slips of the finger make one word of the other: insertions, deletions, substitutions and swaps of neighbours
 * count 1 each. SLIPS_WORD_MAX where one is longer than that.
 */
unsigned slips_between(const char *a, const char *b);

#endif
