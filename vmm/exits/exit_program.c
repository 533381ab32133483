// SPDX-License-Identifier: BSD-2-Clause
#include "exits/exit_program.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "exit_record.h"
#include "exit_times.skel.h"
#include "exits/bpf_complaint.h"
#include "exits/trace_point.h"
#include "lib/record/clock.h"

G_DEFINE_QUARK(vprof_exit_program_error, exit_program_error)

#define KVM_EXIT "kvm/kvm_exit"
#define PID_NAMESPACE "/proc/self/ns/pid"
#define PID_NAMESPACE_FIRST 0xeffffffcu /* PROC_PID_INIT_INO in include/linux/proc_ns.h: the host's own */

struct exit_program {
	struct exit_times_bpf *object;
	int exit_event; /* a perf event of kvm_exit; -1 */
	int exit_link;  /* of the program to it; -1: not attached yet */
	bool attached;
	unsigned n_vcpus;
	struct exit_times_vcpu *vcpus; /* the map's memory */
	uint32_t threads[];            /* by vCPU; 0: none */
};

static bool fail(GError **error, enum exit_program_error code, const char *format, ...) G_GNUC_PRINTF(3, 4);
static bool fail(GError **error, enum exit_program_error code, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	if (error)
		*error = g_error_new_valist(EXIT_PROGRAM_ERROR, (gint)code, format, arguments);
	va_end(arguments);
	return false;
}

static bool fail_system(GError **error, const char *what, int number)
{
	if (number == EPERM || number == EACCES)
		return fail(
			error, EXIT_PROGRAM_ERROR_DENIED,
			"no permission to %s (%s); run vprof as root, or with CAP_PERFMON, better also CAP_BPF, and the right to read tracefs",
			what, g_strerror(number));
	return fail(error, EXIT_PROGRAM_ERROR_KERNEL, "cannot %s: %s", what, g_strerror(number));
}

/* ---- what it needs ---- */

/* Numbers of threads are those of the host's own PID namespace. */
static bool check_namespace(GError **error)
{
	struct stat status;

	if (stat(PID_NAMESPACE, &status) != 0 || status.st_ino == PID_NAMESPACE_FIRST)
		return true;
	return fail(error, EXIT_PROGRAM_ERROR_KERNEL,
	            "vprof runs in a PID namespace, where the host's threads have other numbers");
}

/* The members that struct kvm_exit_record in the program is read for. */
static bool check_record(const char *format, GError **error)
{
	static const struct {
		const char *name;
		unsigned offset, bytes;
	} fields[] = {EXIT_RECORD_FIELDS};

	for (size_t i = 0; i < G_N_ELEMENTS(fields); i++)
		if (!trace_point_has(format, fields[i].name, fields[i].offset, fields[i].bytes))
			return fail(error, EXIT_PROGRAM_ERROR_KERNEL,
			            "this kernel has another record of kvm:kvm_exit than 5.18 to 6.12");
	return true;
}

static bool event_open(struct exit_program *program, GError **error)
{
	g_autofree char *format = trace_point_format(KVM_EXIT);
	struct perf_event_attr attr = {.type = PERF_TYPE_TRACEPOINT, .size = sizeof(attr), .disabled = 1};
	uint64_t id;

	if (!format && errno == ENOENT)
		return fail(
			error, EXIT_PROGRAM_ERROR_KERNEL,
			"there is no trace point kvm:kvm_exit in /sys/kernel/tracing; is tracefs mounted, and KVM loaded?");
	if (!format)
		return fail_system(error, "read trace points", errno);
	if (!check_record(format, error))
		return false;
	if (!trace_point_id(format, &id))
		return fail(error, EXIT_PROGRAM_ERROR_KERNEL, "kvm:kvm_exit has no number");
	attr.config = id;
	/* Of every thread on processor 0; the program that it carries runs for all processors. */
	program->exit_event = (int)syscall(SYS_perf_event_open, &attr, -1, 0, -1, PERF_FLAG_FD_CLOEXEC);
	return program->exit_event >= 0 || fail_system(error, "open an event of kvm:kvm_exit", errno);
}

/* ---- loading ---- */

