// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/hex.h"

#include <glib.h>

char *hex_encode(const void *bytes, size_t n)
{
	GString *text = g_string_sized_new(2 * n);

	for (size_t i = 0; i < n; i++)
		g_string_append_printf(text, "%02x", ((const uint8_t *)bytes)[i]);
	return g_string_free(text, FALSE);
}

size_t hex_decode(const char *text, uint8_t *bytes, size_t max)
{
	size_t n;

	for (n = 0; text[2 * n] != '\0'; n++) {
		int high = g_ascii_xdigit_value(text[2 * n]), low = g_ascii_xdigit_value(text[2 * n + 1]);

		if (n == max || high < 0 || low < 0)
			return 0;
		bytes[n] = (uint8_t)(high << 4 | low);
	}
	return n;
}
