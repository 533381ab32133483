// SPDX-License-Identifier: BSD-2-Clause
/* Text from outside (recordings, guests, engines), made fit for a terminal or for JSON. */
#ifndef VPROF_CLI_UI_TEXT_H
#define VPROF_CLI_UI_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* The text with control characters, which could drive the terminal, replaced by "?"; NULL gives "". New string. */
char *text_printable(const char *text);

/* A JSON string from any bytes: what is not UTF-8 becomes U+FFFD. NULL gives JSON null. */
json_t *text_json(const char *text);

/* Prints an indented JSON document and a line feed; reals have `digits` digits (0: all). */
void text_print_json(const json_t *document, unsigned digits, FILE *to);

/* A member of an object; NULL or the default if it is absent or has another type, also if `object` is no object. */
const char *member_text(const json_t *object, const char *name);
uint64_t member_number(const json_t *object, const char *name, uint64_t otherwise);
/* Sets the member if `value` is not NULL; borrows both. */
void member_set(json_t *object, const char *name, const json_t *value);

/* Marks for a terminal: empty unless `stream` is one that shows colours and NO_COLOR is not set (no-color.org). */
struct text_style {
	const char *strong;
	const char *plain;
};
struct text_style text_style_for(FILE *stream);

#define SLIPS_WORD_MAX 64u /* longer words get no suggestions */

/*
 * The number of typing slips between two words: insertions, deletions, substitutions and swaps of neighbours count 1
 * each. SLIPS_WORD_MAX if one of them is longer than that.
 */
unsigned slips_between(const char *a, const char *b);

#endif
