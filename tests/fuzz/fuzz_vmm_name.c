// SPDX-License-Identifier: BSD-2-Clause
/* Command lines: the program's path, a line feed, and the arguments. Names are never empty or longer than allowed. */
#include <glib.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/process/vmm_name.h"

static void check(const char *name)
{
	if (name && (name[0] == '\0' || strlen(name) > VMM_NAME_MAX))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *end = size > 0 ? memchr(data, '\n', size) : NULL;
	const size_t n = end ? (size_t)(end - data) : 0, skip = end ? n + 1 : 0;
	g_autofree char *program = g_strndup((const char *)data, n);
	struct vmm_name name = vmm_name_parse(end ? program : NULL, (const char *)data + skip, size - skip);

	if (!name.vmm)
		abort();
	check(name.vmm);
	check(name.guest);
	vmm_name_clear(&name);
	return 0;
}
