// SPDX-License-Identifier: BSD-2-Clause
#include "tasks/task_command.h"

#include "tasks/task_samples.h"
#include "ui/message.h"

const struct option_row task_option_rows[] = {
	{"dump", OPTION_FILE, offsetof(struct task_values, engine.dump),
         "read FILE, of `virsh dump --memory-only`, instead of a guest that runs", "FILE"},
	{"json", OPTION_FLAG, offsetof(struct task_values, json), "print a JSON object", NULL},
	OPTION_ROWS(attach_engine_option_rows, struct task_values, engine),
	{NULL},
};

int task_command_run(const char *command, const struct task_values *given, unsigned n, char **arguments,
                     const struct task_wish *wanted,
                     void (*print)(const struct task_values *given, const struct task_table *table,
                                   const json_t *guest))
{
	const bool named = given->engine.pid == 0 && !given->engine.dump;
	const char *name = named && n > 0 ? arguments[0] : NULL;
	const unsigned first = named ? 1 : 0;
	struct task_wish wish = *wanted;
	g_autoptr(GError) error = NULL;
	struct guest_engine engine;
	int status = STATUS_FAILED;
	struct task_table *table = NULL;

	wish.who = n > first ? arguments[first] : NULL;
	if (n > first + 1)
		return usage_error(command, "unexpected argument \"%s\": %s says which guest", arguments[first + 1],
		                   given->engine.dump ? "--dump" : "--pid");
	if (guest_engine_open(&engine, &given->engine, name, &status, &error))
		table = task_table_new(&engine, &wish, &error);
	if (table && wish.depth == 0 && table->unseen != 0 && engine.own)
		task_samples_add(table, &engine);
	if (table && !task_table_name(table, &engine, given->engine.kernel, &error)) {
		task_table_free(table);
		table = NULL;
	}
	if (table && table->rows->len == 0 && wish.who)
		say("the guest has no task \"%s\"; give a process id, or a name with * and ?", wish.who);
	else if (table)
		print(given, table, engine.guest);
	if (table) {
		task_table_say_missing(table, wish.depth == 0);
		status = table->rows->len == 0 ? STATUS_FAILED : STATUS_OK;
	}
	task_table_free(table);
	guest_engine_close(&engine);
	return error ? guest_engine_failure(command, status, error) : status;
}
