// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of programs: user:BINARY:FUNCTION. A breakpoint of the processor is for an address, whichever process is
 * there, so a hit counts in the page tables of the processes that have the function at that address. These are looked
 * for once, when the probe is added.
 */
#include <string.h>

#include "guest/cpu_area.h"
#include "guest/elf_note.h"
#include "guest/processor.h"
#include "guest/task_list.h"
#include "guest/vma.h"
#include "sample/probe_priv.h"

#define PROCESSES_MAX 64u
#define FUNCTION_BYTES_MAX (64u << 10)

struct user_site {
	struct guest_breakpoint breakpoint; /* first: the argument of `hit` */
	struct probe *probe;
};

struct user_process {
	uint64_t root, mm; /* root: of its page tables */
	size_t site;
};

/* [I] all of it. */
struct probe_user {
	struct user_site sites[GUEST_BREAKPOINT_ADDRESSES_MAX];
	size_t n, n_processes;
	struct user_process processes[PROCESSES_MAX];
	uint64_t areas[GUEST_VCPUS_MAX]; /* the per-CPU area of each vCPU; 0: not known */
};

static uint64_t process_root(const struct guest_tables *tables)
{
	return processor_of(tables->processor)->memory->process_root(tables);
}

/* ---- one process ---- */

/* Where the byte of the file is that the function begins with. */
struct search {
	const struct vma_layout *layout;
	struct page_walk *walk; /* the kernel's */
	const char *path;
	uint64_t offset, file, head, head_bytes; /* file: the one with that path; head: where its first byte is */
	uint64_t other;                          /* a file with another path, which need not be read again */
	struct vma found;                        /* end 0: none */
};

static bool has_path(struct search *search, const struct vma *vma)
{
	char buffer[FILE_NAME_BYTES];

	if (vma->file == 0 || vma->file == search->other)
		return false;
	if (vma->file == search->file)
		return true;
	if (g_strcmp0(vma_file_name(search->layout, search->walk, vma->file, buffer), search->path) != 0) {
		search->other = vma->file;
		return false;
	}
	search->file = vma->file;
	return true;
}

static bool search_take(const struct vma *vma, void *data)
{
	struct search *search = data;

	if (!has_path(search, vma))
		return true;
	if (vma->file_offset == 0) {
		search->head = vma->start;
		search->head_bytes = vma->end - vma->start;
	}
	if (vma->executable && search->offset - vma->file_offset < vma->end - vma->start)
		search->found = *vma;
	return search->found.end == 0;
}

/* ---- all of them ---- */

struct finding {
	struct probe *probe;
	const struct probe_program *wanted;
	const struct kernel_layout *kernel;
	char *path;
	struct page_walk walk; /* by the kernel's own tables */
	unsigned seen;
	char *why; /* one that has the file mapped is left out */
};

static bool is_wanted(struct finding *finding, const struct task *task)
{
	const struct probe_program *wanted = finding->wanted;
	const struct task_view view = {.layout = &finding->kernel->tasks, .walk = &finding->walk};
	char buffer[CGROUP_PATH_BYTES];
	struct cgroup cgroup;

	if (task->mm == 0 || task->pid != task->tid ||
	    (wanted->targets && !task_targets_match(wanted->targets, NULL, &view, task)))
		return false;
	return !wanted->cgroup ||
	       (finding->kernel->has_cgroups && cgroup_read(&finding->kernel->cgroups, &finding->walk, task, &cgroup) &&
	        g_strcmp0(cgroup_path(&finding->kernel->cgroups, &finding->walk, &cgroup, buffer), wanted->cgroup) ==
	                0);
}

static bool is_another_build(const struct finding *finding, const struct search *search, struct page_walk *walk)
{
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	const size_t n = search->head_bytes == 0
	                         ? 0
	                         : elf_build_id_read(walk, (gva_t){search->head}, search->head_bytes, build_id);
	const size_t known = MIN(finding->wanted->build_id_bytes, sizeof(build_id));

	return n > 0 && known > 0 && (n != known || memcmp(build_id, finding->wanted->build_id, n) != 0);
}

