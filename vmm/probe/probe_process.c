// SPDX-License-Identifier: BSD-2-Clause
/* Where a process of the guest has a function of a program, for probes of programs. On the main thread. */
#include <string.h>

#include "guest/processor.h"
#include "probe/user_priv.h"

#define FUNCTION_BYTES_MAX (64u << 10)
#define CODE_BYTES_MAX 16u /* of an instruction */
#define NO_BINARY "the engine does not read the guest's programs"

/* ---- what is looked for ---- */

static bool needs(const struct probe *probe, const char *what, const char *argument, GError **error)
{
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_SYNTAX, "cannot place %s: %s; give \"%s\", as `vprof trace` does",
	            probe->spec.name, what, argument);
	return false;
}

/* What does not depend on its kind. */
static void fill(struct user_program *program, const struct probe *probe)
{
	const struct probe_binary *wanted = probe->options.binary;

	program->path = g_strndup(probe->spec.symbol, probe->spec.path_bytes);
	program->build_id_bytes = MIN(wanted->build_id_bytes, sizeof(program->build_id));
	memcpy(program->build_id, wanted->build_id, program->build_id_bytes);
	if (wanted->targets)
		program->targets = *wanted->targets;
	program->cgroup = g_strdup(wanted->cgroup);
}

bool user_program_of_function(struct user_program *program, const struct probe *probe, GError **error)
{
	const struct probe_binary *wanted = probe->options.binary;

	if (!wanted)
		return needs(probe, NO_BINARY, "file-offset", error);
	fill(program, probe);
	program->function = wanted->file_offset;
	program->places[program->n_places++] = wanted->file_offset + probe->spec.offset;
	return true;
}

bool user_program_of_returns(struct user_program *program, const struct probe *probe, GError **error)
{
	const struct probe_binary *wanted = probe->options.binary;

	if (wanted && wanted->n_returns == 0)
		return needs(probe, "where the function returns is not known", "returns", error);
	if (!user_program_of_function(program, probe, error))
		return false;
	for (size_t i = 0; i < wanted->n_returns; i++)
		program->places[program->n_places++] = wanted->returns[i];
	program->calls = probe_calls_new();
	return true;
}

bool user_program_of_notes(struct user_program *program, const struct probe *probe, GError **error)
{
	const struct probe_binary *wanted = probe->options.binary;
	char *operands;

	if (!wanted || wanted->n_notes == 0)
		return needs(probe, NO_BINARY, "notes", error);
	fill(program, probe);
	program->operands = g_new0(struct user_operands, wanted->n_notes);
	for (; program->n_places < wanted->n_notes; program->n_places++) {
		struct user_operands *of = &program->operands[program->n_places];

		program->places[program->n_places] = g_ascii_strtoull(wanted->notes[program->n_places], &operands, 16);
		of->n = guest_operands_parse(probe->set->hub->guest->processor, operands, of->all);
		program->n_arguments = MAX(program->n_arguments, of->n);
	}
	program->function = program->places[0];
	return true;
}

void user_program_clear(struct user_program *program)
{
	g_free(program->path);
	g_free(program->operands);
	g_free(program->cgroup);
	probe_calls_free(program->calls);
}

bool user_program_has(const struct user_program *program, const struct os_kernel *kernel, struct page_walk *walk,
                      const struct task *task)
{
	const struct task_view view = {.kernel = kernel, .walk = walk};
	char buffer[OS_GROUP_PATH_BYTES];
	struct os_group cgroup;

	if (task->mm == 0 || (program->targets.n > 0 && !task_targets_match(&program->targets, NULL, &view, task)))
		return false;
	return !program->cgroup ||
	       (kernel->groups && kernel->groups->read(kernel, walk, task, &cgroup) &&
	        g_strcmp0(kernel->groups->path(kernel, walk, &cgroup, buffer), program->cgroup) == 0);
}

bool user_program_wants(const struct user_program *program, const struct os_kernel *kernel, struct page_walk *walk,
                        const struct task *task)
{
	return task->pid == task->tid && user_program_has(program, kernel, walk, task);
}

/* ---- where it is ---- */

/* Where the byte of the file is that the function begins with. */
struct search {
	const struct os_kernel *kernel;
	struct page_walk *walk; /* the kernel's */
	const char *path;
	uint64_t offset, file, head, head_bytes; /* file: the one with that path; head: where its first byte is */
	uint64_t other;                          /* a file with another path, which need not be read again */
	char **similar;                          /* the path of one with that name, once found */
	struct os_mapping found;                 /* end 0: none */
};

/* With the slash in front. */
static const char *name_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash : path;
}

