// SPDX-License-Identifier: BSD-2-Clause
/* query-tasks */
#include "control/method_priv.h"
#include "lib/record/hex.h"
#include "sample/session_tasks.h"

/* What a line has room for besides its tasks; and the largest task: a path and a comm with \u00XX, and a chain. */
#define ANSWER_BYTES_MAX (VPROF_CONTROL_LINE_BYTES_MAX - 1024u)
#define MAPPINGS_MAX 8u
#define MAPPING_BYTES_MAX (6u * OS_FILE_NAME_BYTES + 256u)
#define PYTHONS_MAX 40u
#define PYTHON_BYTES_MAX                                                                            \
	(2u * PYTHON_NAME_BYTES + 64u) /* of printable characters, a quote or backslash has another \
	                                */
_Static_assert(UNWIND_CHAIN_MAX * 21u + 6u * OS_GROUP_PATH_BYTES + MAPPINGS_MAX * MAPPING_BYTES_MAX +
                               PYTHONS_MAX * PYTHON_BYTES_MAX + 1024u <
                       ANSWER_BYTES_MAX,
               "a task fits into a line");

static const char *const end_names[UNWIND_ENDS] = {
	[UNWIND_END_OF_STACK] = "whole", [UNWIND_BAD_FRAME] = "bad-frame",   [UNWIND_NO_ENTRY] = "no-entry",
	[UNWIND_DEPTH] = "depth",        [UNWIND_UNREADABLE] = "unreadable", [UNWIND_NO_STACK] = "no-stack",
	[UNWIND_NO_FORM] = "no-form",
};

static const char *const list_ends[] = {
	[TASK_LIST_WHOLE] = "whole",
	[TASK_LIST_BROKEN] = "broken",
	[TASK_LIST_LIMIT] = "limit",
};

bool control_task_targets(const json_t *arguments, struct task_targets *targets, GError **error)
{
	const json_t *pid = json_object_get(arguments, "pid"), *comm = json_object_get(arguments, "comm");
	struct task_target *target = &targets->targets[0];

	if (pid && comm) {
		g_set_error_literal(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		                    "\"pid\" and \"comm\" exclude each other; give one");
		return false;
	}
	targets->n = pid || comm ? 1 : 0;
	target->kind = pid ? TASK_TARGET_PID : TASK_TARGET_COMM;
	target->pid = (uint32_t)json_integer_value(pid);
	if (comm)
		g_strlcpy(target->comm, json_string_value(comm), sizeof(target->comm));
	return true;
}

/* A new look in place of the last one. */
static bool look_begin(struct control_call *call, GError **error)
{
	const json_t *depth = json_object_get(call->arguments, "depth");
	struct control_server *server = call->server;
	struct task_targets targets = {0};
	struct task_look_config config = {.depth = depth ? (unsigned)json_integer_value(depth) : UNWIND_DEPTH_DEFAULT};

	if (!control_task_targets(call->arguments, &targets, error))
		return false;
	config.user = json_is_true(json_object_get(call->arguments, "user"));
	if (targets.n > 0)
		config.targets = &targets;
	struct task_look *look = task_look_new(server->session, &config, error);

	if (!look)
		return false;
	task_look_free(server->look);
	server->look = look;
	server->look_number++;
	return true;
}

/* Whether the look that the client reads on in is still there. */
static bool look_continue(const struct control_call *call, json_int_t number, GError **error)
{
	if (call->server->look && (uint64_t)number == call->server->look_number)
		return true;
	g_set_error_literal(
		error, CONTROL_ERROR, CONTROL_ERROR_STATE,
		"that look at the tasks is over: it was read to its end, or there is a newer one; look again");
	return false;
}

static json_t *chain_json(const struct task_look *look, const struct looked_task *task)
{
	json_t *chain = json_array();

	for (size_t i = 0; i < task->n_chain; i++)
		json_array_append_new(chain, control_hex_address(look->words[task->chain + i]));
	return chain;
}

static json_t *mapping_json(const struct looked_mapping *mapping)
{
	g_autofree char *build_id = hex_encode(mapping->build_id, mapping->build_id_bytes);

	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:b}", "start", control_hex_address(mapping->start), "end",
	                 control_hex_address(mapping->end), "file-offset", control_hex_address(mapping->file_offset),
	                 "file", control_text(mapping->file, OS_FILE_NAME_BYTES), "build-id",
	                 mapping->build_id_bytes ? json_string(build_id) : json_null(), "table", mapping->has_table);
}

