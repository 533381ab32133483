// SPDX-License-Identifier: BSD-2-Clause
#include "attach/guest_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "guest_sample.skel.h"

G_DEFINE_QUARK(vprof_guest_program_error, guest_program_error)

struct guest_program {
	struct guest_sample_bpf *object;
};

/* A link of libbpf. */
struct guest_program_link {
	struct bpf_link *link;
};

/* The first line of what libbpf has to complain of while it loads: the cause. The rest is a log of the verifier. */
static char complaint[160];

static int take_complaint(enum libbpf_print_level level, const char *format, va_list arguments)
{
	if (level != LIBBPF_WARN || complaint[0] != '\0')
		return 0;
	vsnprintf(complaint, sizeof(complaint), format, arguments);
	complaint[strcspn(complaint, "\n")] = '\0';
	return 0;
}

static void load_error(int number, GError **error)
{
	if (number == EPERM || number == EACCES)
		g_set_error(
			error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_DENIED,
			"the kernel lets us load no BPF program (%s); run vprof as root, or with CAP_BPF and CAP_PERFMON, and with CAP_SYS_ADMIN where KVM is a module (to read its BTF)",
			g_strerror(number));
	else
		g_set_error(
			error, GUEST_PROGRAM_ERROR, GUEST_PROGRAM_ERROR_KERNEL,
			"the kernel does not take the BPF program (%s: %s); it needs Linux 5.17 or newer with BTF of its KVM (CONFIG_DEBUG_INFO_BTF)",
			g_strerror(number), complaint);
}

struct guest_program *guest_program_load(GError **error)
{
	libbpf_print_fn_t before = libbpf_set_print(take_complaint);

	complaint[0] = '\0';
	struct guest_sample_bpf *object = guest_sample_bpf__open_and_load();
	int number = errno;

	libbpf_set_print(before);
	if (!object) {
		load_error(number, error);
		return NULL;
	}
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
