// SPDX-License-Identifier: BSD-2-Clause
#include "attach/qemu_guest.h"

#include <string.h>

#include "attach/domain.h"
#include "attach/guest_memory.h"
#include "attach/guest_program.h"
#include "attach/qemu_process.h"

/* Best first. */
static const struct counter_route *const routes[] = {&route_bpf, &route_perf, &route_monitor, NULL};

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

static const struct guest_ops qemu_ops = {
	.start = guest_start,
	.stop = guest_stop,
	.run_on_vcpu = guest_run_on_vcpu,
	.memory_read = guest_read,
	.console_input = guest_console_input,
	.vcpu_time = qemu_clocks_read,
};

/* ---- finding the process ---- */

static bool refuse_confidential(const struct qemu_guest *qemu, const char *type, GError **error)
{
	const char *name = strstr(type, "tdx") ? "TDX" : strstr(type, "sev") ? "SEV" : type;

	g_set_error(
		error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_CONFIDENTIAL,
		"cannot profile %s: it is a confidential guest (%s) with encrypted memory and registers; profile it from inside",
		qemu->guest.name, name);
	return false;
}

static bool find_by_monitor(struct qemu_guest *qemu, GError **error)
{
	json_t *cpus = monitor_execute(qemu->monitor, "query-cpus-fast", NULL, error);

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

static bool find_by_names(struct qemu_guest *qemu, GError **error)
{
	qemu->guest.vcpus = qemu_threads_from_names(qemu->pid, qemu->threads);
	if (qemu->guest.vcpus > 0)
		return true;
	g_set_error(
		error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_VCPUS,
		"process %d has no threads named \"CPU 0/KVM\"; is it QEMU with -name debug-threads=on? Else give its --qmp SOCKET",
		(int)qemu->pid);
	return false;
}

/* By libvirt's own command line for it, which everybody may read; names of domains are unique, and so are UUIDs. */
static bool find_by_uuid(struct qemu_guest *qemu, GError **error)
{
	unsigned n;

	qemu->pid = qemu_process_of_uuid(domain_uuid(qemu->domain), &n);
	if (n == 1)
		return find_by_names(qemu, error);
	g_set_error(
		error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_PROCESS,
		n == 0 ? "cannot attach to %s: no process here has its UUID; is QEMU in another PID namespace, or /proc mounted with hidepid?"
		       : "cannot attach to %s: several processes have its UUID on their command line; say which by --pid",
		qemu->guest.name);
	return false;
}

/* Without the permission to send commands, this still tells something. */
static bool find_domain(struct qemu_guest *qemu, GError **error)
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
	return find_by_uuid(qemu, error);
}

static bool open_domain(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	qemu->domain =
		domain_open(config->connect_uri, config->domain, !config->no_monitor, qemu_life_event, qemu, error);
	if (!qemu->domain)
		return false;
	qemu->guest.name = g_strdup(domain_name(qemu->domain));
	qemu->guest.vsock_cid = domain_vsock_cid(qemu->domain);
	qemu->monitor = config->no_monitor ? NULL : domain_monitor(qemu->domain);
	/* Before anything is asked of a QEMU that would not answer. */
	if (domain_security(qemu->domain))
		return refuse_confidential(qemu, domain_security(qemu->domain), error);
	if (!find_domain(qemu, error))
		return false;
	qemu->guest.vcpus = MIN(MAX(qemu->guest.vcpus, domain_vcpus_max(qemu->domain)), GUEST_VCPUS_MAX);
	return true;
}

static bool open_process(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	qemu->pid = config->pid;
	qemu->guest.name = g_strdup_printf("qemu-%d", (int)config->pid);
	if (!config->qmp_path) {
		qemu->monitor_why = g_strdup("there is none; give --qmp SOCKET");
		return find_by_names(qemu, error);
	}
	qemu->monitor = monitor_open_socket(config->qmp_path, error);
	return qemu->monitor && find_by_monitor(qemu, error);
}

/* ---- what it is ---- */

