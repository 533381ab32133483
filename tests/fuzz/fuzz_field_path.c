// SPDX-License-Identifier: BSD-2-Clause
/* Paths of fields, by right types; and right paths by types that may be anything (fuzz_btf has more of those). */
#include <stdlib.h>

#include "field_types.h"
#include "fuzz_target.h"

static void try(const char *text, const struct btf *btf, uint32_t type)
{
	const struct field_argument arguments[] = {{"prev", type, 0}, {"count", 0, 0}, {"curtask", 0, type}};
	struct field_path path;

	if (!field_path_parse(text, btf, arguments, G_N_ELEMENTS(arguments), &path, NULL))
		return;
	if (path.argument >= G_N_ELEMENTS(arguments) || path.n_loads > FIELD_LOADS_MAX || path.value.bytes > 8 ||
	    path.bytes >= FIELD_TEXT_BYTES)
		abort();
	field_path_clear(&path);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint32_t task;
	g_autoptr(GByteArray) types = field_types_make(&task);
	struct btf *btf = btf_new(types->data, types->len, NULL);
	g_autofree char *text = g_strndup((const char *)data, size);

	try(text, btf, task);
	try(text, NULL, 0);
	btf_free(btf);
	btf = btf_new(data, size, NULL);
	for (uint32_t type = 1; btf && type < 16; type++) {
		try("prev->parent->pid", btf, type);
		try("str(prev->comm)", btf, type);
		try("curtask->comm[3]", btf, type);
	}
	btf_free(btf);
	return 0;
}
