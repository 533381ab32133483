// SPDX-License-Identifier: BSD-2-Clause
#include "attach/qemu_guest.h"

#include <errno.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/domain.h"
#include "attach/guest_memory.h"
#include "attach/qemu_process.h"

G_DEFINE_QUARK(vprof_qemu_guest_error, qemu_guest_error)

static struct qemu_guest *qemu_of(struct guest *guest)
{
	return (struct qemu_guest *)guest;
}

/* ---- the end ---- */

static gboolean tell_end(void *data)
{
	struct qemu_guest *qemu = data;

	qemu->end_source = 0;
	qemu->guest.on_ended(&qemu->guest, qemu->guest.listener_data);
	return G_SOURCE_REMOVE;
}

static void guest_end(struct qemu_guest *qemu, enum guest_end_reason reason, const char *message)
{
	if (qemu->guest.state == GUEST_ENDED)
		return;
	qemu->guest.state = GUEST_ENDED;
	qemu->guest.end.reason = reason;
	qemu->guest.end.message = g_strdup(message);
	qemu->end_source = g_idle_add(tell_end, qemu);
}

/* What libvirt calls it comes a moment before or after the process has gone; the first of them counts. */
static const struct {
	const char *what;
	enum guest_end_reason reason;
	const char *message;
} endings[] = {
	{"shutdown", GUEST_END_POWER_OFF, "the guest has powered off"},
	{"destroyed", GUEST_END_STOPPED, "the domain was destroyed"},
	{"crashed", GUEST_END_PANIC, "the guest has crashed"},
	{"migrated", GUEST_END_STOPPED, "the guest has migrated to another host"},
	{"saved", GUEST_END_STOPPED, "the domain was saved to a file"},
	{"failed", GUEST_END_VMM_ERROR, "QEMU has failed"},
	{"reverted to a snapshot", GUEST_END_STOPPED, "the domain was reverted to a snapshot"},
};

static void on_domain_event(const char *what, void *data)
{
	struct qemu_guest *qemu = data;

	if (strcmp(what, "suspended") == 0)
		atomic_store_explicit(&qemu->runs, false, memory_order_relaxed);
	if (strcmp(what, "resumed") == 0)
		atomic_store_explicit(&qemu->runs, true, memory_order_relaxed);
	for (size_t i = 0; i < G_N_ELEMENTS(endings); i++)
		if (strcmp(what, endings[i].what) == 0)
			guest_end(qemu, endings[i].reason, endings[i].message);
}

static gboolean on_process_exit(gint fd G_GNUC_UNUSED, GIOCondition condition G_GNUC_UNUSED, void *data)
{
	struct qemu_guest *qemu = data;

	qemu->exit_source = 0;
	guest_end(qemu, GUEST_END_STOPPED, "QEMU has ended");
	return G_SOURCE_REMOVE;
}

static gboolean on_duration(void *data)
{
	struct qemu_guest *qemu = data;

	qemu->duration_source = 0;
	guest_end(qemu, GUEST_END_DURATION, "the time asked for is over; the guest runs on");
	return G_SOURCE_REMOVE;
}

bool qemu_guest_runs(const struct qemu_guest *qemu)
{
	return atomic_load_explicit(&qemu->runs, memory_order_relaxed);
}

/* ---- guest_ops ---- */

static bool guest_start(struct guest *guest, GError **error G_GNUC_UNUSED)
{
	struct qemu_guest *qemu = qemu_of(guest);

	guest->state = GUEST_RUNNING;
	if (qemu->duration_s > 0)
		qemu->duration_source = g_timeout_add((guint)(qemu->duration_s * 1000), on_duration, qemu);
	return true;
}

/* Our part in it ends; the guest's own end is not ours to decide. */
static void guest_stop(struct guest *guest, enum guest_end_reason reason, const char *message)
{
	guest_end(qemu_of(guest), reason, message);
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

static void guest_vcpu_time(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED, bool reset G_GNUC_UNUSED,
                            struct guest_vcpu_time *out)
{
	*out = (struct guest_vcpu_time){.missing = "an attached guest's clocks are not read"};
}

static const struct guest_ops qemu_ops = {
	.start = guest_start,
	.stop = guest_stop,
	.run_on_vcpu = guest_run_on_vcpu,
	.memory_read = guest_read,
	.console_input = guest_console_input,
	.vcpu_time = guest_vcpu_time,
};

/* ---- the kernel ---- */

size_t qemu_guest_registers(struct qemu_guest *qemu, struct hmp_registers registers[GUEST_VCPUS_MAX], GError **error)
{
	g_autofree char *text = monitor_human(qemu->monitor, "info registers -a", error);
	size_t n = text ? hmp_parse_registers(text, registers, qemu->guest.vcpus) : 0;

	if (text && n == 0)
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_ANSWER,
		            "QEMU's `info registers` shows no registers of an x86 vCPU");
	return n;
}

static void kernel_set(struct qemu_guest *qemu, struct kernel_found *found)
{
	struct guest *guest = &qemu->guest;

	kernel_found_clear(&qemu->kernel);
	qemu->kernel = *found;
	guest->kernel_image = found->image;
	guest->kernel_fd = found->fd;
	g_free(guest->build_id);
	guest->build_id = kernel_build_id(found->image);
	g_free(guest->release);
	guest->release = g_strdup(image_release(found->image));
}

/* Any vCPU will do; one that has not been started yet does not know the kernel. */
static bool kernel_find_by_any(struct qemu_guest *qemu, GError **error)
{
	struct hmp_registers registers[GUEST_VCPUS_MAX];
	struct kernel_found found = {0};
	size_t n = qemu_guest_registers(qemu, registers, error);

	for (size_t i = 0; i < n; i++) {
		g_clear_error(error);
		if (kernel_find(&qemu->guest, &registers[i], qemu->kernel_path, &found, error)) {
			kernel_set(qemu, &found);
			return true;
		}
	}
	return false;
}

