// SPDX-License-Identifier: BSD-2-Clause
/* For builds without libbpf, bpftool or clang. */
#include "exits/exit_program.h"

G_DEFINE_QUARK(vprof_exit_program_error, exit_program_error)

struct exit_program *exit_program_load(unsigned vcpus G_GNUC_UNUSED, GError **error)
{
	g_set_error_literal(error, EXIT_PROGRAM_ERROR, EXIT_PROGRAM_ERROR_ABSENT,
	                    "vprof was built without libbpf, bpftool or clang");
	return NULL;
}

void exit_program_free(struct exit_program *program G_GNUC_UNUSED)
{
}

/* There is no program, so the rest is never called. */

bool exit_program_attach(struct exit_program *program G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	return false;
}

bool exit_program_follow(struct exit_program *program G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                         pid_t thread G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	return false;
}

const struct exit_times_vcpu *exit_program_vcpu(const struct exit_program *program G_GNUC_UNUSED,
                                                unsigned vcpu G_GNUC_UNUSED)
{
	return NULL;
}
