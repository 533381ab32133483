// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>

#include "cmd/command.h"
#include "tasks/task_command.h"
#include "ui/text.h"

/* Frames until one is not the scheduler's: a wait channel is found in these. */
#define WAIT_CHANNEL_DEPTH 12u

static void ps_print_json(const struct task_table *table, const json_t *guest)
{
	json_t *document = task_table_json(table, "vprof-ps", guest), *tasks = json_array();

	for (guint i = 0; i < table->rows->len; i++)
		json_array_append_new(tasks, task_row_json(g_ptr_array_index(table->rows, i)));
	json_object_set_new(document, "tasks", tasks);
	text_print_json(document, 0, stdout);
	json_decref(document);
}

static void row_print(const struct task_row *row)
{
	const uint64_t centiseconds = row->cpu_ns / 10000000;
	g_autofree char *comm = g_strdup_printf(row->kernel_thread ? "[%s]" : "%s", row->comm);
	g_autofree char *cpu = row->cpu < 0 ? g_strdup("-") : g_strdup_printf("%" PRId64, row->cpu);

	printf("%7" PRIu32 " %7" PRIu32 " %c %3s %6" PRIu64 ":%02" PRIu64 ".%02" PRIu64 " %-24s %-17s %s\n", row->pid,
	       row->tid, row->state, cpu, centiseconds / 6000, centiseconds / 100 % 60, centiseconds % 100,
	       row->wait_channel ? row->wait_channel->symbol : "-", comm, row->cgroup ? row->cgroup : "-");
}

/* The idle tasks of processors are for `vprof stack`. */
static void ps_print(const struct task_values *given, const struct task_table *table, const json_t *guest)
{
	if (given->json) {
		ps_print_json(table, guest);
		return;
	}
	printf("%7s %7s S %3s %12s %-24s %-17s %s\n", "PID", "TID", "CPU", "TIME", "WCHAN", "COMM", "CGROUP");
	for (guint i = 0; i < table->rows->len; i++) {
		const struct task_row *row = g_ptr_array_index(table->rows, i);

		if (row->pid != 0)
			row_print(row);
	}
}

static int ps_run(void *values, unsigned n, char **arguments)
{
	const struct task_wish wanted = {.depth = WAIT_CHANNEL_DEPTH};

	return task_command_run(command_ps.name, values, n, arguments, &wanted, ps_print);
}

const struct command command_ps = {
	.name = "ps",
	.summary = "List the tasks of a running guest, and what each waits for",
	.arguments = "[ENGINE|GUEST [PID|COMM]]",
	.max_arguments = 2,
	.argument_words = {"@engines @guests", ""},
	.manual = "vprof-ps",
	.description =

		"The tasks are read in the guest's memory, as they are now: nothing runs in the guest, and it is\n"
		"not stopped. It works on a Linux guest that hangs, has panicked or accepts no login.\n"
		"ENGINE is a name or process id from `vprof list`, or the path of a socket; GUEST is one of\n"
		"`vprof attach --list`. Without either, it is the only engine.\n"
		"PID or COMM, a name with * and ?, shows these tasks only.\n"
		"\n"
		"Examples:\n"
		"  vprof ps web01\n"
		"  vprof ps web01 'postgres*'\n"
		"  vprof ps web01 --json | jq '.tasks[] | select(.state == \"D\")'",
	.options = task_option_rows,
	.values_bytes = sizeof(struct task_values),
	.pages = true,
	.run = ps_run,
};
