// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/lateness.h"

#include <math.h>

void lateness_add(struct lateness *lateness, uint64_t counted, uint64_t period)
{
	const double parts = round((double)counted / (double)period * LATENESS_PARTS);
	const double last = LATENESS_PERIODS * LATENESS_PARTS;

	lateness->samples++;
	lateness->counts[(unsigned)(parts < last ? parts : last)]++;
}

double lateness_quantile(const struct lateness *lateness, double share)
{
	const double wanted = share * (double)lateness->samples;
	uint64_t passed = 0;

	if (lateness->samples == 0)
		return 0;
	for (unsigned i = 0; i < LATENESS_PERIODS * LATENESS_PARTS; i++) {
		passed += lateness->counts[i];
		if ((double)passed >= wanted && passed > 0)
			return (double)i / LATENESS_PARTS;
	}
	return LATENESS_PERIODS;
}
