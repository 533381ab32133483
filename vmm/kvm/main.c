// SPDX-License-Identifier: BSD-2-Clause
/* vprof-vmm: one guest, its session and its control socket. */
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <locale.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "control/host_json.h"
#include "control/sandbox.h"
#include "control/server.h"
#include "control/service.h"
#include "counter/counter.h"
#include "kvm/host_probe.h"
#include "kvm/options.h"
#include "kvm/vm.h"
#include "lib/client/client.h"
#include "sample/session.h"

#define FLUSH_MS 1000u
#define INPUT_RETRY_MS 20u

struct engine;

/* Characters on their way from a descriptor to a UART. */
struct input {
	struct engine *engine;
	unsigned serial;
	int fd;
	guint source; /* the watch, or the pause while the UART is full; 0: at its end */
	uint8_t bytes[1024];
	size_t at, n; /* not taken yet */
};

struct engine {
	struct options options;
	GMainLoop *loop;
	struct guest *guest;
	struct session *session;
	struct control_server *server;
	int serial_fds[2];
	struct input inputs[2];
	bool stopping; /* asked once by a signal */
	bool quit;     /* nobody waits for the guest's last words */
};

static void complain(const GError *error)
{
	fprintf(stderr, "vprof-vmm: %s\n", error->message);
}

/* ---- --probe and --list-events ---- */

static json_t *delivery_object(const struct counter_delivery *delivery)
{
	g_autoptr(GError) error = NULL;
	bool usable = counter_delivery_probe(delivery->name, &error) != NULL;
	return json_pack("{s:s, s:s, s:b, s:s*}", "name", delivery->name, "summary", delivery->summary, "usable",
	                 usable, "why", usable ? NULL : error->message);
}

static void print_json(json_t *value)
{
	json_dumpf(value, stdout, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	putchar('\n');
	json_decref(value);
}

/* With a kernel, what that says of itself as well. */
static bool print_probe(const char *kernel_path, GError **error)
{
	struct counter_event event;
	const char *why;
	json_t *kernel = kernel_path ? control_kernel(kernel_path, error) : NULL;
	if (kernel_path && !kernel)
		return false;
	json_t *probe = host_probe();
	json_t *deliveries = json_array();
	for (size_t i = 0; counter_deliveries[i]; i++)
		json_array_append_new(deliveries, delivery_object(counter_deliveries[i]));
	counter_event_default(&event, &why);
	json_object_set_new(probe, "backends", control_host_backends());
	json_object_set_new(probe, "deliveries", deliveries);
	json_object_set_new(probe, "default-event", json_pack("{s:s, s:s}", "name", event.name, "why", why));
	if (kernel)
		json_object_set_new(probe, "kernel", kernel);
	print_json(probe);
	return true;
}

/* ---- what happens to the guest ---- */

static void on_ended(struct guest *guest, void *data)
{
	struct engine *engine = data;
	if (engine->options.client_fd < 0) {
		fprintf(stderr, "vprof-vmm: %s\n", guest->end.message);
		if (guest->end.details)
			fputs(guest->end.details, stderr);
	}
	control_server_guest_ended(engine->server);
	/* An owner reads the rings out and asks for figures first; it says `quit` or goes when it is done. */
	if (engine->options.client_fd < 0 || engine->quit)
		g_main_loop_quit(engine->loop);
}

static void on_phase(struct guest *guest, unsigned vcpu, uint8_t value, uint64_t time_ns, void *data)
{
	struct engine *engine = data;
	(void)guest;
	control_server_guest_phase(engine->server, vcpu, value, time_ns);
}

static void on_console_line(struct guest *guest, const char *line, void *data)
{
	const struct engine *engine = data;
	(void)guest;
	control_server_console_line(engine->server, line);
}

/* The guest has been told to stop. */
static void on_quit(void *data)
{
	struct engine *engine = data;
	engine->quit = true;
	if (engine->guest->state == GUEST_ENDED)
		g_main_loop_quit(engine->loop);
}

static gboolean on_signal(struct engine *engine, const char *message)
{
	if (engine->stopping)
		_exit(128 + SIGINT);
	engine->stopping = true;
	engine->guest->ops->stop(engine->guest, GUEST_END_STOPPED, message);
	return G_SOURCE_CONTINUE;
}

static gboolean on_interrupt(void *data)
{
	return on_signal(data, "stopped by an interrupt");
}

static gboolean on_terminate(void *data)
{
	return on_signal(data, "stopped by SIGTERM");
}

static void watch_signals(struct engine *engine)
{
	signal(SIGPIPE, SIG_IGN);
	/* A background job that reads or writes its terminal gets an error instead of being stopped with its guest. */
	signal(SIGTTIN, SIG_IGN);
	signal(SIGTTOU, SIG_IGN);
	if (engine->options.client_fd >= 0)
		signal(SIGINT, SIG_IGN);
	else
		g_unix_signal_add(SIGINT, on_interrupt, engine);
	g_unix_signal_add(SIGTERM, on_terminate, engine);
	g_unix_signal_add(SIGHUP, on_terminate, engine);
}

/* ---- serial ports ---- */

static gboolean input_read(gint fd, GIOCondition condition, void *data);

static void input_watch(struct input *input)
{
	input->source = g_unix_fd_add(input->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, input_read, input);
}

static bool input_push(struct input *input)
{
	input->at +=
		vm_serial_input(input->engine->guest, input->serial, input->bytes + input->at, input->n - input->at);
	return input->at == input->n;
}

static gboolean input_retry(void *data)
{
	struct input *input = data;
	if (!input_push(input))
		return G_SOURCE_CONTINUE;
	input_watch(input);
	return G_SOURCE_REMOVE;
}

/* Reads no further than the UART takes it: the rest waits where it comes from. */
static gboolean input_read(gint fd, GIOCondition condition, void *data)
{
	struct input *input = data;
	(void)condition;
	ssize_t n = read(fd, input->bytes, sizeof(input->bytes));
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return G_SOURCE_CONTINUE;
	if (n <= 0) {
		input->source = 0;
		return G_SOURCE_REMOVE;
	}
	input->at = 0;
	input->n = (size_t)n;
	if (input_push(input))
		return G_SOURCE_CONTINUE;
	input->source = g_timeout_add(INPUT_RETRY_MS, input_retry, input);
	return G_SOURCE_REMOVE;
}

static void input_start(struct engine *engine, unsigned serial, int fd)
{
	struct input *input = &engine->inputs[serial];
	*input = (struct input){.engine = engine, .serial = serial, .fd = fd};
	input_watch(input);
}

static void input_stop(struct input *input)
{
	if (input->source)
		g_source_remove(input->source);
	input->source = 0;
}

static int open_output(const char *what, const char *path, GError **error)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot write %s to %s: %s",
		            what, path, g_strerror(errno));
	return fd;
}

