// SPDX-License-Identifier: BSD-2-Clause
/* A build without libbpf, bpftool or a clang that compiles for BPF. */
#include "attach/guest_program.h"

G_DEFINE_QUARK(vprof_guest_program_error, guest_program_error)

struct guest_program *guest_program_load(GError **error)
{
	g_set_error_literal(error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_ABSENT,
	                    "this vprof-attach was built without BPF; build it with libbpf, bpftool and clang");
	return NULL;
}

void guest_program_free(struct guest_program *program G_GNUC_UNUSED)
{
}

/* There is no program, so the rest is never called. */

void guest_program_set(struct guest_program *program G_GNUC_UNUSED,
                       const struct guest_sample_settings *settings G_GNUC_UNUSED)
{
}

bool guest_program_output(struct guest_program *program G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                          int event_fd G_GNUC_UNUSED, GError **error G_GNUC_UNUSED)
{
	return false;
}

struct guest_program_link *guest_program_attach(struct guest_program *program G_GNUC_UNUSED, int event_fd G_GNUC_UNUSED,
                                                unsigned vcpu G_GNUC_UNUSED, unsigned event G_GNUC_UNUSED,
                                                GError **error G_GNUC_UNUSED)
{
	return NULL;
}

void guest_program_detach(struct guest_program_link *link G_GNUC_UNUSED)
{
}

uint64_t guest_program_unsent(const struct guest_program *program G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED)
{
	return 0;
}
