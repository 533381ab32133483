// SPDX-License-Identifier: BSD-2-Clause
#include "ui/slips.h"

#include <glib.h>
#include <string.h>

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	return MIN(a, MIN(b, c));
}

/* Optimal string alignment distance. */
unsigned slips_between(const char *a, const char *b)
{
	unsigned cost[SLIPS_WORD_MAX + 1][SLIPS_WORD_MAX + 1];
	size_t n = strlen(a), m = strlen(b);

	if (n > SLIPS_WORD_MAX || m > SLIPS_WORD_MAX)
		return SLIPS_WORD_MAX;
	for (size_t i = 0; i <= n; i++)
		cost[i][0] = (unsigned)i;
	for (size_t j = 0; j <= m; j++)
		cost[0][j] = (unsigned)j;
	for (size_t i = 1; i <= n; i++)
		for (size_t j = 1; j <= m; j++) {
			cost[i][j] = min3(cost[i - 1][j] + 1, cost[i][j - 1] + 1,
			                  cost[i - 1][j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				cost[i][j] = MIN(cost[i][j], cost[i - 2][j - 2] + 1);
		}
	return cost[n][m];
}
