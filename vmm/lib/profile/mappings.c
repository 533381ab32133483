// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/mappings.h"

#include <glib.h>
#include <string.h>
#include <vprof/recording.h>

/* Of one process, by time; of two at one time the later record comes behind. */
typedef GPtrArray timeline;

struct mappings {
	GHashTable *processes; /* pid -> timeline * of struct mapping * */
	GHashTable *files;     /* path -> GPtrArray * of struct mapped_file * */
	/* What the last look-up found, until something is added. */
	uint32_t last_pid;
	const struct mapping *last;
	uint64_t last_until_ns;              /* what it found is right for times before this */
	uint64_t modules_start, modules_end; /* between which all modules are */
};

static void file_free(void *data)
{
	struct mapped_file *file = data;

	g_free((char *)file->path.raw);
	g_free(file->name);
	g_free(file->python);
	g_free(file);
}

struct mappings *mappings_new(void)
{
	struct mappings *mappings = g_new0(struct mappings, 1);

	mappings->modules_start = UINT64_MAX;
	mappings->processes = g_hash_table_new_full(NULL, NULL, NULL, (GDestroyNotify)g_ptr_array_unref);
	mappings->files = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, (GDestroyNotify)g_ptr_array_unref);
	return mappings;
}

void mappings_free(struct mappings *mappings)
{
	if (!mappings)
		return;
	g_hash_table_unref(mappings->processes);
	g_hash_table_unref(mappings->files);
	g_free(mappings);
}

static bool same_build_id(const struct mapped_file *file, const struct record_mmap *mmap)
{
	return mmap->build_id_bytes == 0 || file->build_id_bytes == 0 ||
	       (mmap->build_id_bytes == file->build_id_bytes &&
	        memcmp(mmap->build_id, file->build_id, file->build_id_bytes) == 0);
}

/* A name has no ':'. */
char *python_name_split(char *name)
{
	char *colon = g_str_has_prefix(name, VPROF_PYTHON) ? strchr(name + strlen(VPROF_PYTHON), ':') : NULL;

	if (!colon)
		return NULL;
	*colon = '\0';
	return colon + 1;
}

static void name_python(struct mapped_file *file)
{
	const char *of = python_name_split(file->name);

	if (!of)
		return;
	file->python = file->name;
	file->name = g_strdup(of);
}

/* The file of a record; its build-id may become known only now. */
static const struct mapped_file *file_intern(struct mappings *mappings, const struct record_mmap *mmap,
                                             uint32_t perf_map_pid)
{
	GPtrArray *files = g_hash_table_lookup(mappings->files, mmap->file_name.raw);
	struct mapped_file *file = NULL;

	for (guint i = 0; files && i < files->len && !file; i++)
		if (same_build_id(files->pdata[i], mmap))
			file = files->pdata[i];
	if (!file) {
		file = g_new0(struct mapped_file, 1);
		file->path = untrusted(g_strdup(mmap->file_name.raw));
		file->name = untrusted_printable(mmap->file_name);
		name_python(file);
		file->is_another = files != NULL;
		file->perf_map_pid = perf_map_pid;
		if (!files) {
			files = g_ptr_array_new_with_free_func(file_free);
			g_hash_table_insert(mappings->files, (char *)file->path.raw, files);
		}
		g_ptr_array_add(files, file);
	}
	if (mmap->build_id_bytes != 0) {
		memcpy(file->build_id, mmap->build_id, mmap->build_id_bytes);
		file->build_id_bytes = mmap->build_id_bytes;
	}
	return file;
}

