// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/processor.h"

#include <glib.h>
#include <string.h>

#define CPUINFO "/proc/cpuinfo"

char *processor_model(void)
{
	g_autofree char *info = NULL;
	char *at, *end;

	if (!g_file_get_contents(CPUINFO, &info, NULL, NULL))
		return NULL;
	at = strstr(info, "model name");
	at = at ? strchr(at, ':') : NULL;
	end = at ? strchr(at, '\n') : NULL;
	return end ? g_strstrip(g_strndup(at + 1, (gsize)(end - at - 1))) : NULL;
}

bool processor_has(const char *flag)
{
	g_autofree char *info = NULL, *word = g_strdup_printf(" %s ", flag);

	return g_file_get_contents(CPUINFO, &info, NULL, NULL) && strstr(info, word);
}