/* Those of its process that the chain leads through. */
static json_t *mappings_json(const struct task_look *look, const struct looked_task *task)
{
	const struct looked_mapping *added[MAPPINGS_MAX], *mapping;
	json_t *mappings = json_array();
	size_t n = 0, k;

	for (size_t i = 0; look->code && i < task->n_chain && n < MAPPINGS_MAX; i++) {
		mapping = looked_code_find(look->code, task->listed.task.mm, look->words[task->chain + i]);
		for (k = 0; k < n && added[k] != mapping; k++)
			;
		if (!mapping || k < n)
			continue;
		added[n++] = mapping;
		json_array_append_new(mappings, mapping_json(mapping));
	}
	return mappings;
}

/* Addresses of the chain that are in code objects of Python. */
static json_t *pythons_json(const struct task_look *look, const struct looked_task *task)
{
	json_t *pythons = json_array();

	for (size_t i = 0; look->code && i < task->n_chain && json_array_size(pythons) < PYTHONS_MAX; i++) {
		const uint64_t ip = look->words[task->chain + i];
		const char *name = looked_code_find_python(look->code, task->listed.task.mm, ip);

		if (name)
			json_array_append_new(pythons,
			                      json_pack("{s:o, s:s}", "ip", control_hex_address(ip), "name", name));
	}
	return pythons;
}

static json_t *task_json(const struct task_look *look, const struct looked_task *task)
{
	const struct listed_task *listed = &task->listed;
	const char state[] = {listed->state, '\0'};

	return json_pack("{s:I, s:I, s:o, s:s, s:o, s:I, s:b, s:o, s:o, s:s, s:o, s:o, s:o}", "pid",
	                 (json_int_t)listed->task.pid, "tid", (json_int_t)listed->task.tid, "comm",
	                 control_text(listed->task.comm, TASK_COMM_BYTES), "state", state, "cpu",
	                 task->runs ? json_integer(listed->cpu) : json_null(), "cpu-ns",
	                 (json_int_t)(listed->cpu_ns & INT64_MAX), "kernel-thread", listed->kernel_thread, "cgroup",
	                 control_text(task->cgroup, OS_GROUP_PATH_BYTES), "wait-channel",
	                 task->wait_channel ? control_hex_address(task->wait_channel) : json_null(), "chain-end",
	                 end_names[task->end], "chain", chain_json(look, task), "mappings", mappings_json(look, task),
	                 "python", pythons_json(look, task));
}

/* As many tasks from `from` on as a line has room for; returns the number of the first that is left. */
static guint tasks_add(const struct task_look *look, guint from, json_t *tasks)
{
	size_t bytes = 0;

	for (; from < look->tasks->len; from++) {
		json_t *task = task_json(look, &g_array_index(look->tasks, struct looked_task, from));

		bytes += json_dumpb(task, NULL, 0, JSON_COMPACT) + 1;
		if (bytes > ANSWER_BYTES_MAX) {
			json_decref(task);
			break;
		}
		json_array_append_new(tasks, task);
	}
	return from;
}

static json_t *method_query_tasks(struct control_call *call, GError **error)
{
	const json_t *number = json_object_get(call->arguments, "look");
	const json_int_t from = json_integer_value(json_object_get(call->arguments, "from"));
	struct control_server *server = call->server;
	json_t *tasks, *answer;
	guint next;

	if (number ? !look_continue(call, json_integer_value(number), error) : !look_begin(call, error))
		return NULL;
	const struct task_look *look = server->look;

	tasks = json_array();
	next = tasks_add(look, (guint)MIN(from, look->tasks->len), tasks);
	const bool more = next < look->tasks->len;

	answer = json_pack("{s:I, s:o, s:I, s:o, s:s, s:s, s:I, s:I, s:I}", "look", (json_int_t)server->look_number,
	                   "tasks", tasks, "total", (json_int_t)look->tasks->len, "next",
	                   more ? json_integer(next) : json_null(), "list", list_ends[look->end], "unwinder",
	                   look->orc ? "orc" : "fp", "torn", (json_int_t)look->torn, "late", (json_int_t)look->late,
	                   "unseen", (json_int_t)look->unseen);
	if (!more)
		g_clear_pointer(&server->look, task_look_free);
	return answer;
}

/* ---- the method ---- */

