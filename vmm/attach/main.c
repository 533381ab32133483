// SPDX-License-Identifier: BSD-2-Clause
/* vprof-attach: one guest that another process runs, its session and its control socket. */
#include <errno.h>
#include <glib-unix.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "attach/domain.h"
#include "attach/options.h"
#include "attach/privilege.h"
#include "attach/probe.h"
#include "attach/qemu_guest.h"
#include "attach/route.h"
#include "control/host_json.h"
#include "control/server.h"
#include "lib/client/client.h"
#include "sample/session.h"

#define FLUSH_MS 1000u

struct engine {
	struct options options;
	GMainLoop *loop;
	struct qemu_guest *qemu;
	struct session *session;
	struct control_server *server;
	bool quit; /* nobody waits for last words */
};

static void complain(const GError *error)
{
	fprintf(stderr, "vprof-attach: %s\n", error->message);
}

static void print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(value);
}

/* ---- what happens ---- */

static void on_ended(struct guest *guest, void *data)
{
	struct engine *engine = data;

	if (engine->options.client_fd < 0)
		fprintf(stderr, "vprof-attach: %s\n", guest->end.message);
	control_server_guest_ended(engine->server);
	/* An owner reads the rings out and asks for figures first; it says `quit` or goes when it is done. */
	if (engine->options.client_fd < 0 || engine->quit)
		g_main_loop_quit(engine->loop);
}

static void on_changing(struct guest *guest G_GNUC_UNUSED, void *data)
{
	const struct engine *engine = data;

	session_suspend(engine->session);
}

/* A session that cannot go on has stopped; the guest is still there for another. */
static void on_changed(struct guest *guest, bool other_kernel, void *data)
{
	struct engine *engine = data;
	g_autoptr(GError) error = NULL;

	if (!session_resume(engine->session, other_kernel, &error))
		complain(error);
	if (other_kernel && guest->kernel_image)
		control_server_guest_kernel(engine->server);
}

/* The guest has been told to stop. */
static void on_quit(void *data)
{
	struct engine *engine = data;

	engine->quit = true;
	g_main_loop_quit(engine->loop);
}

static gboolean on_signal(void *data)
{
	struct engine *engine = data;
	struct guest *guest = &engine->qemu->guest;

	guest->ops->stop(guest, GUEST_END_STOPPED, "detached by a signal; the guest runs on");
	return G_SOURCE_CONTINUE;
}

static void watch_signals(struct engine *engine)
{
	signal(SIGPIPE, SIG_IGN);
	if (engine->options.client_fd >= 0)
		signal(SIGINT, SIG_IGN);
	else
		g_unix_signal_add(SIGINT, on_signal, engine);
	g_unix_signal_add(SIGTERM, on_signal, engine);
	g_unix_signal_add(SIGHUP, on_signal, engine);
}

/* ---- putting it together ---- */

static struct qemu_guest *make_guest(const struct options *options, GError **error)
{
	const struct qemu_guest_config config = {
		.domain = options->domain,
		.connect_uri = options->connect_uri,
		.pid = options->pid,
		.qmp_path = options->qmp_path,
		.no_monitor = options->no_monitor,
		.kernel_path = options->kernel_path,
		.duration_s = options->duration_s,
	};

	return qemu_guest_new(&config, error);
}

/* One engine for a guest: whoever comes later can look on there, and is told who was first. */
static bool check_first(const struct engine *engine, const char *path, GError **error)
{
	const char *name = engine->qemu->guest.name;
	int holder = client_socket_holder(path);

	if (holder == 0)
		return true;
	g_autofree char *comm_path = g_strdup_printf("/proc/%d/comm", holder);
	g_autofree char *comm = NULL;

	g_file_get_contents(comm_path, &comm, NULL, NULL);
	g_set_error(
		error, CONTROL_ERROR, CONTROL_ERROR_LISTEN,
		"cannot attach to %s: process %d (%s) is attached to a guest of this name, and listens on %s; look on "
		"with `vprof top`, or end that first",
		name, holder, comm ? g_strchomp(comm) : "?", path);
	return false;
}

