// SPDX-License-Identifier: BSD-2-Clause
#include "sample/counter_table.h"

#include "sample/client_counter.h"

struct counter_table {
	struct session *session;
	struct client_counter *counters[COUNTERS_MAX]; /* NULL: free, or disabled */
	bool disabled[COUNTERS_MAX];
};

struct counter_table *counter_table_new(struct session *session)
{
	struct counter_table *table = g_new0(struct counter_table, 1);

	table->session = session;
	return table;
}

static void release(struct counter_table *table, unsigned number)
{
	client_counter_free(g_steal_pointer(&table->counters[number]));
}

void counter_table_free(struct counter_table *table)
{
	if (!table)
		return;
	for (unsigned i = 0; i < COUNTERS_MAX; i++)
		release(table, i);
	g_free(table);
}

/* The first free number. */
static bool find_free(const struct counter_table *table, unsigned *number, GError **error)
{
	for (unsigned i = 0; i < COUNTERS_MAX; i++) {
		if (table->counters[i] || table->disabled[i])
			continue;
		*number = i;
		return true;
	}
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_BUSY,
	            "cannot allocate a counter: all %u are in use or disabled; query-counters shows their owners",
	            COUNTERS_MAX);
	return false;
}

bool counter_allocate(struct counter_table *table, const struct counter_owner *owner,
                      const struct counter_request *request, unsigned *number, GError **error)
{
	unsigned free;

	if (!find_free(table, &free, error))
		return false;
	table->counters[free] = client_counter_new(table->session, free, owner, request, error);
	if (!table->counters[free])
		return false;
	*number = free;
	return true;
}

/* The counter with this number, if it belongs to `key`. */
static struct client_counter *find(const struct counter_table *table, const void *key, unsigned number, GError **error)
{
	struct client_counter *counter = number < COUNTERS_MAX ? table->counters[number] : NULL;

	if (!counter) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE, "counter %u is not allocated", number);
		return NULL;
	}
	if (counter->owner.key != key) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_DENIED,
		            "counter %u belongs to another client (pid %d, uid %u)", number, counter->owner.pid,
		            counter->owner.uid);
		return NULL;
	}
	return counter;
}

bool counter_release(struct counter_table *table, const void *key, unsigned number, GError **error)
{
	if (!find(table, key, number, error))
		return false;
	release(table, number);
	return true;
}

void counter_release_all(struct counter_table *table, const void *key)
{
	for (unsigned i = 0; i < COUNTERS_MAX; i++)
		if (table->counters[i] && table->counters[i]->owner.key == key)
			release(table, i);
}

bool counter_start(struct counter_table *table, const void *key, unsigned number, GError **error)
{
	struct client_counter *counter = find(table, key, number, error);

	return counter && client_counter_start(counter, error);
}

bool counter_stop(struct counter_table *table, const void *key, unsigned number, GError **error)
{
	struct client_counter *counter = find(table, key, number, error);

	if (!counter)
		return false;
	if (counter->state != COUNTER_RUNNING) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE, "cannot stop counter %u: it is not running",
		            number);
		return false;
	}
	client_counter_stop(counter);
	return true;
}

bool counters_resume_stalled(struct counter_table *table)
{
	bool any = false;

	for (unsigned i = 0; i < COUNTERS_MAX; i++) {
		struct client_counter *counter = table->counters[i];

		if (!counter || counter->state != COUNTER_RUNNING || !counter->request.stall)
			continue;
		client_counter_resume_stalled(counter);
		any = true;
	}
	return any;
}

/* The counter with this number, if it belongs to `key` and is not running. */
static struct client_counter *find_at_rest(const struct counter_table *table, const void *key, unsigned number,
                                           GError **error)
{
	struct client_counter *counter = find(table, key, number, error);

	if (!counter || counter->state != COUNTER_RUNNING)
		return counter;
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_BUSY,
	            "cannot change counter %u while it is running; stop it first", number);
	return NULL;
}

