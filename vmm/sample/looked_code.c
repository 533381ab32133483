// SPDX-License-Identifier: BSD-2-Clause
#include "sample/looked_code.h"

#include <string.h>

#include "lib/record/clock.h"
#include "stream/mapper.h"

struct process {
	struct user_code code;
	GArray *mappings;    /* of struct looked_mapping */
	GHashTable *pythons; /* names, by the addresses of frames; NULL: none */
};

struct looked_code {
	struct announcer announcer; /* first */
	struct mapper mapper;
	GHashTable *processes; /* of struct process, by the address of the mm_struct */
	GStringChunk *files;
	GArray *mappings; /* of the process that is read */
};

/* In the place of a ring. */
static bool mapping_take(struct announcer *announcer, const struct record_mmap *mapping)
{
	struct looked_code *code = (struct looked_code *)announcer;
	struct looked_mapping looked = {.start = mapping->start,
	                                .end = mapping->start + mapping->bytes,
	                                .file_offset = mapping->page_offset,
	                                .file = g_string_chunk_insert_const(code->files, mapping->file_name.raw),
	                                .build_id_bytes = mapping->build_id ? mapping->build_id_bytes : 0};

	if (mapping->build_id)
		memcpy(looked.build_id, mapping->build_id, looked.build_id_bytes);
	g_array_append_val(code->mappings, looked);
	return true;
}

static void process_free(void *data)
{
	struct process *process = data;

	g_array_unref(process->mappings);
	g_clear_pointer(&process->pythons, g_hash_table_unref);
	g_free(process);
}

struct looked_code *looked_code_new(const struct os_kernel *kernel, struct table_store *tables)
{
	struct looked_code *code = g_new0(struct looked_code, 1);

	code->announcer.mapped = mapping_take;
	mapper_init(&code->mapper, kernel, &code->announcer, tables);
	code->processes = g_hash_table_new_full(NULL, NULL, NULL, process_free);
	code->files = g_string_chunk_new(1 << 12);
	return code;
}

void looked_code_free(struct looked_code *code)
{
	if (!code)
		return;
	g_hash_table_unref(code->processes);
	g_string_chunk_free(code->files);
	g_free(code);
}

static bool has_table(const struct user_code *code, uint64_t address)
{
	const struct user_range *range = user_code_find(code, address);

	return range && range->table;
}

static struct process *process_read(struct looked_code *code, struct page_walk *walk, const struct task *task)
{
	const struct record_id id = {.pid = task->pid, .tid = task->tid, .time_ns = clock_ns(CLOCK_MONOTONIC)};
	struct process *process = g_new0(struct process, 1);

	code->mappings = process->mappings = g_array_new(FALSE, FALSE, sizeof(struct looked_mapping));
	const struct user_code *read = mapper_task(&code->mapper, walk, task, &id, 0);

	if (read)
		process->code = *read;
	for (guint i = 0; i < process->mappings->len; i++) {
		struct looked_mapping *mapping = &g_array_index(process->mappings, struct looked_mapping, i);

		mapping->has_table = has_table(&process->code, mapping->start);
	}
	return process;
}

const struct user_code *looked_code_read(struct looked_code *code, struct page_walk *walk, const struct task *task)
{
	if (task->mm == 0)
		return NULL;
	struct process *process = g_hash_table_lookup(code->processes, GSIZE_TO_POINTER(task->mm));

	if (!process) {
		process = process_read(code, walk, task);
		g_hash_table_insert(code->processes, GSIZE_TO_POINTER(task->mm), process);
	}
	return process->code.n > 0 ? &process->code : NULL;
}

const struct looked_mapping *looked_code_find(const struct looked_code *code, uint64_t mm, uint64_t address)
{
	const struct process *process = g_hash_table_lookup(code->processes, GSIZE_TO_POINTER(mm));

	for (guint i = 0; process && i < process->mappings->len; i++) {
		const struct looked_mapping *mapping = &g_array_index(process->mappings, struct looked_mapping, i);

		if (address >= mapping->start && address < mapping->end)
			return mapping;
	}
	return NULL;
}

void looked_code_add_python(struct looked_code *code, uint64_t mm, const struct python_frame *frame,
                            struct page_walk *walk)
{
	struct process *process = g_hash_table_lookup(code->processes, GSIZE_TO_POINTER(mm));
	char name[PYTHON_NAME_BYTES];

	if (!process)
		return;
	if (!process->pythons)
		process->pythons = g_hash_table_new(NULL, NULL);
	if (g_hash_table_size(process->pythons) == LOOKED_PYTHON_MAX ||
	    g_hash_table_contains(process->pythons, GSIZE_TO_POINTER(frame->ip)))
		return;
	python_frame_name(frame, &process->code.python, walk, name);
	g_hash_table_insert(process->pythons, GSIZE_TO_POINTER(frame->ip),
	                    g_string_chunk_insert_const(code->files, name));
}

const char *looked_code_find_python(const struct looked_code *code, uint64_t mm, uint64_t ip)
{
	const struct process *process = g_hash_table_lookup(code->processes, GSIZE_TO_POINTER(mm));

	return process && process->pythons ? g_hash_table_lookup(process->pythons, GSIZE_TO_POINTER(ip)) : NULL;
}
