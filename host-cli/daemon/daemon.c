// SPDX-License-Identifier: BSD-2-Clause
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "daemon/daemon_child.h"
#include "daemon/daemon_cost.h"
#include "daemon/daemon_http.h"
#include "daemon/daemon_metrics.h"
#include "daemon/daemon_parts.h"
#include "lib/client/client.h"
#include "lib/client/socket.h"
#include "lib/process/service_manager.h"
#include "push/push_headers.h"
#include "ui/message.h"
#include "ui/text.h"

#define STATUS_SEND_MS 1000 /* a client that does not read is cut off */
#define IDLE_MS 60000

struct guest {
	struct daemon_child child;
	struct daemon_guest_job job;
	json_t *found;  /* as guest_list has it */
	json_t *report; /* the last line of the child; NULL: none since its start */
	char *why;      /* it is not sampled; NULL: not known, or it is */
	bool listed;
};

struct daemon {
	const char *config_path;
	struct daemon_config *config;
	int signals, listener;
	struct daemon_http *http; /* NULL: off */
	struct daemon_child finder, sender;
	json_t *list;      /* of the finder; NULL: none yet */
	json_t *sent;      /* the last line of the sender; NULL: none yet */
	GPtrArray *guests; /* struct guest */
	int64_t watchdog_us, watchdog_due_us;
	int64_t started_s;
	bool quit;
};

/* ---- guests ---- */

static void guest_free(void *data)
{
	struct guest *guest = data;

	daemon_child_clear(&guest->child);
	json_decref(guest->found);
	json_decref(guest->report);
	g_free(guest->why);
	g_free(guest);
}

static struct guest *guest_at(const struct daemon *daemon, guint i)
{
	return g_ptr_array_index(daemon->guests, i);
}

/* A domain that was started again has another process, and a machine that gets another vCPU another engine. */
static bool same_guest(const json_t *one, const json_t *other)
{
	static const char *const members[] = {"name", "uuid", "pid", "vcpus"};

	for (size_t i = 0; i < G_N_ELEMENTS(members); i++) {
		const json_t *left = json_object_get(one, members[i]), *right = json_object_get(other, members[i]);

		if (left != right && !json_equal(left, right))
			return false;
	}
	return true;
}

static struct guest *guest_find(const struct daemon *daemon, const json_t *found)
{
	for (guint i = 0; i < daemon->guests->len; i++)
		if (same_guest(guest_at(daemon, i)->found, found))
			return guest_at(daemon, i);
	return NULL;
}

static void guest_come(struct daemon *daemon, json_t *found)
{
	struct guest *guest = guest_find(daemon, found);

	if (!guest) {
		guest = g_new0(struct guest, 1);
		guest->found = json_incref(found);
		daemon_child_init(&guest->child);
		g_ptr_array_add(daemon->guests, guest);
	}
	guest->listed = true;
}

/* Those of the list that are wanted stay or come; the others end. */
static void guests_match(struct daemon *daemon)
{
	json_t *found;
	size_t i;

	for (guint j = 0; j < daemon->guests->len; j++)
		guest_at(daemon, j)->listed = false;
	json_array_foreach(daemon->list, i, found) {
		const char *name = member_text(found, "name");

		if (name && daemon_config_wants(daemon->config, name))
			guest_come(daemon, found);
	}
	for (guint j = 0; j < daemon->guests->len; j++)
		if (!guest_at(daemon, j)->listed)
			daemon_child_stop(&guest_at(daemon, j)->child);
}

/* ---- what the children say ---- */

static void on_list(json_t *line, void *data)
{
	struct daemon *daemon = data;
	json_t *guests = json_object_get(line, "guests");

	if (!json_is_array(guests))
		return;
	json_decref(daemon->list);
	daemon->list = json_incref(guests);
	guests_match(daemon);
}

static void on_sent(json_t *line, void *data)
{
	struct daemon *daemon = data;

	json_decref(daemon->sent);
	daemon->sent = json_incref(line);
}

static void on_report(json_t *line, void *data)
{
	struct guest *guest = data;
	const char *why = member_text(line, "why");

	g_free(guest->why);
	guest->why = g_strdup(why);
	if (why)
		return;
	json_decref(guest->report);
	guest->report = json_incref(line);
}

/* ---- the status ---- */

static const char *guest_state(const struct daemon *daemon, const struct guest *guest)
{
	if (guest->child.pid == 0 || guest->why)
		return "waiting";
	if (!guest->report)
		return "starting";
	return daemon->config->url ? "sampling" : "counting";
}

