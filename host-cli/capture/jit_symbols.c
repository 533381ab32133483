// SPDX-License-Identifier: BSD-2-Clause
#include "capture/jit_symbols.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "capture/guest_file.h"
#include "lib/symbol/perf_map.h"

/* NULL: the guest has none. */
static struct perf_map *map_read(struct client *client, uint32_t pid)
{
	const int memory = guest_perf_map_read(client, pid, NULL);
	struct perf_map *map = NULL;
	struct stat status;
	void *text;

	if (memory < 0)
		return NULL;
	if (fstat(memory, &status) == 0 && status.st_size > 0) {
		text = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, memory, 0);
		if (text != MAP_FAILED) {
			map = perf_map_new(text, (size_t)status.st_size);
			munmap(text, (size_t)status.st_size);
		}
	}
	close(memory);
	return map;
}

static void map_free(void *data)
{
	perf_map_free(data);
}

static struct perf_map *map_of(GHashTable *maps, struct client *client, uint32_t pid)
{
	gpointer known;

	if (!g_hash_table_lookup_extended(maps, GUINT_TO_POINTER(pid), NULL, &known)) {
		known = g_hash_table_size(maps) < JIT_PROCESSES_MAX ? map_read(client, pid) : NULL;
		g_hash_table_insert(maps, GUINT_TO_POINTER(pid), known);
	}
	return known;
}

void jit_symbols_ask(struct client *client, const struct histogram *frames,
                     void (*add)(uint64_t address, const struct recording_symbol *symbol, void *data), void *data)
{
	g_autoptr(GHashTable) maps = g_hash_table_new_full(NULL, NULL, NULL, map_free);
	size_t n;
	g_autofree struct histogram_hit *hits = histogram_hits(frames, &n);

	for (size_t i = 0; i < n; i++) {
		const uint32_t pid = hits[i].mapping ? hits[i].mapping->file->perf_map_pid : 0;
		const struct perf_map *map = pid != 0 ? map_of(maps, client, pid) : NULL;
		struct perf_map_symbol found;

		if (!map || !perf_map_find(map, hits[i].ip, &found))
			continue;
		const struct recording_symbol symbol = {.address = found.start,
		                                        .size = found.size,
		                                        .name = found.name,
		                                        .module = hits[i].mapping->file->name};

		add(hits[i].ip, &symbol, data);
	}
}
