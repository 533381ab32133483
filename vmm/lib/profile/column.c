// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/column.h"

#include <string.h>

G_DEFINE_QUARK(vprof_column_error, column_error)

static int numbers_compare(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static const char *symbol_text(const struct profile_row *row)
{
	return row->symbol;
}

static int symbol_compare(const struct profile_row *a, const struct profile_row *b)
{
	return strcmp(a->symbol, b->symbol);
}

static const char *module_text(const struct profile_row *row)
{
	return row->module;
}

static int module_compare(const struct profile_row *a, const struct profile_row *b)
{
	return strcmp(a->module, b->module);
}

static const char *mode_text(const struct profile_row *row)
{
	return profile_mode_name(row->mode);
}

static int mode_compare(const struct profile_row *a, const struct profile_row *b)
{
	return numbers_compare(a->mode, b->mode);
}

static const char *event_text(const struct profile_row *row)
{
	return row->event;
}

static int event_compare(const struct profile_row *a, const struct profile_row *b)
{
	return strcmp(a->event, b->event);
}

static int64_t cpu_number(const struct profile_row *row)
{
	return row->cpu;
}

static int cpu_compare(const struct profile_row *a, const struct profile_row *b)
{
	return numbers_compare(a->cpu, b->cpu);
}

static const char *comm_text(const struct profile_row *row)
{
	return row->comm;
}

static int comm_compare(const struct profile_row *a, const struct profile_row *b)
{
	return strcmp(a->comm, b->comm);
}

static const char *state_text(const struct profile_row *row)
{
	return profile_state_name(row->state);
}

static int state_compare(const struct profile_row *a, const struct profile_row *b)
{
	return numbers_compare(a->state, b->state);
}

static const char *waker_text(const struct profile_row *row)
{
	return row->waker;
}

static int waker_compare(const struct profile_row *a, const struct profile_row *b)
{
	return strcmp(a->waker, b->waker);
}

static const char *cgroup_text(const struct profile_row *row)
{
	return row->cgroup;
}

static int cgroup_compare(const struct profile_row *a, const struct profile_row *b)
{
	return strcmp(a->cgroup, b->cgroup);
}

static const char *domain_text(const struct profile_row *row)
{
	return row->domain;
}

static int domain_compare(const struct profile_row *a, const struct profile_row *b)
{
	return strcmp(a->domain, b->domain);
}

/* VPROF_PID_UNKNOWN is -1 to people. */
static int64_t pid_number(const struct profile_row *row)
{
	return (int32_t)row->pid;
}

static int pid_compare(const struct profile_row *a, const struct profile_row *b)
{
	return numbers_compare(a->pid, b->pid);
}

static int64_t tid_number(const struct profile_row *row)
{
	return (int32_t)row->tid;
}

static int tid_compare(const struct profile_row *a, const struct profile_row *b)
{
	return numbers_compare(a->tid, b->tid);
}

static int64_t ip_number(const struct profile_row *row)
{
	return (int64_t)row->ip;
}

static int ip_compare(const struct profile_row *a, const struct profile_row *b)
{
	return numbers_compare(a->ip, b->ip);
}

const struct column columns[] = {
	{"sym", "Symbol", "symbol", symbol_compare, .text = symbol_text, .alias = "symbol"},
	{"module", "Module", "module", module_compare, .text = module_text, .alias = "dso"},
	{"mode", "Mode", "mode", mode_compare, .text = mode_text},
	{"cpu", "vCPU", "vcpu", cpu_compare, .number = cpu_number, .keys = COLUMN_KEY_CPU},
	{"event", "Event", "event", event_compare, .text = event_text},
	{"comm", "Command", "comm", comm_compare, .text = comm_text, .keys = COLUMN_KEY_TASK},
	{"state", "State", "state", state_compare, .text = state_text, .keys = COLUMN_KEY_STATE},
	{"waker", "Waker", "waker", waker_compare, .text = waker_text, .keys = COLUMN_KEY_WAKER},
	{"cgroup", "Cgroup", "cgroup", cgroup_compare, .text = cgroup_text, .keys = COLUMN_KEY_CGROUP},
	{"domain", "Domain", "domain", domain_compare, .text = domain_text},
	{"pid", "Pid", "pid", pid_compare, .number = pid_number, .keys = COLUMN_KEY_TASK},
	{"tid", "Tid", "tid", tid_compare, .number = tid_number, .keys = COLUMN_KEY_TASK},
	{"ip", "Address", "ip", ip_compare, .number = ip_number, .hexadecimal = true},
};
const size_t n_columns = G_N_ELEMENTS(columns);

static const struct column *column_find(const char *name)
{
	for (size_t i = 0; i < n_columns; i++)
		if (strcmp(columns[i].name, name) == 0 || g_strcmp0(columns[i].alias, name) == 0)
			return &columns[i];
	return NULL;
}

static bool column_list_append(struct column_list *list, const char *name, GError **error)
{
	const struct column *column = column_find(name);

	if (!column) {
		g_set_error(error, COLUMN_ERROR, COLUMN_ERROR_UNKNOWN,
		            "no column \"%s\" to sort by; there are " COLUMN_NAMES, name);
		return false;
	}
	if (column_list_has(list, column->name)) {
		g_set_error(error, COLUMN_ERROR, COLUMN_ERROR_TWICE, "column \"%s\" is named twice", name);
		return false;
	}
	list->column[list->n++] = column;
	return true;
}

/* No column twice, so a list is never longer than the table. */
_Static_assert(G_N_ELEMENTS(columns) <= COLUMN_LIST_MAX, "every column fits in a list");

bool column_list_parse(const char *text, struct column_list *list, GError **error)
{
	g_auto(GStrv) names = g_strsplit(text, ",", -1);
	struct column_list parsed = {.n = 0};

	for (size_t i = 0; names[i]; i++)
		if (!column_list_append(&parsed, names[i], error))
			return false;
	if (parsed.n == 0)
		return column_list_append(&parsed, "", error);
	*list = parsed;
	return true;
}

bool column_list_has(const struct column_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (strcmp(list->column[i]->name, name) == 0)
			return true;
	return false;
}

unsigned column_list_keys(const struct column_list *list)
{
	unsigned keys = 0;

	for (size_t i = 0; i < list->n; i++)
		keys |= list->column[i]->keys;
	return keys;
}

int column_list_compare(const struct column_list *list, const struct profile_row *a, const struct profile_row *b)
{
	for (size_t i = 0; i < list->n; i++) {
		int order = list->column[i]->compare(a, b);

		if (order != 0)
			return order;
	}
	return 0;
}
