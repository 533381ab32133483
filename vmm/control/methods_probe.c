// SPDX-License-Identifier: BSD-2-Clause
/* probe-list, probe-args, probe-add, probe-remove, probe-record, query-probes, probe-rings */
#include <fnmatch.h>
#include <string.h>

#include <vprof/ring.h>

#include "control/method_priv.h"
#include "control/probe_client.h"
#include "guest/elf_note.h"
#include "guest/gprs.h"
#include "guest/os.h"
#include "lib/profile/syscall_name.h"
#include "lib/record/exit_name.h"
#include "lib/record/hex.h"

#define LIST_BYTES_MAX (VPROF_CONTROL_LINE_BYTES_MAX / 2) /* of names, so that a line holds them */

#define PROBE_BYTES_MAX (PROBE_NAME_BYTES - 1)
#define REGISTERS_MAX 64
#define TRACEPOINT "tracepoint"
#define FUNCTION "function:"

static const char *const breakpoint_names[] = {[GUEST_BREAKPOINT_ANY] = "any",
                                               [GUEST_BREAKPOINT_PROCESSOR] = "processor",
                                               [GUEST_BREAKPOINT_PATCH] = "patch",
                                               NULL};

static json_t *names_json(const char *const *names)
{
	json_t *list = json_array();

	for (size_t i = 0; names[i]; i++)
		json_array_append_new(list, json_string(names[i]));
	return list;
}

static json_t *registers_json(enum guest_processor processor, uint64_t registers)
{
	json_t *list = json_array();

	for (unsigned i = 0; i < GUEST_GPRS_MAX; i++) {
		if (registers >> i & 1)
			json_array_append_new(list, json_string(guest_gpr_name(processor, i)));
	}
	return list;
}

static json_t *providers_json(void)
{
	json_t *list = json_array();

	for (size_t i = 0; i < PROBE_KINDS; i++) {
		const struct probe_provider *provider = &probe_providers[i];

		json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:o}", "name", provider->name, "syntax",
		                                      provider->syntax, "summary", provider->summary, "arguments",
		                                      names_json(provider->arguments)));
	}
	return list;
}

/* The part of a list that fits into an answer. */
struct listing {
	const char *pattern; /* of whole names */
	json_int_t skip, seen;
	size_t bytes;
	json_t *names, *bare; /* bare: those without arguments */
	bool more;
};

/* Whether the name is in this part of the list. */
static bool list_name(struct listing *listing, const char *provider, const char *what)
{
	g_autofree char *name = g_strdup_printf("%s:%s", provider, what);

	if (listing->more || fnmatch(listing->pattern, name, 0) != 0 || listing->seen++ < listing->skip)
		return false;
	listing->bytes += strlen(name) + sizeof("\"\",");
	if (listing->bytes > LIST_BYTES_MAX)
		listing->more = true;
	else
		json_array_append_new(listing->names, json_string(name));
	return !listing->more;
}

static void list_exits(struct listing *listing)
{
	for (uint64_t reason = 0; reason < exit_name_count(); reason++) {
		if (exit_name_of_reason(reason))
			list_name(listing, "exit", exit_name_of_reason(reason));
	}
}

static void list_syscalls(struct listing *listing)
{
	for (uint64_t number = 0; number <= SYSCALL_NUMBER_MAX; number++) {
		if (syscall_name(number))
			list_name(listing, "syscall", syscall_name(number));
	}
}

/* Without symbols there are no functions to list; probe-add fails with the reason. */
static void list_functions(struct listing *listing, struct probe_hub *hub)
{
	const struct symtab *symtab = probe_hub_symtab(hub, NULL);
	size_t n = 0;
	const struct symbol *symbols = symtab ? symtab_symbols(symtab, &n) : NULL;

	for (size_t i = 0; i < n && !listing->more; i++) {
		if (strchr("tTwW", symbols[i].type) && !g_str_has_prefix(symbols[i].name, "__pfx_"))
			list_name(listing, "function", symbols[i].name);
	}
}

