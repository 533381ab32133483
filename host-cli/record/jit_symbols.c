// SPDX-License-Identifier: BSD-2-Clause
#include "record/jit_symbols.h"

#include <unistd.h>

#include "lib/symbol/perf_map.h"
#include "record/guest_file.h"
#include "ui/message.h"

static const char *const kinds[] = {"perf-map", "jit-dump"};

/* Of a process. */
struct jit_names {
	struct perf_map *maps[G_N_ELEMENTS(kinds)]; /* NULL: the guest has none, or it cannot be read */
};

/* Takes what it needs of *room. */
static struct perf_map *map_read(struct client *client, const char *kind, uint32_t pid, uint64_t *room)
{
	const int memory = guest_jit_file_read(client, kind, pid, NULL);
	g_autoptr(GError) why = NULL;

	if (memory < 0)
		return NULL;
	struct perf_map *map = perf_map_load(memory, *room, &why);

	if (map)
		*room -= MIN(*room, perf_map_bytes(map));
	if (map && perf_map_left_out(map) > 0)
		warn("the %s of process %" G_GUINT32_FORMAT " of the guest has %" G_GUINT64_FORMAT
		     " functions more than fit into the memory that these may take: they are left out and have no names",
		     kind, pid, perf_map_left_out(map));
	if (why)
		warn("the %s of process %" G_GUINT32_FORMAT " of the guest %s", kind, pid, why->message);
	close(memory);
	return map;
}

static void jit_names_free(void *data)
{
	struct jit_names *names = data;

	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
		perf_map_free(names->maps[i]);
	g_free(names);
}

struct jit_processes {
	struct client *client;
	GHashTable *names; /* struct jit_names, by the process's id */
	uint64_t room;     /* for further maps */
	gint64 until_us;
	bool late; /* a process was left out because of that */
};

/* Whether the engine may be asked for one more. */
static bool may_ask(struct jit_processes *processes)
{
	processes->late |= g_get_monotonic_time() > processes->until_us;
	return !processes->late && g_hash_table_size(processes->names) < JIT_PROCESSES_MAX;
}

/* NULL: there are too many processes. */
static struct jit_names *jit_names_of(struct jit_processes *processes, uint32_t pid)
{
	struct jit_names *names = g_hash_table_lookup(processes->names, GUINT_TO_POINTER(pid));

	if (names || !may_ask(processes))
		return names;
	names = g_new0(struct jit_names, 1);
	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
		names->maps[i] = map_read(processes->client, kinds[i], pid, &processes->room);
	g_hash_table_insert(processes->names, GUINT_TO_POINTER(pid), names);
	return names;
}

static bool jit_names_find(const struct jit_names *names, uint64_t ip, struct perf_map_symbol *found)
{
	for (size_t i = 0; names && i < G_N_ELEMENTS(kinds); i++)
		if (names->maps[i] && perf_map_find(names->maps[i], ip, found))
			return true;
	return false;
}

static uint32_t process_of(const struct histogram_hit *hit)
{
	return hit->mapping ? hit->mapping->file->perf_map_pid : 0;
}

GArray *jit_symbols_processes(const struct histogram *frames)
{
	g_autoptr(GHashTable) seen = g_hash_table_new(NULL, NULL);
	GArray *pids = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	size_t n;
	g_autofree struct histogram_hit *hits = histogram_hits(frames, &n);

	for (size_t i = 0; i < n && pids->len < JIT_PROCESSES_MAX; i++) {
		const uint32_t pid = process_of(&hits[i]);

		if (pid != 0 && g_hash_table_add(seen, GUINT_TO_POINTER(pid)))
			g_array_append_val(pids, pid);
	}
	return pids;
}

void jit_symbols_ask(struct client *client, const struct histogram *frames,
                     void (*add)(uint64_t address, const struct recording_symbol *symbol, void *data), void *data)
{
	g_autoptr(GHashTable) names = g_hash_table_new_full(NULL, NULL, NULL, jit_names_free);
	struct jit_processes processes = {.client = client,
	                                  .names = names,
	                                  .room = PERF_MAP_BYTES_MAX,
	                                  .until_us = g_get_monotonic_time() + JIT_SECONDS_MAX * G_USEC_PER_SEC};
	size_t n;
	g_autofree struct histogram_hit *hits = histogram_hits(frames, &n);

	for (size_t i = 0; i < n; i++) {
		const uint32_t pid = process_of(&hits[i]);
		struct perf_map_symbol found;

		if (pid == 0 || !jit_names_find(jit_names_of(&processes, pid), hits[i].ip, &found))
			continue;
		const struct recording_symbol symbol = {.address = found.start,
		                                        .size = found.size,
		                                        .name = found.name,
		                                        .module = hits[i].mapping->file->name};

		add(hits[i].ip, &symbol, data);
	}
	if (processes.late)
		warn("code that was compiled at run time has names in %u processes only: the guest's files were looked for for "
		     "%u s",
		     g_hash_table_size(names), JIT_SECONDS_MAX);
}
