// SPDX-License-Identifier: BSD-2-Clause
/* The providers: a row each, with a parser and the arguments of its events. */
#include <inttypes.h>
#include <string.h>

#include "lib/probe_name/probe_name.h"
#include "lib/probe_name/probe_spec.h"
#include "lib/profile/syscall_name.h"
#include "lib/record/exit_name.h"

#define PORT_MAX UINT16_MAX
#define MSR_MAX UINT32_MAX
#define MARK_MAX UINT8_MAX
#define NS_PER_S UINT64_C(1000000000)
#define PERIOD_NS_MIN (NS_PER_S / PROBE_TIMER_HZ_MAX)
#define PERIOD_NS_MAX (UINT64_C(3600) * NS_PER_S)

/* ---- profile, interval ---- */

static bool timer_parse(struct probe_spec *spec, const char *text, GError **error)
{
	static const struct {
		const char *unit;
		uint64_t ns; /* 0: a frequency */
	} units[] = {{"hz", 0}, {"s", NS_PER_S}, {"ms", NS_PER_S / 1000}, {"us", NS_PER_S / 1000000}};
	g_auto(GStrv) words = g_strsplit(text, ":", 3);
	uint64_t number;
	if (g_strv_length(words) != 2 || !probe_number(words[1], PERIOD_NS_MAX, &number) || number == 0)
		return probe_syntax_error(spec, text, error);
	for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
		if (strcmp(words[0], units[i].unit) != 0)
			continue;
		spec->period_ns = units[i].ns == 0 ? NS_PER_S / number : number * units[i].ns;
		if (number > PERIOD_NS_MAX / MAX(units[i].ns, 1) || spec->period_ns < PERIOD_NS_MIN) {
			g_set_error(error, PROBE_ERROR, PROBE_ERROR_SYNTAX,
			            "%s:%s is out of range; it can be once an hour to %u times a second",
			            probe_providers[spec->kind].name, text, PROBE_TIMER_HZ_MAX);
			return false;
		}
		g_snprintf(spec->name, sizeof(spec->name), "%s:%s:%" PRIu64, probe_providers[spec->kind].name,
		           units[i].unit, number);
		return true;
	}
	return probe_syntax_error(spec, text, error);
}

/* ---- what is seen at exits ---- */

static void set_range_name(struct probe_spec *spec, uint64_t max, const char *direction)
{
	char range[48];

	if (spec->first == 0 && spec->last == max)
		g_snprintf(range, sizeof(range), "*");
	else if (spec->first == spec->last)
		g_snprintf(range, sizeof(range), "0x%" PRIx64, spec->first);
	else
		g_snprintf(range, sizeof(range), "0x%" PRIx64 "-0x%" PRIx64, spec->first, spec->last);
	g_snprintf(spec->name, sizeof(spec->name), "%s:%s%s%s", probe_providers[spec->kind].name, range,
	           spec->read && spec->write ? "" : ":", spec->read && spec->write ? "" : direction);
}

/* RANGE[:READ|:WRITE], by the words that the provider has for reading and writing. */
static bool access_parse(struct probe_spec *spec, const char *text, uint64_t max, const char *read, const char *write,
                         GError **error)
{
	g_auto(GStrv) words = g_strsplit(text, ":", 3);
	guint n = g_strv_length(words);
	const char *direction = n == 2 ? words[1] : NULL;

	spec->read = !direction || strcmp(direction, read) == 0;
	spec->write = !direction || strcmp(direction, write) == 0;
	if (n < 1 || n > 2 || (!spec->read && !spec->write) || !probe_range(words[0], max, &spec->first, &spec->last))
		return probe_syntax_error(spec, text, error);
	set_range_name(spec, max, direction);
	return true;
}

static bool io_parse(struct probe_spec *spec, const char *text, GError **error)
{
	return access_parse(spec, text, PORT_MAX, "in", "out", error);
}

static bool mmio_parse(struct probe_spec *spec, const char *text, GError **error)
{
	return access_parse(spec, text, UINT64_MAX, "read", "write", error);
}

/* KVM's filter takes a few thousand MSRs in a range, and paravirtual MSRs are far from the others. */
static bool msr_parse(struct probe_spec *spec, const char *text, GError **error)
{
	return access_parse(spec, text, MSR_MAX, "read", "write", error);
}

