// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <glib-unix.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "attach/qemu.h"
#include "attach/qemu_process.h"
#include "lib/process/watchdog.h"

/* How often threads, clocks and a kernel that is booting are looked at. */
#define TICK_S 1u
/* A thread has its name a little after it is there. */
#define SETTLE_TICKS 2u

/* ---- the end ---- */

static gboolean tell_end(void *data)
{
	struct qemu_guest *qemu = data;

	qemu->end_source = 0;
	qemu->guest.on_ended(&qemu->guest, qemu->guest.listener_data);
	return G_SOURCE_REMOVE;
}

void qemu_life_end(struct qemu_guest *qemu, enum guest_end_reason reason, const char *message)
{
	if (qemu->guest.state == GUEST_ENDED)
		return;
	qemu->guest.state = GUEST_ENDED;
	qemu->guest.end.reason = reason;
	qemu->guest.end.message = g_strdup(message);
	qemu->end_source = g_idle_add(tell_end, qemu);
}

static gboolean on_process_exit(gint fd G_GNUC_UNUSED, GIOCondition condition G_GNUC_UNUSED, void *data)
{
	struct qemu_guest *qemu = data;

	qemu->exit_source = 0;
	qemu_life_end(qemu, GUEST_END_STOPPED, "the VMM has ended");
	return G_SOURCE_REMOVE;
}

static gboolean on_duration(void *data)
{
	struct qemu_guest *qemu = data;

	qemu->duration_source = 0;
	qemu_life_end(qemu, GUEST_END_DURATION, "the time asked for is over; the guest runs on");
	return G_SOURCE_REMOVE;
}

void qemu_life_start(struct qemu_guest *qemu)
{
	if (qemu->duration_s <= 0)
		return;
	qemu->duration_source = g_timeout_add((guint)(qemu->duration_s * 1000), on_duration, qemu);
	watchdog_limit((guint64)(qemu->duration_s * 1000), EXIT_FAILURE);
}

/* ---- events ---- */

/* What libvirt calls it comes a moment before or after the process has gone; the first of them counts. */
static const struct {
	const char *what;
	enum guest_end_reason reason;
	const char *message;
} endings[] = {
	{"shutdown", GUEST_END_POWER_OFF, "the guest has powered off"},
	{"destroyed", GUEST_END_STOPPED, "the domain was destroyed"},
	{"crashed", GUEST_END_PANIC, "the guest has crashed"},
	{"migrated", GUEST_END_STOPPED, "the guest has migrated to another host; attach again there"},
	{"saved", GUEST_END_STOPPED, "the domain was saved to a file; attach again once it is restored"},
	{"failed", GUEST_END_VMM_ERROR, "QEMU has failed"},
	{"reverted to a snapshot", GUEST_END_STOPPED, "the domain was reverted to a snapshot; attach again"},
};

static void set_runs(struct qemu_guest *qemu, bool runs)
{
	atomic_store_explicit(&qemu->runs, runs, memory_order_relaxed);
}

/* QEMU leaves the log on where its guest has gone, until it runs here again; other VMMs, too, have no use for it else.
 */
static const char *pause_of(const struct qemu_guest *qemu)
{
	if (qemu_guest_runs(qemu))
		return NULL;
	return qemu_machine_logged(qemu) ? "is paused, or has migrated away: its VMM has KVM log what it writes"
	                                 : "is paused";
}

static void pause_tell(struct qemu_guest *qemu)
{
	const char *pause = pause_of(qemu);

	if (pause == qemu->guest.pause || qemu->guest.state == GUEST_ENDED)
		return;
	qemu->guest.pause = pause;
	qemu->guest.on_pause(&qemu->guest, qemu->guest.listener_data);
}

/* What was missed may have been a pause, or a reset. */
static void catch_up(struct qemu_guest *qemu)
{
	if (!qemu_guest_monitor(qemu))
		return;
	set_runs(qemu, qemu_guest_says(qemu, MONITOR_STATUS, "running"));
	qemu_kernel_seek(qemu);
}

static void end_by(struct qemu_guest *qemu, const char *what)
{
	for (size_t i = 0; i < G_N_ELEMENTS(endings); i++)
		if (strcmp(what, endings[i].what) == 0)
			qemu_life_end(qemu, endings[i].reason, endings[i].message);
}

void qemu_life_event(const char *what, void *data)
{
	struct qemu_guest *qemu = data;

	if (strcmp(what, "suspended") == 0)
		set_runs(qemu, false);
	else if (strcmp(what, "resumed") == 0)
		set_runs(qemu, true);
	else if (strcmp(what, "reset") == 0)
		qemu_kernel_seek(qemu);
	else if (strcmp(what, "reconnected") == 0)
		catch_up(qemu);
	end_by(qemu, what);
	pause_tell(qemu);
}

/* ---- a monitor without libvirt ---- */

/* Any thread. What is asked of the monitor here is late, and what is sampled by it meanwhile would count. */
static void on_monitor_event(const char *name, void *data)
{
	struct qemu_guest *qemu = data;

	if (strcmp(name, "STOP") == 0)
		set_runs(qemu, false);
	else if (strcmp(name, "RESUME") == 0)
		set_runs(qemu, true);
	else if (strcmp(name, "RESET") == 0)
		atomic_store_explicit(&qemu->was_reset, true, memory_order_relaxed);
}

