// SPDX-License-Identifier: BSD-2-Clause
#include "attach/qemu_guest.h"

#include <string.h>
#include <unistd.h>

#include "attach/asker.h"
#include "attach/guest_memory.h"
#include "attach/guest_program.h"
#include "attach/qemu_process.h"
#include "attach/vcpu_arch.h"
#include "attach/vcpu_calls.h"
#include "guest/os.h"
#include "lib/process/kvm_process.h"

static struct qemu_guest *qemu_of(struct guest *guest)
{
	return (struct qemu_guest *)guest;
}

/* ---- guest_ops ---- */

static bool guest_start(struct guest *guest, GError **error G_GNUC_UNUSED)
{
	struct qemu_guest *qemu = qemu_of(guest);

	guest->state = GUEST_RUNNING;
	qemu_life_start(qemu);
	return true;
}

/* Our part in it ends; the guest's own end is not ours to decide. */
static void guest_stop(struct guest *guest, enum guest_end_reason reason, const char *message)
{
	qemu_life_end(qemu_of(guest), reason, message);
}

static bool guest_run_on_vcpu(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                              void (*fn)(void *data) G_GNUC_UNUSED, void *data G_GNUC_UNUSED)
{
	return false; /* those threads are QEMU's */
}

static bool guest_read(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	struct qemu_guest *qemu = qemu_of(guest);

	return qemu->memory && guest_memory_read(qemu->memory, from, to, bytes);
}

static void guest_console_input(struct guest *guest G_GNUC_UNUSED, const uint8_t *bytes G_GNUC_UNUSED,
                                size_t n G_GNUC_UNUSED)
{
}

/* KVM has the page tables alone; the monitor has all registers. */
static void guest_vcpus_look(struct guest *guest, void (*look)(void *data, const struct guest_vcpu *vcpu), void *data)
{
	struct qemu_guest *qemu = qemu_of(guest);
	struct seen_vcpu registers[GUEST_VCPUS_MAX + 1];
	size_t n = qemu_kernel_registers(qemu, registers);

	for (size_t i = 0; i < n; i++) {
		const struct guest_vcpu vcpu = {
			.apic_id = registers[i].vcpu, .whole = !qemu->view, .regs = registers[i].regs};

		look(data, &vcpu);
	}
}

static const struct guest_ops qemu_ops = {
	.start = guest_start,
	.stop = guest_stop,
	.run_on_vcpu = guest_run_on_vcpu,
	.memory_read = guest_read,
	.console_input = guest_console_input,
	.vcpu_time = qemu_clocks_read,
	.vcpus_look = guest_vcpus_look,
	.kernel_used = qemu_kernel_used,
};

/* ---- finding the process ---- */

static bool refuse_confidential(const struct qemu_guest *qemu, const char *type, GError **error)
{
	const char *name = strcasestr(type, "tdx") ? "TDX" : strcasestr(type, "sev") ? "SEV" : type;

	g_set_error(
		error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_CONFIDENTIAL,
		"cannot profile %s: it is a confidential guest (%s) with encrypted memory and registers; profile it from inside",
		qemu->guest.name, name);
	return false;
}

static bool find_by_monitor(struct qemu_guest *qemu, GError **error)
{
	json_t *cpus = monitor_ask(qemu->monitor, MONITOR_CPUS, error);

	if (!cpus)
		return false;
	qemu->guest.vcpus = qemu_threads_from_qmp(cpus, qemu->threads);
	qemu_paths_from_qmp(cpus, qemu->paths);
	json_decref(cpus);
	if (qemu->guest.vcpus == 0) {
		g_set_error(error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_VCPUS,
		            "cannot attach to %s: it has vCPUs above number %u, or none", qemu->guest.name,
		            GUEST_VCPUS_MAX - 1);
		return false;
	}
	pid_t pid = qemu_process_of_thread(qemu->threads[0]);

	if (pid == 0 || (qemu->pid != 0 && pid != qemu->pid)) {
		g_set_error(error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_PROCESS,
		            "cannot attach to %s: its vCPU thread %d is %s; is QEMU in another PID namespace?",
		            qemu->guest.name, (int)qemu->threads[0], pid == 0 ? "not here" : "another process's");
		return false;
	}
	qemu->pid = pid;
	return true;
}

