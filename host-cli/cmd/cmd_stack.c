// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "cmd/command.h"
#include "tasks/task_command.h"
#include "tasks/task_stacks.h"
#include "ui/text.h"

static void stack_print(const struct task_values *given, const struct task_table *table, const json_t *guest)
{
	g_autoptr(GPtrArray) stacks = task_stacks_new(table);

	if (given->json) {
		json_t *document = task_table_json(table, "vprof-stack", guest);

		json_object_set_new(document, "stacks", task_stacks_json(stacks));
		text_print_json(document, 0, stdout);
		json_decref(document);
	} else {
		task_stacks_print(stacks, stdout);
	}
}

static int stack_run(void *values, unsigned n, char **arguments)
{
	return task_command_run(command_stack.name, values, n, arguments, 0, stack_print);
}

const struct command command_stack = {
	.name = "stack",
	.summary = "Show the kernel stacks of a running guest's tasks",
	.arguments = "[ENGINE|GUEST [PID|COMM]]",
	.max_arguments = 2,
	.argument_words = {"@engines @guests", ""},
	.manual = "vprof-stack",
	.description =

		"The stacks are read in the guest's memory, as they are now, as sysrq t or crash's `bt -a` shows\n"
		"them: nothing runs in the guest, and it is not stopped. It works on a Linux guest that hangs, has\n"
		"panicked or accepts no login. What runs on a vCPU comes first, then what waits for a disk (D).\n"
		"ENGINE is a name or process id from `vprof list`, or the path of a socket; GUEST is one of\n"
		"`vprof attach --list`. Without either, it is the only engine.\n"
		"PID or COMM, a name with * and ?, shows these tasks only.\n"
		"\n"
		"Examples:\n"
		"  vprof stack web01\n"
		"  vprof stack web01 1234\n"
		"  vprof stack web01 'jbd2*'",
	.options = task_option_rows,
	.values_bytes = sizeof(struct task_values),
	.pages = true,
	.run = stack_run,
};