static void list_function(void *data, const char *module, const char *function)
{
	g_autofree char *what = g_strconcat(module, ":", function, NULL);

	list_name(data, "function", what);
}

static void list_tracepoint(void *data, const char *name, bool arguments)
{
	struct listing *listing = data;

	if (list_name(listing, TRACEPOINT, name) && !arguments)
		json_array_append_new(listing->bare, json_sprintf(TRACEPOINT ":%s", name));
}

/* They are looked for in the kernel's image only if the pattern may be about them. */
static void list_tracepoints(struct listing *listing, struct probe_hub *hub)
{
	const size_t plain = strcspn(listing->pattern, "*?[\\");

	if (strncmp(listing->pattern, TRACEPOINT ":", MIN(plain, strlen(TRACEPOINT ":"))) == 0)
		probe_hub_list_tracepoints(hub, list_tracepoint, listing);
}

/* Their symbols are read for a pattern only that can match: function:MODULE:NAME. */
static bool is_of_modules(const char *pattern)
{
	const char *module = strchr(pattern, ':');

	return module && strchr(module + 1, ':');
}

/* Without the name that the kernel itself may have in place of a module's. New string; NULL for NULL. */
static char *pattern_of(const char *match)
{
	const bool is_function = match && g_str_has_prefix(match, FUNCTION);

	return is_function ? g_strconcat(FUNCTION, probe_skip_kernel(match + strlen(FUNCTION)), NULL) : g_strdup(match);
}

static json_t *method_probe_list(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	g_autofree char *pattern = pattern_of(json_string_value(json_object_get(call->arguments, "match")));
	struct listing listing = {.pattern = pattern,
	                          .skip = json_integer_value(json_object_get(call->arguments, "from")),
	                          .names = json_array(),
	                          .bare = json_array()};

	if (pattern) {
		list_exits(&listing);
		list_syscalls(&listing);
		list_functions(&listing, call->server->probes);
		if (is_of_modules(pattern))
			probe_hub_list_modules(call->server->probes, list_function, &listing);
		list_tracepoints(&listing, call->server->probes);
	}
	json_int_t next = listing.skip + (json_int_t)json_array_size(listing.names);
	return json_pack("{s:o, s:o, s:o, s:o}", "providers", providers_json(), "probes", listing.names,
	                 "without-arguments", listing.bare, "next", listing.more ? json_integer(next) : json_null());
}

/* Names and types of an image may be any text. */
static json_t *fields_json(char **texts)
{
	json_t *list = json_array();

	for (; *texts; texts++)
		json_array_append_new(list, control_text(*texts, CONTROL_MESSAGE_BYTES_MAX));
	return list;
}

static json_t *method_probe_args(struct control_call *call, GError **error)
{
	struct probe_spec spec;
	struct probe_fields fields;

	if (!probe_spec_parse(json_string_value(json_object_get(call->arguments, "probe")), &spec, error) ||
	    !probe_hub_fields(call->server->probes, &spec, &fields, error))
		return NULL;
	json_t *answer = json_pack("{s:s, s:o, s:o}", "name", spec.name, "arguments", fields_json(fields.names),
	                           "types", fields_json(fields.types));
	probe_fields_clear(&fields);
	return answer;
}

/* ---- the client's probes ---- */

struct probe_client *control_probe_client(const struct control_call *call)
{
	if (!call->connection->probes)
		call->connection->probes = probe_client_new(call->server->probes, call->server->guest->vcpus);
	return call->connection->probes;
}

static bool parse_registers(const json_t *names, enum guest_processor processor, uint64_t *registers, GError **error)
{
	*registers = 0;
	for (size_t i = 0; i < json_array_size(names); i++) {
		const char *name = json_string_value(json_array_get(names, i));
		const char *known;
		unsigned at = 0;

		while ((known = guest_gpr_name(processor, at)) && strcmp(known, name) != 0)
			at++;
		if (!known) {
			g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
			            "there is no register \"%.16s\"; an event can have %s", name,
			            guest_gpr_names(processor));
			return false;
		}
		*registers |= UINT64_C(1) << at;
	}
	return true;
}