static bool has_path(struct search *search, const struct os_mapping *vma)
{
	char buffer[OS_FILE_NAME_BYTES];

	if (vma->file == 0 || vma->file == search->other)
		return false;
	if (vma->file == search->file)
		return true;
	const char *path = search->kernel->mappings->file_name(search->kernel, search->walk, vma->file, buffer);
	if (g_strcmp0(path, search->path) == 0) {
		search->file = vma->file;
		return true;
	}
	search->other = vma->file;
	if (path && !*search->similar && g_str_has_prefix(name_of(path), name_of(search->path)))
		*search->similar = g_strdup(path);
	return false;
}

static bool is_in(const struct os_mapping *vma, uint64_t offset)
{
	return offset - vma->file_offset < vma->end - vma->start;
}

static bool search_take(const struct os_mapping *vma, void *data)
{
	struct search *search = data;

	if (!has_path(search, vma))
		return true;
	if (vma->file_offset == 0) {
		search->head = vma->start;
		search->head_bytes = vma->end - vma->start;
	}
	if (vma->executable && is_in(vma, search->offset))
		search->found = *vma;
	return search->found.end == 0;
}

static bool is_another_build(const struct user_program *program, const struct search *search, struct page_walk *walk)
{
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	const size_t n = search->head_bytes == 0
	                         ? 0
	                         : elf_build_id_read(walk, (gva_t){search->head}, search->head_bytes, build_id);
	const size_t known = program->build_id_bytes;

	return n > 0 && known > 0 && (n != known || memcmp(build_id, program->build_id, n) != 0);
}

/* The process's code, where it has the file, without patches of ours. False: it is not in memory. */
static bool read_code(const struct search *search, struct page_walk *walk, uint64_t offset, uint8_t *code, size_t n)
{
	const struct os_mapping *found = &search->found;
	struct guest *guest = walk->guest;
	uint64_t mapping;

	if (!page_walk_read(walk, (gva_t){found->start - found->file_offset + offset}, code, n))
		return false;
	if (search->kernel->mappings->file_pages(search->kernel, search->walk, found->file, &mapping))
		guest->debug->unpatch_file(guest, mapping, offset, code, n);
	return true;
}

/* A build-id may be missing: is there what the copy has? Code that is not in memory is not asked. */
static bool may_return(const struct user_program *program, const struct search *search, struct page_walk *walk,
                       uint64_t base)
{
	const struct processor_code *of = processor_of(walk->tables.processor)->code;
	uint8_t code[CODE_BYTES_MAX];
	uint64_t target;

	for (size_t i = 1; !program->operands && i < program->n_places; i++)
		if (read_code(search, walk, program->places[i], code, of->length_max) &&
		    of->flow(code, of->length_max, base + program->places[i], &target) == FLOW_ON)
			return false;
	return true;
}

/* Of a place behind the function's begin, which users may have counted wrong. */
static enum user_found check_boundary(const struct user_program *program, const struct search *search,
                                      struct page_walk *walk, uint64_t base, char **why)
{
	const struct processor_code *of = processor_of(walk->tables.processor)->code;
	const uint64_t distance = program->places[0] - program->function;
	const size_t n = distance + of->length_max;

	if (distance == 0)
		return USER_HERE;
	if (distance >= FUNCTION_BYTES_MAX) {
		*why = g_strdup("that is too far behind the function's begin");
		return USER_REFUSED;
	}
	g_autofree uint8_t *code = g_malloc0(n);
	if (!read_code(search, walk, program->function, code, distance + 1))
		return USER_LATER;
	const char *wrong = of->why_no_boundary(code, n, distance);
	if (wrong)
		*why = g_strdup_printf("0x%" G_GINT64_MODIFIER "x %s", base + program->places[0], wrong);
	return wrong ? USER_REFUSED : USER_HERE;
}

enum user_found user_program_find(const struct user_program *program, const struct os_kernel *kernel,
                                  struct page_walk *kernel_walk, const struct task *task, struct user_place *place,
                                  char **similar, char **why)
{
	struct search search = {.kernel = kernel,
	                        .walk = kernel_walk,
	                        .path = program->path,
	                        .offset = program->function,
	                        .similar = similar};
	struct page_walk walk;

	kernel->mappings->each(kernel, kernel_walk, task->mm, search_take, &search);
	if (search.found.end == 0 || !kernel->tasks->space(kernel, kernel_walk, task, &walk))
		return USER_ABSENT;
	place->root = processor_of(walk.tables.processor)->memory->process_root(&walk.tables);
	place->mm = task->mm;
	place->file = search.found.file;
	place->base = search.found.start - search.found.file_offset;
	if (is_another_build(program, &search, &walk)) {
		*why = g_strdup("its file has another build-id than the copy here");
		return USER_REFUSED;
	}
	for (size_t i = 0; i < program->n_places; i++) {
		if (is_in(&search.found, program->places[i]))
			continue;
		*why = g_strdup("the function is not all in one mapping");
		return USER_REFUSED;
	}
	if (!may_return(program, &search, &walk, place->base)) {
		*why = g_strdup("its code is another than that of the copy here");
		return USER_REFUSED;
	}
	return check_boundary(program, &search, &walk, place->base, why);
}
