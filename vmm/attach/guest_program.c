// SPDX-License-Identifier: BSD-2-Clause
#include "attach/guest_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "attach/bpf_load.h"
#include "guest_sample.skel.h"

G_DEFINE_QUARK(vprof_guest_program_error, guest_program_error)

struct guest_program {
	struct guest_sample_bpf *object;
};

struct guest_program_link {
	int link, event;
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
	/* Not by libbpf's struct bpf_link, before which it loads programs to see what the kernel knows. */
	LIBBPF_OPTS(bpf_link_create_opts, options, .perf_event.bpf_cookie = GUEST_SAMPLE_COOKIE(vcpu, event));
	int link =
		bpf_link_create(bpf_program__fd(program->object->progs.overflow), event_fd, BPF_PERF_EVENT, &options);

	if (link < 0 || ioctl(event_fd, PERF_EVENT_IOC_ENABLE, 0) != 0) {
		g_set_error(error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_KERNEL,
		            "cannot run the BPF program at the events of vCPU %u: %s", vcpu, g_strerror(errno));
		if (link >= 0)
			close(link);
		return NULL;
	}
	struct guest_program_link *one = g_new(struct guest_program_link, 1);

	*one = (struct guest_program_link){link, event_fd};
	return one;
}

void guest_program_detach(struct guest_program_link *link)
{
	close(link->link);
	close(link->event);
	g_free(link);
}

uint64_t guest_program_unsent(const struct guest_program *program, unsigned vcpu)
{
	return __atomic_load_n(&program->object->bss->unsent[vcpu], __ATOMIC_RELAXED);
}