static json_t *guest_json(const struct daemon *daemon, const struct guest *guest)
{
	json_t *object = guest->report ? json_copy(guest->report) : json_object();
	static const char *const members[] = {"name", "uuid", "vmm", "pid", "vcpus"};

	for (size_t i = 0; i < G_N_ELEMENTS(members); i++)
		member_set(object, members[i], json_object_get(guest->found, members[i]));
	json_object_set_new(object, "state", json_string(guest_state(daemon, guest)));
	json_object_set_new(object, "restarts", json_integer((json_int_t)guest->child.restarts));
	if (guest->why)
		json_object_set_new(object, "why", text_json(guest->why));
	return object;
}

static json_t *push_json(const struct daemon *daemon)
{
	json_t *object;
	g_autofree char *url = NULL;

	if (!daemon->config->url)
		return json_null();
	url = push_url_shown(daemon->config->url);
	object = daemon->sent ? json_copy(daemon->sent) : json_object();
	json_object_set_new(object, "api", json_string(push_api_name(daemon->config->api)));
	json_object_set_new(object, "url", text_json(url));
	json_object_set_new(object, "spool", text_json(daemon->config->spool));
	return object;
}

static json_t *status_json(const struct daemon *daemon)
{
	const struct daemon_config *config = daemon->config;
	json_t *guests = json_array(), *status;

	for (guint i = 0; i < daemon->guests->len; i++)
		if (guest_at(daemon, i)->listed)
			json_array_append_new(guests, guest_json(daemon, guest_at(daemon, i)));
	status = json_pack("{s:s, s:i, s:s, s:I, s:o, s:o, s:o, s:o}", "format", "vprof-daemon", "version",
	                   DAEMON_STATUS_VERSION, "vprof", VPROF_VERSION, "started", (json_int_t)daemon->started_s,
	                   "cost", daemon_cost(getpid()), "metrics",
	                   daemon->http ? json_sprintf(strchr(config->address, ':') ? "[%s]:%u" : "%s:%u",
	                                               config->address, config->port)
	                                : json_null(),
	                   "push", push_json(daemon), "guests", guests);
	if (daemon->finder.pid != 0)
		json_object_set_new(status, "finder", daemon_cost(daemon->finder.pid));
	if (daemon->sender.pid != 0)
		json_object_set_new(status, "sender", daemon_cost(daemon->sender.pid));
	return status;
}

static char *metrics_text(void *data)
{
	json_t *status = status_json(data);
	char *text = daemon_metrics(status);

	json_decref(status);
	return text;
}

static bool listener_fail(struct daemon *daemon, const char *what, GError **error)
{
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "%s %s: %s", what,
	            daemon->config->socket, g_strerror(errno));
	return false;
}

static bool listener_open(struct daemon *daemon, GError **error)
{
	g_autofree char *folder = g_path_get_dirname(daemon->config->socket);
	struct sockaddr_un address;
	struct stat status;
	mode_t mask;
	int bound;

	if (!client_socket_address(daemon->config->socket, &address)) {
		errno = ENAMETOOLONG;
		return listener_fail(daemon, "cannot make the socket", error);
	}
	if (client_socket_live(daemon->config->socket)) {
		errno = EADDRINUSE;
		return listener_fail(daemon, "another daemon serves", error);
	}
	if (g_mkdir_with_parents(folder, 0700) != 0)
		return listener_fail(daemon, "cannot make the folder of", error);
	if (lstat(daemon->config->socket, &status) == 0 && !S_ISSOCK(status.st_mode)) {
		errno = EEXIST;
		return listener_fail(daemon, "another file is in the place of the socket", error);
	}
	g_unlink(daemon->config->socket);
	daemon->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	mask = umask(0177);
	bound = daemon->listener < 0 ? -1 : bind(daemon->listener, (const struct sockaddr *)&address, sizeof(address));
	umask(mask);
	if (bound == 0 && listen(daemon->listener, SOMAXCONN) == 0)
		return true;
	listener_fail(daemon, "cannot serve", error);
	/* A socket without a name or a backlog is always readable. */
	if (daemon->listener >= 0)
		close(daemon->listener);
	daemon->listener = -1;
	return false;
}

static void listener_close(struct daemon *daemon)
{
	if (daemon->listener < 0)
		return;
	close(daemon->listener);
	daemon->listener = -1;
	g_unlink(daemon->config->socket);
}

/* One answer, and the end: a client asks nothing. */
static void listener_serve(struct daemon *daemon)
{
	const struct timeval patience = {.tv_usec = STATUS_SEND_MS * 1000 - 1};
	int client = accept4(daemon->listener, NULL, NULL, SOCK_CLOEXEC);
	json_t *status;
	size_t sent = 0;
	char *text;
	ssize_t n;

	if (client < 0)
		return;
	status = status_json(daemon);
	text = json_dumps(status, JSON_COMPACT);
	setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
	for (const size_t all = strlen(text); sent < all; sent += (size_t)n)
		if ((n = send(client, text + sent, all - sent, MSG_NOSIGNAL)) <= 0)
			break;
	free(text);
	json_decref(status);
	close(client);
}