static bool exit_parse(struct probe_spec *spec, const char *text, GError **error)
{
	if (strcmp(text, "*") == 0) {
		spec->last = UINT64_MAX;
		g_snprintf(spec->name, sizeof(spec->name), "exit:*");
		return true;
	}
	for (uint64_t reason = 0; reason < exit_name_count(); reason++) {
		const char *name = exit_name_of_reason(reason);

		if (!name || strcmp(name, text) != 0)
			continue;
		spec->first = spec->last = reason;
		g_snprintf(spec->name, sizeof(spec->name), "exit:%s", name);
		return true;
	}
	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
	            "KVM has no exit \"%s\"; probe-list names those of provider exit, as io, mmio, hlt or intr", text);
	return false;
}

static bool marker_parse(struct probe_spec *spec, const char *text, GError **error)
{
	const bool all = strcmp(text, "*") == 0;

	spec->read = spec->write = true;
	if (probe_range(text, MARK_MAX, &spec->first, &spec->last)) {
		set_range_name(spec, MARK_MAX, NULL);
	} else if (!g_ascii_isdigit(text[0]) && strlen(text) - 1 < PROBE_SYMBOL_BYTES - 1) {
		spec->first = 1; /* an empty range: matches no marker of the guest */
		g_snprintf(spec->name, sizeof(spec->name), "marker:%s", text);
	} else {
		return probe_syntax_error(spec, text, error);
	}
	if (all || spec->first > spec->last)
		g_strlcpy(spec->symbol, text, sizeof(spec->symbol));
	return true;
}

/* ---- what is seen at breakpoints ---- */

static bool syscall_parse(struct probe_spec *spec, const char *what, GError **error)
{
	const bool returns = g_str_has_suffix(what, PROBE_NAME_RETURN);
	g_autofree char *text = g_strndup(what, strlen(what) - (returns ? strlen(PROBE_NAME_RETURN) : 0));
	uint32_t number;

	if (syscall_number(text, &number))
		spec->first = spec->last = number;
	else if (!probe_range(text, SYSCALL_NUMBER_MAX, &spec->first, &spec->last)) {
		g_set_error(
			error, PROBE_ERROR, PROBE_ERROR_UNKNOWN,
			"there is no system call \"%s\"; probe-list names those of provider syscall, and any number up to %u is one",
			text, SYSCALL_NUMBER_MAX);
		return false;
	}
	if (spec->first == spec->last && syscall_name(spec->first))
		g_snprintf(spec->name, sizeof(spec->name), "syscall:%s", syscall_name(spec->first));
	else {
		spec->read = spec->write = true;
		set_range_name(spec, SYSCALL_NUMBER_MAX, NULL);
	}
	if (returns) {
		spec->kind = PROBE_SYSCALL_RETURN;
		g_strlcat(spec->name, PROBE_NAME_RETURN, sizeof(spec->name));
	}
	return true;
}

#define KERNEL_MODULE "vmlinux:" /* as bpftrace calls the kernel itself */

const char *probe_skip_kernel(const char *text)
{
	while (g_str_has_prefix(text, KERNEL_MODULE))
		text += strlen(KERNEL_MODULE);
	return text;
}

/* MODULE of what follows it; empty: the kernel itself. Characters are counted. */
static size_t module_length(const char *text)
{
	const char *separator = strchr(text, PROBE_MODULE_SEPARATOR);

	return separator ? (size_t)(separator - text) : 0;
}

/* A module is called by its name in the kernel, which has _ where that of its file may have -. */
static void set_function(struct probe_spec *spec, const char *text, size_t length)
{
	memcpy(spec->symbol, text, length);
	for (size_t i = 0; i < module_length(spec->symbol); i++)
		spec->symbol[i] = spec->symbol[i] == '-' ? '_' : spec->symbol[i];
}

static bool return_parse(struct probe_spec *spec, const char *text, GError **error)
{
	text = probe_skip_kernel(text);
	const char *separator = strchr(text, PROBE_MODULE_SEPARATOR), *name = separator ? separator + 1 : text;
	const size_t length = strlen(text);

	if (separator == text || name[0] == '\0' || strchr(name, PROBE_MODULE_SEPARATOR) || strchr(text, '+') ||
	    (!separator && g_ascii_isdigit(text[0])) || length >= sizeof(spec->symbol))
		return probe_syntax_error(spec, text, error);
	set_function(spec, text, length);
	g_snprintf(spec->name, sizeof(spec->name), "return:%s", spec->symbol);
	return true;
}

static bool source_line_error(const char *text, GError **error)
{
	g_set_error(
		error, PROBE_ERROR, PROBE_ERROR_SYNTAX,
		"\"function:%s\" is a line of a source file, which the engine does not read; `vprof probe list function:%s` shows its places, each of which is a probe",
		text, text);
	return false;
}