/* A number is a descriptor that we inherited; it must be open. */
static bool inherited_fd(const char *text, int *fd)
{
	guint64 number;
	if (!g_ascii_string_to_unsigned(text, 10, 0, G_MAXINT, &number, NULL) || fcntl((int)number, F_GETFD) < 0)
		return false;
	*fd = (int)number;
	return true;
}

static bool open_serials(struct engine *engine, GError **error)
{
	const struct options *options = &engine->options;
	int *fds = engine->serial_fds;
	fds[0] = fds[1] = -1;
	if (g_str_equal(options->console, "stdio"))
		fds[0] = STDOUT_FILENO;
	else if (g_str_equal(options->console, "stderr"))
		fds[0] = STDERR_FILENO;
	else if (!g_str_equal(options->console, "none"))
		fds[0] = open_output("the console", options->console, error);
	if (fds[0] < 0 && !g_str_equal(options->console, "none"))
		return false;
	if (options->serial2 && !inherited_fd(options->serial2, &fds[1]))
		fds[1] = open_output("the second serial port", options->serial2, error);
	return fds[1] >= 0 || !options->serial2;
}

static void start_inputs(struct engine *engine)
{
	int fd;
	if (g_str_equal(engine->options.console, "stdio") && fcntl(STDIN_FILENO, F_GETFD) >= 0)
		input_start(engine, 0, STDIN_FILENO);
	if (engine->options.serial2 && inherited_fd(engine->options.serial2, &fd))
		input_start(engine, 1, fd);
}

/* ---- putting it together ---- */

static bool make_guest(struct engine *engine, GError **error)
{
	const struct options *options = &engine->options;
	const struct vm_config config = {.name = options->name,
	                                 .kernel_path = options->kernel,
	                                 .initrd_path = options->initrd,
	                                 .command_line = options->append,
	                                 .memory_bytes = options->memory_bytes,
	                                 .vcpus = options->vcpus,
	                                 .protocol = options->boot,
	                                 .pmu = options->pmu,
	                                 .pmu_filter = options->pmu_filter,
	                                 .quirks = options->quirks,
	                                 .stop_on_panic = options->stop_on_panic,
	                                 .duration_s = options->duration_s,
	                                 .disks = options->disks,
	                                 .n_disks = options->n_disks,
	                                 .serial_fds = {engine->serial_fds[0], engine->serial_fds[1]}};
	engine->guest = vm_new(&config, error);
	if (!engine->guest)
		return false;
	engine->guest->on_ended = on_ended;
	engine->guest->on_phase = on_phase;
	engine->guest->on_console_line = on_console_line;
	engine->guest->listener_data = engine;
	return true;
}