/* Without KVM's view: by the calls of the threads, or for a QEMU, whose vCPUs may wait elsewhere, by their names. */
static bool find_by_threads(struct qemu_guest *qemu, GError **error)
{
	enum kvm_process_state state;
	struct kvm_process files;

	qemu->guest.vcpus = qemu_threads_from_names(qemu->pid, qemu->threads);
	if (qemu->guest.vcpus > 0 && qemu_process_is_qemu(qemu->pid))
		return true;
	state = kvm_process_read("/proc", qemu->pid, &files);
	switch (state) {
	case KVM_PROCESS_VMM:
		qemu->guest.vcpus = vcpu_calls_find(&files, qemu->threads);
		qemu->accelerator = g_strdup("kvm");
		if (qemu->guest.vcpus > 0)
			return true;
		g_set_error(error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_VCPUS,
		            "cannot tell which threads of process %d run its %u vCPUs: %s", (int)qemu->pid,
		            files.n_vcpus, qemu->view_why);
		break;
	case KVM_PROCESS_DENIED:
		g_set_error(
			error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_PROCESS,
			"cannot look into process %d, which belongs to another user; run vprof as root, or as its user",
			(int)qemu->pid);
		break;
	case KVM_PROCESS_GONE:
		g_set_error(error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_PROCESS,
		            "there is no process %d here; see \"vprof attach --list\"", (int)qemu->pid);
		break;
	case KVM_PROCESS_NONE:
		g_set_error(
			error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_VCPUS,
			"process %d is no VMM: it has no vCPU of KVM, and no thread named \"CPU 0/TCG\" (QEMU with -name debug-threads=on); else give its --qmp SOCKET",
			(int)qemu->pid);
		break;
	}
	return false;
}

/* By KVM, which knows the vCPUs of every VMM; else by what its threads show. */
static bool find_by_process(struct qemu_guest *qemu, GError **error)
{
	g_autoptr(GError) why = NULL;

	if (qemu_machine_open(qemu, &why))
		return true;
	qemu->view_why = g_strdup(why->message);
	return find_by_threads(qemu, error);
}

/* By libvirt's own command line for it, which everybody may read; names of domains are unique, and so are UUIDs. */
static bool process_by_uuid(struct qemu_guest *qemu, GError **error)
{
	unsigned n;

	qemu->pid = qemu_process_of_uuid(qemu->domain->uuid, &n);
	if (n == 1)
		return true;
	g_set_error(
		error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_PROCESS,
		n == 0 ? "cannot attach to %s: no process here has its UUID; is QEMU in another PID namespace, or /proc mounted with hidepid?"
		       : "cannot attach to %s: several processes have its UUID on their command line; say which by --pid",
		qemu->guest.name);
	qemu->pid = 0;
	return false;
}

/* Without the permission to send commands, this still tells something. */
static bool find_without_view(struct qemu_guest *qemu, GError **error)
{
	g_autoptr(GError) why = NULL;

	if (qemu->monitor && find_by_monitor(qemu, &why))
		return true;
	if (qemu->monitor && !g_error_matches(why, MONITOR_ERROR, MONITOR_ERROR_GONE)) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	qemu->monitor = NULL;
	qemu->monitor_why = g_strdup(why ? why->message : "--no-monitor was given");
	return (qemu->pid != 0 || process_by_uuid(qemu, error)) && find_by_threads(qemu, error);
}

/* KVM is asked first: libvirt warns of domains to which commands were sent. */
static bool find_domain(struct qemu_guest *qemu, GError **error)
{
	g_autoptr(GError) why = NULL;

	if (process_by_uuid(qemu, &why) && qemu_machine_open(qemu, &why)) {
		if (!qemu->monitor)
			qemu->monitor_why = g_strdup("--no-monitor was given");
		return true;
	}
	qemu->view_why = g_strdup(why->message);
	return find_without_view(qemu, error);
}

