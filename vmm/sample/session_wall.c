// SPDX-License-Identifier: BSD-2-Clause
#include "sample/session_wall.h"

#include <string.h>

#include "lib/record/clock.h"
#include "lib/record/xorshift.h"
#include "sample/sampler_priv.h"
#include "sample/session_priv.h"
#include "sample/wait_sample.h"
#include "stream/statistics.h"

/* For so long, vCPU 0 is kept out of the guest at once: so many samples that are repeated, or fewer that are not. */
#define BATCH 1024u
#define WALKS 32u /* stacks that are walked in as long as BATCH samples are repeated */
#define US_PER_S UINT64_C(1000000)

/* How often at most: what is not of the stack may have changed, such as the cgroup, or tables may have come. */
#define REPEATS_MAX 64u

/* The sample of a task, which stands as long as the task has not run. */
struct kept {
	uint64_t switches, stack_pointer;
	char state;
	unsigned repeats, n_tables;
	struct vprof_wait facts;
	struct record_sample sample;
	uint64_t chain[];
};

/* A task as it was looked at last. */
struct seen {
	uint64_t start_time, cpu_ns, time_ns;
	unsigned look;
	struct kept *kept; /* NULL: none */
};

/* A sample that was just made, with room for any chain. */
struct made {
	struct record_sample sample; /* chain: NULL: none was made */
	struct vprof_wait facts;
	uint64_t chain[SAMPLER_CHAIN_MAX];
};

struct wall {
	uint64_t random;
	guint timer;
	unsigned look;     /* number of this one */
	GHashTable *tasks; /* of struct seen, by the address of the task_struct */
	guint next;        /* number of the task in the list with which the next look goes on */
	struct made made[WALKS];
};

/* What is to be sampled. */
struct turn {
	const struct listed_task *task;
	struct seen *seen;
	struct made *made; /* NULL: the sample that is kept is repeated */
};

/* One look. */
struct looker {
	struct session *session;
	const struct os_kernel *kernel;
	struct page_walk walk; /* by the kernel's own tables */
	uint64_t area;         /* of any processor; 0: not known */
	uint64_t now_ns;
	unsigned n_tables;
	struct turn batch[BATCH];
	unsigned n_batch, n_walks;
	unsigned n_taken;
};

/* A sample of a task, and what it was made of. */
struct wall_sample {
	struct counter_sample sample; /* first */
	struct looker *looker;
	const struct turn *turn;
	bool torn;
};

/* ---- a task ---- */

/* Called once the chain was read. */
static bool task_stands(const struct counter_sample *sample)
{
	struct wall_sample *wall = (struct wall_sample *)sample;
	const struct os_kernel *kernel = wall->looker->kernel;
	struct page_walk walk = wall->looker->walk;

	wall->torn = !kernel->list->sleeps_on(kernel, &walk, wall->turn->task);
	return !wall->torn;
}

static void task_written(const struct counter_sample *sample, const struct record_sample *record)
{
	struct made *made = ((const struct wall_sample *)sample)->turn->made;

	made->sample = *record;
	made->sample.chain = made->chain;
	made->sample.raw = &made->facts;
	memcpy(made->chain, record->chain, record->n_chain * sizeof(*made->chain));
}

/* ---- samples: on the thread of vCPU 0, if it is ours ---- */

