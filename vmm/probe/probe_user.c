// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of programs: user:BINARY:FUNCTION. A breakpoint of the processor is for an address, whichever process is
 * there, so a hit counts in the page tables of the processes that have the function at that address. These are looked
 * for when the probe is added, and while it records every LOOK_MS: a process that begins is found, one that ended gives
 * its breakpoints back. Patches are in the file instead (probe_file.c), and every process is asked at its hit.
 */
#include <string.h>

#include "guest/processor.h"
#include "linux/cpu_area.h"
#include "linux/task_list.h"
#include "linux/vma.h"
#include "probe/probe_priv.h"

#define PROCESSES_MAX 256u
#define LOOK_MS 100u

/* [a] stored by the main thread, loaded by any. A slot that changes while a vCPU looks is of another process for it:
 * root and mm have to fit. */
struct user_process {
	_Atomic uint64_t root; /* [a] of its page tables; 0: a free slot */
	_Atomic uint64_t mm;   /* [a] */
	_Atomic uint64_t base; /* [a] where byte 0 of the file would be, counted back from its code */
};

/* What is known of the process with this mm. */
struct looked {
	struct vma_state state;
	unsigned look;                /* the last that has seen it */
	enum user_found found;        /* USER_LATER: look again */
	struct user_process *process; /* NULL: the probe is not in it */
	bool is_counted;              /* in `unplaced` */
};

/* [M] main thread only, [I] immutable. */
struct probe_user {
	struct user_program program;                            /* [I] */
	uint64_t areas[GUEST_VCPUS_MAX];                        /* [I] per-CPU area of each vCPU; 0: not known */
	struct user_site sites[GUEST_BREAKPOINT_ADDRESSES_MAX]; /* [M] */
	GPtrArray *patches;                                     /* [M] instead, of struct user_site; NULL */
	struct user_process processes[PROCESSES_MAX];           /* [a] */
	GHashTable *looked;                                     /* [M] of struct looked, by mm */
	unsigned look;                                          /* [M] their number */
	char *similar;                                          /* [M] probe_user_similar */
	uint64_t unplaced;                                      /* [M] processes that began later, without breakpoint */
};

/* ---- breakpoints ---- */

static bool needs(const struct probe_user *self, const struct user_process *process, uint64_t address)
{
	for (size_t i = 0; atomic_load(&process->root) != 0 && i < self->program.n_places; i++)
		if (atomic_load(&process->base) + self->program.places[i] == address)
			return true;
	return false;
}

static bool is_needed(const struct probe_user *self, uint64_t address)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (needs(self, &self->processes[i], address))
			return true;
	return false;
}

static void sites_prune(struct probe *probe)
{
	struct guest *guest = probe->set->hub->guest;

	for (size_t i = 0; i < GUEST_BREAKPOINT_ADDRESSES_MAX; i++) {
		struct user_site *site = &probe->user->sites[i];

		if (!site->is_used || is_needed(probe->user, site->breakpoint.at.value))
			continue;
		guest->debug->breakpoint_remove(guest, &site->breakpoint);
		site->is_used = false;
	}
}

static struct user_site *site_find(struct probe_user *self, uint64_t address)
{
	for (size_t i = 0; i < GUEST_BREAKPOINT_ADDRESSES_MAX; i++)
		if (self->sites[i].is_used && self->sites[i].breakpoint.at.value == address)
			return &self->sites[i];
	return NULL;
}

static struct user_site *site_free(struct probe_user *self)
{
	size_t i = 0;

	while (i < GUEST_BREAKPOINT_ADDRESSES_MAX && self->sites[i].is_used)
		i++;
	return i < GUEST_BREAKPOINT_ADDRESSES_MAX ? &self->sites[i] : NULL;
}

static bool too_many(const struct probe *probe, GError **error)
{
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
	            "cannot place %s: there are too many processes with %s; choose some by their pid, name or cgroup",
	            probe->spec.name, probe->user->program.path);
	return false;
}

static bool site_add(struct probe *probe, uint64_t address, GError **error)
{
	struct guest *guest = probe->set->hub->guest;
	struct user_site *site = site_free(probe->user);

	if (site_find(probe->user, address))
		return true;
	if (!site)
		return too_many(probe, error);
	*site = (struct user_site){
		.breakpoint = {.at = {address},
	                       .what = probe->spec.name,
	                       .kind = GUEST_BREAKPOINT_PROCESSOR,
	                       .hit = probe_event_in_program},
		.probe = probe,
	};
	site->is_used = guest->debug->breakpoint_add(guest, &site->breakpoint, error);
	return site->is_used;
}