/* States (QEMU, qapi/run-state.json) in which a guest does not run again here, and what libvirt would say. */
static const struct {
	const char *status, *what;
} final_states[] = {
	{"postmigrate", "migrated"},
	{"shutdown", "shutdown"},
	{"guest-panicked", "crashed"},
	{"internal-error", "failed"},
};

static void status_follow(struct qemu_guest *qemu)
{
	json_t *answer =
		!qemu->domain && qemu_guest_monitor(qemu) ? monitor_ask(qemu->monitor, MONITOR_STATUS, NULL) : NULL;
	const char *status = json_string_value(json_object_get(answer, "status"));

	if (!status) {
		json_decref(answer);
		return;
	}
	set_runs(qemu, json_is_true(json_object_get(answer, "running")));
	for (size_t i = 0; i < G_N_ELEMENTS(final_states); i++)
		if (strcmp(status, final_states[i].status) == 0)
			end_by(qemu, final_states[i].what);
	if (atomic_exchange_explicit(&qemu->was_reset, false, memory_order_relaxed))
		qemu_kernel_seek(qemu);
	json_decref(answer);
}

/* ---- threads ---- */

/* A process's threads are folders of this folder, and links to it; 0 when it has gone. */
static nlink_t threads_count(const struct qemu_guest *qemu)
{
	g_autofree char *folder = g_strdup_printf("/proc/%d/task", (int)qemu->pid);
	struct stat status;

	return stat(folder, &status) == 0 ? status.st_nlink : 0;
}

/* Those of vCPUs that the guest did not have when we came, nor was said to get, have no rings. */
static bool threads_differ(const struct qemu_guest *qemu, pid_t threads[GUEST_VCPUS_MAX])
{
	unsigned n = 0;

	if (qemu->view)
		n = qemu_machine_threads(qemu, threads);
	else if (qemu->monitor || qemu_process_is_qemu(qemu->pid)) /* those of others have any names */
		n = qemu_threads_from_names(qemu->pid, threads);
	if (n == 0)
		return false;
	memset(&threads[qemu->guest.vcpus], 0, (GUEST_VCPUS_MAX - qemu->guest.vcpus) * sizeof(*threads));
	return memcmp(threads, qemu->threads, sizeof(qemu->threads)) != 0;
}

static void paths_refresh(struct qemu_guest *qemu)
{
	struct monitor *monitor = qemu_guest_monitor(qemu);
	json_t *cpus = monitor ? monitor_ask(monitor, MONITOR_CPUS, NULL) : NULL;

	if (cpus)
		qemu_paths_from_qmp(cpus, qemu->paths);
	json_decref(cpus);
}

/* libvirt has no event for a vCPU that was plugged in. */
static void threads_follow(struct qemu_guest *qemu)
{
	nlink_t n = threads_count(qemu);
	pid_t threads[GUEST_VCPUS_MAX];

	if (n != qemu->n_threads)
		qemu->threads_ticks = SETTLE_TICKS;
	qemu->n_threads = n;
	if (qemu->threads_ticks == 0 && !qemu->view)
		return;
	qemu->threads_ticks -= qemu->threads_ticks > 0;
	if (!threads_differ(qemu, threads))
		return;
	qemu->guest.on_changing(&qemu->guest, qemu->guest.listener_data);
	memcpy(qemu->threads, threads, sizeof(qemu->threads));
	paths_refresh(qemu);
	qemu->guest.on_changed(&qemu->guest, false, qemu->guest.listener_data);
}

/* ---- now and then ---- */

static gboolean on_tick(void *data)
{
	struct qemu_guest *qemu = data;

	if (qemu->guest.state == GUEST_ENDED)
		return G_SOURCE_CONTINUE;
	if (qemu->view)
		qemu_machine_follow(qemu);
	status_follow(qemu);
	pause_tell(qemu);
	threads_follow(qemu);
	qemu_clocks_update(qemu);
	qemu_kernel_follow(qemu);
	return G_SOURCE_CONTINUE;
}

bool qemu_life_watch(struct qemu_guest *qemu, GError **error)
{
	/* Not glibc's pidfd_open: Debian 12's has it, older ones do not. */
	qemu->pidfd = (int)syscall(SYS_pidfd_open, qemu->pid, 0);
	if (qemu->pidfd < 0) {
		g_set_error(error, QEMU_GUEST_ERROR, QEMU_GUEST_ERROR_PROCESS, "cannot attach to process %d: %s",
		            (int)qemu->pid, g_strerror(errno));
		return false;
	}
	qemu->n_threads = threads_count(qemu);
	if (qemu->monitor && !qemu->domain)
		monitor_listen(qemu->monitor, on_monitor_event, qemu);
	qemu->exit_source = g_unix_fd_add(qemu->pidfd, G_IO_IN, on_process_exit, qemu);
	return true;
}

void qemu_life_follow(struct qemu_guest *qemu)
{
	qemu->tick_source = g_timeout_add_seconds(TICK_S, on_tick, qemu);
}

void qemu_life_unwatch(struct qemu_guest *qemu)
{
	guint *const sources[] = {&qemu->duration_source, &qemu->exit_source, &qemu->end_source, &qemu->tick_source};

	for (size_t i = 0; i < G_N_ELEMENTS(sources); i++)
		g_clear_handle_id(sources[i], g_source_remove);
	if (qemu->pidfd >= 0)
		close(qemu->pidfd);
	qemu->pidfd = -1;
}
