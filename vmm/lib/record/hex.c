// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/hex.h"

#include <glib.h>
#include <stdint.h>

char *hex_encode(const void *bytes, size_t n)
{
	GString *text = g_string_sized_new(2 * n);

	for (size_t i = 0; i < n; i++)
		g_string_append_printf(text, "%02x", ((const uint8_t *)bytes)[i]);
	return g_string_free(text, FALSE);
}
