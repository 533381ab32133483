// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine.h"

#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/server.h"
#include "engine/service.h"
#include "lib/client/client.h"
#include "lib/parser/parser.h"
#include "lib/process/message_rate.h"
#include "lib/process/service_manager.h"
#include "lib/process/watchdog.h"
#include "lib/record/text.h"

#define FLUSH_MS 1000u
#define LINGER_LOOK_MS 20u /* how often an engine that lingers looks whether it is still wanted */

struct engine {
	const struct engine_ops *ops;
	const struct engine_config *config;
	void *data; /* of the program, for its ops */
	GMainLoop *loop;
	GThread *parser; /* starts vprof-parse; NULL: done */
	struct guest *guest;
	struct session *session;
	struct control_server *server;
	int null_fd;   /* with an owner: what the standard streams become; else -1 */
	guint signals; /* a source */
	guint linger_source, owner_source;
	int64_t linger_until_us; /* 0: it does not linger */
	int status;
	bool stopping; /* a signal has stopped the guest */
	bool ended;    /* the guest's end has been told */
	bool left;     /* there is no owner, or none any more */
	bool quit;     /* nothing is wanted after the guest's end */
	bool served;   /* the owner is served, and the guest was started */
	bool released;
	struct message_rate complaints; /* that the guest causes */
};

void engine_complain(const struct engine_ops *ops, const GError *error)
{
	g_autofree char *message = text_printable(error->message);

	fprintf(stderr, "%s: %s\n", ops->name, message);
}

static void say_left_out(const struct engine *engine, uint64_t n)
{
	if (n > 0)
		fprintf(stderr, "%s: %" G_GUINT64_FORMAT " messages left out\n", engine->ops->name, n);
}

/* A guest that can make us say something cannot fill a log with it. */
static void complain_of_guest(struct engine *engine, const GError *error)
{
	uint64_t left_out;
	bool may = message_rate_take(&engine->complaints, g_get_monotonic_time(), &left_out);

	say_left_out(engine, left_out);
	if (may)
		engine_complain(engine->ops, error);
}

static bool has_owner(const struct engine *engine)
{
	return engine->config->client_fd >= 0;
}

/* ---- what happens to the guest ---- */

static void say_end(const struct engine *engine)
{
	const struct guest_end *end = &engine->guest->end;

	g_autofree char *message = text_printable(end->message), *details = text_lines_printable(end->details);

	fprintf(stderr, "%s: %s\n%s", engine->ops->name, message, details);
}

static void release(struct engine *engine)
{
	if (engine->guest && !engine->released && engine->ops->release)
		engine->ops->release(engine->data);
	engine->released = true;
}

static gboolean look_whether_wanted(void *data)
{
	struct engine *engine = data;

	if (control_server_wanted(engine->server) && g_get_monotonic_time() < engine->linger_until_us)
		return G_SOURCE_CONTINUE;
	engine->linger_source = 0;
	g_main_loop_quit(engine->loop);
	return G_SOURCE_REMOVE;
}

/* A command that reads the output of the one that started us waits for the end of what we hold. */
static void let_go_of_streams(const struct engine *engine)
{
	for (int fd = STDIN_FILENO; engine->null_fd >= 0 && fd <= STDERR_FILENO; fd++)
		dup3(engine->null_fd, fd, 0);
}

static void linger(struct engine *engine)
{
	unsigned linger_ms = control_server_linger_ms(engine->server);

	if (!has_owner(engine))
		fprintf(stderr, "%s: waiting up to %g s for clients that have not read all; a signal ends that\n",
		        engine->ops->name, linger_ms / 1e3);
	engine->linger_until_us = g_get_monotonic_time() + (int64_t)linger_ms * 1000;
	let_go_of_streams(engine);
	release(engine);
	engine->linger_source = g_timeout_add(LINGER_LOOK_MS, look_whether_wanted, engine);
}

/* The guest has ended, and its owner does not want anything more. */
static void conclude(struct engine *engine)
{
	if (engine->linger_until_us == 0) {
		engine->status = engine->ops->status ? engine->ops->status(engine->data) : EXIT_SUCCESS;
		/* What the rings hold now is all that they will hold. */
		if (session_running(engine->session))
			session_stop(engine->session, NULL);
	}
	if (engine->quit || !control_server_wanted(engine->server) || control_server_linger_ms(engine->server) == 0)
		g_main_loop_quit(engine->loop);
	else if (engine->linger_until_us == 0)
		linger(engine);
}

/* The owner is told what is known of the guest then. */
static void owner_serve(struct engine *engine)
{
	engine->served = true;
	g_clear_handle_id(&engine->owner_source, g_source_remove);
	if (has_owner(engine))
		control_server_add_client(engine->server, engine->config->client_fd, true);
}