static bool open_control(struct engine *engine, GError **error)
{
	const struct options *options = &engine->options;
	struct guest *guest = &engine->qemu->guest;

	engine->server = control_server_new(guest, engine->session);
	control_server_on_quit(engine->server, on_quit, engine);
	if (options->client_fd >= 0)
		control_server_add_client(engine->server, options->client_fd, true);
	if (options->control && g_str_equal(options->control, "none"))
		return true;
	g_autofree char *folder = client_runtime_dir();
	g_autofree char *path =
		options->control ? g_strdup(options->control) : g_strdup_printf("%s/%s.sock", folder, guest->name);

	return check_first(engine, path, error) && control_server_listen(engine->server, path, error);
}

static bool start(struct engine *engine, GError **error)
{
	const struct options *options = &engine->options;

	engine->qemu = make_guest(options, error);
	if (!engine->qemu)
		return false;
	/* Where KVM is a module, loading the BPF program takes more than is kept. */
	g_free(route_bpf.unavailable(&engine->qemu->guest));
	if (!privilege_drop())
		fprintf(stderr, "vprof-attach: cannot drop capabilities: %s; going on with them\n", g_strerror(errno));
	engine->qemu->guest.on_ended = on_ended;
	engine->qemu->guest.on_changing = on_changing;
	engine->qemu->guest.on_changed = on_changed;
	engine->qemu->guest.listener_data = engine;
	engine->session = session_new(&engine->qemu->guest, error);
	if (!engine->session || (options->route && !session_prefer_delivery(engine->session, options->route, error)) ||
	    !open_control(engine, error))
		return false;
	if (options->verbose)
		probe_describe(engine->qemu, stderr);
	return options->paused || engine->qemu->guest.ops->start(&engine->qemu->guest, error);
}

static void tear_down(struct engine *engine)
{
	if (engine->server) {
		control_server_flush(engine->server, FLUSH_MS);
		control_server_free(engine->server);
	}
	if (engine->session && session_running(engine->session))
		session_stop(engine->session, NULL);
	session_free(engine->session);
	qemu_guest_free(engine->qemu);
}

static int run(struct engine *engine)
{
	g_autoptr(GError) error = NULL;
	int status = EXIT_FAILURE;

	engine->loop = g_main_loop_new(NULL, FALSE);
	if (start(engine, &error)) {
		watch_signals(engine);
		g_main_loop_run(engine->loop);
		status = EXIT_SUCCESS;
	} else {
		complain(error);
	}
	tear_down(engine);
	g_main_loop_unref(engine->loop);
	return status;
}

static int print(json_t *value, const GError *error)
{
	if (value)
		print_json(value);
	else
		complain(error);
	return value ? EXIT_SUCCESS : EXIT_FAILURE;
}

static int print_list(const struct options *options)
{
	g_autoptr(GError) error = NULL;
	json_t *list = domain_list(options->connect_uri, &error);

	return print(list, error);
}

static int print_probe(const struct options *options)
{
	g_autoptr(GError) error = NULL;
	struct qemu_guest *qemu = make_guest(options, &error);
	int status = print(qemu ? probe_json(qemu, control_host_routes(&qemu->guest)) : NULL, error);

	qemu_guest_free(qemu);
	return status;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	struct engine engine = {0};
	int status = EXIT_SUCCESS;

	setlocale(LC_CTYPE, "");
	g_set_prgname("vprof-attach");
	if (!options_parse(&argc, &argv, &engine.options, &error)) {
		complain(error);
		status = OPTIONS_ERROR_STATUS;
	} else if (engine.options.version) {
		puts("vprof-attach " VPROF_VERSION);
	} else if (engine.options.list) {
		status = print_list(&engine.options);
	} else if (engine.options.probe) {
		status = print_probe(&engine.options);
	} else {
		status = run(&engine);
	}
	options_clear(&engine.options);
	return status;
}
