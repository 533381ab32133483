// SPDX-License-Identifier: BSD-2-Clause
/* What makes each kind of probe fire: a row each, with the arguments of its events. */
#include <linux/kvm.h>
#include <string.h>

#include "guest/gprs.h"
#include "guest/page_walk.h"
#include "guest/processor.h"
#include "probe/probe_priv.h"

#define MARK_PORT 0x80u

/* ---- what is seen at exits ---- */

static bool access_matches(const struct probe_spec *spec, const struct guest_access *access)
{
	return access->address >= spec->first && access->address <= spec->last &&
	       (access->write ? spec->write : spec->read);
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

static bool exit_access(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments)
{
	arguments[0] = access->reason;
	arguments[1] = access->address;
	return access->reason >= spec->first && access->reason <= spec->last;
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

/* The result, if there is one. The time is the prober's. */
static bool return_hit(const struct probe_spec *spec G_GNUC_UNUSED, struct guest *guest G_GNUC_UNUSED,
                       const struct guest_regs *regs G_GNUC_UNUSED, const struct guest_gprs *gprs, uint64_t *arguments)
{
	arguments[0] = guest_gprs_result(gprs);
	return true;
}

/* The arguments are the prober's. */
static bool notes_hit(const struct probe_spec *spec G_GNUC_UNUSED, struct guest *guest G_GNUC_UNUSED,
                      const struct guest_regs *regs G_GNUC_UNUSED, const struct guest_gprs *gprs G_GNUC_UNUSED,
                      uint64_t *arguments G_GNUC_UNUSED)
{
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

const struct probe_source probe_sources[PROBE_KINDS] = {
	[PROBE_PROFILE] = {.trigger = PROBE_BY_TIMER, .every_vcpu = true},
	[PROBE_INTERVAL] = {.trigger = PROBE_BY_TIMER},
	[PROBE_EXIT] = {.trigger = PROBE_BY_ACCESS, .access = exit_access},
	[PROBE_IO] = {.trigger = PROBE_BY_ACCESS, .needs = PROBES_OF_PORTS, .access = io_access},
	[PROBE_MMIO] = {.trigger = PROBE_BY_ACCESS, .access = mmio_access},
	[PROBE_MSR] = {.trigger = PROBE_BY_ACCESS, .needs = PROBES_OF_MSRS, .access = msr_access},
	[PROBE_SYSCALL] = {.trigger = PROBE_BY_BREAKPOINT, .entries = syscall_entries, .hit = syscall_hit},
	[PROBE_SYSCALL_RETURN] = {.trigger = PROBE_BY_BREAKPOINT,
                                  .needs = PROBES_OF_CALL_RETURNS,
                                  .entries = syscall_exits,
                                  .hit = syscall_return_hit},
	[PROBE_FUNCTION] = {.trigger = PROBE_BY_BREAKPOINT, .hit = function_hit},
	[PROBE_FUNCTION_RETURN] = {.trigger = PROBE_BY_BREAKPOINT, .returns = true, .hit = return_hit},
	[PROBE_PROGRAM] = {.trigger = PROBE_BY_BREAKPOINT,
                           .programs = true,
                           .needs = PROBES_OF_PROGRAMS,
                           .hit = function_hit},
	[PROBE_PROGRAM_RETURN] = {.trigger = PROBE_BY_BREAKPOINT,
                                  .programs = true,
                                  .returns = true,
                                  .needs = PROBES_OF_PROGRAMS,
                                  .hit = return_hit},
	[PROBE_NOTE] = {.trigger = PROBE_BY_BREAKPOINT,
                        .programs = true,
                        .notes = true,
                        .needs = PROBES_OF_PROGRAMS,
                        .hit = notes_hit},
	[PROBE_TRACEPOINT] = {.trigger = PROBE_BY_BREAKPOINT, .traces = true, .needs = PROBES_OF_TRACE_POINTS},
	[PROBE_CALL_TRACE] = {.trigger = PROBE_BY_BREAKPOINT,
                              .calls = true,
                              .entries = syscall_entries,
                              .hit = syscall_hit},
	[PROBE_CALL_RETURN_TRACE] = {.trigger = PROBE_BY_BREAKPOINT,
                                     .needs = PROBES_OF_CALL_RETURNS,
                                     .entries = syscall_exits,
                                     .hit = syscall_return_hit},
	[PROBE_ALL_CALLS_TRACE] = {.trigger = PROBE_BY_BREAKPOINT, .entries = syscall_entries, .hit = syscall_hit},
	[PROBE_ALL_CALL_RETURNS_TRACE] = {.trigger = PROBE_BY_BREAKPOINT,
                                          .needs = PROBES_OF_CALL_RETURNS,
                                          .entries = syscall_exits,
                                          .hit = syscall_return_hit},
	[PROBE_MARKER] = {.trigger = PROBE_BY_ACCESS, .access = marker_access},
	[PROBE_RECORDING] = {.trigger = PROBE_BY_RECORDING},
};