static json_t *paths_json(const struct probe_info *info)
{
	json_t *list = json_array();

	for (size_t i = 0; i < info->n_paths; i++) {
		const struct field_path *path = &info->paths[i].path;
		const char *type = path->is_text ? "text" : path->value.type ? path->value.type : "";

		json_array_append_new(list,
		                      json_pack("{s:s, s:o, s:b}", "name", info->paths[i].name, "type",
		                                control_text(type, CONTROL_MESSAGE_BYTES_MAX), "text", path->is_text));
	}
	return list;
}

static json_t *probe_json(const struct guest *guest, const struct probe_info *info)
{
	const char *breakpoint = info->breakpoint == GUEST_BREAKPOINT_ANY ? NULL : breakpoint_names[info->breakpoint];

	json_t *processes = info->is_of_program ? json_integer((json_int_t)info->processes) : json_null();

	return json_pack("{s:i, s:s, s:o, s:o, s:o, s:o, s:b, s:I, s:s?, s:b, s:o, s:o}", "id", (int)info->id, "name",
	                 info->spec->name, "arguments", fields_json(info->fields.names), "types",
	                 fields_json(info->fields.types), "fields", paths_json(info), "registers",
	                 registers_json(guest->processor, info->options.registers), "stack", info->options.stack,
	                 "events", (json_int_t)info->events, "breakpoint", breakpoint, "intact", info->intact,
	                 "processes", processes, "similar", control_text(info->similar, CONTROL_MESSAGE_BYTES_MAX));
}

/* NULL-terminated; the texts are the list's. */
static const char **texts_of(const json_t *list)
{
	const char **texts = g_new0(const char *, json_array_size(list) + 1);

	for (size_t i = 0; i < json_array_size(list); i++)
		texts[i] = json_string_value(json_array_get(list, i));
	return texts;
}

/* The function's place in its file, and which processes; what `binary` leads to. */
struct binary_argument {
	struct probe_binary binary;
	struct task_targets targets;
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	uint64_t returns[FUNCTION_RETURNS_MAX];
	const char *notes[FUNCTION_RETURNS_MAX];
};

static bool parse_binary(const json_t *arguments, struct binary_argument *argument, GError **error)
{
	const char *build = json_string_value(json_object_get(arguments, "build-id"));
	const json_t *returns = json_object_get(arguments, "returns"), *notes = json_object_get(arguments, "notes");

	argument->targets = (struct task_targets){.n = 0};
	if (!control_task_targets(arguments, &argument->targets, error))
		return false;
	for (size_t i = 0; i < json_array_size(returns); i++)
		argument->returns[i] = control_address(json_array_get(returns, i));
	for (size_t i = 0; i < json_array_size(notes); i++)
		argument->notes[i] = json_string_value(json_array_get(notes, i));
	argument->binary = (struct probe_binary){
		.file_offset = control_address(json_object_get(arguments, "file-offset")),
		.returns = argument->returns,
		.n_returns = json_array_size(returns),
		.notes = argument->notes,
		.n_notes = json_array_size(notes),
		.build_id = argument->build_id,
		.build_id_bytes = build ? hex_decode(build, argument->build_id, sizeof(argument->build_id)) : 0,
		.targets = argument->targets.n > 0 ? &argument->targets : NULL,
		.cgroup = json_string_value(json_object_get(arguments, "cgroup")),
	};
	return true;
}