/* Why the probe cannot be in this process; NULL: it can. */
static char *why_not(const struct finding *finding, const struct search *search, struct page_walk *walk, uint64_t start)
{
	const uint64_t distance = finding->probe->spec.offset;
	const struct processor_code *of = processor_of(walk->tables.processor)->code;
	const size_t n = distance + of->length_max;
	g_autofree uint8_t *code = g_malloc0(n);
	const char *why;

	if (is_another_build(finding, search, walk))
		return g_strdup("its file has another build-id than the copy here");
	if (distance >= FUNCTION_BYTES_MAX || !page_walk_read(walk, (gva_t){start}, code, distance + 1))
		return g_strdup("its code is not in the guest's memory now; try again once it has run");
	why = of->why_no_boundary(code, n, distance);
	return why ? g_strdup_printf("0x%" G_GINT64_MODIFIER "x %s", start + distance, why) : NULL;
}

/* The number of the breakpoint at that address; GUEST_BREAKPOINT_ADDRESSES_MAX: there are too many. */
static size_t site_get(struct probe_user *self, struct probe *probe, uint64_t address)
{
	size_t i = 0;

	while (i < self->n && self->sites[i].breakpoint.at.value != address)
		i++;
	if (i < self->n || i == GUEST_BREAKPOINT_ADDRESSES_MAX)
		return i;
	self->sites[self->n++] = (struct user_site){
		.breakpoint = {.at = {address}, .what = probe->spec.name, .hit = probe_event_in_program},
		.probe = probe,
	};
	return i;
}

static void process_take(struct finding *finding, const struct task *task)
{
	struct probe_user *self = finding->probe->user;
	const struct kernel_layout *kernel = finding->kernel;
	struct search search = {.layout = &kernel->mappings,
	                        .walk = &finding->walk,
	                        .path = finding->path,
	                        .offset = finding->wanted->file_offset};
	struct page_walk walk;

	if (!is_wanted(finding, task))
		return;
	finding->seen++;
	vma_each(&kernel->mappings, &finding->walk, task->mm, search_take, &search);
	if (search.found.end == 0 || !task_walk_open(&kernel->tasks, &finding->walk, task, &walk))
		return;
	const uint64_t start = search.found.start + (search.offset - search.found.file_offset);
	g_autofree char *why = why_not(finding, &search, &walk, start);
	const size_t site = why ? 0 : site_get(self, finding->probe, start + finding->probe->spec.offset);
	if (!why && (site == GUEST_BREAKPOINT_ADDRESSES_MAX || self->n_processes == PROCESSES_MAX))
		why = g_strdup("there are too many of them; choose some by their pid, name or cgroup");
	if (!why)
		self->processes[self->n_processes++] =
			(struct user_process){process_root(&walk.tables), task->mm, site};
	else if (!finding->why)
		finding->why = g_strdup_printf("process %u: %s", task->pid, why);
}

static bool can_find(struct finding *finding, const struct session *session, GError **error)
{
	const struct kernel_layout *kernel = finding->kernel;
	const char *why = NULL;

	if (!kernel->has_list || !kernel->has_mappings || !kernel->has_areas)
		why = kernel->tasks_why      ? kernel->tasks_why
		      : kernel->mappings_why ? kernel->mappings_why
		                             : "its kernel does not say where they are";
	else if (!session_kernel_walk(session, &finding->walk))
		why = "no vCPU's page tables lead to its kernel (yet); try again once it has booted";
	if (why)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		            "cannot place %s: the guest's processes cannot be read: %s", finding->probe->spec.name,
		            why);
	return !why;
}

