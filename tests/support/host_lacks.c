// SPDX-License-Identifier: BSD-2-Clause
/* host_lacks breakpoint|patch: prints what this host's KVM does instead; nothing if it has that. */
#include "support/host_features.h"

#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	static const char *const names[N_HOST_FEATURES] = {
		[HOST_FEATURE_BREAKPOINT] = "breakpoint",
		[HOST_FEATURE_PATCH] = "patch",
	};

	for (unsigned i = 0; argc == 2 && i < N_HOST_FEATURES; i++)
		if (strcmp(argv[1], names[i]) == 0) {
			const char *instead = host_feature_missing((enum host_feature)i);

			if (instead)
				printf("this host's KVM %s\n", instead);
			return 0;
		}
	fprintf(stderr, "usage: host_lacks breakpoint|patch\n");
	return 2;
}
