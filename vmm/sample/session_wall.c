// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_wall.h"

#include "lib/record/clock.h"
#include "lib/record/xorshift.h"
#include "sample/session_priv.h"
#include "sample/wait_sample.h"

#define BATCH 32u /* tasks for which vCPU 0 is kept out of the guest at once */
#define US_PER_S UINT64_C(1000000)

/* A task as it was looked at last. */
struct seen {
	uint64_t start_time, cpu_ns, time_ns;
	unsigned look;
};

struct wall {
	uint64_t random;
	guint timer;
	unsigned look;     /* number of this one */
	GHashTable *tasks; /* of struct seen, by the address of the task_struct */
	guint next;        /* number of the task in the list with which the next look goes on */
};

/* One look. */
struct looker {
	struct session *session;
	const struct kernel_layout *kernel;
	struct page_walk walk; /* by the kernel's own tables */
	uint64_t area;         /* of any processor; 0: not known */
	uint64_t direct_map;
	uint64_t now_ns;
	const struct listed_task *batch[BATCH];
	unsigned n_batch;
	unsigned n_taken;
};

/* A sample of a task, and what it was made of. */
struct wall_sample {
	struct counter_sample sample; /* first */
	struct looker *looker;
	const struct listed_task *task;
	bool torn;
};

/* ---- a task ---- */

/* Called once the chain was read. */
static bool task_stands(const struct counter_sample *sample)
{
	struct wall_sample *wall = (struct wall_sample *)sample;
	const struct kernel_layout *kernel = wall->looker->kernel;
	struct page_walk walk = wall->looker->walk;

	wall->torn = !listed_task_sleeps_on(&kernel->list, &kernel->tasks, &walk, wall->task);
	return !wall->torn;
}

/* The page tables of its process, for the part of its chain in user space; the kernel's own where they are not known.
 */
static uint64_t tables_of(struct looker *looker, const struct task *task)
{
	const struct cpu_area_layout *layout = &looker->kernel->areas;
	uint64_t pgd;

	if (task->mm == 0 || looker->area == 0 ||
	    !page_walk_read_kernel(&looker->walk, (gva_t){task->mm + layout->mm_pgd}, &pgd, sizeof(pgd)))
		return looker->walk.cr3;
	return pgd - looker->direct_map;
}

/* ---- samples: on the thread of vCPU 0, if it is ours ---- */

static void task_sample(struct looker *looker, struct sampler *sampler, const struct listed_task *task,
                        struct seen *seen)
{
	const uint64_t waited_ns = looker->now_ns - seen->time_ns, cpu_ns = task->cpu_ns - seen->cpu_ns;
	struct wall_sample wall = {.looker = looker, .task = task};
	struct frame frame;

	if (cpu_ns >= waited_ns || !wait_frame_find(looker->kernel, &looker->session->kernel.unwind, &looker->walk,
	                                            task->stack_pointer, &frame))
		return;
	wall.sample = wait_sample(&task->task, wait_state(task->state), &frame, tables_of(looker, &task->task),
	                          looker->walk.la57);
	wall.sample.overflow = (struct counter_overflow){.event = session_config_wall(&looker->session->config),
	                                                 .period = waited_ns - cpu_ns};
	wall.sample.time_ns = looker->now_ns;
	wall.sample.area = looker->area;
	wall.sample.stands = task_stands;
	if (!sampler_take_waiting(sampler, &wall.sample) || wall.torn)
		return;
	looker->n_taken++;
	seen->time_ns = looker->now_ns;
	seen->cpu_ns = task->cpu_ns;
}

static void batch_take(void *data)
{
	struct looker *looker = data;
	struct sampler *sampler = &looker->session->samplers[0];

	for (unsigned i = 0; i < looker->n_batch; i++) {
		const struct listed_task *task = looker->batch[i];

		task_sample(looker, sampler, task,
		            g_hash_table_lookup(looker->session->wall->tasks, GSIZE_TO_POINTER(task->task.address)));
	}
}

static void batch_flush(struct looker *looker)
{
	struct session *session = looker->session;

	if (looker->n_batch == 0)
		return;
	if (session->route) {
		g_mutex_lock(&session->route_lock);
		batch_take(looker);
		g_mutex_unlock(&session->route_lock);
	} else {
		session->guest->ops->run_on_vcpu(session->guest, 0, batch_take, looker);
	}
	looker->n_batch = 0;
}

/* ---- a look ---- */

/* What is known of a task from before; one that is new is known from now on. */
static struct seen *seen_find(struct looker *looker, const struct listed_task *task)
{
	struct wall *wall = looker->session->wall;
	struct seen *seen = g_hash_table_lookup(wall->tasks, GSIZE_TO_POINTER(task->task.address));