static void areas_fill(struct finding *finding, uint64_t areas[GUEST_VCPUS_MAX])
{
	struct cpu_area all[GUEST_VCPUS_MAX];
	const size_t n = cpu_areas_read(&finding->kernel->areas, &finding->walk, all, GUEST_VCPUS_MAX);

	/* A vCPU has its number as its APIC ID. */
	for (size_t i = 0; i < n; i++)
		if (all[i].apic_id < GUEST_VCPUS_MAX)
			areas[all[i].apic_id] = all[i].area;
}

static void processes_take(struct finding *finding)
{
	struct task_list list;

	task_list_read(&finding->kernel->list, &finding->kernel->tasks, &finding->walk, &list);
	for (guint i = 0; i < list.tasks->len; i++)
		process_take(finding, &g_array_index(list.tasks, struct listed_task, i).task);
	task_list_clear(&list);
}

static bool is_found(const struct finding *finding, GError **error)
{
	const struct probe *probe = finding->probe;

	if (probe->user->n > 0)
		return true;
	if (finding->why)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED, "cannot place %s: %s", probe->spec.name,
		            finding->why);
	else
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
			"cannot place %s: of %u processes that it may be in, none has code of %s mapped at 0x%" G_GINT64_MODIFIER
			"x of the file now; a probe is for the processes that there are when it is added",
			probe->spec.name, finding->seen, finding->path, finding->wanted->file_offset);
	return false;
}

bool probe_user_find(struct probe *probe, GError **error)
{
	struct session *session = probe->set->hub->session;
	const char *separator = strrchr(probe->spec.symbol, ':');
	struct finding finding = {.probe = probe, .wanted = probe->options.program, .kernel = session_kernel(session)};
	bool found;

	if (!finding.wanted) {
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_SYNTAX,
			"cannot place %s: the engine does not read the guest's programs; give \"file-offset\", as `vprof trace` does",
			probe->spec.name);
		return false;
	}
	if (!can_find(&finding, session, error))
		return false;
	finding.path = g_strndup(probe->spec.symbol, (gsize)(separator - probe->spec.symbol));
	probe->user = g_new0(struct probe_user, 1);
	areas_fill(&finding, probe->user->areas);
	processes_take(&finding);
	found = is_found(&finding, error);
	g_free(finding.path);
	g_free(finding.why);
	if (!found)
		g_clear_pointer(&probe->user, g_free);
	return found;
}

struct guest_breakpoint *probe_user_breakpoint(struct probe_user *self, size_t i)
{
	return i < self->n ? &self->sites[i].breakpoint : NULL;
}

void probe_user_keep(struct probe_user *self, size_t n)
{
	self->n = n;
}

struct probe *probe_user_probe(const struct guest_breakpoint *breakpoint)
{
	return ((const struct user_site *)breakpoint)->probe;
}

/* ---- hits ---- */

static const struct user_process *find_process(const struct probe_user *self, size_t site,
                                               const struct guest_regs *regs)
{
	const struct guest_tables tables = guest_regs_tables(regs);
	const uint64_t root = process_root(&tables);

	for (size_t i = 0; i < self->n_processes; i++)
		if (self->processes[i].site == site && self->processes[i].root == root)
			return &self->processes[i];
	return NULL;
}

bool probe_user_hits(const struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs)
{
	const struct user_site *site = (const struct user_site *)breakpoint;
	const struct probe *probe = site->probe;
	const struct probe_user *self = probe->user;
	struct task_cpu *cpu = &probe->set->vcpus[vcpu].cpu;
	const struct user_process *process =
		guest_regs_user(regs) ? find_process(self, (size_t)(site - self->sites), regs) : NULL;
	struct page_walk walk;
	struct task task;

	if (!process || !probe->set->kernel)
		return false;
	/* It may not have been seen in the kernel. */
	if (cpu->area == 0)
		cpu->area = self->areas[vcpu];
	/* A later process may have got the tables of one that has ended. */
	return task_read(&probe->set->kernel->tasks, cpu, probe->set->hub->guest, regs, &walk, &task) &&
	       task.mm == process->mm;
}
