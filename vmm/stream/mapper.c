// SPDX-License-Identifier: BSD-2-Clause
#include "stream/mapper.h"

#include <elf.h>
#include <string.h>

#include "guest/python.h"

#define ANONYMOUS "//anon" /* as perf calls executable memory without a file, */
#define VDSO "[vdso]"      /* and the library that the kernel maps, which is in no file */
#define USER_SPACE_END (UINT64_C(1) << 63)

void mapper_init(struct mapper *mapper, const struct os_kernel *kernel, struct announcer *announcer,
                 struct table_store *tables)
{
	memset(mapper, 0, sizeof(*mapper)); /* too large for a stack, which a compound literal may be made on */
	mapper->kernel = kernel;
	mapper->announcer = announcer;
	mapper->tables = tables;
}

/* One walk over the mappings of a process. */
struct look {
	struct mapper *mapper;
	struct page_walk *walk;
	const struct record_id *id;
	struct os_mapping head; /* the last mapping of a file's first byte */
	bool again;             /* for build-ids only */
	bool written;           /* every mapping is in the ring */
	bool complete;          /* with its build-id */
	uint64_t from;          /* mappings below are in the ring, of earlier looks */
	uint64_t ahead;         /* so is this one, of a sample; 0: none */
	uint64_t next;          /* the first mapping that is left to the next look; 0: none */
	uint64_t user_ip;
	int64_t floor;     /* what the look leaves of the budget's bytes */
	uint64_t until_ns; /* what it may take of the budget's time, by announcer_begin's clock */
	bool some;         /* something is written */
	const struct mapper_code *before;
	struct mapper_code now;
	struct mapper_build *build; /* of the mapping at hand; NULL: there is no room */
	uint64_t gap;               /* where the last executable mapping ended */
};

/* Where the pages of the file are. */
static void place_note(const struct look *look, uint64_t file, const uint8_t *build_id, size_t n)
{
	uint64_t mapping;

	if (look->mapper->kernel->mappings->file_pages(look->mapper->kernel, look->walk, file, &mapping))
		file_places_note(table_store_places(look->mapper->tables), build_id, n, mapping);
}

static size_t build_id_read(struct look *look, const struct os_mapping *vma,
                            uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX])
{
	size_t n;

	if (look->head.file != vma->file || look->head.end == 0)
		return 0;
	n = elf_build_id_read(look->walk, (gva_t){look->head.start}, look->head.end - look->head.start, build_id);
	look->complete &= n != 0;
	if (n != 0 && vma->file != 0 && look->mapper->tables)
		place_note(look, vma->file, build_id, n);
	if (look->build) {
		memcpy(look->build->build_id, build_id, n);
		look->build->bytes = (uint8_t)n;
	}
	return n;
}

static bool look_write(struct look *look, const struct record_mmap *mapping)
{
	if (announce_mmap(look->mapper->announcer, mapping, look->id))
		return true;
	look->written = false;
	return false;
}

/* Writes what is gone: the parts of `before` between the last executable mapping and `end`. */
static bool gap_write(struct look *look, uint64_t end)
{
	const struct user_code *before = &look->before->user;

	for (unsigned i = 0; i < before->n; i++) {
		uint64_t from = MAX(before->ranges[i].start, look->gap);
		uint64_t to = MIN(before->ranges[i].end, end);
		const struct record_mmap gone = {
			.mode = PERF_RECORD_MISC_USER,
			.pid = look->id->pid,
			.tid = look->id->tid,
			.start = from,
			.bytes = to - from,
			.file_name = {VPROF_UNMAPPED},
		};

		if (from < to && !look_write(look, &gone))
			return false;
	}
	look->gap = end;
	return true;
}

static bool code_add(struct look *look, const struct os_mapping *vma)
{
	if (!gap_write(look, vma->start))
		return false;
	look->gap = vma->end;
	look->build = NULL;
	if (look->now.user.n == USER_CODE_RANGES)
		return true;
	look->build = &look->now.builds[look->now.user.n];
	look->now.user.ranges[look->now.user.n++] =
		(struct user_range){.start = vma->start, .end = vma->end, .file_offset = vma->file_offset};
	return true;
}

/* With this build-id, or with one that cannot be read now. What no range is known of is written for a build-id only. */
static bool was_written(const struct look *look, const struct os_mapping *vma, const uint8_t *build_id, size_t n)
{
	const struct user_range *range = user_code_find(&look->before->user, vma->start);

	if (!look->again || (!range && look->build))
		return false;
	if (!range)
		return n == 0;
	const struct mapper_build *build = &look->before->builds[range - look->before->user.ranges];

	return range->start == vma->start && range->end == vma->end &&
	       (n == 0 || (build->bytes == n && memcmp(build->build_id, build_id, n) == 0));
}