static void on_ended(struct guest *guest G_GNUC_UNUSED, void *data)
{
	struct engine *engine = data;

	engine->ended = true;
	if (!engine->served)
		owner_serve(engine);
	watchdog_over();
	if (!has_owner(engine))
		say_end(engine);
	control_server_guest_ended(engine->server);
	if (engine->left)
		conclude(engine);
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
		complain_of_guest(engine, error);
	if (other_kernel && guest->kernel_image)
		control_server_guest_kernel(engine->server);
}

static void on_pause(struct guest *guest G_GNUC_UNUSED, void *data)
{
	const struct engine *engine = data;

	control_server_guest_pause(engine->server);
}

static void on_phase(struct guest *guest G_GNUC_UNUSED, unsigned vcpu, uint8_t value, uint64_t time_ns, void *data)
{
	const struct engine *engine = data;

	control_server_guest_phase(engine->server, vcpu, value, time_ns);
}

static void on_console_line(struct guest *guest G_GNUC_UNUSED, const char *line, void *data)
{
	const struct engine *engine = data;

	control_server_console_line(engine->server, line);
}

static void listen_to_guest(struct engine *engine)
{
	struct guest *guest = engine->guest;

	guest->on_ended = on_ended;
	guest->on_changing = on_changing;
	guest->on_changed = on_changed;
	guest->on_pause = on_pause;
	guest->on_phase = on_phase;
	guest->on_console_line = on_console_line;
	guest->listener_data = engine;
}

/* The guest has been told to stop. */
static void on_quit(void *data, bool at_once)
{
	struct engine *engine = data;

	engine->left = true;
	engine->quit = at_once;
	if (engine->ended)
		conclude(engine);
}

/* Before it is served, it can only go. */
static gboolean on_owner_gone(gint fd G_GNUC_UNUSED, GIOCondition condition G_GNUC_UNUSED, void *data)
{
	struct engine *engine = data;

	engine->owner_source = 0;
	engine->left = true;
	engine->guest->ops->stop(engine->guest, GUEST_END_STOPPED, "its client has gone");
	return G_SOURCE_REMOVE;
}

/* ---- signals ---- */

static gboolean on_signal(struct engine *engine, int number)
{
	if (engine->linger_until_us != 0) {
		g_main_loop_quit(engine->loop);
		return G_SOURCE_CONTINUE;
	}
	if (engine->stopping)
		_exit(128 + number);
	engine->stopping = true;
	engine->guest->ops->stop(engine->guest, GUEST_END_STOPPED, engine->ops->stopped);
	return G_SOURCE_CONTINUE;
}

/* The numbers of signals, from their handler to the main loop: it may wait for a thread that does not come back. */
static int signal_ends[2];
static volatile sig_atomic_t signals_seen;

static void take_signal(int number)
{
	int saved = errno;
	const uint8_t byte = (uint8_t)number;
	ssize_t written = write(signal_ends[1], &byte, sizeof(byte));

	(void)written;           /* a full pipe has enough of them */
	if (++signals_seen == 2) /* a third does not put it off */
		watchdog_limit(0, 128 + number);
	errno = saved;
}

static gboolean on_signals(gint fd, GIOCondition condition, void *data)
{
	uint8_t number;

	(void)condition;
	while (read(fd, &number, sizeof(number)) == (ssize_t)sizeof(number))
		on_signal(data, number);
	return G_SOURCE_CONTINUE;
}

static void ignore_signals(void)
{
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a disk or a console's file at the limit of `ulimit -f` */
	/* A background job that reads or writes its terminal gets an error instead of being stopped with its guest. */
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
}

static const int stopping_signals[] = {SIGTERM, SIGHUP, SIGINT};

static bool watch_signals(struct engine *engine, GError **error)
{
	struct sigaction action = {.sa_handler = take_signal, .sa_flags = SA_RESTART};

	if (!g_unix_open_pipe(signal_ends, FD_CLOEXEC, error) ||
	    !g_unix_set_fd_nonblocking(signal_ends[0], TRUE, error) ||
	    !g_unix_set_fd_nonblocking(signal_ends[1], TRUE, error))
		return false;
	engine->signals = g_unix_fd_add(signal_ends[0], G_IO_IN, on_signals, engine);
	sigfillset(&action.sa_mask);
	for (size_t i = 0; i < G_N_ELEMENTS(stopping_signals); i++)
		sigaction(stopping_signals[i], &action, NULL);
	if (has_owner(engine))
		signal(SIGINT, SIG_IGN);
	return true;
}

static void unwatch_signals(struct engine *engine)
{
	if (!engine->signals)
		return;
	for (size_t i = 0; i < G_N_ELEMENTS(stopping_signals); i++)
		signal(stopping_signals[i], SIG_DFL);
	g_clear_handle_id(&engine->signals, g_source_remove);
	close(signal_ends[0]);
	close(signal_ends[1]);
	signals_seen = 0;
}

