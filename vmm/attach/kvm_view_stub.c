// SPDX-License-Identifier: BSD-2-Clause
/* A build without libbpf, bpftool or a clang that compiles for BPF. */
#include "attach/kvm_view.h"

#include "attach/guest_program.h"

struct kvm_view *kvm_view_open(pid_t pid G_GNUC_UNUSED, GError **error)
{
	g_set_error_literal(error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_ABSENT,
	                    "this vprof-attach was built without BPF; build it with libbpf, bpftool and clang");
	return NULL;
}

void kvm_view_close(struct kvm_view *view G_GNUC_UNUSED)
{
}

/* There is no view, so the rest is never called. */
bool kvm_view_read(struct kvm_view *view G_GNUC_UNUSED, struct kvm_machine *machine G_GNUC_UNUSED,
                   GError **error G_GNUC_UNUSED)
{
	return false;
}

size_t kvm_view_counters(struct kvm_view *view G_GNUC_UNUSED, unsigned id G_GNUC_UNUSED,
                         struct guest_counter counters[GUEST_COUNTERS_MAX] G_GNUC_UNUSED)
{
	return 0;
}