/* ---- the life of the children ---- */

static bool is_due(const struct daemon_child *child, int64_t now_us)
{
	return child->pid == 0 && now_us >= child->due_us;
}

static void guest_start(struct daemon *daemon, struct guest *guest)
{
	json_decref(g_steal_pointer(&guest->report));
	guest->job = (struct daemon_guest_job){.config = daemon->config, .guest = guest->found};
	daemon_child_start(&guest->child, "vprofd-guest", daemon_sample, &guest->job);
}

static void children_start(struct daemon *daemon)
{
	const int64_t now_us = g_get_monotonic_time();

	if (is_due(&daemon->finder, now_us))
		daemon_child_start(&daemon->finder, "vprofd-finder", daemon_find, daemon->config);
	if (daemon->config->url && is_due(&daemon->sender, now_us))
		daemon_child_start(&daemon->sender, "vprofd-sender", daemon_send, daemon->config);
	for (guint i = 0; i < daemon->guests->len; i++)
		if (guest_at(daemon, i)->listed && is_due(&guest_at(daemon, i)->child, now_us))
			guest_start(daemon, guest_at(daemon, i));
}

/* One that was killed has left its recording. */
static void guest_reap(const struct daemon *daemon, struct guest *guest)
{
	const pid_t pid = guest->child.pid;

	if (!daemon_child_reap(&guest->child))
		return;
	g_autofree char *recording = daemon_recording(daemon->config, pid);
	g_autofree char *finished = g_strconcat(recording, DAEMON_FINISHED, NULL);

	g_unlink(recording);
	g_unlink(finished);
}

static void children_reap(struct daemon *daemon)
{
	daemon_child_reap(&daemon->finder);
	daemon_child_reap(&daemon->sender);
	for (guint i = daemon->guests->len; i-- > 0;) {
		struct guest *guest = guest_at(daemon, i);

		guest_reap(daemon, guest);
		if (!guest->listed && guest->child.pid == 0)
			g_ptr_array_remove_index(daemon->guests, i);
	}
}

static void children_stop(struct daemon *daemon)
{
	daemon_child_stop(&daemon->finder);
	daemon_child_stop(&daemon->sender);
	for (guint i = 0; i < daemon->guests->len; i++)
		daemon_child_stop(&guest_at(daemon, i)->child);
}

static bool any_runs(const struct daemon *daemon)
{
	bool runs = daemon->finder.pid != 0 || daemon->sender.pid != 0;

	for (guint i = 0; i < daemon->guests->len; i++)
		runs |= guest_at(daemon, i)->child.pid != 0;
	return runs;
}

/* ---- configuration ---- */

static bool http_open(struct daemon *daemon, GError **error)
{
	if (!daemon->config->address)
		return true;
	daemon->http = daemon_http_new(daemon->config->address, daemon->config->port, metrics_text, daemon, error);
	return daemon->http != NULL;
}

/* The children get it when they start again. Where the new one cannot be used, the old one stays. */
static void reload(struct daemon *daemon)
{
	g_autoptr(GError) error = NULL;
	struct daemon_config *config = daemon_config_read(daemon->config_path, &error);
	g_autofree char *reloading =
		g_strdup_printf("RELOADING=1\nMONOTONIC_USEC=%" G_GINT64_FORMAT, g_get_monotonic_time());

	service_manager_tell(reloading);
	if (!config) {
		warn("%s; the configuration stays as it was", error->message);
		service_manager_tell("READY=1");
		return;
	}
	g_clear_pointer(&daemon->http, daemon_http_free);
	listener_close(daemon);
	daemon_config_free(daemon->config);
	daemon->config = config;
	if (!http_open(daemon, &error))
		warn("%s", error->message);
	g_clear_error(&error);
	if (!listener_open(daemon, &error))
		warn("%s", error->message);
	children_stop(daemon);
	guests_match(daemon);
	say("the configuration is read again");
	service_manager_tell("READY=1");
}

/* ---- the loop ---- */

static void signals_take(struct daemon *daemon)
{
	struct signalfd_siginfo info;

	while (read(daemon->signals, &info, sizeof(info)) == sizeof(info))
		if (info.ssi_signo == SIGHUP)
			reload(daemon);
		else if (info.ssi_signo != SIGCHLD)
			daemon->quit = true;
}

static bool signals_open(struct daemon *daemon, GError **error)
{
	static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGCHLD};
	sigset_t set;

	sigemptyset(&set);
	for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
		sigaddset(&set, numbers[i]);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	daemon->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (daemon->signals >= 0)
		return true;
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot make a signalfd: %s",
	            g_strerror(errno));
	return false;
}

