// SPDX-License-Identifier: BSD-2-Clause
#include "attach/guest_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>

#include "attach/bpf_load.h"
#include "guest_sample.skel.h"

G_DEFINE_QUARK(vprof_guest_program_error, guest_program_error)

struct guest_program {
	struct guest_sample_bpf *object;
};

/* A link of libbpf. */
struct guest_program_link {
	struct bpf_link *link;
};

struct guest_program *guest_program_load(GError **error)
{
	bpf_load_begin();
	struct guest_sample_bpf *object = guest_sample_bpf__open_and_load();

	bpf_load_end(object ? 0 : errno, error);
	if (!object)
		return NULL;
	struct guest_program *program = g_new0(struct guest_program, 1);

	program->object = object;
	return program;
}

void guest_program_free(struct guest_program *program)
{
	if (!program)
		return;
	guest_sample_bpf__destroy(program->object);
	g_free(program);
}

void guest_program_set(struct guest_program *program, const struct guest_sample_settings *settings)
{
	program->object->bss->settings = *settings;
}

bool guest_program_output(struct guest_program *program, unsigned vcpu, int event_fd, GError **error)
{
	if (bpf_map_update_elem(bpf_map__fd(program->object->maps.output), &vcpu, &event_fd, BPF_ANY) == 0)
		return true;
	g_set_error(error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_KERNEL,
	            "cannot hand the ring of vCPU %u to the BPF program: %s", vcpu, g_strerror(errno));
	return false;
}

struct guest_program_link *guest_program_attach(struct guest_program *program, int event_fd, unsigned vcpu,
                                                unsigned event, GError **error)
{
	LIBBPF_OPTS(bpf_perf_event_opts, options, .bpf_cookie = GUEST_SAMPLE_COOKIE(vcpu, event));
	struct bpf_link *link =
		bpf_program__attach_perf_event_opts(program->object->progs.overflow, event_fd, &options);

	if (!link) {
		g_set_error(error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_KERNEL,
		            "cannot run the BPF program at the events of vCPU %u: %s", vcpu, g_strerror(errno));
		return NULL;
	}
	struct guest_program_link *one = g_new0(struct guest_program_link, 1);

	one->link = link;
	return one;
}

void guest_program_detach(struct guest_program_link *link)
{
	bpf_link__destroy(link->link);
	g_free(link);
}

uint64_t guest_program_unsent(const struct guest_program *program, unsigned vcpu)
{
	return __atomic_load_n(&program->object->bss->unsent[vcpu], __ATOMIC_RELAXED);
}