/* Where the instructions of a module begin is not known, so its functions have no offsets. */
static bool function_parse(struct probe_spec *spec, const char *text, GError **error)
{
	text = probe_skip_kernel(text);
	const size_t module = module_length(text);
	const char *plus = strchr(text, '+');
	size_t length = plus ? (size_t)(plus - text) : strlen(text);
	bool address = module == 0 && g_ascii_isdigit(text[0]);

	if (module > 0 && g_ascii_isdigit(text[module + 1]))
		return source_line_error(text, error);
	if (length == 0 || text[0] == PROBE_MODULE_SEPARATOR || length >= sizeof(spec->symbol) ||
	    (plus && (address || module > 0)) || (address && !probe_number(text, UINT64_MAX, &spec->offset)) ||
	    (plus && !probe_number(plus + 1, UINT16_MAX, &spec->offset)))
		return probe_syntax_error(spec, text, error);
	if (address) {
		g_snprintf(spec->name, sizeof(spec->name), "function:0x%" PRIx64, spec->offset);
		return true;
	}
	set_function(spec, text, length);
	if (spec->offset)
		g_snprintf(spec->name, sizeof(spec->name), "function:%s+0x%" PRIx64, spec->symbol, spec->offset);
	else
		g_snprintf(spec->name, sizeof(spec->name), "function:%s", spec->symbol);
	return true;
}

static bool program_fill(struct probe_spec *spec, const struct probe_in_program *program)
{
	const char *end = program->returns ? PROBE_NAME_RETURN : "", *name = program->name;

	if (program->path[0] != '/' || name[0] == '\0' ||
	    (program->is_note && (name[0] == ':' || g_str_has_suffix(name, ":"))) ||
	    strlen(program->path) + 1 + strlen(name) >= sizeof(spec->symbol) ||
	    (program->offset && (program->returns || !probe_number(program->offset, UINT16_MAX, &spec->offset))))
		return false;
	spec->path_bytes = strlen(program->path);
	g_snprintf(spec->symbol, sizeof(spec->symbol), "%s:%s", program->path, name);
	g_snprintf(spec->name, sizeof(spec->name), "%s:%s%s", probe_providers[spec->kind].name, spec->symbol, end);
	if (spec->offset != 0)
		g_snprintf(spec->name, sizeof(spec->name), PROBE_NAME_PROGRAM "%s+0x%" PRIx64, spec->symbol,
		           spec->offset);
	if (program->returns)
		spec->kind = PROBE_PROGRAM_RETURN;
	return true;
}

static bool program_parse(struct probe_spec *spec, const char *text, GError **error)
{
	g_autofree char *whole = g_strconcat(probe_providers[spec->kind].name, ":", text, NULL);
	struct probe_in_program program = {NULL};
	const bool done = probe_in_program_parse(whole, &program) && program_fill(spec, &program);

	probe_in_program_clear(&program);
	return done || probe_syntax_error(spec, text, error);
}

static bool is_word(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!g_ascii_isalnum(text[i]) && !strchr("_-.", text[i]))
			return false;
	return n > 0;
}

/* The trace points of system calls are the probes of system calls, with the kernel's names for their arguments. */
#define CALL_ENTRY "syscalls:sys_enter_"
#define CALL_RETURN "syscalls:sys_exit_"

bool probe_call_number(const char *name, uint32_t *number)
{
	/*
	 * arch/x86/entry/syscalls/syscall_64.tbl, where the two differ: those by the second name are calls of 32-bit
	 * programs in the source, and these are all that others are.
	 */
	static const char *const others[][2] = {{"newfstat", "fstat"},      {"newlstat", "lstat"},
	                                        {"newstat", "stat"},        {"newuname", "uname"},
	                                        {"sendfile64", "sendfile"}, {"umount", "umount2"}};
	static const char *const of_32_bits[] = {"get_thread_area", "set_thread_area", "uselib"};

	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		if (strcmp(name, others[i][0]) == 0)
			return syscall_number(others[i][1], number);
		if (strcmp(name, others[i][1]) == 0)
			return false;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(of_32_bits); i++)
		if (strcmp(name, of_32_bits[i]) == 0)
			return false;
	return syscall_number(name, number);
}

