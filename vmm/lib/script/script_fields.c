// SPDX-License-Identifier: BSD-2-Clause
/* What the clauses of a probe read in the guest's memory, as engines write it. */
#include <string.h>

#include "lib/script/script_priv.h"

#define SECTOR_BITS 9u

/*
 * What the records of trace points call fields (include/trace/events/ of Linux), and where it is in the arguments,
 * which are what a probe sees.
 */
static const struct record {
	const char *probe, *field, *path;
	unsigned shift; /* of the number there, to the right */
	bool is_rwbs;
} records[] = {
	{"sched:sched_switch", "prev_comm", "str(prev->comm)"},
	{"sched:sched_switch", "prev_pid", "prev->pid"},
	{"sched:sched_switch", "prev_prio", "prev->prio"},
	{"sched:sched_switch", "next_comm", "str(next->comm)"},
	{"sched:sched_switch", "next_pid", "next->pid"},
	{"sched:sched_switch", "next_prio", "next->prio"},
	{"sched:sched_process_fork", "parent_comm", "str(parent->comm)"},
	{"sched:sched_process_fork", "parent_pid", "parent->pid"},
	{"sched:sched_process_fork", "child_comm", "str(child->comm)"},
	{"sched:sched_process_fork", "child_pid", "child->pid"},
	{"sched:sched_process_exec", "filename", "str(bprm->filename)"},
	{"sched:sched_process_exec", "pid", "p->pid"},
	{"sched:sched_migrate_task", "orig_cpu", "p->thread_info.cpu"},
	{"sched:sched_wakeup", "target_cpu", "p->thread_info.cpu"},
	{"sched:sched_wakeup_new", "target_cpu", "p->thread_info.cpu"},
	{"sched:sched_waking", "target_cpu", "p->thread_info.cpu"},
	{"sched:sched_stat_runtime", "comm", "str(tsk->comm)"},
	{"sched:sched_stat_runtime", "pid", "tsk->pid"},
	{"sched:sched_", "comm", "str(p->comm)"},
	{"sched:sched_", "pid", "p->pid"},
	{"sched:sched_", "prio", "p->prio"},
	{"raw_syscalls:sys_enter", "args[0]", "arg0"},
	{"raw_syscalls:sys_enter", "args[1]", "arg1"},
	{"raw_syscalls:sys_enter", "args[2]", "arg2"},
	{"raw_syscalls:sys_enter", "args[3]", "arg3"},
	{"raw_syscalls:sys_enter", "args[4]", "arg4"},
	{"raw_syscalls:sys_enter", "args[5]", "arg5"},
	{"block:block_rq_", "dev", "rq->q->disk->part0->bd_dev"},
	{"block:block_rq_", "sector", "rq->__sector"},
	{"block:block_rq_", "bytes", "rq->__data_len"},
	{"block:block_rq_complete", "nr_sector", "nr_bytes", SECTOR_BITS},
	{"block:block_rq_", "nr_sector", "rq->__data_len", SECTOR_BITS},
	{"block:block_rq_", "rwbs", "rq->cmd_flags", .is_rwbs = true},
	{"block:block_bio_", "rwbs", "bio->bi_opf", .is_rwbs = true},
	{"block:block_bio_", "nr_sector", "bio->bi_iter.bi_size", SECTOR_BITS},
	{"block:block_bio_", "dev", "bio->bi_bdev->bd_dev"},
	{"block:block_bio_", "sector", "bio->bi_iter.bi_sector"},
	{"irq:irq_handler_entry", "name", "str(action->name)"},
	{"irq:softirq_", "vec", "vec_nr"},
};

/* The first row that fits; a row of several trace points ends with an underscore. NULL: none. */
static const struct record *record_find(const char *probe, const char *field)
{
	if (!g_str_has_prefix(probe, PROBE_NAME_TRACEPOINT))
		return NULL;
	for (size_t i = 0; i < G_N_ELEMENTS(records); i++) {
		const bool all = g_str_has_suffix(records[i].probe, "_");
		const char *event = probe + strlen(PROBE_NAME_TRACEPOINT);

		if (strcmp(records[i].field, field) == 0 &&
		    (all ? g_str_has_prefix(event, records[i].probe) : strcmp(event, records[i].probe) == 0))
			return &records[i];
	}
	return NULL;
}

static const char *record_path(const char *probe, const char *field)
{
	const struct record *record = record_find(probe, field);

	return record ? record->path : NULL;
}

unsigned script_path_shift(const char *probe, const char *path)
{
	const struct record *record = record_find(probe, path);

	return record ? record->shift : 0;
}

bool script_path_is_rwbs(const char *probe, const char *path)
{
	const struct record *record = record_find(probe, path);

	return record && record->is_rwbs;
}

bool clause_is_of(const struct clause *clause, const char *const *written)
{
	bool is = false;

	for (guint i = 0; i < clause->probes->len; i++)
		is |= g_strv_contains(written, g_array_index(clause->probes, struct probe_written, i).name);
	return is;
}

char *script_path_plain(const char *path)
{
	const char *cast_end = g_str_has_suffix(path, ")") ? strchr(path, ')') + 1 : path;
	const size_t n = strlen(cast_end);

	return cast_end == path ? g_strdup(path) : g_strndup(cast_end, n - (n > 0));
}

char *script_path_field(const char *probe, const char *path, bool in_str)
{
	const char *record = record_path(probe, path);

	if (!record && (!strpbrk(path, ".>[(") || (path[0] == '(' && g_str_has_suffix(path, ")"))))
		return NULL;
	if (record && (!in_str || g_str_has_prefix(record, "str(")))
		return g_strdup(record);
	return in_str ? g_strdup_printf("str(%s)", record ? record : path) : g_strdup(path);
}

struct finding {
	const char *probe;
	GPtrArray *fields;
};

static void find(const struct finding *finding, const struct script_node *node, bool in_str)
{
	for (; node; node = node->next) {
		char *field = node->kind == NODE_PATH ? script_path_field(finding->probe, node->text, in_str) : NULL;
		const bool is_str = node->kind == NODE_CALL && strcmp(node->text, "str") == 0;

		if (field && !g_ptr_array_find_with_equal_func(finding->fields, field, g_str_equal, NULL))
			g_ptr_array_add(finding->fields, g_steal_pointer(&field));
		g_free(field);
		find(finding, node->a, false);
		find(finding, node->b, false);
		find(finding, node->c, false);
		find(finding, node->first, is_str);
		find(finding, node->second, false);
	}
}

char **script_fields(const struct script *script, const char *const *written, const char *name)
{
	struct finding finding = {name, g_ptr_array_new()};

	for (guint i = 0; i < script->clauses->len; i++) {
		const struct clause *clause = g_ptr_array_index(script->clauses, i);

		if (!clause_is_of(clause, written))
			continue;
		find(&finding, clause->predicate, false);
		find(&finding, clause->statements, false);
	}
	g_ptr_array_add(finding.fields, NULL);
	return (char **)g_ptr_array_free(finding.fields, FALSE);
}
