// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_otlp.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "lib/record/cursor.h"
#include "ui/text.h"

enum { RESPONSE_PARTIAL_SUCCESS = 1 };
enum { PARTIAL_SUCCESS_REJECTED = 1, PARTIAL_SUCCESS_MESSAGE = 2 };

/* A field of a message: a number, or bytes. */
struct field {
	uint64_t number, value;
	struct cursor bytes;
};

static bool varint_take(struct cursor *from, uint64_t *value)
{
	uint8_t byte = 0x80;

	*value = 0;
	for (unsigned shift = 0; byte & 0x80; shift += 7) {
		if (shift > 63 || !cursor_take(from, &byte, 1))
			return false;
		*value |= (uint64_t)(byte & 0x7f) << shift;
	}
	return true;
}

/* False at the end of the message, and where it is not one. */
static bool field_take(struct cursor *from, struct field *field)
{
	enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2, WIRE_FIXED32 = 5 };
	uint64_t key;

	*field = (struct field){.number = 0};
	if (!varint_take(from, &key))
		return false;
	field->number = key >> 3;
	switch (key & 7) {
	case WIRE_VARINT:
		return varint_take(from, &field->value);
	case WIRE_FIXED64:
		return cursor_skip(from, 8);
	case WIRE_FIXED32:
		return cursor_skip(from, 4);
	case WIRE_BYTES:
		if (!varint_take(from, &field->value))
			return false;
		field->bytes =
			(struct cursor){from->at, field->value <= from->left ? (size_t)field->value : from->left};
		return cursor_skip(from, field->value);
	default:
		return false;
	}
}

/* A message without rejected profiles is a warning. */
static char *partial_success_read(struct cursor message)
{
	g_autofree char *text = g_strdup("it does not say why");
	struct field field;
	bool rejected = false;

	while (field_take(&message, &field)) {
		if (field.number == PARTIAL_SUCCESS_REJECTED)
			rejected = field.value != 0;
		if (field.number == PARTIAL_SUCCESS_MESSAGE && field.bytes.left != 0) {
			g_autofree char *said = g_strndup((const char *)field.bytes.at, field.bytes.left);

			g_free(text);
			text = text_printable(said);
		}
	}
	return rejected ? g_steal_pointer(&text) : NULL;
}

char *push_otlp_refusal(const char *answer, size_t n)
{
	struct cursor cursor = {(const uint8_t *)answer, n};
	struct field field;

	while (field_take(&cursor, &field))
		if (field.number == RESPONSE_PARTIAL_SUCCESS)
			return partial_success_read(field.bytes);
	return NULL;
}