/* A property that is text; new string, "" for anything else. */
static char *monitor_property(struct qemu_guest *qemu, const char *path, const char *property)
{
	json_t *value = monitor_execute(qemu->monitor, "qom-get",
	                                json_pack("{s:s, s:s}", "path", path, "property", property), NULL);
	char *text = g_strdup(json_is_string(value) ? json_string_value(value) : "");

	json_decref(value);
	return text;
}

/* The machine's link to an object of type "sev-guest", "sev-snp-guest" or "tdx-guest"; empty without. */
static bool check_confidential(struct qemu_guest *qemu, GError **error)
{
	if (!qemu->monitor)
		return true;
	g_autofree char *object = monitor_property(qemu, "/machine", "confidential-guest-support");

	if (object[0] == '\0')
		return true;
	g_autofree char *type = monitor_property(qemu, object, "type");

	return refuse_confidential(qemu, type, error);
}

static void learn_memory_bytes(struct qemu_guest *qemu)
{
	json_t *sizes = monitor_execute(qemu->monitor, "query-memory-size-summary", NULL, NULL);

	qemu->guest.memory_bytes = (uint64_t)(json_integer_value(json_object_get(sizes, "base-memory")) +
	                                      json_integer_value(json_object_get(sizes, "plugged-memory")));
	json_decref(sizes);
}

static void open_memory(struct qemu_guest *qemu)
{
	g_autoptr(GError) error = NULL;

	if (!qemu->monitor) {
		qemu->memory_why = g_strdup("where QEMU has the guest's RAM, only its monitor says");
		return;
	}
	qemu->memory = guest_memory_open(qemu->pid, &error);
	if (qemu->memory && !guest_memory_map(qemu->memory, qemu->monitor, &error))
		g_clear_pointer(&qemu->memory, guest_memory_free);
	if (error)
		qemu->memory_why = g_strdup(error->message);
}

static void learn(struct qemu_guest *qemu)
{
	open_memory(qemu);
	qemu->runs = !qemu->monitor || qemu_guest_says(qemu, "query-status", "running");
	if (qemu->monitor) {
		qemu->accelerator = g_strdup(qemu_guest_says(qemu, "query-kvm", "enabled") ? "kvm" : "tcg");
		learn_memory_bytes(qemu);
	} else if (qemu->domain) {
		qemu->accelerator = g_strdup(g_strcmp0(domain_type(qemu->domain), "kvm") == 0 ? "kvm" : "tcg");
	}
	qemu_kernel_look(qemu);
}

static bool attach(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	return (config->domain ? open_domain(qemu, config, error) : open_process(qemu, config, error)) &&
	       qemu_life_watch(qemu, error) && check_confidential(qemu, error);
}

struct qemu_guest *qemu_guest_new(const struct qemu_guest_config *config, GError **error)
{
	struct qemu_guest *qemu = g_new0(struct qemu_guest, 1);

	qemu->guest.ops = &qemu_ops;
	qemu->guest.kind = "qemu";
	qemu->guest.routes = routes;
	qemu->pidfd = -1;
	qemu->kernel_path = g_strdup(config->kernel_path);
	qemu->duration_s = config->duration_s;
	if (!attach(qemu, config, error)) {
		qemu_guest_free(qemu);
		return NULL;
	}
	qemu->guest.process = qemu->pid;
	learn(qemu);
	if (config->kernel_path && !qemu->kernel.image && !qemu->kernel_early) {
		g_set_error_literal(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER, qemu->guest.kernel_why);
		qemu_guest_free(qemu);
		return NULL;
	}
	return qemu;
}

void qemu_guest_detach(struct qemu_guest *qemu)
{
	qemu_life_unwatch(qemu);
	if (qemu->domain)
		domain_close(qemu->domain);
	else
		monitor_free(qemu->monitor);
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
	kernel_found_clear(&qemu->kernel);
	g_free(qemu->monitor_why);
	g_free(qemu->memory_why);
	g_free(qemu->guest.kernel_why);
	g_free(qemu->kernel_path);
	g_free(qemu->accelerator);
	g_free(qemu->guest.name);
	g_free(qemu->guest.build_id);
	g_free(qemu->guest.release);
	g_free(qemu->guest.end.message);
	g_free(qemu);
}