static size_t vcpus_bytes(const struct exit_program *program)
{
	return program->n_vcpus * sizeof(struct exit_times_vcpu);
}

static bool vcpus_map(struct exit_program *program, GError **error)
{
	void *memory = mmap(NULL, vcpus_bytes(program), PROT_READ | PROT_WRITE, MAP_SHARED,
	                    bpf_map__fd(program->object->maps.vcpus), 0);

	if (memory == MAP_FAILED)
		return fail_system(error, "map the memory of a BPF program", errno);
	program->vcpus = memory;
	return true;
}

static bool object_load(struct exit_program *program, GError **error)
{
	struct exit_times_bpf *object = exit_times_bpf__open();

	program->object = object;
	if (!object)
		return fail_system(error, "open a BPF program", errno);
	bpf_map__set_max_entries(object->maps.vcpus, program->n_vcpus);
	bpf_map__set_max_entries(object->maps.threads, program->n_vcpus);
	bpf_map__set_max_entries(object->maps.tasks, 2 * program->n_vcpus);
	bpf_complaint_begin();
	int number = -exit_times_bpf__load(object);
	const char *complaint = bpf_complaint_end();

	if (number == 0)
		return true;
	if (number == EPERM || number == EACCES)
		return fail_system(error, "load a BPF program", number);
	return fail(error, EXIT_PROGRAM_ERROR_KERNEL, "the kernel does not take the BPF program (%s: %s)",
	            g_strerror(number), complaint);
}

struct exit_program *exit_program_load(unsigned vcpus, GError **error)
{
	struct exit_program *program = g_malloc0(sizeof(*program) + vcpus * sizeof(*program->threads));

	program->n_vcpus = vcpus;
	program->exit_event = program->exit_link = -1;
	if (check_namespace(error) && event_open(program, error) && object_load(program, error) &&
	    vcpus_map(program, error))
		return program;
	exit_program_free(program);
	return NULL;
}

void exit_program_free(struct exit_program *program)
{
	if (!program)
		return;
	if (program->vcpus)
		munmap(program->vcpus, vcpus_bytes(program));
	if (program->exit_link >= 0)
		close(program->exit_link);
	if (program->exit_event >= 0)
		close(program->exit_event);
	exit_times_bpf__destroy(program->object);
	g_free(program);
}

/* ---- counting ---- */

bool exit_program_attach(struct exit_program *program, GError **error)
{
	struct exit_times_bpf *object = program->object;

	if (program->attached)
		return true;
	/* Not by libbpf's struct bpf_link, before which it loads programs to see what the kernel knows. */
	if (program->exit_link < 0) {
		program->exit_link = bpf_link_create(bpf_program__fd(object->progs.kvm_exit), program->exit_event,
		                                     BPF_PERF_EVENT, NULL);
		if (program->exit_link < 0 || ioctl(program->exit_event, PERF_EVENT_IOC_ENABLE, 0) != 0)
			return fail_system(error, "attach a BPF program to kvm:kvm_exit", errno);
	}
	int failed = exit_times_bpf__attach(object);

	if (failed)
		return fail_system(error, "attach a BPF program to trace points", failed < 0 ? -failed : errno);
	program->attached = true;
	return true;
}

bool exit_program_follow(struct exit_program *program, unsigned vcpu, pid_t thread, GError **error)
{
	const int threads = bpf_map__fd(program->object->maps.threads);
	const uint32_t number = (uint32_t)thread;
	struct exit_times_vcpu *memory = &program->vcpus[vcpu];

	if (program->threads[vcpu])
		bpf_map_delete_elem(threads, &program->threads[vcpu]);
	program->threads[vcpu] = 0;
	memset(memory, 0, sizeof(*memory));
	memory->now.since_ns = clock_ns(CLOCK_MONOTONIC);
	memory->now.part = EXIT_TIMES_UNKNOWN;
	if (bpf_map_update_elem(threads, &number, &vcpu, BPF_ANY) != 0)
		return fail_system(error, "name a thread to a BPF program", errno);
	program->threads[vcpu] = number;
	return true;
}

const struct exit_times_vcpu *exit_program_vcpu(const struct exit_program *program, unsigned vcpu)
{
	return &program->vcpus[vcpu];
}