/* Over the budget, only the mapping that the sample itself is in is written. */
static bool is_due(struct look *look, const struct os_mapping *vma)
{
	if (vma->start < look->from || vma->start == look->ahead)
		return false;
	if (look->user_ip >= vma->start && look->user_ip < vma->end) {
		look->ahead = vma->start;
		return true;
	}
	if (look->next == 0 && look->some &&
	    (look->mapper->announcer->budget.bytes <= look->floor ||
	     announcer_begin(look->mapper->announcer) >= look->until_ns))
		look->next = vma->start;
	look->some |= look->next == 0;
	return look->next == 0;
}

/* Nothing is left that the look is for. */
static bool is_over(const struct look *look, const struct os_mapping *vma)
{
	return look->next != 0 && look->now.user.n == USER_CODE_RANGES && vma->start > look->user_ip;
}

static bool mapping_write(struct look *look, const struct os_mapping *vma, const char *name, const uint8_t *build_id,
                          size_t n)
{
	const struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_USER,
		.pid = look->id->pid,
		.tid = look->id->tid,
		.start = vma->start,
		.bytes = vma->end - vma->start,
		.page_offset = vma->file_offset,
		.build_id = n != 0 ? build_id : NULL,
		.build_id_bytes = n,
		.file_name = {name},
	};

	return was_written(look, vma, build_id, n) || look_write(look, &mapping);
}

/* Code without a file that begins as a library does. */
static bool is_vdso(const struct look *look, const struct os_mapping *vma)
{
	uint8_t magic[SELFMAG];

	return vma->file == 0 && page_walk_read(look->walk, (gva_t){vma->start}, magic, sizeof(magic)) &&
	       memcmp(magic, ELFMAG, sizeof(magic)) == 0;
}

static bool mapping_look(const struct os_mapping *vma, void *data)
{
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	struct look *look = data;
	const struct os_mappings *mappings = look->mapper->kernel->mappings;
	char buffer[OS_FILE_NAME_BYTES];
	const char *name = ANONYMOUS;

	if (vma->file != 0 && vma->file_offset == 0)
		look->head = *vma;
	if (!vma->executable)
		return true;
	if (is_over(look, vma))
		return false;
	if (is_vdso(look, vma)) {
		look->head = *vma;
		name = VDSO;
	} else if (vma->file == 0) {
		look->head = (struct os_mapping){0};
	}
	if (!code_add(look, vma))
		return false;
	const bool due = is_due(look, vma);
	const size_t n = due || look->build ? build_id_read(look, vma, build_id) : 0;

	if (!due)
		return true;
	if (vma->file != 0)
		name = mappings->file_name(look->mapper->kernel, look->walk, vma->file, buffer);
	if (name)
		return mapping_write(look, vma, name, build_id, n);
	look->written = false;
	return true;
}

static bool same_state(const struct os_mapping_state *a, const struct os_mapping_state *b)
{
	return a->exec_pages == b->exec_pages && a->start_code == b->start_code && a->start_stack == b->start_stack;
}

/* How far one process may go: a share of what all have, so that a process that needs much leaves some to others. */
static int64_t floor_of(const struct announcer *announcer, size_t room)
{
	return announcer->ring ? announcer->budget.bytes - (int64_t)(room / MAPPER_SHARE) : INT64_MIN;
}

static void process_look(struct mapper *mapper, struct mapper_process *process, struct page_walk *walk,
                         const struct record_id *id, uint64_t user_ip, size_t room)
{
	const uint64_t begin_ns = announcer_begin(mapper->announcer);
	struct look look = {
		.mapper = mapper,
		.walk = walk,
		.id = id,
		.again = process->written,
		.written = true,
		.complete = true,
		.from = process->from,
		.ahead = process->ahead,
		.user_ip = user_ip,
		.floor = floor_of(mapper->announcer, room),
		.until_ns = mapper->announcer->ring ? begin_ns + (uint64_t)mapper->announcer->budget.ns / MAPPER_SHARE
	                                            : UINT64_MAX,
		.before = &process->code,
	};

	if (process->from == 0)
		process->begun = process->state;
	bool all = (mapper->kernel->mappings->each(mapper->kernel, walk, process->mm, mapping_look, &look) ||
	            look.next != 0) &&
	           gap_write(&look, look.next != 0 ? look.gap : USER_SPACE_END);

	if (all) {
		process->code = look.now;
		process->known = true;
		process->tables = 0;
	}
	process->from = all ? look.next : 0;
	process->ahead = process->from != 0 ? look.ahead : 0;
	if (process->from != 0) {
		announcer_count_later(mapper->announcer, process->written ? ANNOUNCE_BUILD_IDS : ANNOUNCE_MAPPINGS);
	} else {
		process->written |= all && look.written && same_state(&process->begun, &process->state);
		process->tries = process->written && look.complete ? 0 : process->tries - 1;
	}
	announcer_end(mapper->announcer, begin_ns);
}

