// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "cmd/command.h"
#include "tasks/task_command.h"
#include "tasks/task_stacks.h"
#include "ui/message.h"
#include "ui/text.h"

struct stack_values {
	struct task_values tasks; /* first */
	char *symfs;
	gboolean no_user;
};

static const struct option_row stack_option_rows[] = {
	{"no-user", OPTION_FLAG, offsetof(struct stack_values, no_user), "end stacks at the entry to the kernel", NULL},
	{"symfs", OPTION_FILE, offsetof(struct stack_values, symfs),
         "take the guest's programs from the same paths below DIR", "DIR"},
	OPTION_ROWS(task_option_rows, struct stack_values, tasks),
	{NULL},
};

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
	const struct stack_values *given = values;
	const struct task_wish wanted = {.user = !given->no_user, .user_files.symfs = given->symfs};

	if (given->symfs && !g_file_test(given->symfs, G_FILE_TEST_IS_DIR))
		return usage_error(command_stack.name, "--symfs: there is no folder %s", given->symfs);
	return task_command_run(command_stack.name, &given->tasks, n, arguments, &wanted, stack_print);
}

const struct command command_stack = {
	.name = "stack",
	.summary = "Show the stacks of a running guest's tasks",
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
		"Programs are unwound and named by their files below --symfs, or by what the guest has of them in\n"
		"memory.\n"
		"\n"
		"Examples:\n"
		"  vprof stack web01\n"
		"  vprof stack web01 1234\n"
		"  vprof stack web01 'jbd2*'",
	.options = stack_option_rows,
	.values_bytes = sizeof(struct stack_values),
	.pages = true,
	.run = stack_run,
};
