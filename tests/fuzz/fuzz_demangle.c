// SPDX-License-Identifier: BSD-2-Clause
/* Names of a guest's programs: whatever libiberty makes of one is bounded. */
#include <string.h>

#include "fuzz_target.h"
#include "parse/parse.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *name = g_strndup((const char *)data, size);
	const char *shown = parse_demangled(name);

	g_assert(shown == name || (shown[0] != '\0' && strlen(shown) <= 4000));
	return 0;
}