/* False when the trace point is none of a system call. */
static bool is_call_trace(struct probe_spec *spec, const char *text)
{
	const bool returns = g_str_has_prefix(text, CALL_RETURN);
	uint32_t number;

	if (strcmp(text, "raw_syscalls:sys_enter") == 0 || strcmp(text, "raw_syscalls:sys_exit") == 0) {
		spec->kind = g_str_has_suffix(text, "enter") ? PROBE_ALL_CALLS_TRACE : PROBE_ALL_CALL_RETURNS_TRACE;
		spec->last = SYSCALL_NUMBER_MAX;
		return true;
	}
	if (!returns && !g_str_has_prefix(text, CALL_ENTRY))
		return false;
	const char *call = text + strlen(returns ? CALL_RETURN : CALL_ENTRY);
	if (!probe_call_number(call, &number))
		return false;
	spec->kind = returns ? PROBE_CALL_RETURN_TRACE : PROBE_CALL_TRACE;
	spec->first = spec->last = number;
	g_strlcpy(spec->symbol, call, sizeof(spec->symbol));
	return true;
}

static bool tracepoint_parse(struct probe_spec *spec, const char *text, GError **error)
{
	const size_t length = strcspn(text, ":"), n = strlen(text);

	if (n >= sizeof(spec->symbol) || length == n || !is_word(text, length) ||
	    !is_word(text + length + 1, n - length - 1))
		return probe_syntax_error(spec, text, error);
	g_snprintf(spec->name, sizeof(spec->name), "tracepoint:%s", text);
	if (!is_call_trace(spec, text))
		g_strlcpy(spec->symbol, text, sizeof(spec->symbol));
	return true;
}

/* ---- the recording itself ---- */

static bool recording_parse(struct probe_spec *spec, const char *text, GError **error)
{
	spec->read = strcmp(text, "start") == 0;
	spec->write = strcmp(text, "end") == 0;
	if (!spec->read && !spec->write)
		return probe_syntax_error(spec, text, error);
	g_snprintf(spec->name, sizeof(spec->name), "recording:%s", text);
	return true;
}

/* ---- the table ---- */

static const char *const no_arguments[] = {NULL};
static const char *const exit_arguments[] = {"reason", "address", NULL};
static const char *const io_arguments[] = {"port", "value", "bytes", "write", NULL};
static const char *const mmio_arguments[] = {"address", "value", "bytes", "write", NULL};
static const char *const msr_arguments[] = {"msr", "value", "bytes", "write", NULL};
static const char *const syscall_arguments[] = {"nr", "arg0", "arg1", "arg2", "arg3", "arg4", "arg5", NULL};
static const char *const function_arguments[] = {"arg0", "arg1", "arg2", "arg3", "arg4", "arg5", NULL};
static const char *const syscall_return_arguments[] = {"nr", "retval", NULL};
/* As the kernel's own trace points name them. */
static const char *const traced_return_arguments[] = {"nr", "ret", NULL};
static const char *const traced_all_arguments[] = {"id", "arg0", "arg1", "arg2", "arg3", "arg4", "arg5", NULL};
static const char *const traced_all_return_arguments[] = {"id", "ret", NULL};
static const char *const return_arguments[] = {"retval", "ns", NULL};
static const char *const marker_arguments[] = {"value", "by", NULL};