bool counter_write(struct counter_table *table, const void *key, unsigned number, uint64_t value, GError **error)
{
	struct client_counter *counter = find_at_rest(table, key, number, error);

	return counter && client_counter_write(counter, value, error);
}

bool counter_set_rate(struct counter_table *table, const void *key, unsigned number, const struct counter_rate *rate,
                      GError **error)
{
	struct client_counter *counter = find_at_rest(table, key, number, error);

	return counter && client_counter_set_rate(counter, rate, error);
}

bool counter_attach(struct counter_table *table, const void *key, unsigned number, const struct task_target *target,
                    GError **error)
{
	struct client_counter *counter = find(table, key, number, error);

	return counter && client_counter_attach(counter, target, error);
}

bool counter_detach(struct counter_table *table, const void *key, unsigned number, const struct task_target *target,
                    GError **error)
{
	struct client_counter *counter = find(table, key, number, error);

	return counter && client_counter_detach(counter, target, error);
}

bool counter_read(struct counter_table *table, const void *key, unsigned number, struct counter_value *values,
                  GError **error)
{
	struct client_counter *counter = find(table, key, number, error);

	if (!counter)
		return false;
	client_counter_read(counter, values);
	return true;
}

bool counter_descriptors(struct counter_table *table, const void *key, unsigned number,
                         struct counter_descriptors *descriptors, GError **error)
{
	struct client_counter *counter = find(table, key, number, error);

	return counter && client_counter_descriptors(counter, descriptors, error);
}

static bool set_disabled(struct counter_table *table, unsigned number, bool disabled, GError **error)
{
	const char *what = disabled ? "disable" : "enable";

	if (number >= COUNTERS_MAX) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE, "cannot %s counter %u: the numbers are 0 to %u",
		            what, number, COUNTERS_MAX - 1);
		return false;
	}
	const struct client_counter *counter = table->counters[number];

	if (counter) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_BUSY,
		            "cannot %s counter %u: it belongs to a client (pid %d, uid %u)", what, number,
		            counter->owner.pid, counter->owner.uid);
		return false;
	}
	table->disabled[number] = disabled;
	return true;
}

bool counter_disable(struct counter_table *table, unsigned number, GError **error)
{
	return set_disabled(table, number, true, error);
}

bool counter_enable(struct counter_table *table, unsigned number, GError **error)
{
	return set_disabled(table, number, false, error);
}

void counter_info_get(const struct counter_table *table, unsigned number, struct counter_info *info)
{
	const struct client_counter *counter = table->counters[number];

	if (!counter) {
		*info = (struct counter_info){.state = table->disabled[number] ? COUNTER_DISABLED : COUNTER_FREE};
		return;
	}
	*info = (struct counter_info){
		.state = counter->state,
		.owner = counter->owner,
		.request = &counter->request,
		.targets = &counter->targets,
	};
}

bool counter_rings_check(const struct counter_table *table, const void *key, unsigned number, GError **error)
{
	const struct client_counter *counter = find(table, key, number, error);

	if (!counter || counter_has_rings(&counter->request))
		return counter != NULL;
	g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
	            "counter %u has no rings, because it counts; use counter-read", number);
	return false;
}

void counter_attr(const struct counter_table *table, unsigned number, struct perf_event_attr *attr)
{
	const struct client_counter *counter = table->counters[number];
	struct session_config config = counter->config;

	config.rate = counter->request.rate;
	session_config_attr(&config, counter->kernel->groups && !counter->request.per_switch, 0, attr);
	attr->inherit_stat = counter->request.per_switch;
}

const char *counter_unwinder(const struct counter_table *table, unsigned number)
{
	const struct client_counter *counter = table->counters[number];

	if (!session_config_has_chains(&counter->config))
		return NULL;
	return counter->unwind.tables ? "orc" : "fp";
}

struct ring *counter_ring(const struct counter_table *table, unsigned number, unsigned vcpu)
{
	return table->counters[number]->rings[vcpu];
}
