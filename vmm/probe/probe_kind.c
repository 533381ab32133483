// SPDX-License-Identifier: BSD-2-Clause
/* What makes each kind of probe fire: a row each, and the arguments of kernel functions. */
#include <string.h>

#include "guest/gprs.h"
#include "guest/processor.h"
#include "probe/placement_priv.h"
#include "probe/user_priv.h"

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

static bool call_is_wanted(const struct probe_spec *spec, const struct os_call *call)
{
	return call->number >= spec->first && call->number <= spec->last;
}

/* do_syscall_64(regs, nr), before Linux 5.13 (nr, regs); x64_sys_call(regs, nr); do_el0_svc(regs) */
static bool syscall_read(const struct probe_spec *spec, const struct guest_os *os, struct guest *guest,
                         const struct guest_regs *regs, const struct guest_gprs *gprs, uint64_t *arguments)
{
	struct os_call call;

	if (!os->calls || !os->calls->read(guest, regs, gprs, &call) || !call_is_wanted(spec, &call))
		return false;
	arguments[0] = call.number;
	memcpy(arguments + 1, call.arguments, sizeof(call.arguments));
	return true;
}

/* syscall_exit_to_user_mode(regs) */
static bool syscall_return_read(const struct probe_spec *spec, const struct guest_os *os, struct guest *guest,
                                const struct guest_regs *regs, const struct guest_gprs *gprs, uint64_t *arguments)
{
	struct os_call call;

	if (!os->calls || !os->calls->read(guest, regs, gprs, &call) || !call_is_wanted(spec, &call))
		return false;
	arguments[0] = call.number;
	arguments[1] = call.result;
	return true;
}

static bool function_read(const struct probe_spec *spec G_GNUC_UNUSED, const struct guest_os *os G_GNUC_UNUSED,
                          struct guest *guest G_GNUC_UNUSED, const struct guest_regs *regs G_GNUC_UNUSED,
                          const struct guest_gprs *gprs, uint64_t *arguments)
{
	probe_read_arguments(gprs, arguments);
	return true;
}

const struct probe_source probe_sources[PROBE_KINDS] = {
	[PROBE_PROFILE] = {.placement = &placement_profile},
	[PROBE_INTERVAL] = {.placement = &placement_interval},
	[PROBE_EXIT] = {.placement = &placement_exit},
	[PROBE_IO] = {.placement = &placement_io, .needs = PROBES_OF_PORTS},
	[PROBE_MMIO] = {.placement = &placement_mmio},
	[PROBE_MSR] = {.placement = &placement_msr, .needs = PROBES_OF_MSRS},
	[PROBE_SYSCALL] = {.placement = &placement_function, .entries = syscall_entries, .read = syscall_read},
	[PROBE_SYSCALL_RETURN] = {.placement = &placement_function,
                                  .needs = PROBES_OF_CALL_RETURNS,
                                  .entries = syscall_exits,
                                  .read = syscall_return_read},
	[PROBE_FUNCTION] = {.placement = &placement_function, .read = function_read},
	[PROBE_FUNCTION_RETURN] = {.placement = &placement_return},
	[PROBE_PROGRAM] = {.placement = &placement_program,
                           .patched = &placement_page,
                           .needs = PROBES_OF_PROGRAMS,
                           .find_places = user_program_of_function},
	[PROBE_PROGRAM_RETURN] = {.placement = &placement_program,
                                  .patched = &placement_page,
                                  .needs = PROBES_OF_PROGRAMS,
                                  .find_places = user_program_of_returns},
	[PROBE_NOTE] = {.placement = &placement_program,
                        .patched = &placement_page,
                        .needs = PROBES_OF_PROGRAMS,
                        .find_places = user_program_of_notes},
	[PROBE_TRACEPOINT] = {.placement = &placement_tracepoint,
                              .needs = PROBES_OF_TRACE_POINTS,
                              .arguments = probe_tracepoint_arguments},
	[PROBE_CALL_TRACE] = {.placement = &placement_function,
                              .entries = syscall_entries,
                              .read = syscall_read,
                              .arguments = probe_call_arguments},
	[PROBE_CALL_RETURN_TRACE] = {.placement = &placement_function,
                                     .needs = PROBES_OF_CALL_RETURNS,
                                     .entries = syscall_exits,
                                     .read = syscall_return_read},
	[PROBE_ALL_CALLS_TRACE] = {.placement = &placement_function, .entries = syscall_entries, .read = syscall_read},
	[PROBE_ALL_CALL_RETURNS_TRACE] = {.placement = &placement_function,
                                          .needs = PROBES_OF_CALL_RETURNS,
                                          .entries = syscall_exits,
                                          .read = syscall_return_read},
	[PROBE_MARKER] = {.placement = &placement_marker},
	[PROBE_RECORDING] = {.placement = &placement_recording},
};

const struct placement_ops *probe_placement_ops(const struct probe *probe)
{
	const struct probe_source *source = &probe_sources[probe->spec.kind];

	return source->patched && probe->options.breakpoint == GUEST_BREAKPOINT_PATCH ? source->patched
	                                                                              : source->placement;
}
