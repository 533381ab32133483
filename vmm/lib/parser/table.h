// SPDX-License-Identifier: BSD-2-Clause
/* The tables of an answer of vprof-parse (include/vprof/parse.h): written there, and checked here. */
#ifndef VPROF_PARSER_TABLE_H
#define VPROF_PARSER_TABLE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <vprof/parse.h>

/* Appends a table of `n` rows. */
void table_add(GByteArray *answer, enum vprof_parse_table_kind kind, size_t row_bytes, const void *rows, size_t n);

/* The same of rows that are appended one by one: table_begin returns what table_end wants. */
guint table_begin(GByteArray *answer, enum vprof_parse_table_kind kind, size_t row_bytes);
void table_end(GByteArray *answer, guint table);

/* Appends a name to the bytes of such a table of text; returns where it begins. */
uint32_t table_text_add(GByteArray *text, const char *name);

/*
 * The table of this kind, in the bytes of the answer, aligned to 8 bytes where these are; NULL when there is none, or
 * not of rows of this size, or any table does not lie inside the answer. What is in the rows is not checked. No rows
 * are not NULL.
 */
const void *table_find(GBytes *answer, enum vprof_parse_table_kind kind, size_t row_bytes, size_t *n);

/* The text to which other tables refer, which ends with a NUL; NULL: there is none. */
const char *table_text(GBytes *answer, size_t *bytes);

#endif