/* False when it was dropped. */
static bool task_walk(struct looker *looker, struct sampler *sampler, const struct turn *turn, uint64_t period_ns)
{
	const struct listed_task *task = turn->task;
	struct wall_sample wall = {.looker = looker, .turn = turn};
	struct vprof_wait *facts = &turn->made->facts;
	struct page_walk walk;
	struct os_lock lock;
	struct task owner;
	struct frame frame;

	turn->made->sample.chain = NULL;
	if (!wait_frame_find(looker->kernel, &looker->session->kernel.unwind, &looker->walk, task, &frame)) {
		statistic_add(&sampler->statistics.wall_no_frame, 1);
		return false;
	}
	/* Its own address space, for the part of its chain in user space. */
	looker->kernel->tasks->space(looker->kernel, &looker->walk, &task->task, &walk);
	wall.sample = wait_sample(&task->task, wait_state(task->state), &frame, &walk);
	wall.sample.overflow =
		(struct counter_overflow){.event = session_config_wall(&looker->session->config), .period = period_ns};
	wall.sample.time_ns = looker->now_ns;
	wall.sample.area = looker->area;
	wait_lock_find(looker->kernel, &looker->walk, task, &lock, &owner);
	*facts = (struct vprof_wait){
		.lock_kind = lock.kind, .lock = lock.lock, .owner_pid = owner.pid, .owner_tid = owner.tid};
	const struct counter_wait wait = {.facts = facts, .owner = owner.address != 0 ? &owner : NULL};

	wall.sample.wait = &wait;
	wall.sample.stands = task_stands;
	wall.sample.written = task_written;
	return sampler_take_waiting(sampler, &wall.sample) && !wall.torn;
}

static bool task_repeat(struct looker *looker, struct sampler *sampler, const struct kept *kept, uint64_t period_ns)
{
	struct record_sample sample = kept->sample;

	sample.time_ns = looker->now_ns;
	sample.period = period_ns;
	return sampler_take_again(sampler, &sample);
}

static void turn_take(struct looker *looker, struct sampler *sampler, const struct turn *turn)
{
	struct seen *seen = turn->seen;
	const uint64_t waited_ns = looker->now_ns - seen->time_ns, cpu_ns = turn->task->cpu_ns - seen->cpu_ns;

	if (cpu_ns >= waited_ns)
		return;
	if (turn->made ? !task_walk(looker, sampler, turn, waited_ns - cpu_ns)
	               : !task_repeat(looker, sampler, seen->kept, waited_ns - cpu_ns))
		return;
	looker->n_taken++;
	seen->time_ns = looker->now_ns;
	seen->cpu_ns = turn->task->cpu_ns;
}

static void batch_take(void *data)
{
	struct looker *looker = data;
	struct sampler *sampler = &looker->session->samplers[0];

	for (unsigned i = 0; i < looker->n_batch; i++)
		turn_take(looker, sampler, &looker->batch[i]);
}

/* ---- samples that are kept: on the main thread, which may allocate ---- */

static void turn_keep(const struct looker *looker, const struct turn *turn)
{
	const struct made *made = turn->made;
	const size_t chain_bytes = made && made->sample.chain ? made->sample.n_chain * sizeof(*made->chain) : 0;

	if (!made) {
		turn->seen->kept->repeats++;
		return;
	}
	g_clear_pointer(&turn->seen->kept, g_free);
	/* A lock may go from one task to another, while those that wait for it do not run. */
	if (!made->sample.chain || made->facts.owner_tid != 0)
		return;
	struct kept *kept = g_malloc(sizeof(*kept) + chain_bytes);

	*kept = (struct kept){.switches = turn->task->switches,
	                      .stack_pointer = turn->task->stack_pointer,
	                      .state = turn->task->state,
	                      .n_tables = looker->n_tables,
	                      .sample = made->sample};
	memcpy(kept->chain, made->chain, chain_bytes);
	kept->facts = made->facts;
	kept->sample.chain = kept->chain;
	kept->sample.raw = &kept->facts;
	turn->seen->kept = kept;
}

static bool is_kept(const struct looker *looker, const struct listed_task *task, const struct kept *kept)
{
	return kept && kept->switches == task->switches && kept->stack_pointer == task->stack_pointer &&
	       kept->state == task->state && kept->n_tables == looker->n_tables && kept->repeats < REPEATS_MAX;
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
	for (unsigned i = 0; i < looker->n_batch; i++)
		turn_keep(looker, &looker->batch[i]);
	looker->n_batch = looker->n_walks = 0;
}

static void batch_add(struct looker *looker, const struct listed_task *task, struct seen *seen)
{
	struct turn *turn = &looker->batch[looker->n_batch++];

	*turn = (struct turn){.task = task, .seen = seen};
	if (!is_kept(looker, task, seen->kept))
		turn->made = &looker->session->wall->made[looker->n_walks++];
	if (looker->n_batch + looker->n_walks * (BATCH / WALKS - 1) > BATCH - BATCH / WALKS)
		batch_flush(looker);
}

