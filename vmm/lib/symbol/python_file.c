// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/python_file.h"

#include <elf.h>
#include <string.h>

#include "lib/symbol/symtab.h"

/* Most files are another program: the names that they are linked by tell, without a table of symbols. */
static bool may_be_python(const struct image *image)
{
	static const char name[] = "\0_PyRuntime";
	size_t bytes;
	uint64_t address;
	const uint8_t *names = image_section(image, ".dynstr", &bytes, &address);

	return names && image_has(image, names, bytes) && memmem(names, bytes, name, sizeof(name));
}

/* Py_Version is a constant of type unsigned long. */
static uint32_t version_read(const struct image *image, uint64_t address)
{
	size_t bytes;
	const uint8_t *at = address != 0 ? image_at(image, address, &bytes) : NULL;
	uint64_t version;

	if (!at || bytes < sizeof(version) || !image_has(image, at, sizeof(version)))
		return 0;
	memcpy(&version, at, sizeof(version));
	return (uint32_t)version;
}

static bool code_segment_find(const struct image *image, uint64_t *address)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		if ((segments[i].flags & PF_X) == 0)
			continue;
		*address = segments[i].gva - segments[i].file_offset;
		return true;
	}
	return false;
}

struct python_file python_file_read(const struct image *image)
{
	struct symtab *symtab = may_be_python(image) ? symtab_load(image, NULL) : NULL;
	struct python_file file = {0};
	uint64_t runtime, first;

	if (!symtab)
		return file;
	runtime = symtab_address(symtab, "_PyRuntime");
	if (runtime != 0 && code_segment_find(image, &first)) {
		file.version = version_read(image, symtab_address(symtab, "Py_Version"));
		file.runtime = runtime - first;
	}
	symtab_free(symtab);
	return file;
}