/* Whether adding breakpoints at these places may succeed. */
static bool has_room(struct probe *probe, uint64_t base)
{
	struct guest *guest = probe->set->hub->guest;
	const struct user_program *program = &probe->user->program;
	size_t more = 0;

	for (size_t i = 0; i < program->n_places; i++)
		more += !site_find(probe->user, base + program->places[i]);
	return more <= guest->debug->breakpoints_free(guest);
}

/* ---- processes ---- */

/* Release: pairs with the acquire in find_process, which then has mm and base of this root. */
static void process_set(struct user_process *process, const struct user_place *place)
{
	atomic_store_explicit(&process->root, 0, memory_order_release);
	atomic_store_explicit(&process->mm, place->mm, memory_order_release);
	atomic_store_explicit(&process->base, place->base, memory_order_release);
	atomic_store_explicit(&process->root, place->root, memory_order_release);
}

static struct user_process *process_free(struct probe_user *self)
{
	size_t i = 0;

	while (i < PROCESSES_MAX && atomic_load(&self->processes[i].root) != 0)
		i++;
	return i < PROCESSES_MAX ? &self->processes[i] : NULL;
}

static void process_leave(struct looked *looked)
{
	if (looked->process)
		atomic_store(&looked->process->root, 0);
	looked->process = NULL;
}

/* All breakpoints of a process, or none. */
static bool process_enter(struct probe *probe, struct looked *looked, const struct user_place *place, GError **error)
{
	const struct user_program *program = &probe->user->program;

	looked->process = process_free(probe->user);
	if (!looked->process)
		return too_many(probe, error);
	process_set(looked->process, place);
	for (size_t i = 0; i < program->n_places; i++) {
		if (site_add(probe, place->base + program->places[i], error))
			continue;
		process_leave(looked);
		sites_prune(probe);
		return false;
	}
	return true;
}

/* ---- looks at all of them ---- */

struct look {
	struct probe *probe;
	const struct kernel_layout *kernel;
	struct page_walk *walk; /* by the kernel's own tables */
	unsigned seen;
	char *why;      /* one that has the file mapped is left out */
	bool is_first;  /* all are placed or none */
	GError **error; /* of the first */
	bool failed;
};

static struct looked *looked_get(struct probe_user *self, uint64_t mm)
{
	struct looked *looked = g_hash_table_lookup(self->looked, &mm);

	if (!looked) {
		looked = g_new0(struct looked, 1);
		g_hash_table_insert(self->looked, g_memdup2(&mm, sizeof(mm)), looked);
	}
	return looked;
}

static bool is_as_before(const struct looked *looked, const struct vma_state *state)
{
	return looked->look != 0 && looked->found != USER_LATER && memcmp(&looked->state, state, sizeof(*state)) == 0;
}

static bool is_placed(const struct looked *looked, const struct user_place *place)
{
	return looked->process && atomic_load(&looked->process->root) == place->root &&
	       atomic_load(&looked->process->base) == place->base;
}

/* There was no room for it, or it was refused, when the probe has been there already. */
static void count_unplaced(struct probe_user *self, struct looked *looked)
{
	self->unplaced += !looked->is_counted;
	looked->is_counted = true;
}

static void process_patch(struct look *look, struct looked *looked, const struct user_place *place)
{
	struct probe_user *self = look->probe->user;
	g_autoptr(GError) why = NULL;

	looked->found = probe_file_place(look->probe, self->patches, look->kernel, look->walk, place->file, &why);
	if (looked->found == USER_HERE)
		looked->process = process_free(self);
	if (looked->process)
		process_set(looked->process, place);
	if (!why)
		return;
	if (look->is_first)
		g_propagate_error(look->error, g_steal_pointer(&why));
	else
		count_unplaced(self, looked);
	look->failed |= look->is_first;
}

static void process_place(struct look *look, struct looked *looked, const struct user_place *place)
{
	struct probe *probe = look->probe;

	if (is_placed(looked, place))
		return;
	process_leave(looked);
	if (probe->user->patches) {
		process_patch(look, looked, place);
		return;
	}
	if (look->is_first) {
		look->failed |= !process_enter(probe, looked, place, look->error);
		return;
	}
	if (has_room(probe, place->base) && process_enter(probe, looked, place, NULL))
		return;
	/* Room may come. */
	looked->found = USER_LATER;
	count_unplaced(probe->user, looked);
}