static json_t *method_probe_add(struct control_call *call, GError **error)
{
	const char *text = json_string_value(json_object_get(call->arguments, "probe"));
	const char *breakpoint = json_string_value(json_object_get(call->arguments, "breakpoint"));
	struct probe_options options = {.stack = json_is_true(json_object_get(call->arguments, "stack"))};

	if (breakpoint)
		options.breakpoint = (enum guest_breakpoint_kind)argument_choice(breakpoint_names, breakpoint);
	struct probe_info info;
	g_autofree const char **fields = texts_of(json_object_get(call->arguments, "fields"));

	struct binary_argument binary;

	options.fields = fields;
	if (!parse_binary(call->arguments, &binary, error))
		return NULL;
	if (json_object_get(call->arguments, "file-offset") || binary.binary.n_notes > 0)
		options.binary = &binary.binary;
	const struct guest *guest = call->server->guest;
	if (!parse_registers(json_object_get(call->arguments, "registers"), guest->processor, &options.registers,
	                     error) ||
	    !probe_set_add(control_probe_client(call)->set, text, &options, &info, error))
		return NULL;
	return probe_json(guest, &info);
}

static json_t *method_probe_remove(struct control_call *call, GError **error)
{
	json_int_t id = json_integer_value(json_object_get(call->arguments, "id"));

	return probe_set_remove(control_probe_client(call)->set, (unsigned)id, error) ? json_object() : NULL;
}

static json_t *method_probe_record(struct control_call *call, GError **error)
{
	const json_t *ring_bytes = json_object_get(call->arguments, "ring-bytes");
	struct probe_client *client = control_probe_client(call);

	if (!json_is_true(json_object_get(call->arguments, "on")))
		probe_set_pause(client->set);
	else if (!probe_client_record(client, (size_t)json_integer_value(ring_bytes), error))
		return NULL;
	return json_pack("{s:b}", "tasks", probe_set_has_tasks(client->set));
}

static json_t *statistics_json(const struct probe_statistics *statistics)
{
	json_t *object = json_object();

#define X(name, help) control_set_count(object, #name, statistics->name);
	PROBE_STATISTICS(X)
#undef X
	return object;
}

/* As many as fit from number `from` on, at least one; the number of those behind them. */
static size_t list_probes(const struct guest *guest, const struct probe_set *set, size_t from, json_t *list)
{
	size_t at = from, bytes = 0;

	for (; at < probe_set_count(set) && bytes < LIST_BYTES_MAX; at++) {
		struct probe_info info;

		probe_set_info(set, at, &info);
		json_t *probe = probe_json(guest, &info);
		bytes += json_dumpb(probe, NULL, 0, JSON_COMPACT);
		json_array_append_new(list, probe);
	}
	return at;
}

static json_t *method_query_probes(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	const struct probe_set *set = control_probe_client(call)->set;
	const json_int_t from = json_integer_value(json_object_get(call->arguments, "from"));
	struct probe_statistics statistics;
	json_t *list = json_array();
	const size_t next = list_probes(call->server->guest, set, (size_t)from, list);

	probe_set_statistics(set, &statistics);
	return json_pack("{s:b, s:o, s:o, s:o}", "recording", probe_set_recording(set), "probes", list, "next",
	                 next < probe_set_count(set) ? json_integer((json_int_t)next) : json_null(), "statistics",
	                 statistics_json(&statistics));
}

static json_t *method_probe_rings(struct control_call *call, GError **error)
{
	struct probe_client *client = control_probe_client(call);

	if (!probe_client_take(client, PROBE_READER_RINGS, error))
		return NULL;
	json_t *vcpus = json_array();
	for (unsigned i = 0; i < call->server->guest->vcpus; i++)
		json_array_append_new(vcpus, control_ring_json(call, i, probe_set_ring(client->set, i)));
	return json_pack("{s:o}", "vcpus", vcpus);
}