static bool open_control(struct engine *engine, GError **error)
{
	const struct options *options = &engine->options;
	engine->server = control_server_new(engine->guest, engine->session);
	control_server_on_quit(engine->server, on_quit, engine);
	if (options->client_fd >= 0)
		control_server_add_client(engine->server, options->client_fd, true);
	if (options->policy && !control_server_load_policy(engine->server, options->policy, error))
		return false;
	if (options->control && g_str_equal(options->control, "none"))
		return true;
	int inherited = service_listen_fd();
	if (!options->control && inherited >= 0)
		return control_server_listen_fd(engine->server, inherited, error);
	g_autofree char *folder = client_runtime_dir();
	g_autofree char *path = options->control ? g_strdup(options->control)
	                                         : g_strdup_printf("%s/%s.sock", folder, engine->guest->name);
	return control_server_listen(engine->server, path, error);
}

static bool set_delivery(struct engine *engine, GError **error)
{
	const char *name = engine->options.delivery;
	return !name || session_prefer_delivery(engine->session, name, error);
}

static void describe(const struct guest *guest)
{
	for (char **quirk = guest->quirks; quirk && *quirk; quirk++)
		fprintf(stderr, "vprof-vmm: host quirk: %s\n", *quirk);
	if (guest->pmu)
		fprintf(stderr, "vprof-vmm: PMU: %s\n", guest->pmu);
	fprintf(stderr, "vprof-vmm: command line: %s\n", guest->command_line);
}

static bool start(struct engine *engine, GError **error)
{
	if (!open_serials(engine, error) || !make_guest(engine, error))
		return false;
	engine->session = session_new(engine->guest, error);
	if (!engine->session || !set_delivery(engine, error) || !vm_launch(engine->guest, error) ||
	    !open_control(engine, error))
		return false;
	service_ready(); /* the sandbox has no datagrams */
	if (engine->options.sandbox && !sandbox_enter(error))
		return false;
	if (engine->options.verbose)
		describe(engine->guest);
	start_inputs(engine);
	return engine->options.paused || engine->guest->ops->start(engine->guest, error);
}

static void tear_down(struct engine *engine)
{
	for (unsigned i = 0; i < G_N_ELEMENTS(engine->inputs); i++)
		input_stop(&engine->inputs[i]);
	if (engine->server) {
		control_server_flush(engine->server, FLUSH_MS);
		control_server_free(engine->server);
	}
	if (engine->guest)
		vm_shutdown(engine->guest);
	session_free(engine->session);
	vm_free(engine->guest);
}

static int run(struct engine *engine)
{
	g_autoptr(GError) error = NULL;
	int status = EXIT_FAILURE;
	engine->loop = g_main_loop_new(NULL, FALSE);
	watch_signals(engine);
	if (start(engine, &error)) {
		g_main_loop_run(engine->loop);
		status = vm_exit_status(&engine->guest->end);
		uint64_t dropped = vm_console_dropped(engine->guest);
		if (dropped > 0)
			fprintf(stderr,
			        "vprof-vmm: %" G_GUINT64_FORMAT " console characters were dropped: nobody read them\n",
			        dropped);
	} else {
		complain(error);
	}
	tear_down(engine);
	g_main_loop_unref(engine->loop);
	return status;
}

/* So that nothing that is opened later becomes standard input, output or error. */
static void fill_standard_fds(void)
{
	int fd;
	do
		fd = open("/dev/null", O_RDWR);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	struct engine engine = {0};
	int status = EXIT_SUCCESS;
	fill_standard_fds();
	setlocale(LC_CTYPE, "");
	g_set_prgname("vprof-vmm");
	if (!options_parse(&argc, &argv, &engine.options, &error)) {
		complain(error);
		status = OPTIONS_ERROR_STATUS;
	} else if (engine.options.version) {
		puts("vprof-vmm " VPROF_VERSION);
	} else if (engine.options.probe) {
		if (!print_probe(engine.options.kernel, &error)) {
			complain(error);
			status = EXIT_FAILURE;
		}
	} else if (engine.options.list_events) {
		print_json(control_host_events());
	} else {
		status = run(&engine);
	}
	options_clear(&engine.options);
	return status;
}