static void process_take(struct look *look, const struct task *task)
{
	struct probe_user *self = look->probe->user;
	struct vma_state state;
	struct user_place place;
	g_autofree char *why = NULL;

	if (look->failed || !user_program_wants(&self->program, look->kernel, look->walk, task) ||
	    !vma_state_read(&look->kernel->mappings, look->walk, task->mm, &state))
		return;
	struct looked *looked = looked_get(self, task->mm);
	const bool is_known = is_as_before(looked, &state) || looked->look == self->look;

	look->seen += looked->look != self->look;
	looked->look = self->look;
	looked->state = state;
	if (is_known)
		return;
	looked->found = user_program_find(&self->program, look->kernel, look->walk, task, &place, &self->similar, &why);
	if (looked->found == USER_HERE)
		process_place(look, looked, &place);
	else
		process_leave(looked);
	if (why && !look->why)
		look->why = g_strdup_printf("process %u: %s", task->pid, why);
}

static gboolean is_gone(gpointer mm G_GNUC_UNUSED, gpointer value, gpointer data)
{
	struct looked *looked = value;

	if (looked->look == ((const struct probe_user *)data)->look)
		return FALSE;
	process_leave(looked);
	return TRUE;
}

static void look_at(struct look *look, const struct task_list *list)
{
	struct probe_user *self = look->probe->user;

	self->look++;
	for (guint i = 0; i < list->tasks->len; i++)
		process_take(look, &g_array_index(list->tasks, struct listed_task, i).task);
	g_hash_table_foreach_remove(self->looked, is_gone, self);
	sites_prune(look->probe);
}

static gboolean look_again(gpointer data)
{
	struct probe_set *set = data;
	const struct kernel_layout *kernel = session_kernel(set->hub->session);
	struct page_walk walk;
	struct task_list list;

	if (!session_kernel_walk(set->hub->session, &walk))
		return G_SOURCE_CONTINUE;
	task_list_read(&kernel->list, &kernel->tasks, &walk, &list);
	for (guint i = 0; i < set->probes->len; i++) {
		struct look look = {.probe = g_ptr_array_index(set->probes, i), .kernel = kernel, .walk = &walk};

		if (look.probe->user)
			look_at(&look, &list);
		g_free(look.why);
	}
	task_list_clear(&list);
	return G_SOURCE_CONTINUE;
}

GSource *probe_user_watch(struct probe_set *set)
{
	bool any = false;

	for (guint i = 0; i < set->probes->len; i++)
		any |= ((const struct probe *)g_ptr_array_index(set->probes, i))->user != NULL;
	if (!any)
		return NULL;
	GSource *source = g_timeout_source_new(LOOK_MS);

	look_again(set);
	g_source_set_callback(source, look_again, set, NULL);
	g_source_set_static_name(source, "processes of probes");
	g_source_attach(source, NULL);
	return source;
}

/* ---- the first look ---- */

static bool can_look(const struct probe *probe, const struct kernel_layout *kernel, struct page_walk *walk,
                     GError **error)
{
	const char *why = NULL;

	if (!kernel->has_list || !kernel->has_mappings || !kernel->has_areas)
		why = kernel->tasks_why      ? kernel->tasks_why
		      : kernel->mappings_why ? kernel->mappings_why
		                             : "its kernel does not say where they are";
	else if (!session_kernel_walk(probe->set->hub->session, walk))
		why = "no vCPU's page tables lead to its kernel (yet); try again once it has booted";
	if (why)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		            "cannot place %s: the guest's processes cannot be read: %s", probe->spec.name, why);
	return !why;
}

static void areas_fill(const struct kernel_layout *kernel, struct page_walk *walk, uint64_t areas[GUEST_VCPUS_MAX])
{
	struct cpu_area all[GUEST_VCPUS_MAX];
	const size_t n = cpu_areas_read(&kernel->areas, walk, all, GUEST_VCPUS_MAX);

	/* A vCPU has its number as its APIC ID. */
	for (size_t i = 0; i < n; i++)
		if (all[i].apic_id < GUEST_VCPUS_MAX)
			areas[all[i].apic_id] = all[i].area;
}