static json_t *method_probe_read(struct control_call *call, GError **error)
{
	const json_t *max = json_object_get(call->arguments, "max");
	struct probe_client *client = control_probe_client(call);
	json_t *answer = probe_client_read(client, max ? (size_t)json_integer_value(max) : SIZE_MAX, error);
	bool empty = answer && json_array_size(json_object_get(answer, "events")) == 0;

	if (!empty || !probe_set_recording(client->set) || !control_call_wait(call))
		return answer;
	json_decref(answer);
	return NULL;
}

/* ---- the methods ---- */

static const struct method_argument probe_list_arguments[] = {
	{"match",
         "pattern for whole names as in fnmatch(3), for example function:vfs_*; by default, only providers are listed",
         ARGUMENT_STRING, .optional = true, .min = 1, .max = PROBE_BYTES_MAX},
	{"from", "number of names to skip: \"next\" of the previous answer", ARGUMENT_INTEGER, .optional = true,
         .min = 0, .max = INT32_MAX},
	{0},
};

static const struct method_argument query_probes_arguments[] = {
	{"from", "number of probes to skip: \"next\" of the previous answer", ARGUMENT_INTEGER, .optional = true,
         .min = 0, .max = INT32_MAX},
	{0},
};

static const struct method_argument probe_args_arguments[] = {
	{"probe", "as probe-add takes it", ARGUMENT_STRING, .min = 1, .max = PROBE_BYTES_MAX},
	{0},
};

static const struct method_argument probe_add_arguments[] = {
	{"probe", "PROVIDER:WHAT, in the syntax that probe-list returns", ARGUMENT_STRING, .min = 1,
         .max = PROBE_BYTES_MAX},
	{"registers",
         "registers to record with each event: rax to r15, rip, rflags; on arm64 x0 to x30, sp, pc, pstate",
         ARGUMENT_STRINGS, .optional = true, .min = 1, .max = REGISTERS_MAX},
	{"stack", "whether to record the call chain with each event; by default, it is not recorded", ARGUMENT_BOOLEAN,
         .optional = true},
	{"fields",
         "members of what the arguments point to (file->f_inode->i_ino), and texts (str(prev->comm)); those that begin with no argument are left out",
         ARGUMENT_STRINGS, .optional = true, .min = 1, .max = PROBE_PATHS_MAX},
	{"breakpoint",
         "for a function or syscall probe: one of the processor's four breakpoints, or an INT3 that replaces the guest's instruction (patch); by default, the processor's while one is free. For a probe of a program: patch is in the guest's page of the file, which all processes share; by default, the processor's",
         ARGUMENT_STRING, .optional = true, .choices = breakpoint_names},
	{"file-offset", "for a user probe: where the function begins in the binary", ARGUMENT_ADDRESS,
         .optional = true},
	{"returns",
         "for a user probe of returns: where the function returns in the binary, \"0x\" and hexadecimal digits",
         ARGUMENT_STRINGS, .optional = true, .min = 1, .max = FUNCTION_RETURNS_MAX},
	{"notes",
         "for a usdt probe: each of its places in the binary, \"0x\" and hexadecimal digits, and its operands as the note has them, separated by blanks",
         ARGUMENT_STRINGS, .optional = true, .min = 1, .max = FUNCTION_RETURNS_MAX},
	{"build-id", "for a user or usdt probe: of the binary in which that was found; another build is refused",
         ARGUMENT_STRING, .optional = true, .min = 2, .max = 2 * ELF_NOTE_BUILD_ID_BYTES_MAX},
	{"pid", "for a user or usdt probe: in this process only; by default in all that have the binary mapped",
         ARGUMENT_INTEGER, .optional = true, .min = 1, .max = UINT32_MAX},
	{"comm", "for a user or usdt probe: in processes with this name only, which may have * and ?", ARGUMENT_STRING,
         .optional = true, .min = 1, .max = TASK_GLOB_BYTES - 1},
	{"cgroup", "for a user or usdt probe: in processes in this cgroup only", ARGUMENT_STRING, .optional = true,
         .min = 1, .max = OS_GROUP_PATH_BYTES - 1},
	{0},
};