/* ---- from the start to the end ---- */

/* Beside the guest's creation, which takes as long. Without a parser, what needs one says so. */
static void *begin_parser(void *data)
{
	parser_start(NULL);
	return data;
}

/* A program that has given up the right to start others cannot do it any more. */
static void wait_for_parser(struct engine *engine)
{
	if (engine->parser)
		g_thread_join(g_steal_pointer(&engine->parser));
}

static bool listen_for_clients(const struct engine *engine, GError **error)
{
	const char *control = engine->config->control;
	int inherited = service_listen_fd();

	if (control && g_str_equal(control, "none"))
		return true;
	if (!control && inherited >= 0)
		return control_server_listen_fd(engine->server, inherited, error);
	g_autofree char *folder = client_runtime_dir();
	g_autofree char *path =
		control ? g_strdup(control) : g_strdup_printf("%s/%s.sock", folder, engine->guest->name);

	return control_server_listen(engine->server, path, error);
}

static bool open_control(struct engine *engine, GError **error)
{
	const struct engine_config *config = engine->config;

	engine->server = control_server_new(engine->guest, engine->session);
	control_server_on_quit(engine->server, on_quit, engine);
	return (!config->policy || control_server_load_policy(engine->server, config->policy, error)) &&
	       listen_for_clients(engine, error);
}

static bool prepare_guest(struct engine *engine, GError **error)
{
	const char *delivery = engine->config->delivery;

	engine->guest = engine->ops->make(engine->data, error);
	if (!engine->guest)
		return false;
	engine->guest->systems = engine->config->systems;
	listen_to_guest(engine);
	engine->session = session_new(engine->guest, error);
	return engine->session && (!delivery || session_prefer_delivery(engine->session, delivery, error)) &&
	       (!engine->ops->launch || engine->ops->launch(engine->guest, error));
}

static bool serve(struct engine *engine, GError **error)
{
	owner_serve(engine);
	return engine->config->paused || engine->guest->ops->start(engine->guest, error);
}

/* The guest may have ended before. */
static void on_looked(void *data, const GError *why)
{
	struct engine *engine = data;
	g_autoptr(GError) error = why ? g_error_copy(why) : NULL;

	if (engine->served || (!error && serve(engine, &error)))
		return;
	engine_complain(engine->ops, error);
	g_main_loop_quit(engine->loop);
}

static bool start(struct engine *engine, GError **error)
{
	if (!prepare_guest(engine, error) || !open_control(engine, error))
		return false;
	if (!watch_signals(engine, error))
		return false;
	wait_for_parser(engine);
	service_manager_tell("READY=1"); /* before a program gives up what it takes to say so */
	if (engine->ops->ready && !engine->ops->ready(engine->data, error))
		return false;
	if (!engine->ops->look)
		return serve(engine, error);
	if (has_owner(engine))
		engine->owner_source = g_unix_fd_add(engine->config->client_fd, G_IO_HUP, on_owner_gone, engine);
	engine->ops->look(engine->data, on_looked, engine);
	return true;
}

static void tear_down(struct engine *engine)
{
	wait_for_parser(engine);
	say_left_out(engine, message_rate_end(&engine->complaints));
	unwatch_signals(engine);
	g_clear_handle_id(&engine->linger_source, g_source_remove);
	g_clear_handle_id(&engine->owner_source, g_source_remove);
	if (engine->session && session_running(engine->session))
		session_stop(engine->session, NULL);
	if (engine->server)
		control_server_flush(engine->server, FLUSH_MS);
	control_server_free(engine->server);
	release(engine);
	session_free(engine->session);
	if (engine->guest)
		engine->ops->free(engine->guest);
	g_main_loop_unref(engine->loop);
	if (engine->null_fd >= 0)
		close(engine->null_fd);
}

int engine_run(const struct engine_ops *ops, const struct engine_config *config, void *data)
{
	struct engine engine = {.ops = ops, .config = config, .data = data, .null_fd = -1, .status = EXIT_FAILURE};
	g_autoptr(GError) error = NULL;

	g_autofree char *too_late = g_strdup_printf(
		"%s: the guest has not ended " G_STRINGIFY(WATCHDOG_GRACE_SECONDS) " s after it had to: giving up\n",
		ops->name);

	watchdog_start(too_late);
	engine.loop = g_main_loop_new(NULL, FALSE);
	engine.left = !has_owner(&engine);
	if (has_owner(&engine)) /* before a program gives up the right to */
		engine.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	ignore_signals();
	engine.parser = g_thread_new("parser", begin_parser, NULL);
	if (start(&engine, &error))
		g_main_loop_run(engine.loop);
	else
		engine_complain(ops, error);
	tear_down(&engine);
	watchdog_over();
	return engine.status;
}