static void kernel_look(struct qemu_guest *qemu)
{
	g_autoptr(GError) why = NULL;

	g_clear_pointer(&qemu->guest.kernel_why, g_free);
	if (!qemu->monitor)
		qemu->guest.kernel_why = g_strdup("without a monitor, its registers are not known");
	else if (!qemu->memory)
		qemu->guest.kernel_why = g_strdup(qemu->memory_why);
	else if (!kernel_find_by_any(qemu, &why))
		qemu->guest.kernel_why = g_strdup(why->message);
}

/* ---- finding the process ---- */

static bool find_by_monitor(struct qemu_guest *qemu, GError **error)
{
	json_t *cpus = monitor_execute(qemu->monitor, "query-cpus-fast", NULL, error);

	if (!cpus)
		return false;
	qemu->guest.vcpus = qemu_threads_from_qmp(cpus, qemu->threads);
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
		"process %d has no threads named \"CPU 0/KVM\"; is it QEMU with -name debug-threads=on? Else give its "
		"--qmp SOCKET",
		(int)qemu->pid);
	return false;
}

static bool open_monitor(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	if (config->domain) {
		qemu->domain = domain_open(config->connect_uri, config->domain, on_domain_event, qemu, error);
		if (!qemu->domain)
			return false;
		qemu->guest.name = g_strdup(domain_name(qemu->domain));
		qemu->monitor = domain_monitor(qemu->domain);
		return true;
	}
	qemu->pid = config->pid;
	qemu->guest.name = g_strdup_printf("qemu-%d", (int)config->pid);
	if (config->qmp_path)
		qemu->monitor = monitor_open_socket(config->qmp_path, error);
	return qemu->monitor || !config->qmp_path;
}

static bool watch_process(struct qemu_guest *qemu, GError **error)
{
	/* Not glibc's pidfd_open: Debian 12's has it, older ones do not. */
	qemu->pidfd = (int)syscall(SYS_pidfd_open, qemu->pid, 0);
	if (qemu->pidfd < 0) {
		g_set_error(error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_PROCESS, "cannot attach to process %d: %s",
		            (int)qemu->pid, g_strerror(errno));
		return false;
	}
	qemu->exit_source = g_unix_fd_add(qemu->pidfd, G_IO_IN, on_process_exit, qemu);
	return true;
}

/* ---- what it is ---- */

static bool monitor_says(struct qemu_guest *qemu, const char *command, const char *member)
{
	json_t *answer = monitor_execute(qemu->monitor, command, NULL, NULL);
	bool says = json_is_true(json_object_get(answer, member));

	json_decref(answer);
	return says;
}

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

	g_set_error(error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_CONFIDENTIAL,
	            "cannot profile %s: it is a confidential guest (%s), whose memory and registers are encrypted",
	            qemu->guest.name,
	            strstr(type, "tdx")   ? "TDX"
	            : strstr(type, "sev") ? "SEV"
	                                  : type);
	return false;
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

	qemu->memory = guest_memory_open(qemu->pid, &error);
	if (qemu->memory && qemu->monitor && !guest_memory_map(qemu->memory, qemu->monitor, &error))
		g_clear_pointer(&qemu->memory, guest_memory_free);
	if (error)
		qemu->memory_why = g_strdup(error->message);
}

static void learn(struct qemu_guest *qemu)
{
	open_memory(qemu);
	qemu->runs = !qemu->monitor || monitor_says(qemu, "query-status", "running");
	if (qemu->monitor) {
		qemu->accelerator = g_strdup(monitor_says(qemu, "query-kvm", "enabled") ? "kvm" : "tcg");
		learn_memory_bytes(qemu);
	}
	kernel_look(qemu);
}

static bool attach(struct qemu_guest *qemu, const struct qemu_guest_config *config, GError **error)
{
	return open_monitor(qemu, config, error) &&
	       (qemu->monitor ? find_by_monitor(qemu, error) : find_by_names(qemu, error)) &&
	       watch_process(qemu, error) && check_confidential(qemu, error);
}

struct qemu_guest *qemu_guest_new(const struct qemu_guest_config *config, GError **error)
{
	struct qemu_guest *qemu = g_new0(struct qemu_guest, 1);

	qemu->guest.ops = &qemu_ops;
	qemu->guest.kind = "qemu";
	qemu->guest.routes = qemu_routes;
	qemu->pidfd = -1;
	qemu->kernel_path = g_strdup(config->kernel_path);
	qemu->duration_s = config->duration_s;
	if (!attach(qemu, config, error)) {
		qemu_guest_free(qemu);
		return NULL;
	}
	learn(qemu);
	if (config->kernel_path && !qemu->kernel.image) {
		g_set_error_literal(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER, qemu->guest.kernel_why);
		qemu_guest_free(qemu);
		return NULL;
	}
	return qemu;
}

void qemu_guest_free(struct qemu_guest *qemu)
{
	if (!qemu)
		return;
	if (qemu->duration_source)
		g_source_remove(qemu->duration_source);
	if (qemu->exit_source)
		g_source_remove(qemu->exit_source);
	if (qemu->end_source)
		g_source_remove(qemu->end_source);
	if (qemu->domain)
		domain_close(qemu->domain);
	else
		monitor_free(qemu->monitor);
	guest_memory_free(qemu->memory);
	kernel_found_clear(&qemu->kernel);
	if (qemu->pidfd >= 0)
		close(qemu->pidfd);
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
