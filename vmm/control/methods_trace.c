// SPDX-License-Identifier: BSD-2-Clause
/* trace-read, trace-write, trace-set */
#include <inttypes.h>

#include "control/method_priv.h"
#include "guest/guest_debug.h"
#include "guest/unwind.h"
#include "lib/record/text.h"
#include "probe/probe.h"

#define TRACE_WRITE_BYTES_MAX 3072 /* of a client's text; TRACE_TEXT_BYTES_MAX has room for a call chain, too */
#define TRACE_SYMBOL_BYTES_MAX 80  /* of a function's name in a call chain */

/* How long a line waits for the registers of its vCPU: on a busy guest, they are not known at every moment. */
#define TRACE_STACK_WAIT_MS 100

#define TRACE_READ_BYTES_MAX 16384 /* if each of them becomes U+FFFD, the answer still fits into a line */

#define X(id, name, help) [id] = name,
const char *const control_trace_kinds[] = {TRACE_KINDS(X)[TRACE_KIND_COUNT] = NULL};
#undef X

static json_t *method_trace_read(struct control_call *call, GError **error)
{
	struct trace *trace = call->server->trace;
	const json_t *given = json_object_get(call->arguments, "offset");
	const json_t *max = json_object_get(call->arguments, "max-bytes");
	uint64_t wanted = given ? (uint64_t)json_integer_value(given) : 0, offset = wanted, head = trace_head(trace);
	size_t room = max ? MAX((size_t)json_integer_value(max), TEXT_CHARACTER_BYTES_MAX) : TRACE_READ_BYTES_MAX;
	g_autofree char *text = g_malloc(room + 1);

	if (wanted > head) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "the trace ends at offset %" G_GUINT64_FORMAT "; give \"next\" of the last answer", head);
		return NULL;
	}
	size_t n = trace_read(trace, &offset, text, room);
	if (n == 0 && control_call_wait(call))
		return NULL;
	text[n] = '\0';
	call->connection->trace_read = true;
	call->connection->trace_next = offset + n;
	return json_pack("{s:I, s:I, s:I, s:I, s:o}", "offset", (json_int_t)offset, "next", (json_int_t)(offset + n),
	                 "missed", (json_int_t)(offset - wanted), "dropped", (json_int_t)trace_dropped(trace), "text",
	                 control_text(text, room));
}

/* ---- the call chain below a line ---- */

struct stack_call {
	bool may_come; /* the registers, if they are not known now */
	struct guest *guest;
	unsigned vcpu;
	struct unwind_config unwind;
	uint64_t chain[UNWIND_CHAIN_MAX];
	unsigned n;
};

static void stack_on_vcpu(void *data)
{
	struct stack_call *stack = data;
	struct guest_regs regs;
	struct guest_gprs gprs;
	enum unwind_end end;

	if (stack->guest->debug->registers_read(stack->guest, stack->vcpu, &regs, &gprs) && regs.valid)
		stack->n = unwind(&stack->unwind, stack->guest, &regs, NULL, stack->chain, &end);
}

/* A caller is known by its return address, which may be behind its function: the call is its last instruction. */
static void frame_append(GString *text, const struct symtab *symtab, uint64_t address, bool caller)
{
	const struct symbol *symbol = symtab ? symtab_find(symtab, address - caller) : NULL;

	if (symbol)
		g_string_append_printf(text, "\t%.*s+0x%" PRIx64 "\n", TRACE_SYMBOL_BYTES_MAX, symbol->name,
		                       address - symbol->address);
	else
		g_string_append_printf(text, "\t0x%" PRIx64 "\n", address);
}

static void stack_read(const struct control_call *call, struct stack_call *stack)
{
	struct guest *guest = call->server->guest;

	*stack = (struct stack_call){
		.guest = guest,
		.vcpu = (unsigned)json_integer_value(json_object_get(call->arguments, "vcpu")),
		.unwind = session_unwinding(call->server->session),
	};
	stack->unwind.user = true;
	stack->may_come = guest->debug && guest->ops->run_on_vcpu(guest, stack->vcpu, stack_on_vcpu, stack);
}

