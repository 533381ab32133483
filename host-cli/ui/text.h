// SPDX-License-Identifier: BSD-2-Clause
/* Text from outside (recordings, guests, engines) on its way to a terminal or into JSON. */
#ifndef VPROF_CLI_TEXT_H
#define VPROF_CLI_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The text with control characters, which could drive the terminal, replaced by "?"; NULL gives "". New string. */
char *text_printable(const char *text);

/* A JSON string, whatever the bytes are: what is not UTF-8 becomes U+FFFD. NULL gives JSON null. */
json_t *text_json(const char *text);

/* A document for programs: indented, numbers that are not integers with `digits` (0: all that they have), a line feed.
 */
void text_print_json(const json_t *document, unsigned digits, FILE *to);

/* Member of an object, whatever the object is; NULL and the default when it is absent or of another type. */
const char *member_text(const json_t *object, const char *name);
uint64_t member_number(const json_t *object, const char *name, uint64_t otherwise);
/* Sets it, if there is a value; borrows both. */
void member_set(json_t *object, const char *name, const json_t *value);

/* Marks for a terminal: empty unless `stream` is one that shows colours and NO_COLOR is not set (no-color.org). */
struct text_style {
	const char *strong;
	const char *plain;
};
struct text_style text_style_for(FILE *stream);

#define SLIPS_WORD_MAX 64u /* nobody is said to have meant a longer word */

/*
 * How many slips of the finger make one word of the other: insertions, deletions, substitutions and swaps of neighbours
 * count 1 each. SLIPS_WORD_MAX where one is longer than that.
 */
unsigned slips_between(const char *a, const char *b);

#endif