/* How many of the mappings are not younger than `time_ns`. */
static guint timeline_until(const timeline *line, uint64_t time_ns)
{
	guint low = 0, high = line->len;

	while (low < high) {
		guint middle = low + (high - low) / 2;
		const struct mapping *mapping = line->pdata[middle];

		if (mapping->time_ns <= time_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static const struct mapping *timeline_find(const timeline *line, guint n, uint64_t ip)
{
	while (n-- > 0) {
		const struct mapping *mapping = line->pdata[n];

		if (ip >= mapping->start && ip < mapping->end)
			return mapping;
	}
	return NULL;
}

static timeline *process_intern(struct mappings *mappings, uint32_t pid)
{
	timeline *line = g_hash_table_lookup(mappings->processes, GUINT_TO_POINTER(pid));

	if (!line) {
		line = g_ptr_array_new_with_free_func(g_free);
		g_hash_table_insert(mappings->processes, GUINT_TO_POINTER(pid), line);
	}
	return line;
}

/* Every vCPU reports the mappings that it sees, most of which are known. */
static bool is_known(const timeline *line, guint n, const struct mapping *mapping)
{
	const struct mapping *there = timeline_find(line, n, mapping->start);

	return there && there->file == mapping->file && there->start == mapping->start && there->end == mapping->end &&
	       there->file_offset == mapping->file_offset;
}

#define PERF_MAP_NAME_BYTES sizeof("/tmp/perf-4294967295.map")
#define KERNEL_PID UINT32_MAX /* as perf has it in the kernel's own records */
#define NO_PID 0u             /* of user space where tasks are not told apart: idle tasks have none */

/* The mapping of a record; false for one without use here: the kernel itself, which is no file. */
static bool is_taken(const struct perf_event_header *record, struct record_mmap *mmap)
{
	switch (record->misc & PERF_RECORD_MISC_CPUMODE_MASK) {
	case PERF_RECORD_MISC_USER:
		return true;
	case PERF_RECORD_MISC_KERNEL:
		mmap->pid = KERNEL_PID;
		return mmap->file_name.raw[0] == '[' && !g_str_has_prefix(mmap->file_name.raw, "[kernel");
	default:
		return false;
	}
}

/*
 * Code that was compiled at run time has the name and the addresses of what its process says of it, as in perf
 * (tools/perf/util/map.c, map__new).
 */
static void name_as_perf(struct record_mmap *mmap, char name[PERF_MAP_NAME_BYTES])
{
	const char *path = mmap->file_name.raw;

	name[0] = '\0';
	if (mmap->pid == KERNEL_PID || mmap->pid == NO_PID ||
	    (strcmp(path, "//anon") != 0 && !g_str_has_prefix(path, "/dev/zero") &&
	     !g_str_has_prefix(path, "/anon_hugepage") && !g_str_has_prefix(path, "/memfd:")))
		return;
	g_snprintf(name, PERF_MAP_NAME_BYTES, "/tmp/perf-%u.map", mmap->pid);
	mmap->file_name = untrusted(name);
	mmap->page_offset = mmap->start;
}

void mappings_add(struct mappings *mappings, const struct perf_event_header *record, size_t bytes, uint64_t time_ns)
{
	char name[PERF_MAP_NAME_BYTES];
	struct record_mmap mmap;
	uint64_t end;

	if (!record_mmap_decode(record, bytes, &mmap) || !is_taken(record, &mmap) || mmap.bytes == 0 ||
	    __builtin_add_overflow(mmap.start, mmap.bytes, &end))
		return;
	name_as_perf(&mmap, name);
	timeline *line = process_intern(mappings, mmap.pid);
	guint n = timeline_until(line, time_ns);
	const struct mapping mapping = {
		.file = file_intern(mappings, &mmap, name[0] != '\0' ? mmap.pid : 0),
		.start = mmap.start,
		.end = end,
		.file_offset = mmap.page_offset,
		.time_ns = time_ns,
	};

	mappings->last = NULL;
	if (mmap.pid == KERNEL_PID) {
		mappings->modules_start = MIN(mappings->modules_start, mmap.start);
		mappings->modules_end = MAX(mappings->modules_end, end);
	}
	if (!is_known(line, n, &mapping))
		g_ptr_array_insert(line, (gint)n, g_memdup2(&mapping, sizeof(mapping)));
}

/* The first mapping of a later time. */
static const struct mapping *timeline_find_later(const timeline *line, guint n, uint64_t ip)
{
	for (; n < line->len; n++) {
		const struct mapping *mapping = line->pdata[n];

		if (ip >= mapping->start && ip < mapping->end)
			return mapping;
	}
	return NULL;
}

static const struct mapping *process_find(struct mappings *mappings, uint32_t pid, uint64_t ip, uint64_t time_ns)
{
	const struct mapping *last = mappings->last;

	if (last && mappings->last_pid == pid && ip >= last->start && ip < last->end && time_ns >= last->time_ns &&
	    time_ns < mappings->last_until_ns)
		return last;
	const timeline *line = g_hash_table_lookup(mappings->processes, GUINT_TO_POINTER(pid));

	if (!line)
		return NULL;
	guint n = timeline_until(line, time_ns);
	const struct mapping *found = timeline_find(line, n, ip);

	/* It is the last mapping of the process up to that time, so none hides it before the next one. */
	if (found && n > 0 && found == line->pdata[n - 1]) {
		mappings->last = found;
		mappings->last_pid = pid;
		mappings->last_until_ns =
			n < line->len ? ((const struct mapping *)line->pdata[n])->time_ns : UINT64_MAX;
	}
	return !found && (pid == KERNEL_PID || pid == NO_PID) ? timeline_find_later(line, n, ip) : found;
}

const struct mapping *mappings_find(struct mappings *mappings, enum profile_mode mode, uint32_t pid, uint64_t ip,
                                    uint64_t time_ns)
{
	const struct mapping *found;

	switch (mode) {
	case PROFILE_USER:
		found = process_find(mappings, pid, ip, time_ns);
		return found && strcmp(found->file->name, VPROF_UNMAPPED) != 0 ? found : NULL;
	case PROFILE_KERNEL:
		if (ip < mappings->modules_start || ip >= mappings->modules_end)
			return NULL;
		return process_find(mappings, KERNEL_PID, ip, time_ns);
	default:
		return NULL;
	}
}
