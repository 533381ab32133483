// SPDX-License-Identifier: BSD-2-Clause
/* The providers: a row each, with a parser and the arguments of its events. */
#include <inttypes.h>
#include <linux/kvm.h>
#include <string.h>

#include "guest/gprs.h"
#include "guest/page_walk.h"
#include "guest/processor.h"
#include "lib/profile/syscall_name.h"
#include "lib/record/exit_name.h"
#include "probe/probe_spec.h"

#define PORT_MAX UINT16_MAX
#define MSR_MAX UINT32_MAX
#define MARK_MAX UINT8_MAX
#define MARK_PORT 0x80u
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
			            spec->provider->name, text, PROBE_TIMER_HZ_MAX);
			return false;
		}
		g_snprintf(spec->name, sizeof(spec->name), "%s:%s:%" PRIu64, spec->provider->name, units[i].unit,
		           number);
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
	g_snprintf(spec->name, sizeof(spec->name), "%s:%s%s%s", spec->provider->name, range,
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

static bool access_matches(const struct probe_spec *spec, const struct guest_access *access)
{
	return access->address >= spec->first && access->address <= spec->last &&
	       (access->write ? spec->write : spec->read);
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

static bool access_arguments(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments)
{
	if (!access_matches(spec, access))
		return false;
	arguments[0] = access->address;
	arguments[1] = access->value;
	arguments[2] = access->bytes;
	arguments[3] = access->write;
	return true;
}

static bool io_access(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments)
{
	return access->reason == KVM_EXIT_IO && access_arguments(spec, access, arguments);
}

static bool mmio_access(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments)
{
	return access->reason == KVM_EXIT_MMIO && access_arguments(spec, access, arguments);
}

static bool msr_access(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments)
{
	return (access->reason == KVM_EXIT_X86_RDMSR || access->reason == KVM_EXIT_X86_WRMSR) &&
	       access_arguments(spec, access, arguments);
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

static bool exit_access(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments)
{
	arguments[0] = access->reason;
	arguments[1] = access->address;
	return access->reason >= spec->first && access->reason <= spec->last;
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

static bool marker_access(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments)
{
	arguments[0] = access->value;
	arguments[1] = PROBE_MARKER_PORT;
	return access->reason == KVM_EXIT_IO && access->address == MARK_PORT && access->write &&
	       access->value >= spec->first && access->value <= spec->last;
}

/* ---- what is seen at breakpoints ---- */

/*
 * The first function that every 64-bit system call goes through with the kernel's stack and GS base in place, so that
 * its task and chain can be read (arch/x86/entry/entry_64.S; arch/arm64/kernel/syscall.c).
 */
static const char *const syscall_entries[] = {"do_syscall_64", "x64_sys_call", "do_el0_svc", NULL};

/*
 * What every return from a system call goes through with its result in struct pt_regs, that of a new task from fork,
 * too (kernel/entry/common.c; before Linux 5.8, arch/x86/entry/common.c).
 */
static const char *const syscall_exits[] = {"syscall_exit_to_user_mode", "syscall_return_slowpath", NULL};

static const struct probe_provider syscall_returns;
#define RETURN ":return"

static bool syscall_parse(struct probe_spec *spec, const char *what, GError **error)
{
	const bool returns = g_str_has_suffix(what, RETURN);
	g_autofree char *text = g_strndup(what, strlen(what) - (returns ? strlen(RETURN) : 0));
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
		spec->provider = &syscall_returns;
		g_strlcat(spec->name, RETURN, sizeof(spec->name));
	}
	return true;
}

static bool call_is_wanted(const struct probe_spec *spec, const struct guest_call *call)
{
	return call->number >= spec->first && call->number <= spec->last;
}

/* do_syscall_64(regs, nr), before Linux 5.13 (nr, regs); x64_sys_call(regs, nr); do_el0_svc(regs) */
static bool syscall_hit(const struct probe_spec *spec, struct guest *guest, const struct guest_regs *regs,
                        const struct guest_gprs *gprs, uint64_t *arguments)
{
	struct guest_call call;

	if (!guest_call_read(guest, regs, gprs, &call) || !call_is_wanted(spec, &call))
		return false;
	arguments[0] = call.number;
	memcpy(arguments + 1, call.arguments, sizeof(call.arguments));
	return true;
}

/* syscall_exit_to_user_mode(regs) */
static bool syscall_return_hit(const struct probe_spec *spec, struct guest *guest, const struct guest_regs *regs,
                               const struct guest_gprs *gprs, uint64_t *arguments)
{
	struct guest_call call;

	if (!guest_call_read(guest, regs, gprs, &call) || !call_is_wanted(spec, &call))
		return false;
	arguments[0] = call.number;
	arguments[1] = call.result;
	return true;
}

#define KERNEL_MODULE "vmlinux:" /* as bpftrace calls the kernel itself */

const char *probe_skip_kernel(const char *text)
{
	while (g_str_has_prefix(text, KERNEL_MODULE))
		text += strlen(KERNEL_MODULE);
	return text;
}

/* The result, if there is one. The time is the prober's. */
static bool return_hit(const struct probe_spec *spec G_GNUC_UNUSED, struct guest *guest G_GNUC_UNUSED,
                       const struct guest_regs *regs G_GNUC_UNUSED, const struct guest_gprs *gprs, uint64_t *arguments)
{
	arguments[0] = guest_gprs_result(gprs);
	return true;
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

static const struct probe_provider program_returns;

/* PATH:FUNCTION, PATH:FUNCTION+OFFSET or PATH:FUNCTION:return; the path may have colons, the function none. */
static bool user_parse(struct probe_spec *spec, const char *given, GError **error)
{
	g_autofree char *text = g_strdup(given);
	char *end = strrchr(text, ':');
	const bool returns = end && strcmp(end, RETURN) == 0 && memchr(text, ':', (size_t)(end - text));

	if (returns)
		*end = '\0';
	char *function = strrchr(text, ':'), *plus = function ? strchr(function, '+') : NULL;
	if (text[0] != '/' || !function || function[1] == '\0' || plus == function + 1 || (plus && returns) ||
	    (plus && !probe_number(plus + 1, UINT16_MAX, &spec->offset)))
		return probe_syntax_error(spec, given, error);
	if (plus)
		*plus = '\0';
	if (strlen(text) >= sizeof(spec->symbol))
		return probe_syntax_error(spec, given, error);
	g_strlcpy(spec->symbol, text, sizeof(spec->symbol));
	g_snprintf(spec->name, sizeof(spec->name), "user:%s%s", text, returns ? RETURN : "");
	if (spec->offset != 0)
		g_snprintf(spec->name, sizeof(spec->name), "user:%s+0x%" PRIx64, text, spec->offset);
	if (returns)
		spec->provider = &program_returns;
	return true;
}

/* PATH:PROVIDER:NAME; the path may have colons, the others none. */
static bool notes_parse(struct probe_spec *spec, const char *text, GError **error)
{
	const char *name = strrchr(text, ':'), *provider = name ? g_strrstr_len(text, name - text, ":") : NULL;

	if (text[0] != '/' || !provider || provider + 1 == name || name[1] == '\0' ||
	    strlen(text) >= sizeof(spec->symbol))
		return probe_syntax_error(spec, text, error);
	g_strlcpy(spec->symbol, text, sizeof(spec->symbol));
	g_snprintf(spec->name, sizeof(spec->name), "usdt:%s", text);
	return true;
}

/* The arguments are the prober's. */
static bool notes_hit(const struct probe_spec *spec G_GNUC_UNUSED, struct guest *guest G_GNUC_UNUSED,
                      const struct guest_regs *regs G_GNUC_UNUSED, const struct guest_gprs *gprs G_GNUC_UNUSED,
                      uint64_t *arguments G_GNUC_UNUSED)
{
	return true;
}

static bool is_word(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!g_ascii_isalnum(text[i]) && !strchr("_-.", text[i]))
			return false;
	return n > 0;
}

/* The trace points of system calls are the probes of system calls, with the kernel's names for their arguments. */
static const struct probe_provider traced_calls, traced_call_returns, traced_all, traced_all_returns;
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
		spec->provider = g_str_has_suffix(text, "enter") ? &traced_all : &traced_all_returns;
		spec->last = SYSCALL_NUMBER_MAX;
		return true;
	}
	if (!returns && !g_str_has_prefix(text, CALL_ENTRY))
		return false;
	const char *call = text + strlen(returns ? CALL_RETURN : CALL_ENTRY);
	if (!probe_call_number(call, &number))
		return false;
	spec->provider = returns ? &traced_call_returns : &traced_calls;
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

static bool function_hit(const struct probe_spec *spec G_GNUC_UNUSED, struct guest *guest G_GNUC_UNUSED,
                         const struct guest_regs *regs G_GNUC_UNUSED, const struct guest_gprs *gprs,
                         uint64_t *arguments)
{
	for (unsigned i = 0; i < GUEST_GPR_ARGUMENTS; i++)
		arguments[i] = guest_gprs_argument(gprs, i);
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

static const struct probe_provider profile = {.name = "profile",
                                              .syntax = "profile:hz:N or profile:s|ms|us:N",
                                              .summary = "at intervals, on every vCPU",
                                              .trigger = PROBE_BY_TIMER,
                                              .every_vcpu = true,
                                              .arguments = no_arguments,
                                              .parse = timer_parse};
static const struct probe_provider interval = {.name = "interval",
                                               .syntax = "interval:hz:N or interval:s|ms|us:N",
                                               .summary = "at intervals, on one vCPU",
                                               .trigger = PROBE_BY_TIMER,
                                               .arguments = no_arguments,
                                               .parse = timer_parse};
static const struct probe_provider exits = {.name = "exit",
                                            .syntax = "exit:REASON or exit:*",
                                            .summary = "a vCPU leaves the guest for the VMM, by KVM's reason",
                                            .trigger = PROBE_BY_ACCESS,
                                            .arguments = exit_arguments,
                                            .parse = exit_parse,
                                            .access = exit_access};
static const struct probe_provider io = {.name = "io",
                                         .syntax = "io:PORT[-PORT][:in|:out] or io:*",
                                         .summary = "the guest reads or writes a port of the VMM's",
                                         .trigger = PROBE_BY_ACCESS,
                                         .needs = PROBES_OF_PORTS,
                                         .arguments = io_arguments,
                                         .parse = io_parse,
                                         .access = io_access};
static const struct probe_provider mmio = {.name = "mmio",
                                           .syntax = "mmio:ADDRESS[-ADDRESS][:read|:write] or mmio:*",
                                           .summary = "the guest reads or writes what is no memory",
                                           .trigger = PROBE_BY_ACCESS,
                                           .arguments = mmio_arguments,
                                           .parse = mmio_parse,
                                           .access = mmio_access};
static const struct probe_provider msr = {.name = "msr",
                                          .syntax = "msr:NUMBER[-NUMBER][:read|:write]",
                                          .summary = "the guest reads or writes a model-specific register",
                                          .trigger = PROBE_BY_ACCESS,
                                          .needs = PROBES_OF_MSRS,
                                          .arguments = msr_arguments,
                                          .parse = msr_parse,
                                          .access = msr_access};
static const struct probe_provider syscalls = {.name = "syscall",
                                               .syntax = "syscall:NAME, syscall:NUMBER[-NUMBER] or syscall:*",
                                               .summary = "a program enters a system call of Linux",
                                               .trigger = PROBE_BY_BREAKPOINT,
                                               .arguments = syscall_arguments,
                                               .entries = syscall_entries,
                                               .parse = syscall_parse,
                                               .hit = syscall_hit};
static const struct probe_provider syscall_returns = {
	.name = "syscall",
	.syntax = "syscall:NAME:return, syscall:NUMBER[-NUMBER]:return or syscall:*:return",
	.summary = "a system call of Linux returns to its program",
	.trigger = PROBE_BY_BREAKPOINT,
	.needs = PROBES_OF_CALL_RETURNS,
	.arguments = syscall_return_arguments,
	.entries = syscall_exits,
	.parse = syscall_parse,
	.hit = syscall_return_hit};
static const struct probe_provider function_returns = {
	.name = "return",
	.syntax = "return:NAME or return:MODULE:NAME",
	.summary = "a function of the guest's kernel returns: the result, and the nanoseconds since it was entered",
	.trigger = PROBE_BY_BREAKPOINT,
	.returns = true,
	.arguments = return_arguments,
	.parse = return_parse,
	.hit = return_hit};
static const struct probe_provider functions = {
	.name = "function",
	.syntax = "function:NAME[+OFFSET], function:MODULE:NAME, function:FILE:LINE or function:ADDRESS",
	.summary = "the guest's kernel enters a function, or begins a statement of a line of its source",
	.trigger = PROBE_BY_BREAKPOINT,
	.arguments = function_arguments,
	.parse = function_parse,
	.hit = function_hit};
static const struct probe_provider programs = {.name = "user",
                                               .syntax = "user:BINARY:FUNCTION[+OFFSET]",
                                               .summary = "a process enters a function of a program or library",
                                               .trigger = PROBE_BY_BREAKPOINT,
                                               .programs = true,
                                               .needs = PROBES_OF_PROGRAMS,
                                               .arguments = function_arguments,
                                               .parse = user_parse,
                                               .hit = function_hit};
static const struct probe_provider program_returns = {
	.name = "user",
	.syntax = "user:BINARY:FUNCTION:return",
	.summary = "this function returns: the result, and the nanoseconds since it was entered",
	.trigger = PROBE_BY_BREAKPOINT,
	.programs = true,
	.returns = true,
	.needs = PROBES_OF_PROGRAMS,
	.arguments = return_arguments,
	.parse = user_parse,
	.hit = return_hit};
static const struct probe_provider notes = {.name = "usdt",
                                            .syntax = "usdt:BINARY:PROVIDER:NAME",
                                            .summary = "a process passes a static probe of a program or library",
                                            .trigger = PROBE_BY_BREAKPOINT,
                                            .programs = true,
                                            .notes = true,
                                            .needs = PROBES_OF_PROGRAMS,
                                            .arguments = no_arguments,
                                            .parse = notes_parse,
                                            .hit = notes_hit};
static const struct probe_provider tracepoints = {.name = "tracepoint",
                                                  .syntax = "tracepoint:SUBSYSTEM:EVENT",
                                                  .summary = "the guest's kernel passes a static trace point",
                                                  .trigger = PROBE_BY_BREAKPOINT,
                                                  .traces = true,
                                                  .needs = PROBES_OF_TRACE_POINTS,
                                                  .arguments = no_arguments,
                                                  .parse = tracepoint_parse};
static const struct probe_provider traced_calls = {.name = "tracepoint",
                                                   .syntax = "tracepoint:syscalls:sys_enter_NAME",
                                                   .summary = "syscall:NAME, with the names of its arguments",
                                                   .trigger = PROBE_BY_BREAKPOINT,
                                                   .calls = true,
                                                   .arguments = syscall_arguments,
                                                   .entries = syscall_entries,
                                                   .parse = tracepoint_parse,
                                                   .hit = syscall_hit};
static const struct probe_provider traced_call_returns = {.name = "tracepoint",
                                                          .syntax = "tracepoint:syscalls:sys_exit_NAME",
                                                          .summary = "syscall:NAME:return",
                                                          .trigger = PROBE_BY_BREAKPOINT,
                                                          .needs = PROBES_OF_CALL_RETURNS,
                                                          .arguments = traced_return_arguments,
                                                          .entries = syscall_exits,
                                                          .parse = tracepoint_parse,
                                                          .hit = syscall_return_hit};
static const struct probe_provider traced_all = {.name = "tracepoint",
                                                 .syntax = "tracepoint:raw_syscalls:sys_enter",
                                                 .summary = "syscall:*",
                                                 .trigger = PROBE_BY_BREAKPOINT,
                                                 .arguments = traced_all_arguments,
                                                 .entries = syscall_entries,
                                                 .parse = tracepoint_parse,
                                                 .hit = syscall_hit};
static const struct probe_provider traced_all_returns = {.name = "tracepoint",
                                                         .syntax = "tracepoint:raw_syscalls:sys_exit",
                                                         .summary = "syscall:*:return",
                                                         .trigger = PROBE_BY_BREAKPOINT,
                                                         .needs = PROBES_OF_CALL_RETURNS,
                                                         .arguments = traced_all_return_arguments,
                                                         .entries = syscall_exits,
                                                         .parse = tracepoint_parse,
                                                         .hit = syscall_return_hit};
static const struct probe_provider marker = {
	.name = "marker",
	.syntax = "marker:VALUE[-VALUE], marker:NAME or marker:*",
	.summary =
		"the guest marks a phase (port 0x80; by 0), or a client does by its name, in which * and ? stand for any characters and any one (marker-add; by 1: begin, 2: end)",
	.trigger = PROBE_BY_ACCESS,
	.arguments = marker_arguments,
	.parse = marker_parse,
	.access = marker_access};

static const struct probe_provider recording = {.name = "recording",
                                                .syntax = "recording:start or recording:end",
                                                .summary = "the client's probes begin to record, or stop, on one vCPU",
                                                .trigger = PROBE_BY_RECORDING,
                                                .arguments = no_arguments,
                                                .parse = recording_parse};

const struct probe_provider *const probe_providers[] = {&profile,      &interval,
                                                        &exits,        &io,
                                                        &mmio,         &msr,
                                                        &syscalls,     &syscall_returns,
                                                        &functions,    &function_returns,
                                                        &programs,     &program_returns,
                                                        &notes,        &tracepoints,
                                                        &traced_calls, &traced_call_returns,
                                                        &traced_all,   &traced_all_returns,
                                                        &marker,       &recording,
                                                        NULL};