static const struct method_argument probe_remove_arguments[] = {
	{"id", "id of the probe, as probe-add returned it", ARGUMENT_INTEGER, .min = 1, .max = INT32_MAX},
	{0},
};

static const struct method_argument probe_record_arguments[] = {
	{"on", "true: record events, into new rings; false: stop recording", ARGUMENT_BOOLEAN},
	{"ring-bytes", "data bytes of each vCPU's ring; a power of two", ARGUMENT_INTEGER, .optional = true,
         .min = VPROF_RING_DATA_BYTES_MIN, .max = VPROF_RING_DATA_BYTES_MAX},
	{0},
};

static const struct method_argument probe_read_arguments[] = {
	{"max", "maximum number of events; by default, as many as fit into a line", ARGUMENT_INTEGER, .optional = true,
         .min = 1, .max = INT32_MAX},
	{"timeout-ms", "maximum time to wait for the first event, in milliseconds", ARGUMENT_INTEGER, .optional = true,
         .min = 0, .max = CONTROL_TIMEOUT_MS_MAX, .preset = "0"},
	{0},
};

static const struct method_member provider_members[] = {
	{"name", "name of the provider", MEMBER_STRING},
	{"syntax", "syntax of its probes", MEMBER_STRING},
	{"summary", "what its probes watch", MEMBER_STRING},
	{"arguments", "names of the arguments of its events", MEMBER_STRINGS},
	{0},
};

static const struct method_member list_members[] = {
	{"providers", "all providers", MEMBER_OBJECTS, .members = provider_members},
	{"probes", "names of exits, system calls, functions and trace points that match", MEMBER_STRINGS},
	{"without-arguments", "trace points among them of which arguments cannot be read in all places",
         MEMBER_STRINGS},
	{"next", "value of \"from\" for the rest of the list; null: the list is complete", MEMBER_INTEGER,
         .nullable = true},
	{0},
};

#define TYPES_HELP \
	"types of these arguments in the kernel, of functions with their names; fewer: the others are numbers of 64 bits"

static const struct method_member args_members[] = {
	{"name", "full name of the probe", MEMBER_STRING},
	{"arguments", "names of the arguments of its events", MEMBER_STRINGS},
	{"types", TYPES_HELP, MEMBER_STRINGS},
	{0},
};

static const struct method_member path_members[] = {
	{"name", "as it was asked for", MEMBER_STRING},
	{"type", "its type in the kernel; empty: a number of 64 bits", MEMBER_STRING},
	{"text", "whether it is a text, of 64 bytes with zeros behind its end", MEMBER_BOOLEAN},
	{0},
};

static const struct method_member probe_members[] = {
	{"id", "id of the probe", MEMBER_INTEGER},
	{"name", "full name of the probe", MEMBER_STRING},
	{"arguments", "names of the arguments of its events", MEMBER_STRINGS},
	{"types", TYPES_HELP, MEMBER_STRINGS},
	{"fields", "fields besides the arguments, in the events behind the registers", MEMBER_OBJECTS,
         .members = path_members},
	{"registers", "registers that are recorded with each event", MEMBER_STRINGS},
	{"stack", "whether the call chain is recorded with each event", MEMBER_BOOLEAN},
	{"events", "number of events so far", MEMBER_INTEGER},
	{"breakpoint", "processor or patch; null: the probe needs none", MEMBER_STRING, .nullable = true},
	{"intact",
         "false after the guest has overwritten a patch, or is to write its page of a file to a disk, or has unloaded the module of the function",
         MEMBER_BOOLEAN},
	{"processes",
         "number of processes that a probe of a program is in; 0: it waits for one; null: it is of the kernel",
         MEMBER_INTEGER, .nullable = true},
	{"similar", "path of another file with the binary's name that a process has mapped; null: there is none",
         MEMBER_STRING, .nullable = true},
	{0},
};

