// SPDX-License-Identifier: BSD-2-Clause
#include "export/protobuf.h"

#include <string.h>

#include "lib/record/text.h"

enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

void protobuf_varint(GByteArray *to, uint64_t value)
{
	do {
		uint8_t byte = (uint8_t)((value & 0x7f) | (value > 0x7f ? 0x80 : 0));

		g_byte_array_append(to, &byte, 1);
		value >>= 7;
	} while (value != 0);
}

static void put_key(GByteArray *to, unsigned field, unsigned wire)
{
	protobuf_varint(to, field << 3 | wire);
}

void protobuf_number(GByteArray *to, unsigned field, uint64_t value)
{
	put_key(to, field, WIRE_VARINT);
	protobuf_varint(to, value);
}

void protobuf_fixed64(GByteArray *to, unsigned field, uint64_t value)
{
	const uint64_t little = GUINT64_TO_LE(value);

	put_key(to, field, WIRE_FIXED64);
	g_byte_array_append(to, (const uint8_t *)&little, sizeof(little));
}

void protobuf_bytes(GByteArray *to, unsigned field, const void *bytes, size_t n)
{
	put_key(to, field, WIRE_BYTES);
	protobuf_varint(to, n);
	g_byte_array_append(to, bytes, (guint)n);
}

void protobuf_string(GByteArray *to, unsigned field, const char *text)
{
	g_autofree char *printable = text_printable(text);

	protobuf_bytes(to, field, printable, strlen(printable));
}

void protobuf_message(GByteArray *to, unsigned field, GByteArray *message)
{
	protobuf_bytes(to, field, message->data, message->len);
	g_byte_array_unref(message);
}