/* ---- a look ---- */

static void seen_free(gpointer data)
{
	struct seen *seen = data;

	g_free(seen->kept);
	g_free(seen);
}

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
	unsigned n = 0, later = 0;

	wall->next = 0;
	for (guint i = 0; i < tasks->len; i++) {
		const guint number = (first + i) % tasks->len;
		const struct listed_task *task = &g_array_index(tasks, struct listed_task, number);
		struct seen *seen = seen_find(looker, task);

		if (!task->on_cpu && !wait_is_shown(task, task->state, looker->session->config.idle_threads)) {
			/* What comes next is not of this time. */
			seen->time_ns = looker->now_ns;
			seen->cpu_ns = task->cpu_ns;
		}
		if (task->on_cpu || seen->time_ns == looker->now_ns)
			continue;
		if (n == WALL_SAMPLES_MAX) {
			later++;
			continue;
		}
		batch_add(looker, task, seen);
		if (++n == WALL_SAMPLES_MAX)
			wall->next = number + 1;
	}
	batch_flush(looker);
	statistic_add(&looker->session->samplers[0].statistics.wall_later, later);
}

static bool looker_open(struct looker *looker, struct session *session, uint64_t now_ns)
{
	looker->session = session;
	looker->kernel = session->kernel.layout;
	looker->now_ns = now_ns;
	/* After a reset, it may be another kernel, of which nothing is known yet. */
	if (session->suspended || !looker->kernel || !looker->kernel->list ||
	    !session_kernel_walk(session, &looker->walk))
		return false;
	if (session->tables)
		looker->n_tables = table_store_count(session->tables);
	looker->area = looker->kernel->tasks->any_area(looker->kernel, &looker->walk);
	return true;
}

/* A pause is no time of the guest's: nothing waits in it. */
static void time_pass_over(const struct wall *wall, uint64_t now_ns)
{
	GHashTableIter iter;
	void *value;

	g_hash_table_iter_init(&iter, wall->tasks);
	while (g_hash_table_iter_next(&iter, NULL, &value))
		((struct seen *)value)->time_ns = now_ns;
}

unsigned session_wall_look(struct session *session, uint64_t now_ns)
{
	g_autofree struct looker *looker = g_new0(struct looker, 1);
	struct sampler *sampler = &session->samplers[0];
	struct wall *wall = session->wall;
	struct task_list list;

	if (session->guest->pause) {
		time_pass_over(wall, now_ns);
		return 0;
	}
	statistic_add(&sampler->statistics.wall_looks, 1);
	if (!looker_open(looker, session, now_ns)) {
		statistic_add(&sampler->statistics.wall_broken, 1);
		return 0;
	}
	looker->kernel->list->read(looker->kernel, &looker->walk, &list);
	statistic_add(&sampler->statistics.wall_broken, list.end != TASK_LIST_WHOLE);
	wall->look++;
	tasks_take(looker, list.tasks);
	/* What a list that is torn lacks may be there the next time. */
	if (list.end == TASK_LIST_WHOLE)
		g_hash_table_foreach_remove(wall->tasks, seen_is_old, wall);
	task_list_clear(&list);
	return looker->n_taken;
}

void session_wall_forget(struct session *session)
{
	if (session->wall)
		g_hash_table_remove_all(session->wall->tasks);
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
	const struct os_kernel *kernel = session->kernel.layout;

	if (!session_has_tasks(session) || !kernel->list) {
		const char *why = session_tasks_why(session) ? session_tasks_why(session)
		                  : kernel                   ? kernel->why[OS_LIST]
		                                             : NULL;

		g_set_error(error, SESSION_ERROR, SESSION_ERROR_UNSUPPORTED, "cannot look at the tasks that wait: %s",
		            why ? why : "tasks are not told apart");
		return false;
	}
	session->wall = g_new0(struct wall, 1);
	session->wall->random = clock_ns(CLOCK_MONOTONIC) | 1;
	session->wall->tasks = g_hash_table_new_full(NULL, NULL, NULL, seen_free);
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
