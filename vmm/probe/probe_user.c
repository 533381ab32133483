// SPDX-License-Identifier: BSD-2-Clause
/*
 * Functions of programs: user:BINARY:FUNCTION. The processes that have the program are looked for when the probe is
 * added, and while it records every LOOK_MS: a process that begins is found, one that ended is left.
 */
#include <string.h>

#include "guest/gprs.h"
#include "guest/os.h"
#include "guest/processor.h"
#include "guest/task.h"
#include "probe/user_priv.h"

#define LOOK_MS 100u

/* ---- processes ---- */

/* Release: pairs with the acquire of a hit, which then has mm and base of this root. */
static void process_set(struct user_process *process, const struct user_place *place)
{
	atomic_store_explicit(&process->root, 0, memory_order_release);
	atomic_store_explicit(&process->mm, place->mm, memory_order_release);
	atomic_store_explicit(&process->base, place->base, memory_order_release);
	atomic_store_explicit(&process->root, place->root, memory_order_release);
}

struct user_process *user_process_add(struct user *self, const struct user_place *place)
{
	size_t i = 0;

	while (i < USER_PROCESSES_MAX && atomic_load(&self->processes[i].root) != 0)
		i++;
	if (i == USER_PROCESSES_MAX)
		return NULL;
	process_set(&self->processes[i], place);
	return &self->processes[i];
}

void user_process_leave(struct user_looked *looked)
{
	if (looked->process)
		atomic_store(&looked->process->root, 0);
	looked->process = NULL;
}

void user_leave_all(struct user *self)
{
	for (size_t i = 0; i < USER_PROCESSES_MAX; i++)
		atomic_store(&self->processes[i].root, 0);
}

static size_t count_processes(const struct user *self)
{
	size_t n = 0;

	for (size_t i = 0; i < USER_PROCESSES_MAX; i++)
		n += atomic_load(&self->processes[i].root) != 0;
	return n;
}

void user_count_unplaced(struct user *self, struct user_looked *looked)
{
	self->unplaced += !looked->is_counted;
	looked->is_counted = true;
}

/* ---- looks at all of them ---- */

static struct user_looked *looked_get(struct user *self, uint64_t mm)
{
	struct user_looked *looked = g_hash_table_lookup(self->looked, &mm);

	if (!looked) {
		looked = g_new0(struct user_looked, 1);
		g_hash_table_insert(self->looked, g_memdup2(&mm, sizeof(mm)), looked);
	}
	return looked;
}

static bool is_as_before(const struct user_looked *looked, const struct os_mapping_state *state)
{
	return looked->look != 0 && looked->found != USER_LATER && memcmp(&looked->state, state, sizeof(*state)) == 0;
}

static bool is_placed(const struct user_looked *looked, const struct user_place *place)
{
	return looked->process && atomic_load(&looked->process->root) == place->root &&
	       atomic_load(&looked->process->base) == place->base;
}

static void process_place(struct user *self, struct user_look *look, struct user_looked *looked,
                          const struct user_place *place)
{
	if (is_placed(looked, place))
		return;
	user_process_leave(looked);
	self->means->enter(self, look, looked, place);
}

static void process_take(struct user *self, struct user_look *look, const struct task *task)
{
	struct os_mapping_state state;
	struct user_place place;
	g_autofree char *why = NULL;

	if (look->failed || !user_program_wants(&self->program, look->kernel, look->walk, task) ||
	    !look->kernel->mappings->state(look->kernel, look->walk, task->mm, &state))
		return;
	struct user_looked *looked = looked_get(self, task->mm);
	const bool is_known = is_as_before(looked, &state) || looked->look == self->look;

	look->seen += looked->look != self->look;
	looked->look = self->look;
	looked->state = state;
	if (is_known)
		return;
	looked->found = user_program_find(&self->program, look->kernel, look->walk, task, &place, &self->similar, &why);
	if (looked->found == USER_HERE)
		process_place(self, look, looked, &place);
	else
		user_process_leave(looked);
	if (why && !look->why)
		look->why = g_strdup_printf("process %u: %s", task->pid, why);
}

static gboolean is_gone(gpointer mm G_GNUC_UNUSED, gpointer value, gpointer data)
{
	struct user_looked *looked = value;

	if (looked->look == ((const struct user *)data)->look)
		return FALSE;
	user_process_leave(looked);
	return TRUE;
}

static void prune(struct user *self)
{
	if (self->means->prune)
		self->means->prune(self);
}