/* Of probes that wait for a process. */
static size_t count_waiting(const struct probe_hub *hub)
{
	size_t n = 0;

	for (guint i = 0; i < hub->sets->len; i++) {
		const struct probe_set *set = g_ptr_array_index(hub->sets, i);

		for (guint j = 0; j < set->probes->len; j++) {
			const struct probe *probe = g_ptr_array_index(set->probes, j);

			if (probe->user && !probe->user->patches && probe_user_processes(probe->user) == 0)
				n += probe->user->program.n_places;
		}
	}
	return n;
}

/* A probe in no process waits for one, if there will be breakpoints for it. */
static bool may_wait(const struct probe *probe, const struct look *look, GError **error)
{
	struct guest *guest = probe->set->hub->guest;
	const size_t left = guest->debug->breakpoints_free(guest), waiting = count_waiting(probe->set->hub);

	if (probe_user_processes(probe->user) > 0)
		return true;
	if (look->why) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED, "cannot place %s: %s", probe->spec.name,
		            look->why);
		return false;
	}
	if (waiting <= left || probe->user->patches)
		return true;
	g_set_error(
		error, GUEST_ERROR, GUEST_ERROR_TAKEN,
		"cannot place %s: no process has the program yet, and when one has, the probe takes %zu breakpoints of the processor: %zu are free, and other probes that wait take %zu; patches in its file take none (\"--breakpoints patch\")",
		probe->spec.name, probe->user->program.n_places, left, waiting - probe->user->program.n_places);
	return false;
}

static bool look_first(struct probe *probe, GError **error)
{
	struct page_walk walk;
	struct task_list list;
	struct look look = {.probe = probe,
	                    .kernel = session_kernel(probe->set->hub->session),
	                    .walk = &walk,
	                    .is_first = true,
	                    .error = error};

	if (!can_look(probe, look.kernel, &walk, error) ||
	    (probe->user->patches && !probe_file_may_place(probe, look.kernel, error)))
		return false;
	areas_fill(look.kernel, &walk, probe->user->areas);
	task_list_read(&look.kernel->list, &look.kernel->tasks, &walk, &list);
	look_at(&look, &list);
	task_list_clear(&list);
	const bool done = !look.failed && may_wait(probe, &look, error);
	g_free(look.why);
	return done;
}

bool probe_user_place(struct probe *probe, GError **error)
{
	probe->user = g_new0(struct probe_user, 1);
	if (probe->options.breakpoint == GUEST_BREAKPOINT_PATCH)
		probe->user->patches = g_ptr_array_new_with_free_func(g_free);
	probe->user->looked = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	if (probe_sources[probe->spec.kind].returns)
		probe->returns = probe_returns_new(probe, &(struct function_returns){.n = 0});
	if (user_program_init(&probe->user->program, probe, error) && look_first(probe, error))
		return true;
	probe_user_remove(probe);
	return false;
}

void probe_user_remove(struct probe *probe)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		atomic_store(&probe->user->processes[i].root, 0);
	sites_prune(probe);
	if (probe->user->patches)
		probe_file_remove(probe, probe->user->patches);
	g_clear_pointer(&probe->user->patches, g_ptr_array_unref);
	g_hash_table_unref(probe->user->looked);
	user_program_clear(&probe->user->program);
	g_free(probe->user->similar);
	g_clear_pointer(&probe->user, g_free);
	g_clear_pointer(&probe->returns, g_free);
}

size_t probe_user_processes(const struct probe_user *self)
{
	size_t n = 0;

	for (size_t i = 0; i < PROCESSES_MAX; i++)
		n += atomic_load(&self->processes[i].root) != 0;
	return n;
}

enum guest_breakpoint_kind probe_user_kind(const struct probe_user *self)
{
	return self->patches ? GUEST_BREAKPOINT_PATCH : GUEST_BREAKPOINT_PROCESSOR;
}

bool probe_user_intact(struct probe *probe)
{
	return !probe->user->patches || probe_file_intact(probe, probe->user->patches);
}

const struct user_program *probe_user_program(const struct probe_user *self)
{
	return &self->program;
}

const char *probe_user_similar(const struct probe_user *self)
{
	return self->similar;
}

uint64_t probe_user_unplaced(const struct probe_user *self)
{
	return self->unplaced;
}

void probe_user_reset(struct probe_user *self)
{
	self->unplaced = 0;
}