static const struct method_argument query_tasks_arguments[] = {
	{"pid", "a process of the guest, with all its threads; by default, all tasks", ARGUMENT_INTEGER,
         .optional = true, .min = 0, .max = UINT32_MAX},
	{"comm", "tasks by name; * matches any characters, ? matches one", ARGUMENT_STRING, .optional = true, .min = 1,
         .max = TASK_GLOB_BYTES - 1},
	{"depth", "frames of a call chain; by default, 64", ARGUMENT_INTEGER, .optional = true, .min = 1,
         .max = UNWIND_DEPTH_MAX},
	{"user", "whether chains go on into user space", ARGUMENT_BOOLEAN, .optional = true, .preset = "false"},
	{"look", "read on in this look; by default, look anew", ARGUMENT_INTEGER, .optional = true, .min = 1,
         .max = INT64_MAX},
	{"from", "with look: the member next of the answer before", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = TASK_LIST_MAX},
	{0},
};

static const struct method_member mapping_members[] = {
	{"start", "first address", MEMBER_ADDRESS},
	{"end", "address behind it", MEMBER_ADDRESS},
	{"file-offset", "of the first byte", MEMBER_ADDRESS},
	{"file", "path, or name of what has none", MEMBER_STRING},
	{"build-id", "hexadecimal digits", MEMBER_STRING, .nullable = true},
	{"table", "whether it has an unwind table", MEMBER_BOOLEAN},
	{0},
};

static const struct method_member python_members[] = {
	{"ip", "the address in the chain", MEMBER_ADDRESS},
	{"name", "py::NAME:FILE: of the function, and the path that it was compiled from", MEMBER_STRING},
	{0},
};

static const struct method_member task_members[] = {
	{"pid", "process id in the guest; 0: the idle task of a processor, while it runs", MEMBER_INTEGER},
	{"tid", "thread id in the guest", MEMBER_INTEGER},
	{"comm", "name of the thread", MEMBER_STRING},
	{"state", "one letter: R, S, D, T, t, X, Z, P or I, as ps(1) has them", MEMBER_STRING},
	{"cpu", "the guest's processor on which it runs; null: it does not run", MEMBER_INTEGER, .nullable = true},
	{"cpu-ns", "CPU time that it has used, up to its last timer tick", MEMBER_INTEGER},
	{"kernel-thread", "whether it has no user space", MEMBER_BOOLEAN},
	{"cgroup", "path of its cgroup", MEMBER_STRING, .nullable = true},
	{"wait-channel", "where in the kernel it waits: the first address that is not the scheduler's", MEMBER_ADDRESS,
         .nullable = true},
	{"chain-end", "why the chain is no longer: whole, or the cause as statistics name it", MEMBER_STRING},
	{"chain", "innermost first, as PERF_SAMPLE_CALLCHAIN; empty: it is not known, or the task has ended",
         MEMBER_ADDRESSES},
	{"mappings", "code that the chain leads through; 8 at most", MEMBER_OBJECTS, .members = mapping_members},
	{"python", "frames of the chain that are CPython's own; 40 at most", MEMBER_OBJECTS, .members = python_members},
	{0},
};

static const struct method_member tasks_members[] = {
	{"look", "number of this look", MEMBER_INTEGER},
	{"tasks", "as many as an answer has room for", MEMBER_OBJECTS, .members = task_members},
	{"total", "number of tasks in this look", MEMBER_INTEGER},
	{"next", "where to read on; null: that was all, and the look is over", MEMBER_INTEGER, .nullable = true},
	{"list", "how the list of tasks ended: whole; broken: it changed meanwhile; limit: there are more than 65536",
         MEMBER_STRING},
	{"unwinder", "how chains are found: orc or fp", MEMBER_STRING},
	{"torn", "tasks without a chain because they ran meanwhile", MEMBER_INTEGER},
	{"late", "tasks without a chain because the look took too long", MEMBER_INTEGER},
	{"unseen", "tasks without a chain because they run, on vCPUs with registers that are not known",
         MEMBER_INTEGER},
	{0},
};

const struct control_method task_methods[] = {
	{
		.name = "query-tasks",
		.summary =
			"looks at all tasks of a Linux guest in its memory, as they are now or were at its end; the guest is not stopped",
		.returns = tasks_members,
		.role = ROLE_INSTRUMENT,
		.arguments = query_tasks_arguments,
		.run = method_query_tasks,
	},
	{0},
};