static void stack_append(const struct control_call *call, const struct stack_call *stack, GString *text)
{
	const struct symtab *symtab = probe_hub_symtab(call->server->probes, NULL);

	if (!g_str_has_suffix(text->str, "\n"))
		g_string_append_c(text, '\n');
	if (stack->n == 0) {
		g_string_append_printf(text, "\tNo backtrace: the registers of vCPU %u are not known now\n",
		                       stack->vcpu);
		return;
	}
	g_string_append(text, "\tBacktrace:\n");
	for (unsigned i = 1; i < stack->n; i++)
		if (stack->chain[i] < PERF_CONTEXT_MAX)
			frame_append(text, symtab, stack->chain[i], stack->chain[i - 1] < PERF_CONTEXT_MAX);
}

static bool trace_write_check(const struct control_call *call, bool with_stack, GError **error)
{
	const json_t *vcpu = json_object_get(call->arguments, "vcpu");

	if (vcpu)
		return control_vcpu_check(call->server->guest, json_integer_value(vcpu), error);
	if (with_stack)
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "argument \"stack\" of trace-write needs \"vcpu\": the call chain is that of a vCPU");
	return !with_stack;
}

static json_t *method_trace_write(struct control_call *call, GError **error)
{
	struct trace *trace = call->server->trace;
	const json_t *vcpu = json_object_get(call->arguments, "vcpu");
	const bool with_stack = json_is_true(json_object_get(call->arguments, "stack"));
	g_autoptr(GString) text = g_string_new(json_string_value(json_object_get(call->arguments, "text")));
	struct stack_call stack;

	if (!trace_write_check(call, with_stack, error))
		return NULL;
	if (with_stack) {
		stack_read(call, &stack);
		if (stack.n == 0 && stack.may_come && control_call_wait_ms(call, TRACE_STACK_WAIT_MS))
			return NULL;
		stack_append(call, &stack, text);
	}
	trace_set(trace, TRACE_EXITS, trace_wants(trace, TRACE_EXITS)); /* makes the ring, if there is none */
	trace_add(trace, vcpu ? (uint32_t)json_integer_value(vcpu) : TRACE_NO_VCPU, text->str);
	json_t *answer = json_pack("{s:I}", "next", (json_int_t)trace_head(trace));

	if (with_stack)
		json_object_set_new(answer, "stack", json_boolean(stack.n != 0));
	return answer;
}

/* The vCPUs are watched only while exits are traced. */
static bool exits_set(struct control_server *server, bool on, GError **error)
{
	if (!on) {
		g_clear_pointer(&server->trace_exits, trace_exits_free);
	} else if (!server->trace_exits) {
		server->trace_exits = trace_exits_new(server->guest, server->session, server->trace);
		if (!server->trace_exits) {
			g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_STATE,
			            "cannot trace exits: the guest has ended, or has too many watchers");
			return false;
		}
	}
	return true;
}

static bool kind_set(struct control_server *server, enum trace_kind kind, bool on, GError **error)
{
	trace_set(server->trace, kind, on);
	if (kind != TRACE_EXITS || exits_set(server, on, error))
		return true;
	trace_set(server->trace, kind, false);
	return false;
}

bool control_trace_configure(struct control_server *server, const json_t *kinds, GError **error)
{
	unsigned wanted = 0;

	for (size_t i = 0; i < json_array_size(kinds); i++)
		wanted |= 1u << argument_choice(control_trace_kinds, json_string_value(json_array_get(kinds, i)));
	for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++)
		if (!kind_set(server, (enum trace_kind)kind, wanted >> kind & 1, error))
			return false;
	return true;
}

json_t *control_trace_configuration(const struct control_server *server)
{
	json_t *kinds = json_array();

	for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++)
		if (trace_wants(server->trace, (enum trace_kind)kind))
			json_array_append_new(kinds, json_string(control_trace_kinds[kind]));
	return kinds;
}

static bool state_set(struct control_server *server, const char *what, const char *state, GError **error)
{
	enum trace_kind kind = (enum trace_kind)argument_choice(control_trace_kinds, what);
	bool on = g_strcmp0(state, "toggle") == 0 ? !trace_wants(server->trace, kind) : g_strcmp0(state, "off") != 0;

	return kind_set(server, kind, on, error);
}