/* ---- arguments of static probes ---- */

GArray *probe_user_arguments(const struct probe *probe)
{
	if (!probe->user || !probe->user->program.operands)
		return NULL;
	GArray *arguments = tracepoint_arguments_new();
	for (size_t i = 0; i < probe->user->program.n_arguments; i++) {
		const struct tracepoint_argument argument = {.name = g_strdup_printf("arg%zu", i),
		                                             .value = {.bytes = 8}};

		g_array_append_val(arguments, argument);
	}
	return arguments;
}

unsigned probe_user_read(const struct probe *probe, const struct user_hit *hit, const struct guest_regs *regs,
                         const struct guest_gprs *gprs, uint64_t *arguments)
{
	const struct user_program *program = &probe->user->program;
	const struct user_operands *operands = program->operands ? &program->operands[hit->place] : NULL;
	struct page_walk walk;
	unsigned faults = 0;

	if (!operands)
		return 0;
	memset(arguments, 0, program->n_arguments * sizeof(*arguments));
	page_walk_init_regs(&walk, probe->set->hub->guest, regs);
	for (size_t i = 0; i < operands->n; i++)
		faults += !guest_operand_read(&operands->all[i], &walk, gprs, &arguments[i]);
	return faults;
}

/* ---- hits ---- */

struct probe *probe_user_probe(const struct guest_breakpoint *breakpoint)
{
	return ((const struct user_site *)breakpoint)->probe;
}

/* What this address is in the process with these tables. */
static bool find_process(const struct probe_user *self, uint64_t root, uint64_t address, struct user_hit *hit)
{
	*hit = (struct user_hit){.mm = 0};
	for (size_t i = 0; i < PROCESSES_MAX && hit->mm == 0; i++) {
		const struct user_process *process = &self->processes[i];

		if (atomic_load_explicit(&process->root, memory_order_acquire) != root)
			continue;
		const uint64_t offset = address - atomic_load_explicit(&process->base, memory_order_acquire);
		for (size_t j = 0; j < self->program.n_places; j++) {
			if (self->program.places[j] != offset)
				continue;
			hit->enters |= j == 0;
			hit->leaves |= j > 0;
			hit->place = j;
		}
		if (hit->enters || hit->leaves)
			hit->mm = atomic_load_explicit(&process->mm, memory_order_acquire);
	}
	return hit->mm != 0;
}

/* By a thread of another name, too, once its process was found. */
static bool has_process(const struct probe_user *self, uint64_t root, uint64_t mm)
{
	for (size_t i = 0; i < PROCESSES_MAX; i++)
		if (atomic_load_explicit(&self->processes[i].root, memory_order_acquire) == root &&
		    atomic_load_explicit(&self->processes[i].mm, memory_order_acquire) == mm)
			return true;
	return false;
}

static bool patch_hits(const struct user_site *site, struct page_walk *walk, const struct task *task, uint64_t root,
                       struct user_hit *hit)
{
	const struct probe *probe = site->probe;

	*hit = (struct user_hit){
		.mm = task->mm, .place = site->place, .enters = site->place == 0, .leaves = site->place > 0};
	return user_program_has(&probe->user->program, probe->set->kernel, walk, task) ||
	       has_process(probe->user, root, task->mm);
}

bool probe_user_hits(const struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                     struct user_hit *hit)
{
	const struct user_site *site = (const struct user_site *)breakpoint;
	const struct probe *probe = site->probe;
	const struct probe_user *self = probe->user;
	const struct guest_tables tables = guest_regs_tables(regs);
	const uint64_t root = processor_of(tables.processor)->memory->process_root(&tables);
	struct task_cpu *cpu = &probe->set->vcpus[vcpu].cpu;
	struct page_walk walk;
	struct task task;

	if (!guest_regs_user(regs) || !probe->set->kernel ||
	    (!self->patches && !find_process(self, root, site->breakpoint.at.value, hit)))
		return false;
	/* It may not have been seen in the kernel. */
	if (cpu->area == 0)
		cpu->area = self->areas[vcpu];
	if (!task_read(&probe->set->kernel->tasks, cpu, probe->set->hub->guest, regs, &walk, &task))
		return false;
	if (self->patches)
		return patch_hits(site, &walk, &task, root, hit);
	/* A later process may have got the tables of one that has ended. */
	return task.mm == hit->mm;
}
