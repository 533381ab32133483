// SPDX-License-Identifier: BSD-2-Clause
/* Text from outside (recordings, guests, engines), made fit for JSON, and words for a terminal. See lib/record/text.h.
 */
#ifndef VPROF_CLI_UI_TEXT_H
#define VPROF_CLI_UI_TEXT_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lib/record/text.h"

/* A JSON string from any bytes: what is not UTF-8 becomes U+FFFD. NULL gives JSON null. */
json_t *text_json(const char *text);

/* Printable, and without markup: for XML and HTML, also in attributes. New string. */
char *text_markup(const char *text);

/* Writes JSON; characters that are never shown (text_is_control) are escaped. `flags`: of json_dumpf. */
void json_write(const json_t *value, size_t flags, FILE *to);

/* Takes JSON of others, and returns it with every name and text printable. NULL gives NULL. */
json_t *json_printable(json_t *value);

#define JSON_VALUES_MAX (4u << 20) /* each takes up to 150 bytes of memory, and may be two of a file */

/* The same of JSON that is not yet parsed; NULL with *why where json_loadb refuses it, or for more than
 * JSON_VALUES_MAX. */
json_t *json_read(const char *text, size_t bytes, size_t flags, json_error_t *why);

/* Prints an indented JSON document and a line feed; reals have `digits` digits (0: all). */
void text_print_json(const json_t *document, unsigned digits, FILE *to);

/* A member of an object; NULL or the default if it is absent or has another type, also if `object` is no object. */
const char *member_text(const json_t *object, const char *name);
uint64_t member_number(const json_t *object, const char *name, uint64_t otherwise);
/* Sets the member if `value` is not NULL; borrows both. */
void member_set(json_t *object, const char *name, const json_t *value);

/* Whether what is printed on `stream` reaches a terminal: it is one, or a pager (ui/pager.h) has standard output. */
bool text_is_for_terminal(FILE *stream);
/* Standard output goes to a pager on a terminal from now on. */
void text_set_paged(void);

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
/* That of words[0..n-1] that `word` is most likely meant to be: it begins with it, or has two slips at most; or NULL.
 */
const char *word_near(const char *word, const char *const *words, size_t n);

#define TEXT_COLUMNS 80u /* of help */

/* Appends the words of `text` in lines of at most TEXT_COLUMNS; `column`: where the first and all other lines begin. */
void text_wrap(GString *out, const char *text, size_t column);

#endif