static const struct method_member record_members[] = {
	{"tasks", "whether events have pid and tid of the guest's task", MEMBER_BOOLEAN},
	{0},
};

#define X(name, help) {#name, help, MEMBER_INTEGER},
static const struct method_member statistics_members[] = {PROBE_STATISTICS(X){0}};
#undef X

static const struct method_member probes_members[] = {
	{"recording", "whether events are recorded now", MEMBER_BOOLEAN},
	{"probes", "probes of this client", MEMBER_OBJECTS, .members = probe_members},
	{"next", "\"from\" for those that are not in this answer; null: there are none", MEMBER_INTEGER,
         .nullable = true},
	{"statistics", "what became of their events", MEMBER_OBJECT, .members = statistics_members},
	{0},
};

static const struct method_member event_members[] = {
	{"probe", "id of the probe", MEMBER_INTEGER},
	{"time-ns", "time of the event, by CLOCK_MONOTONIC", MEMBER_INTEGER},
	{"vcpu", "number of the vCPU", MEMBER_INTEGER},
	{"pid", "process id of the guest's task; -1: unknown", MEMBER_INTEGER},
	{"tid", "thread id of the guest's task; -1: unknown", MEMBER_INTEGER},
	{"comm", "name of the guest's task", MEMBER_STRING, .nullable = true},
	{"ip", "address of the instruction", MEMBER_ADDRESS},
	{"values",
         "arguments, registers, then fields as in vprof/probe.h; none: the arguments of a trace point are not known",
         MEMBER_ADDRESSES},
	{"stack", "the call chain, if the probe has one", MEMBER_ADDRESSES},
	{0},
};

static const struct method_member read_members[] = {
	{"events", "in order for each vCPU", MEMBER_OBJECTS, .members = event_members},
	{"more", "whether there may be more to read at once", MEMBER_BOOLEAN},
	{0},
};

const struct control_method probe_methods[] = {
	{
		.name = "probe-list",
		.summary = "lists what can be probed",
		.returns = list_members,
		.role = ROLE_OBSERVE,
		.arguments = probe_list_arguments,
		.run = method_probe_list,
	},
	{
		.name = "probe-args",
		.summary = "lists the arguments of a probe's events",
		.returns = args_members,
		.role = ROLE_OBSERVE,
		.arguments = probe_args_arguments,
		.run = method_probe_args,
	},
	{
		.name = "probe-add",
		.summary = "adds a probe for this client, each one once; fails while its probes record",
		.returns = probe_members,
		.role = ROLE_INSTRUMENT,
		.arguments = probe_add_arguments,
		.run = method_probe_add,
	},
	{
		.name = "probe-remove",
		.summary =
			"removes a probe of this client, as disconnecting does for all of them; fails while its probes record",
		.role = ROLE_INSTRUMENT,
		.arguments = probe_remove_arguments,
		.run = method_probe_remove,
	},
	{
		.name = "probe-record",
		.summary = "starts or stops recording the events of this client's probes",
		.returns = record_members,
		.role = ROLE_INSTRUMENT,
		.arguments = probe_record_arguments,
		.run = method_probe_record,
	},
	{
		.name = "query-probes",
		.summary = "describes this client's probes, and returns the statistics of their events",
		.returns = probes_members,
		.role = ROLE_OBSERVE,
		.arguments = query_probes_arguments,
		.run = method_query_probes,
	},
	{
		.name = "probe-rings",
		.summary = "returns the rings of this client's probes (vprof/probe.h); each ring has one reader",
		.returns = control_rings_members,
		.descriptors = CONTROL_RINGS_DESCRIPTORS,
		.role = ROLE_INSTRUMENT,
		.run = method_probe_rings,
	},
	{
		.name = "probe-read",
		.summary = "reads events of this client's probes, and removes them from the rings",
		.returns = read_members,
		.role = ROLE_INSTRUMENT,
		.arguments = probe_read_arguments,
		.run = method_probe_read,
	},
	{0},
};