const struct probe_provider probe_providers[PROBE_KINDS] = {
	[PROBE_PROFILE] =
		{
			.name = "profile",
			.syntax = "profile:hz:N or profile:s|ms|us:N",
			.summary = "at intervals, on every vCPU",
			.arguments = no_arguments,
			.parse = timer_parse,
		},
	[PROBE_INTERVAL] =
		{
			.name = "interval",
			.syntax = "interval:hz:N or interval:s|ms|us:N",
			.summary = "at intervals, on one vCPU",
			.arguments = no_arguments,
			.parse = timer_parse,
		},
	[PROBE_EXIT] =
		{
			.name = "exit",
			.syntax = "exit:REASON or exit:*",
			.summary = "a vCPU leaves the guest for the VMM, by KVM's reason",
			.arguments = exit_arguments,
			.parse = exit_parse,
		},
	[PROBE_IO] =
		{
			.name = "io",
			.syntax = "io:PORT[-PORT][:in|:out] or io:*",
			.summary = "the guest reads or writes a port of the VMM's",
			.arguments = io_arguments,
			.parse = io_parse,
		},
	[PROBE_MMIO] =
		{
			.name = "mmio",
			.syntax = "mmio:ADDRESS[-ADDRESS][:read|:write] or mmio:*",
			.summary = "the guest reads or writes what is no memory",
			.arguments = mmio_arguments,
			.parse = mmio_parse,
		},
	[PROBE_MSR] =
		{
			.name = "msr",
			.syntax = "msr:NUMBER[-NUMBER][:read|:write]",
			.summary = "the guest reads or writes a model-specific register",
			.arguments = msr_arguments,
			.parse = msr_parse,
		},
	[PROBE_SYSCALL] =
		{
			.name = "syscall",
			.syntax = "syscall:NAME, syscall:NUMBER[-NUMBER] or syscall:*",
			.summary = "a program enters a system call of Linux",
			.arguments = syscall_arguments,
			.parse = syscall_parse,
		},
	[PROBE_SYSCALL_RETURN] =
		{
			.name = "syscall",
			.syntax = "syscall:NAME:return, syscall:NUMBER[-NUMBER]:return or syscall:*:return",
			.summary = "a system call of Linux returns to its program",
			.arguments = syscall_return_arguments,
			.parse = syscall_parse,
		},
	[PROBE_FUNCTION_RETURN] =
		{
			.name = "return",
			.syntax = "return:NAME or return:MODULE:NAME",
			.summary =
				"a function of the guest's kernel returns: the result, and the nanoseconds since it was entered",
			.arguments = return_arguments,
			.parse = return_parse,
		},
	[PROBE_FUNCTION] =
		{
			.name = "function",
			.syntax =
				"function:NAME[+OFFSET], function:MODULE:NAME, function:FILE:LINE or function:ADDRESS",
			.summary =
				"the guest's kernel enters a function, or begins a statement of a line of its source",
			.arguments = function_arguments,
			.parse = function_parse,
		},
	[PROBE_PROGRAM] =
		{
			.name = "user",
			.syntax = "user:BINARY:FUNCTION[+OFFSET]",
			.summary = "a process enters a function of a program or library",
			.arguments = function_arguments,
			.parse = program_parse,
		},
	[PROBE_PROGRAM_RETURN] =
		{
			.name = "user",
			.syntax = "user:BINARY:FUNCTION:return",
			.summary = "this function returns: the result, and the nanoseconds since it was entered",
			.arguments = return_arguments,
			.parse = program_parse,
		},
	[PROBE_NOTE] =
		{
			.name = "usdt",
			.syntax = "usdt:BINARY:PROVIDER:NAME",
			.summary = "a process passes a static probe of a program or library",
			.arguments = no_arguments,
			.parse = program_parse,
		},
	[PROBE_TRACEPOINT] =
		{
			.name = "tracepoint",
			.syntax = "tracepoint:SUBSYSTEM:EVENT",
			.summary = "the guest's kernel passes a static trace point",
			.arguments = no_arguments,
			.parse = tracepoint_parse,
		},
	[PROBE_CALL_TRACE] =
		{
			.name = "tracepoint",
			.syntax = "tracepoint:syscalls:sys_enter_NAME",
			.summary = "syscall:NAME, with the names of its arguments",
			.arguments = syscall_arguments,
			.parse = tracepoint_parse,
		},
	[PROBE_CALL_RETURN_TRACE] =
		{
			.name = "tracepoint",
			.syntax = "tracepoint:syscalls:sys_exit_NAME",
			.summary = "syscall:NAME:return",
			.arguments = traced_return_arguments,
			.parse = tracepoint_parse,
		},
	[PROBE_ALL_CALLS_TRACE] =
		{
			.name = "tracepoint",
			.syntax = "tracepoint:raw_syscalls:sys_enter",
			.summary = "syscall:*",
			.arguments = traced_all_arguments,
			.parse = tracepoint_parse,
		},
	[PROBE_ALL_CALL_RETURNS_TRACE] =
		{
			.name = "tracepoint",
			.syntax = "tracepoint:raw_syscalls:sys_exit",
			.summary = "syscall:*:return",
			.arguments = traced_all_return_arguments,
			.parse = tracepoint_parse,
		},
	[PROBE_MARKER] =
		{
			.name = "marker",
			.syntax = "marker:VALUE[-VALUE], marker:NAME or marker:*",
			.summary =
				"the guest marks a phase (port 0x80; by 0), or a client does by its name, in which * and ? stand for any characters and any one (marker-add; by 1: begin, 2: end)",
			.arguments = marker_arguments,
			.parse = marker_parse,
		},
	[PROBE_RECORDING] =
		{
			.name = "recording",
			.syntax = "recording:start or recording:end",
			.summary = "the client's probes begin to record, or stop, on one vCPU",
			.arguments = no_arguments,
			.parse = recording_parse,
		},
};