static json_t *method_trace_set(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;
	const char *what = json_string_value(json_object_get(call->arguments, "what"));
	const char *state = json_string_value(json_object_get(call->arguments, "state"));

	if (what && !state_set(server, what, state, error))
		return NULL;
	json_t *answer = json_object();
	for (unsigned kind = 0; kind < TRACE_KIND_COUNT; kind++)
		json_object_set_new(answer, control_trace_kinds[kind],
		                    json_boolean(trace_wants(server->trace, (enum trace_kind)kind)));
	return answer;
}

/* ---- the methods ---- */

static const char *const states[] = {"on", "off", "toggle", NULL};

static const struct method_argument trace_read_arguments[] = {
	{"offset", "where to read: \"next\" of an earlier answer, on any connection; by default, the oldest line",
         ARGUMENT_INTEGER, .optional = true, .min = 0, .max = INT64_MAX},
	{"max-bytes", "maximum bytes of text to return, whole characters; at least one of them", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = TRACE_READ_BYTES_MAX, .preset = G_STRINGIFY(TRACE_READ_BYTES_MAX)},
	{"timeout-ms", "maximum time to wait for a line, in milliseconds", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = CONTROL_TIMEOUT_MS_MAX, .preset = "0"},
	{0},
};

static const struct method_argument trace_write_arguments[] = {
	{"text", "text of one line or several", ARGUMENT_STRING, .min = 1, .max = TRACE_WRITE_BYTES_MAX},
	{"vcpu", "vCPU that the line is about; by default, the engine", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = GUEST_VCPUS_MAX - 1},
	{"stack",
         "whether to add the present call chain of that vCPU, a line for each frame; if its registers are not known for 100 ms, the text is written without",
         ARGUMENT_BOOLEAN, .optional = true, .preset = "false"},
	{0},
};

#define X(id, name, help) name ": " help "; "
#define TRACE_KINDS_HELP TRACE_KINDS(X) "all are off at first"

static const struct method_argument trace_set_arguments[] = {
	{"what", "kind of lines to switch; by default, none. " TRACE_KINDS_HELP, ARGUMENT_STRING, .optional = true,
         .choices = control_trace_kinds},
	{"state", "new state of this kind", ARGUMENT_STRING, .optional = true, .choices = states, .preset = "\"on\""},
	{0},
};
#undef X

static const struct method_member trace_read_members[] = {
	{"offset", "offset of the text", MEMBER_INTEGER},
	{"next", "offset to read on from", MEMBER_INTEGER},
	{"missed", "bytes that were overwritten before they were read", MEMBER_INTEGER},
	{"dropped", "lines that were dropped so far, because another thread was writing one", MEMBER_INTEGER},
	{"text", "lines \"[SECONDS.NANOSECONDS]:vcpuN: TEXT\"; \"vmm\" stands for the engine", MEMBER_STRING},
	{0},
};

static const struct method_member trace_write_members[] = {
	{"next", "offset behind the last line", MEMBER_INTEGER},
	{"stack", "with stack: whether the call chain was written, too", MEMBER_BOOLEAN, .optional = true},
	{0},
};

#define X(id, name, help) {name, help, MEMBER_BOOLEAN},
static const struct method_member trace_set_members[] = {TRACE_KINDS(X){0}};
#undef X

const struct control_method trace_methods[] = {
	{
		.name = "trace-read",
		.summary = "reads lines of the engine's trace; the newest lines overwrite the oldest",
		.returns = trace_read_members,
		.role = ROLE_OBSERVE,
		.arguments = trace_read_arguments,
		.run = method_trace_read,
	},
	{
		.name = "trace-write",
		.summary = "adds a line to the trace, or several, which stay together",
		.returns = trace_write_members,
		.role = ROLE_INSTRUMENT,
		.arguments = trace_write_arguments,
		.run = method_trace_write,
	},
	{
		.name = "trace-set",
		.summary = "switches a kind of trace lines on or off, and returns which kinds are on",
		.returns = trace_set_members,
		.role = ROLE_INSTRUMENT,
		.arguments = trace_set_arguments,
		.run = method_trace_set,
	},
	{0},
};