static bool open_domain(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	qemu->domain = asker_wait(qemu->asker, qemu_life_event, qemu, error);
	if (!qemu->domain)
		return false;
	qemu->guest.name = g_strdup(qemu->domain->name);
	qemu->guest.vsock_cid = qemu->domain->vsock_cid;
	qemu->monitor = config->no_monitor ? NULL : asker_monitor(qemu->asker);
	/* Before anything is asked of a QEMU that would not answer. */
	if (qemu->domain->security[0] != '\0')
		return refuse_confidential(qemu, qemu->domain->security, error);
	if (!find_domain(qemu, error))
		return false;
	qemu->guest.vcpus = MIN(MAX(qemu->guest.vcpus, qemu->domain->vcpus_max), GUEST_VCPUS_MAX);
	return true;
}

static bool open_process(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	qemu->pid = config->pid;
	qemu->guest.name = qemu_process_name(config->pid);
	if (!qemu->asker) {
		qemu->monitor_why = g_strdup(qemu_process_is_qemu(qemu->pid) ? "there is none; give --qmp SOCKET"
		                                                             : "only QEMU has one");
		return find_by_process(qemu, error);
	}
	qemu->view_why = g_strdup("a monitor was given");
	if (!asker_wait(qemu->asker, qemu_life_event, qemu, error))
		return false;
	qemu->monitor = asker_monitor(qemu->asker);
	return find_by_monitor(qemu, error);
}

/* ---- what it is ---- */

/* A property that is text; new string, "" for anything else. */
static char *monitor_property(struct qemu_guest *qemu, enum monitor_command command, const char *path)
{
	struct monitor_request request = {.command = command};

	g_strlcpy(request.path, path, sizeof(request.path));
	json_t *value = monitor_execute(qemu->monitor, &request, NULL);
	char *text = g_strdup(json_is_string(value) ? json_string_value(value) : "");

	json_decref(value);
	return text;
}

/* The machine's link to an object of type "sev-guest", "sev-snp-guest" or "tdx-guest"; empty without. */
static bool check_confidential(struct qemu_guest *qemu, GError **error)
{
	if (qemu->machine.confidential)
		return refuse_confidential(qemu, qemu->machine.confidential, error);
	if (!qemu_guest_monitor(qemu))
		return true;
	g_autofree char *object = monitor_property(qemu, MONITOR_CONFIDENTIAL, "");

	if (object[0] == '\0')
		return true;
	g_autofree char *type = monitor_property(qemu, MONITOR_TYPE, object);

	return refuse_confidential(qemu, type, error);
}

static void learn_memory_bytes(struct qemu_guest *qemu)
{
	json_t *sizes = monitor_ask(qemu->monitor, MONITOR_MEMORY_SIZE, NULL);

	qemu->guest.memory_bytes = (uint64_t)(json_integer_value(json_object_get(sizes, "base-memory")) +
	                                      json_integer_value(json_object_get(sizes, "plugged-memory")));
	json_decref(sizes);
}

static void open_memory(struct qemu_guest *qemu)
{
	g_autoptr(GError) error = NULL;

	if (!qemu->view && !qemu->monitor) {
		qemu->memory_why = g_strdup("where the guest's RAM is, only KVM or QEMU's monitor says");
		return;
	}
	qemu->memory = guest_memory_open(qemu->pid, &error);
	if (qemu->memory && qemu->view)
		guest_memory_set(qemu->memory, qemu->machine.ranges, qemu->machine.n_ranges);
	else if (qemu->memory && !guest_memory_map(qemu->memory, qemu->monitor, &error))
		g_clear_pointer(&qemu->memory, guest_memory_free);
	if (error)
		qemu->memory_why = g_strdup(error->message);
}

/* What only the monitor says, unless KVM does. */
static void learn_by_monitor(struct qemu_guest *qemu)
{
	qemu->runs = qemu_guest_says(qemu, MONITOR_STATUS, "running");
	qemu->accelerator = g_strdup(qemu_guest_says(qemu, MONITOR_KVM, "enabled") ? "kvm" : "tcg");
	learn_memory_bytes(qemu);
}

