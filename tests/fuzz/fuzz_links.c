// SPDX-License-Identifier: BSD-2-Clause
/* What programs and kernel modules say they need, as an initramfs of ours has it; and ld.so's cache, where it is looked
 * for. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/initramfs/elf_links.h"
#include "lib/initramfs/library_cache.h"
#include "lib/initramfs/modinfo.h"

/* Reads all of a string, for the sanitizer to see. */
static void touch(const char *text)
{
	static volatile size_t sink;

	if (text)
		sink = strlen(text);
	(void)sink;
}

static void links_try(const uint8_t *data, size_t size)
{
	struct elf_links links;
	g_autoptr(GError) error = NULL;

	if (!elf_links_read(&links, "fuzz", data, size, &error)) {
		if (!error)
			abort();
		return;
	}
	touch(links.interpreter);
	touch(links.rpath);
	touch(links.runpath);
	for (guint i = 0; i < links.needed->len; i++)
		touch(g_ptr_array_index(links.needed, i));
	elf_links_clear(&links);
}

static void module_try(const uint8_t *data, size_t size)
{
	static const char *const keys[] = {"depends", "vermagic", ""};
	struct modinfo modinfo;

	if (!modinfo_find(data, size, &modinfo))
		return;
	for (size_t i = 0; i < G_N_ELEMENTS(keys); i++) {
		g_autofree char *value = modinfo_value(&modinfo, keys[i]);

		touch(value);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	links_try(data, size);
	module_try(data, size);
	touch(library_cache_find(data, size, "libc.so.6"));
	return 0;
}
