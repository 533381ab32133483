// SPDX-License-Identifier: BSD-2-Clause
/* A baseline or a history's file of measurements, which a cache or a repository may have from others. */
#include <math.h>
#include <stdlib.h>

#include "compare/measured_priv.h"
#include "fuzz_target.h"

static void check(const struct measured *measured)
{
	const GPtrArray *lists[] = {measured->measurements->metrics, measured->measurements->functions};

	for (size_t list = 0; list < G_N_ELEMENTS(lists); list++)
		for (guint i = 0; i < lists[list]->len; i++) {
			const struct series *series = g_ptr_array_index(lists[list], i);

			for (size_t at = 0; at < measured->measurements->n_repetitions; at++)
				if (!isfinite(series->values[at]) || series->values[at] < 0)
					abort();
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	json_auto_t *document = json_loadb((const char *)data, size, 0, NULL);
	g_autoptr(GError) error = NULL;
	struct measured *measured = document ? measured_from_json("file", document, &error) : NULL;

	if (document && !measured != (error && error->domain == MEASURED_ERROR))
		abort();
	if (measured) {
		json_auto_t *again = measured_to_json(measured);
		struct measured *same = measured_from_json("again", again, NULL);

		/* What is written is what is read. */
		if (!same)
			abort();
		check(measured);
		measured_free(same);
	}
	measured_free(measured);
	return 0;
}
