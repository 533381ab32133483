// SPDX-License-Identifier: BSD-2-Clause
#include "exits/exit_trace.h"

#include <unistd.h>

#include "exits/exit_events.h"
#include "exits/exit_program.h"

/* One of the two. */
struct exit_trace {
	struct exit_program *program;
	struct exit_events *events;
	char *without_bpf;
};

struct exit_trace *exit_trace_load(unsigned vcpus, GError **error)
{
	g_autoptr(GError) why = NULL;

	/* kvm.ko takes one vendor module at a time. */
	if (access("/sys/module/kvm_pvm", F_OK) == 0) {
		g_set_error_literal(error, EXIT_PROGRAM_ERROR, EXIT_PROGRAM_ERROR_KERNEL,
		                    "kvm_pvm has no trace points at a guest's entries and exits");
		return NULL;
	}
	struct exit_program *program = exit_program_load(vcpus, &why);
	struct exit_events *events = program ? NULL : exit_events_load(vcpus, NULL);

	if (!program && !events) {
		g_propagate_error(error, g_steal_pointer(&why));
		return NULL;
	}
	struct exit_trace *trace = g_new0(struct exit_trace, 1);

	trace->program = program;
	trace->events = events;
	trace->without_bpf = g_strdup(why ? why->message : NULL);
	return trace;
}

void exit_trace_free(struct exit_trace *trace)
{
	if (!trace)
		return;
	exit_program_free(trace->program);
	exit_events_free(trace->events);
	g_free(trace->without_bpf);
	g_free(trace);
}

const char *exit_trace_without_bpf(const struct exit_trace *trace)
{
	return trace->without_bpf;
}

bool exit_trace_attach(struct exit_trace *trace, GError **error)
{
	return trace->program ? exit_program_attach(trace->program, error) : exit_events_attach(trace->events, error);
}

bool exit_trace_follow(struct exit_trace *trace, unsigned vcpu, pid_t thread, GError **error)
{
	return trace->program ? exit_program_follow(trace->program, vcpu, thread, error)
	                      : exit_events_follow(trace->events, vcpu, thread, error);
}

struct exit_source exit_trace_source(struct exit_trace *trace, unsigned vcpu)
{
	if (trace->program)
		return (struct exit_source){.memory = exit_program_vcpu(trace->program, vcpu)};
	return (struct exit_source){.copy = exit_events_copy, .data = trace->events, .vcpu = vcpu};
}