/* When something is due for a child: its start, or its end by force. */
static int64_t child_due_us(const struct daemon_child *child)
{
	if (child->pid == 0)
		return child->due_us;
	return child->stop_us != 0 ? child->stop_us + DAEMON_CHILD_STOP_US : G_MAXINT64;
}

static int timeout_ms(const struct daemon *daemon)
{
	const int64_t now_us = g_get_monotonic_time();
	int64_t due_us = MIN(now_us + IDLE_MS * 1000, child_due_us(&daemon->finder)), left_ms;

	if (daemon->config->url || daemon->sender.pid != 0)
		due_us = MIN(due_us, child_due_us(&daemon->sender));
	if (daemon->watchdog_us != 0)
		due_us = MIN(due_us, daemon->watchdog_due_us);
	for (guint i = 0; i < daemon->guests->len; i++)
		due_us = MIN(due_us, child_due_us(&guest_at(daemon, i)->child));
	left_ms = MAX(due_us - now_us, 0) / 1000 + 1;
	if (daemon->http && daemon_http_timeout_ms(daemon->http) >= 0)
		left_ms = MIN(left_ms, daemon_http_timeout_ms(daemon->http));
	return (int)left_ms;
}

static void watchdog_tell(struct daemon *daemon)
{
	const int64_t now_us = g_get_monotonic_time();

	if (daemon->watchdog_us == 0 || now_us < daemon->watchdog_due_us)
		return;
	service_manager_tell("WATCHDOG=1");
	daemon->watchdog_due_us = now_us + daemon->watchdog_us / 2;
}

static void entry_add(GArray *entries, int fd)
{
	const struct pollfd entry = {.fd = fd, .events = POLLIN};

	g_array_append_val(entries, entry);
}

static void wait_for_work(const struct daemon *daemon)
{
	g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(struct pollfd));

	entry_add(entries, daemon->signals);
	entry_add(entries, daemon->listener);
	entry_add(entries, daemon->finder.fd);
	entry_add(entries, daemon->sender.fd);
	if (daemon->http)
		entry_add(entries, daemon_http_fd(daemon->http));
	for (guint i = 0; i < daemon->guests->len; i++)
		entry_add(entries, guest_at(daemon, i)->child.fd);
	poll((struct pollfd *)(void *)entries->data, entries->len, timeout_ms(daemon));
}

static void serve(struct daemon *daemon)
{
	daemon_child_read(&daemon->finder, on_list, daemon);
	daemon_child_read(&daemon->sender, on_sent, daemon);
	for (guint i = 0; i < daemon->guests->len; i++)
		daemon_child_read(&guest_at(daemon, i)->child, on_report, guest_at(daemon, i));
	if (daemon->http)
		daemon_http_run(daemon->http);
	if (daemon->listener >= 0)
		listener_serve(daemon);
	signals_take(daemon);
	children_reap(daemon);
	watchdog_tell(daemon);
}

static void run(struct daemon *daemon)
{
	g_autofree char *ready = g_strdup_printf("READY=1\nSTATUS=Finding guests");

	service_manager_tell(ready);
	while (!daemon->quit) {
		children_start(daemon);
		wait_for_work(daemon);
		serve(daemon);
	}
	service_manager_tell("STOPPING=1");
	children_stop(daemon);
	while (any_runs(daemon)) {
		wait_for_work(daemon);
		serve(daemon);
	}
}

static bool begin(struct daemon *daemon, GError **error)
{
	daemon->config = daemon_config_read(daemon->config_path, error);
	return daemon->config && listener_open(daemon, error) && http_open(daemon, error) &&
	       signals_open(daemon, error);
}

int daemon_run(const char *path)
{
	struct daemon daemon = {
		.config_path = path,
		.signals = -1,
		.listener = -1,
		.guests = g_ptr_array_new_with_free_func(guest_free),
		.watchdog_us = service_manager_watchdog_us(),
		.started_s = g_get_real_time() / G_USEC_PER_SEC,
	};
	g_autoptr(GError) error = NULL;

	daemon_child_init(&daemon.finder);
	daemon_child_init(&daemon.sender);
	if (begin(&daemon, &error))
		run(&daemon);
	daemon_child_clear(&daemon.finder);
	daemon_child_clear(&daemon.sender);
	g_ptr_array_unref(daemon.guests);
	daemon_http_free(daemon.http);
	listener_close(&daemon);
	if (daemon.signals >= 0)
		close(daemon.signals);
	json_decref(daemon.list);
	json_decref(daemon.sent);
	daemon_config_free(daemon.config);
	return error ? failure(error) : STATUS_OK;
}
