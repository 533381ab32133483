// SPDX-License-Identifier: BSD-2-Clause
#include "lib/parser/table.h"

#include <string.h>

#define ALIGNMENT 8u
#define TABLES_MAX 16u

static size_t padded(size_t bytes)
{
	return (bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

guint table_begin(GByteArray *answer, enum vprof_parse_table_kind kind, size_t row_bytes)
{
	const struct vprof_parse_table head = {.kind = kind, .row_bytes = (uint32_t)row_bytes};
	const guint table = answer->len;

	g_byte_array_append(answer, (const guint8 *)&head, sizeof(head));
	return table;
}

void table_end(GByteArray *answer, guint table)
{
	static const guint8 zeros[ALIGNMENT] = {0};
	struct vprof_parse_table head;
	const size_t bytes = answer->len - table - sizeof(head);

	memcpy(&head, answer->data + table, sizeof(head));
	head.n = bytes / head.row_bytes;
	memcpy(answer->data + table, &head, sizeof(head));
	g_byte_array_append(answer, zeros, (guint)(padded(bytes) - bytes));
}

void table_add(GByteArray *answer, enum vprof_parse_table_kind kind, size_t row_bytes, const void *rows, size_t n)
{
	const guint table = table_begin(answer, kind, row_bytes);

	if (n > 0)
		g_byte_array_append(answer, rows, (guint)(n * row_bytes));
	table_end(answer, table);
}

uint32_t table_text_add(GByteArray *text, const char *name)
{
	const guint at = text->len;

	g_byte_array_append(text, (const guint8 *)name, (guint)strlen(name) + 1);
	return at;
}

const void *table_find(GBytes *answer, enum vprof_parse_table_kind kind, size_t row_bytes, size_t *n)
{
	size_t left;
	const guint8 *at = g_bytes_get_data(answer, &left);
	struct vprof_parse_table head;

	for (unsigned i = 0; i < TABLES_MAX && left >= sizeof(head); i++) {
		memcpy(&head, at, sizeof(head));
		at += sizeof(head);
		left -= sizeof(head);
		if (head.row_bytes == 0 || head.n > left / head.row_bytes ||
		    padded((size_t)head.n * head.row_bytes) > left)
			return NULL;
		if (head.kind == kind) {
			*n = (size_t)head.n;
			return head.row_bytes == row_bytes ? at : NULL;
		}
		at += padded((size_t)head.n * head.row_bytes);
		left -= padded((size_t)head.n * head.row_bytes);
	}
	return NULL;
}

const char *table_text(GBytes *answer, size_t *bytes)
{
	const char *text = table_find(answer, VPROF_PARSE_TABLE_TEXT, 1, bytes);

	return text && *bytes > 0 && text[*bytes - 1] == '\0' ? text : NULL;
}
