// SPDX-License-Identifier: BSD-2-Clause
#include "run/exec_run.h"

#include <string.h>

#include "compare/measured.h"
#include "ui/message.h"

#define SIGNAL_STATUS 128 /* as a shell */

static json_t *metrics_json(const char *run, const struct metrics *metrics)
{
	json_t *list = json_array();

	for (size_t i = 0; i < metrics_count(metrics); i++) {
		const struct metric *metric = metrics_get(metrics, i);

		if (measured_is_own(metric->name))
			warn("the command's metric \"%s\" is ignored: vprof has a metric of this name", metric->name);
		else
			json_array_append_new(list, json_pack("{s:s, s:f, s:s}", "name", metric->name, "value",
			                                      metric->value, "unit", metric->unit));
	}
	if (metrics_problem(metrics))
		warn("invalid metric in the command's output in %s: %s", run, metrics_problem(metrics));
	return list;
}

json_t *exec_run_json(const char *name, const struct vprof_agent_exited *exited, uint64_t started_ns,
                      const struct metrics *metrics)
{
	return json_pack("{s:s, s:i, s:i, s:b, s:I, s:I, s:I, s:I, s:o}", "phase", name, "status",
	                 (int)(exited->status & UINT8_MAX), "signal", (int)(exited->signal & INT8_MAX), "time-limit",
	                 exited->time_limit != 0, "wall-ns", (json_int_t)(exited->time_ns - started_ns), "user-ns",
	                 (json_int_t)exited->user_ns, "system-ns", (json_int_t)exited->system_ns, "memory-bytes",
	                 (json_int_t)exited->memory_bytes, "metrics", metrics_json(name, metrics));
}

int exec_run_status(const struct exec_plan *plan, const struct vprof_agent_exited *exited, char **message)
{
	const char *command = plan->arguments[0];
	const int status = (int)(exited->status & UINT8_MAX), number = (int)(exited->signal & INT8_MAX);

	if (exited->time_limit != 0) {
		*message = g_strdup_printf("%s was ended: its time limit of %u s is over", command,
		                           plan->time_limit_ms / 1000);
		return EXEC_STATUS_TIME_LIMIT;
	}
	if (number != 0) {
		*message = g_strdup_printf("%s was ended by signal %d (%s)", command, number, strsignal(number));
		return SIGNAL_STATUS + number;
	}
	/* A guest without --root has no other programs. */
	const char *hint = status == EXEC_STATUS_NOT_FOUND && !plan->root
	                           ? "; programs that it calls must be copied into the guest with --add"
	                           : "";

	*message = status != 0 ? g_strdup_printf("%s exited with status %d%s", command, status, hint) : NULL;
	return status;
}