static void look_at(struct user *self, struct user_look *look, const struct task_list *list)
{
	self->look++;
	for (guint i = 0; i < list->tasks->len; i++)
		process_take(self, look, &g_array_index(list->tasks, struct listed_task, i).task);
	g_hash_table_foreach_remove(self->looked, is_gone, self);
	prune(self);
}

/* NULL: it is not of a program. */
static struct user *user_of(const struct probe *probe)
{
	return probe->placement && probe_sources[probe->spec.kind].find_places ? (struct user *)probe->placement : NULL;
}

static gboolean look_again(gpointer data)
{
	struct probe_set *set = data;
	const struct os_kernel *kernel = session_kernel(set->hub->session);
	struct page_walk walk;
	struct task_list list;

	if (!session_kernel_walk(set->hub->session, &walk))
		return G_SOURCE_CONTINUE;
	kernel->list->read(kernel, &walk, &list);
	for (guint i = 0; i < set->probes->len; i++) {
		struct user *self = user_of(g_ptr_array_index(set->probes, i));
		struct user_look look = {.kernel = kernel, .walk = &walk};

		if (self)
			look_at(self, &look, &list);
		g_free(look.why);
	}
	task_list_clear(&list);
	return G_SOURCE_CONTINUE;
}

GSource *probe_user_watch(struct probe_set *set)
{
	bool any = false;

	for (guint i = 0; i < set->probes->len; i++)
		any |= user_of(g_ptr_array_index(set->probes, i)) != NULL;
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

static bool can_look(const struct probe *probe, const struct os_kernel *kernel, struct page_walk *walk, GError **error)
{
	const char *why = NULL;

	if (!kernel->list || !kernel->mappings || !kernel->areas)
		why = kernel->why[OS_TASKS]      ? kernel->why[OS_TASKS]
		      : kernel->why[OS_MAPPINGS] ? kernel->why[OS_MAPPINGS]
		                                 : "its kernel does not say where they are";
	else if (!session_kernel_walk(probe->set->hub->session, walk))
		why = "no vCPU's page tables lead to its kernel (yet); try again once it has booted";
	if (why)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		            "cannot place %s: the guest's processes cannot be read: %s", probe->spec.name, why);
	return !why;
}

static void areas_fill(const struct os_kernel *kernel, struct page_walk *walk, uint64_t areas[GUEST_VCPUS_MAX])
{
	struct os_area all[GUEST_VCPUS_MAX];
	const size_t n = kernel->areas->read(kernel, walk, all, GUEST_VCPUS_MAX);

	/* A vCPU has its number as its APIC ID. */
	for (size_t i = 0; i < n; i++)
		if (all[i].apic_id < GUEST_VCPUS_MAX)
			areas[all[i].apic_id] = all[i].area;
}

/* Breakpoints of the processor that probes without a process wait for. */
static size_t count_waiting(const struct probe_hub *hub)
{
	size_t n = 0;

	for (guint i = 0; i < hub->sets->len; i++) {
		const struct probe_set *set = g_ptr_array_index(hub->sets, i);

		for (guint j = 0; j < set->probes->len; j++) {
			const struct user *self = user_of(g_ptr_array_index(set->probes, j));

			if (self && count_processes(self) == 0)
				n += self->means->breakpoints * self->program.n_places;
		}
	}
	return n;
}

/* A probe in no process waits for one, if there will be breakpoints for it. */
static bool may_wait(const struct user *self, const struct user_look *look, GError **error)
{
	const struct probe *probe = self->base.probe;
	struct guest *guest = probe->set->hub->guest;
	const size_t left = guest->debug->breakpoints_free(guest), waiting = count_waiting(probe->set->hub),
		     own = self->means->breakpoints * self->program.n_places;

	if (count_processes(self) > 0)
		return true;
	if (look->why) {
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED, "cannot place %s: %s", probe->spec.name,
		            look->why);
		return false;
	}
	if (waiting <= left || own == 0)
		return true;
	g_set_error(
		error, GUEST_ERROR, GUEST_ERROR_TAKEN,
		"cannot place %s: no process has the program yet, and when one has, the probe takes %zu breakpoints of the processor: %zu are free, and other probes that wait take %zu; patches in its file take none (\"--breakpoints patch\")",
		probe->spec.name, own, left, waiting - own);
	return false;
}

static bool look_first(struct user *self, GError **error)
{
	const struct probe *probe = self->base.probe;
	struct page_walk walk;
	struct task_list list;
	struct user_look look = {
		.kernel = session_kernel(probe->set->hub->session), .walk = &walk, .is_first = true, .error = error};

	if (!can_look(probe, look.kernel, &walk, error) ||
	    (self->means->may_place && !self->means->may_place(self, look.kernel, error)))
		return false;
	areas_fill(look.kernel, &walk, self->areas);
	look.kernel->list->read(look.kernel, &walk, &list);
	look_at(self, &look, &list);
	task_list_clear(&list);
	const bool done = !look.failed && may_wait(self, &look, error);
	g_free(look.why);
	return done;
}

