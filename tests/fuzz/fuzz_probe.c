// SPDX-License-Identifier: BSD-2-Clause
/* What a client may write as a probe: it is refused, or has a name that means the same probe. */
#include <string.h>

#include "fuzz_target.h"
#include "probe/probe_spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	g_autofree char *text = g_strndup((const char *)bytes, n);
	struct probe_spec spec, again;
	g_autoptr(GError) error = NULL;

	if (!probe_spec_parse(text, &spec, &error)) {
		g_assert(error && error->domain == PROBE_ERROR);
		return 0;
	}
	/* A marker of clients has a name and no numbers. */
	g_assert(strlen(spec.name) < PROBE_NAME_BYTES && (spec.first <= spec.last || spec.symbol[0] != '\0'));
	g_assert(probe_spec_parse(spec.name, &again, NULL));
	g_assert(strcmp(spec.name, again.name) == 0 && spec.first == again.first && spec.last == again.last);
	g_assert(spec.read == again.read && spec.write == again.write && spec.offset == again.offset);
	return 0;
}