/* Over the budget, it costs no attempt. */
static void process_try(struct mapper *mapper, struct mapper_process *process, struct page_walk *walk,
                        const struct record_id *id, uint64_t user_ip)
{
	const size_t room = announcer_room(mapper->announcer, process->written ? ANNOUNCE_BUILD_IDS : ANNOUNCE_MAPPINGS,
	                                   id->time_ns);

	process->not_before_ns = id->time_ns + MAPPER_WAIT_MIN_NS;
	if (room == 0)
		return;
	process_look(mapper, process, walk, id, user_ip, room);
	process->due_ns = MAX(process->due_ns, id->time_ns) + MAPPER_WAIT_MIN_NS;
	if (process->from != 0)
		return;
	process->not_before_ns = id->time_ns + process->wait_ns;
	process->wait_ns = MIN(2 * process->wait_ns, MAPPER_WAIT_MAX_NS);
}

/* One that is new has a state that none has. An mm_struct has more than 1 KiB and is aligned to 64 bytes. */
static struct mapper_process *process_of(struct mapper *mapper, const struct task *task)
{
	size_t i = (task->mm >> 6) * UINT64_C(0x9e3779b97f4a7c15) >> 58;
	struct mapper_process *process = &mapper->processes[i];

	_Static_assert(MAPPER_PROCESSES == 1u << (64 - 58), "the index is the hash's upper bits");
	if (process->mm != task->mm || process->pid != task->pid)
		*process = (struct mapper_process){.mm = task->mm, .pid = task->pid, .state.exec_pages = UINT64_MAX};
	return process;
}

static void python_note(struct user_code *code, const struct user_range *range)
{
	const struct python_file *file = table_store_python(range->table);

	code->python.layout = python_layout_find(file->version);
	code->python.runtime = range->start - range->file_offset + file->runtime;
}

/* Tables may come after the mappings of their files. */
static const struct user_code *code_of(const struct mapper *mapper, struct mapper_process *process)
{
	unsigned n = mapper->tables ? table_store_count(mapper->tables) : 0;
	struct user_code *code = &process->code.user;

	for (unsigned i = 0; process->tables != n && i < code->n; i++) {
		const struct mapper_build *build = &process->code.builds[i];

		if (build->bytes != 0)
			code->ranges[i].table = table_store_find(mapper->tables, build->build_id, build->bytes);
		if (code->ranges[i].table && !code->python.layout)
			python_note(code, &code->ranges[i]);
	}
	process->tables = n;
	return process->known ? code : NULL;
}

/*
 * Code in memory that can be written to, as compilers at run time have it, does not count among the pages of code
 * (is_exec_mapping of mm/internal.h), so that nothing but a sample tells that there is more.
 */
static bool is_new_code(const struct mapper_process *process, uint64_t user_ip)
{
	const struct user_code *code = &process->code.user;

	return user_ip != 0 && process->tries == 0 && code->n < USER_CODE_RANGES && !user_code_find(code, user_ip);
}

/* When a process with other mappings may be walked again. */
static uint64_t next_walk_ns(const struct mapper_process *process)
{
	const uint64_t burst_ns = MAPPER_BURST * MAPPER_WAIT_MIN_NS;

	return process->due_ns > burst_ns ? process->due_ns - burst_ns : 0;
}

const struct user_code *mapper_task(struct mapper *mapper, struct page_walk *walk, const struct task *task,
                                    const struct record_id *id, uint64_t user_ip)
{
	static const struct user_code none;
	struct os_mapping_state state;

	if (task->mm == 0)
		return &none;
	if (!mapper->kernel->mappings->state(mapper->kernel, walk, task->mm, &state))
		return NULL;
	struct mapper_process *process = process_of(mapper, task);

	if (!same_state(&process->state, &state)) {
		process->state = state;
		process->written = false;
		process->tries = MAPPER_TRIES;
		process->wait_ns = MAPPER_TRY_NS;
		process->not_before_ns = next_walk_ns(process);
	} else if (is_new_code(process, user_ip)) {
		process->written = false;
		process->tries = 1;
	}
	if (process->tries != 0 && id->time_ns >= process->not_before_ns)
		process_try(mapper, process, walk, id, user_ip);
	return code_of(mapper, process);
}