/* Of static probes, by number. */
static GArray *operand_arguments(const struct user_program *program)
{
	GArray *arguments = tracepoint_arguments_new();

	for (size_t i = 0; i < program->n_arguments; i++) {
		const struct tracepoint_argument argument = {.name = g_strdup_printf("arg%zu", i),
		                                             .value = {.bytes = 8}};

		g_array_append_val(arguments, argument);
	}
	return arguments;
}

bool user_place(struct user *self, const struct user_means *means, GError **error)
{
	struct probe *probe = self->base.probe;

	self->means = means;
	self->looked = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
	if (!probe_sources[probe->spec.kind].find_places(&self->program, probe, error) || !look_first(self, error)) {
		self->base.ops->remove(&self->base);
		return false;
	}
	if (self->program.operands)
		probe->arguments = operand_arguments(&self->program);
	return true;
}

void user_free(struct user *self)
{
	g_hash_table_unref(self->looked);
	user_program_clear(&self->program);
	g_free(self->similar);
	placement_free(&self->base);
}

void user_describe(const struct placement *placement, struct probe_info *info)
{
	const struct user *self = (const struct user *)placement;

	info->is_of_program = true;
	info->processes = count_processes(self);
	info->similar = self->similar;
}

void user_count(const struct placement *placement, struct probe_statistics *out)
{
	const struct user *self = (const struct user *)placement;

	out->unplaced += self->unplaced;
	if (self->program.calls)
		out->forgotten += probe_calls_forgotten(self->program.calls);
}

void user_start(struct placement *placement)
{
	struct user *self = (struct user *)placement;

	self->unplaced = 0;
	if (self->program.calls)
		probe_calls_reset(self->program.calls);
}

/* ---- hits ---- */

uint64_t user_root(const struct guest_regs *regs)
{
	const struct guest_tables tables = guest_regs_tables(regs);

	return processor_of(tables.processor)->memory->process_root(&tables);
}

bool user_task_read(const struct user *self, unsigned vcpu, const struct guest_regs *regs, struct page_walk *walk,
                    struct task *task)
{
	const struct probe_set *set = self->base.probe->set;
	struct task_cpu *cpu = &set->vcpus[vcpu].cpu;

	/* It may not have been seen in the kernel. */
	if (cpu->area == 0)
		cpu->area = self->areas[vcpu];
	return set->kernel->tasks->read(set->kernel, cpu, set->hub->guest, regs, walk, task);
}

/* Returns how many of them could not be read. */
static unsigned read_operands(const struct user *self, size_t place, const struct guest_regs *regs,
                              const struct guest_gprs *gprs, uint64_t *arguments)
{
	const struct user_operands *operands = &self->program.operands[place];
	struct page_walk walk;
	unsigned faults = 0;

	memset(arguments, 0, self->program.n_arguments * sizeof(*arguments));
	page_walk_init_regs(&walk, self->base.probe->set->hub->guest, regs);
	for (size_t i = 0; i < operands->n; i++)
		faults += !guest_operand_read(&operands->all[i], &walk, gprs, &arguments[i]);
	return faults;
}

void user_fire(const struct user *self, const struct user_hit *hit, unsigned vcpu, const struct guest_regs *regs,
               const struct guest_gprs *gprs)
{
	struct probe *probe = self->base.probe;
	struct firing firing = probe_firing(probe, vcpu, regs, gprs);
	struct probe_calls *calls = self->program.calls;

	if (calls) {
		if (hit->enters)
			probe_calls_enter(calls, hit->mm, guest_gprs_stack(gprs));
		if (!hit->leaves || !probe_calls_leave(calls, hit->mm, guest_gprs_stack(gprs), &firing.values[1]))
			return;
		firing.values[0] = guest_gprs_result(gprs);
		firing.at_entry = true; /* the frame is gone again */
	} else if (self->program.operands) {
		atomic_fetch_add_explicit(&probe->set->vcpus[vcpu].fault,
		                          read_operands(self, hit->place, regs, gprs, firing.values),
		                          memory_order_relaxed);
	} else {
		probe_read_arguments(gprs, firing.values);
		firing.at_entry = probe->spec.kind == PROBE_PROGRAM && probe->spec.offset == 0;
	}
	probe_event_note(&firing);
	probe_event_fire(&firing);
}
