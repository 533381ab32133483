// SPDX-License-Identifier: BSD-2-Clause
/* What an engine that was taken over asks of its asker: what is let through is one line of QMP, with one command. */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "attach/monitor.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct monitor_request request = {0};

	memcpy(&request, data, MIN(size, sizeof(request)));
	if (!monitor_request_valid(&request))
		return 0;
	g_autofree char *text = monitor_request_text(&request);
	json_t *line = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const json_t *arguments = json_object_get(line, "arguments");

	if (strchr(text, '\n') || !json_is_string(json_object_get(line, "execute")) ||
	    json_object_size(line) != (arguments ? 2 : 1))
		abort();
	json_decref(line);
	return 0;
}