	if (!seen || seen->start_time != task->task.start_time) {
		seen = g_new0(struct seen, 1);
		*seen = (struct seen){
			.start_time = task->task.start_time, .cpu_ns = task->cpu_ns, .time_ns = looker->now_ns};
		g_hash_table_replace(wall->tasks, GSIZE_TO_POINTER(task->task.address), seen);
	}
	seen->look = wall->look;
	return seen;
}

static gboolean seen_is_old(void *key G_GNUC_UNUSED, void *value, void *wall)
{
	return ((const struct seen *)value)->look != ((const struct wall *)wall)->look;
}

static void tasks_take(struct looker *looker, const GArray *tasks)
{
	struct wall *wall = looker->session->wall;
	const guint first = tasks->len ? wall->next % tasks->len : 0;
	unsigned n = 0;

	wall->next = 0;
	for (guint i = 0; i < tasks->len; i++) {
		const guint number = (first + i) % tasks->len;
		const struct listed_task *task = &g_array_index(tasks, struct listed_task, number);
		struct seen *seen = seen_find(looker, task);

		if (!task->on_cpu && !wait_is_shown(task, task->state)) {
			/* What comes next is not of this time. */
			seen->time_ns = looker->now_ns;
			seen->cpu_ns = task->cpu_ns;
		}
		if (task->on_cpu || seen->time_ns == looker->now_ns || n == WALL_SAMPLES_MAX)
			continue;
		looker->batch[looker->n_batch++] = task;
		if (looker->n_batch == BATCH)
			batch_flush(looker);
		if (++n == WALL_SAMPLES_MAX)
			wall->next = number + 1;
	}
	batch_flush(looker);
}

static void area_find(struct looker *looker)
{
	struct cpu_area area;

	if (looker->kernel->has_areas && cpu_areas_read(&looker->kernel->areas, &looker->walk, &area, 1) == 1) {
		looker->area = area.area;
		looker->direct_map = cpu_area_direct_map(&looker->kernel->areas, &looker->walk);
	}
}

unsigned session_wall_look(struct session *session, uint64_t now_ns)
{
	struct looker looker = {.session = session, .kernel = session->kernel.layout, .now_ns = now_ns};
	struct wall *wall = session->wall;
	struct task_list list;

	/* After a reset, it may be another kernel, of which nothing is known yet. */
	if (session->suspended || !looker.kernel || !looker.kernel->has_list ||
	    !session_kernel_walk(session, &looker.walk))
		return 0;
	area_find(&looker);
	task_list_read(&looker.kernel->list, &looker.kernel->tasks, &looker.walk, &list);
	wall->look++;
	tasks_take(&looker, list.tasks);
	/* What a list that is torn lacks may be there the next time. */
	if (list.end == TASK_LIST_WHOLE)
		g_hash_table_foreach_remove(wall->tasks, seen_is_old, wall);
	task_list_clear(&list);
	return looker.n_taken;
}

/* ---- the timer ---- */

static gboolean timer_due(gpointer data);

/* Between a half and one and a half of the interval, so that looks are not in step with a timer of the guest. */
static void timer_set(struct session *session, uint64_t took_us)
{
	struct wall *wall = session->wall;
	const uint64_t interval_us = US_PER_S / session->config.wall_hz;
	const uint64_t wait_us = interval_us / 2 + xorshift_next(&wall->random) % interval_us;

	wall->timer = g_timeout_add((guint)(MAX(wait_us, took_us * WALL_LOAD_MAX) / 1000), timer_due, session);
}

static gboolean timer_due(gpointer data)
{
	struct session *session = data;
	const gint64 begin_us = g_get_monotonic_time();

	session_wall_look(session, clock_ns(CLOCK_MONOTONIC));
	timer_set(session, (uint64_t)(g_get_monotonic_time() - begin_us));
	return G_SOURCE_REMOVE;
}

bool session_wall_start(struct session *session, GError **error)
{
	const struct kernel_layout *kernel = session->kernel.layout;

	if (!session_has_tasks(session) || !kernel->has_list) {
		const char *why = session_tasks_why(session) ? session_tasks_why(session)
		                  : kernel                   ? kernel->list_why
		                                             : NULL;

		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot look at the tasks that wait: %s",
		            why ? why : "tasks are not told apart");
		return false;
	}
	session->wall = g_new0(struct wall, 1);
	session->wall->random = clock_ns(CLOCK_MONOTONIC) | 1;
	session->wall->tasks = g_hash_table_new_full(NULL, NULL, NULL, g_free);
	timer_set(session, 0);
	return true;
}

void session_wall_stop(struct session *session)
{
	struct wall *wall = g_steal_pointer(&session->wall);

	if (!wall)
		return;
	g_source_remove(wall->timer);
	g_hash_table_unref(wall->tasks);
	g_free(wall);
}