static void learn(struct qemu_guest *qemu)
{
	open_memory(qemu);
	if (qemu->view) {
		qemu->accelerator = g_strdup("kvm");
	} else if (qemu->monitor) {
		learn_by_monitor(qemu);
	} else {
		qemu->runs = true;
		if (qemu->domain)
			qemu->accelerator = g_strdup(strcmp(qemu->domain->type, "kvm") == 0 ? "kvm" : "tcg");
	}
}

static bool attach(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	qemu->kernel_file = config->kernel_path ? image_open_kernel(config->kernel_path, error) : -1;
	if (config->kernel_path && qemu->kernel_file < 0)
		return false;
	return (config->pid == 0 ? open_domain(qemu, config, error) : open_process(qemu, config, error)) &&
	       qemu_life_watch(qemu, error) && check_confidential(qemu, error);
}

static void leave_libvirt(struct qemu_guest *qemu)
{
	qemu->domain = NULL;
	asker_end(g_steal_pointer(&qemu->asker));
}

struct qemu_guest *qemu_guest_new(const struct qemu_guest_config *config, GError **error)
{
	struct qemu_guest *qemu = g_new0(struct qemu_guest, 1);

	qemu->asker = config->asker;
	qemu->guest.ops = &qemu_ops;
	qemu->guest.kind = "qemu";
	qemu->guest.processor = vcpu_arch_processor();
	qemu->guest.routes = vcpu_arch_routes;
	qemu->guest.searches = config->searches;
	qemu->pidfd = qemu->kernel_file = -1;
	qemu->kernel_path = g_strdup(config->kernel_path);
	qemu->duration_s = config->duration_s;
	qemu->lean = config->lean;
	if (!attach(qemu, config, error)) {
		qemu_guest_free(qemu);
		return NULL;
	}
	qemu->guest.process = qemu->pid;
	learn(qemu);
	if (qemu->lean && qemu->domain && qemu->view && !qemu->monitor)
		leave_libvirt(qemu);
	return qemu;
}

bool qemu_guest_look(struct qemu_guest *qemu, GError **error)
{
	qemu_kernel_look(qemu);
	return qemu_guest_looked(qemu, error);
}

void qemu_guest_begin(struct qemu_guest *qemu, void (*looked)(void *data), void *data)
{
	qemu_kernel_begin(qemu, looked, data);
	qemu_life_follow(qemu);
}

bool qemu_guest_looked(const struct qemu_guest *qemu, GError **error)
{
	if (!qemu->kernel_path || qemu->kernel.image || qemu->kernel_early)
		return true;
	g_set_error_literal(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER, qemu->guest.kernel_why);
	return false;
}

void qemu_guest_detach(struct qemu_guest *qemu)
{
	qemu_kernel_end(qemu);
	qemu_life_unwatch(qemu);
	asker_free(g_steal_pointer(&qemu->asker));
	qemu->domain = NULL;
	qemu->monitor = NULL;
}

void qemu_guest_free(struct qemu_guest *qemu)
{
	if (!qemu)
		return;
	qemu_guest_detach(qemu);
	qemu_clocks_clear(qemu);
	for (size_t i = 0; i < GUEST_VCPUS_MAX; i++)
		g_free(qemu->paths[i]);
	guest_program_free(qemu->program);
	guest_memory_free(qemu->memory);
	kvm_view_close(qemu->view);
	kernel_found_clear(&qemu->kernel);
	os_parts_free(qemu->guest.kernel_parts);
	g_free(qemu->view_why);
	g_free(qemu->monitor_why);
	g_free(qemu->memory_why);
	g_free(qemu->guest.kernel_why);
	g_free(qemu->kernel_path);
	if (qemu->kernel_file >= 0)
		close(qemu->kernel_file);
	g_free(qemu->accelerator);
	g_free(qemu->guest.name);
	g_free(qemu->guest.build_id);
	g_free(qemu->guest.release);
	g_free(qemu->guest.end.message);
	g_free(qemu);
}
