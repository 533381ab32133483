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
#include "control/keeper.h"
#include "control/sandbox.h"
#include "counter/counter.h"
#include "engine/engine.h"
#include "exits/exit_trace.h"
#include "kvm/host/host_probe.h"
#include "kvm/host/thread.h"
#include "kvm/options.h"
#include "kvm/vm.h"
#include "lib/process/privilege.h"
#include "lib/record/output.h"
#include "lib/record/text.h"
#include "linux/os_linux.h"

#define INPUT_RETRY_MS 20u

/* The systems that guests may run, the likeliest first. */
static const struct guest_os *const systems[] = {&os_linux, NULL};

struct machine;

/* Characters on their way from a descriptor to a UART. */
struct serial_input {
	struct machine *machine;
	unsigned serial;
	int fd;
	guint source; /* the watch, or the pause while the UART is full; 0: at its end */
	uint8_t bytes[1024];
	size_t at, n; /* not taken yet */
};

struct machine {
	struct vmm_options options;
	struct guest *guest;
	int serial_fds[2];
	struct serial_input inputs[2];
};

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

/* Whether the time of KVM's exits can be read. */
static json_t *exits_object(void)
{
	g_autoptr(GError) error = NULL;
	struct exit_trace *trace = exit_trace_load(1, &error);
	const bool usable = trace && exit_trace_attach(trace, &error);
	json_t *object = json_pack("{s:b, s:s*, s:s*}", "usable", usable, "why", usable ? NULL : error->message,
	                           "without-bpf", usable ? exit_trace_without_bpf(trace) : NULL);

	exit_trace_free(trace);
	return object;
}

/* With a kernel, what that says of itself as well. */
static bool print_probe(const char *kernel_path, GError **error)
{
	struct counter_event event;
	const char *why;
	json_t *kernel = kernel_path ? control_kernel(systems, kernel_path, error) : NULL;

	if (kernel_path && !kernel)
		return false;
	json_t *probe = host_probe();
	json_t *deliveries = json_array();
	for (size_t i = 0; counter_deliveries[i]; i++)
		json_array_append_new(deliveries, delivery_object(counter_deliveries[i]));
	counter_event_default(&event, &why);
	json_object_set_new(probe, "backends", control_host_backends());
	json_object_set_new(probe, "deliveries", deliveries);
	json_object_set_new(probe, "exits", exits_object());
	json_object_set_new(probe, "default-event", json_pack("{s:s, s:s}", "name", event.name, "why", why));
	if (kernel)
		json_object_set_new(probe, "kernel", kernel);
	print_json(probe);
	return true;
}

/* ---- serial ports ---- */

static gboolean input_read(gint fd, GIOCondition condition, void *data);

static void input_watch(struct serial_input *input)
{
	input->source = g_unix_fd_add(input->fd, G_IO_IN | G_IO_HUP | G_IO_ERR, input_read, input);
}

static bool input_push(struct serial_input *input)
{
	input->at +=
		vm_serial_input(input->machine->guest, input->serial, input->bytes + input->at, input->n - input->at);
	return input->at == input->n;
}

static gboolean input_retry(void *data)
{
	struct serial_input *input = data;

	if (!input_push(input))
		return G_SOURCE_CONTINUE;
	input_watch(input);
	return G_SOURCE_REMOVE;
}

/* Reads no further than the UART takes it: the rest waits where it comes from. */
static gboolean input_read(gint fd, GIOCondition condition, void *data)
{
	struct serial_input *input = data;

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

static void input_start(struct machine *machine, unsigned serial, int fd)
{
	struct serial_input *input = &machine->inputs[serial];

	*input = (struct serial_input){.machine = machine, .serial = serial, .fd = fd};
	input_watch(input);
}

static void input_stop(struct serial_input *input)
{
	if (input->source)
		g_source_remove(input->source);
	input->source = 0;
}

/* In place: it is read while the guest runs. */
static int open_output(const char *what, const char *path, GError **error)
{
	const int fd = output_open(path, O_TRUNC, 0666, error);

	if (fd < 0)
		g_prefix_error(error, "%s: ", what);
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

static bool open_serials(struct machine *machine, GError **error)
{
	const struct vmm_options *options = &machine->options;
	int *fds = machine->serial_fds;

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

static void start_inputs(struct machine *machine)
{
	int fd;

	if (g_str_equal(machine->options.console, "stdio") && fcntl(STDIN_FILENO, F_GETFD) >= 0)
		input_start(machine, 0, STDIN_FILENO);
	if (machine->options.serial2 && inherited_fd(machine->options.serial2, &fd))
		input_start(machine, 1, fd);
}

/* ---- putting it together ---- */

static void say_panicked(const struct guest *guest, const char *message)
{
	g_autofree char *text = text_printable(message), *name = text_printable(guest->name);

	fprintf(stderr,
	        "vprof-vmm: the guest has panicked and is kept: %s\n"
	        "vprof-vmm: `vprof stack %s` shows what its tasks did; a signal ends it\n",
	        text, name);
}

/* A kernel that is kept must not ask for a reboot, unless the user has said when. New string; NULL: the kernel's own.
 */
static char *command_line_new(const struct vmm_options *options)
{
	if (options->on_panic != VM_PANIC_KEEP)
		return g_strdup(options->append);
	return g_strdup_printf("panic=0%s%s", options->append ? " " : "", options->append ? options->append : "");
}

static struct guest *make(void *data, GError **error)
{
	struct machine *machine = data;
	const struct vmm_options *options = &machine->options;
	g_autofree char *command_line = command_line_new(options);

	if (!open_serials(machine, error))
		return NULL;
	const struct vm_config config = {.name = options->name,
	                                 .kernel_path = options->kernel,
	                                 .initrd_path = options->initrd,
	                                 .command_line = command_line,
	                                 .memory_bytes = options->memory_bytes,
	                                 .vcpus = options->vcpus,
	                                 .protocol = options->boot,
	                                 .uart = options->uart,
	                                 .pmu = options->pmu,
	                                 .pmu_filter = options->pmu_filter,
	                                 .quirks = options->quirks,
	                                 .on_panic = options->on_panic,
	                                 .panicked = say_panicked,
	                                 .duration_s = options->duration_s,
	                                 .disks = options->disks,
	                                 .n_disks = options->n_disks,
	                                 .serial_fds = {machine->serial_fds[0], machine->serial_fds[1]}};
	machine->guest = vm_new(&config, error);
	return machine->guest;
}

static void describe(const struct guest *guest)
{
	for (char **quirk = guest->quirks; quirk && *quirk; quirk++)
		fprintf(stderr, "vprof-vmm: host quirk: %s\n", *quirk);
	if (guest->pmu)
		fprintf(stderr, "vprof-vmm: PMU: %s\n", guest->pmu);
	fprintf(stderr, "vprof-vmm: command line: %s\n", guest->command_line);
}

static const struct engine_ops engine_ops;

/* Those of a user namespace; and root's, where that can become no other user. */
static bool drop_capabilities(GError **error)
{
	if (privilege_drop_all())
		return true;
	g_set_error(error, SANDBOX_ERROR, SANDBOX_ERROR_UNAVAILABLE, "cannot drop capabilities: %s", g_strerror(errno));
	return false;
}

/* On each thread, once, before it works for the guest. */
static void narrow(enum thread_kind kind)
{
	g_autoptr(GError) error = NULL;

	if (drop_capabilities(&error) && sandbox_narrow(kind == THREAD_VCPU ? SANDBOX_VCPU : SANDBOX_DEVICE, &error))
		return;
	engine_complain(&engine_ops, error);
	_exit(EXIT_FAILURE);
}

static const char keeper_gone[] =
	"cannot start the process that keeps its rights; --sandbox off runs the guest without one";
static unsigned lacks;         /* what the host refuses root's sandbox */
static bool in_user_namespace; /* the same sandbox for another user */

/* A user with nothing of its own, and with no other process. */
static void become_another(void)
{
	lacks |= privilege_root_empty() ? 0 : PRIVILEGE_LACK_ROOT;
	lacks |= privilege_user_take(privilege_own_id()) ? 0 : PRIVILEGE_LACK_USER;
	g_autofree char *text = privilege_lack_text(lacks);

	if (text)
		fprintf(stderr, "vprof-vmm: this host refuses the sandbox: %s; see `vprof doctor`\n", text);
}

/* After all that takes rights, and before the guest's first instruction. */
static bool confine(GError **error)
{
	const bool root = geteuid() == 0;

	counter_settings_open();
	if (!keeper_ready() || !keeper_settle()) {
		g_set_error_literal(error, SANDBOX_ERROR, SANDBOX_ERROR_UNAVAILABLE, keeper_gone);
		return false;
	}
	counter_perf_owner = keeper_owner;
	if (root) {
		become_another();
		counter_perf_event_open = keeper_event_open;
	}
	if (in_user_namespace)
		(void)privilege_root_empty();
	thread_on_work(narrow);
	return drop_capabilities(error) && sandbox_enter(!root, error) && sandbox_narrow(SANDBOX_CONTROL, error);
}

static bool ready(void *data, GError **error)
{
	struct machine *machine = data;

	if (machine->options.sandbox && !confine(error))
		return false;
	if (machine->options.verbose)
		describe(machine->guest);
	start_inputs(machine);
	return true;
}

static void release(void *data)
{
	struct machine *machine = data;

	for (unsigned i = 0; i < G_N_ELEMENTS(machine->inputs); i++)
		input_stop(&machine->inputs[i]);
	vm_release(machine->guest);
}

static int exit_status(void *data)
{
	const struct machine *machine = data;
	uint64_t dropped = vm_console_dropped(machine->guest);

	if (dropped > 0)
		fprintf(stderr, "vprof-vmm: %" G_GUINT64_FORMAT " console characters were dropped: not read in time\n",
		        dropped);
	return vm_exit_status(&machine->guest->end);
}

static const struct engine_ops engine_ops = {
	.name = "vprof-vmm",
	.stopped = "stopped by a signal",
	.make = make,
	.launch = vm_launch,
	.ready = ready,
	.status = exit_status,
	.release = release,
	.free = vm_free,
};

static int run(struct machine *machine)
{
	const uid_t user = geteuid();
	const bool root = user == 0;
	const struct vmm_options *options = &machine->options;
	const struct engine_config config = {
		.client_fd = options->client_fd,
		.control = options->control,
		.policy = options->policy,
		.delivery = options->delivery,
		.paused = options->paused,
		.systems = systems,
	};

	/* While there is one thread. */
	if (options->sandbox && !keeper_start(root ? KEEPER_OF_VMM : KEEPER_OF_USER, privilege_own_id())) {
		fprintf(stderr, "vprof-vmm: %s\n", keeper_gone);
		return EXIT_FAILURE;
	}
	if (options->sandbox && root && !privilege_namespaces(0))
		lacks |= PRIVILEGE_LACK_NETWORK;
	in_user_namespace = options->sandbox && !root && privilege_user_namespace(PRIVILEGE_ROOT_EMPTY);
	if (geteuid() != user) {
		fprintf(stderr, "vprof-vmm: this host makes a user namespace, but maps no user into it; "
		                "--sandbox off runs the guest without one\n");
		return EXIT_FAILURE;
	}
	return engine_run(&engine_ops, &config, machine);
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
	struct machine machine = {0};
	int status = EXIT_SUCCESS;

	fill_standard_fds();
	setlocale(LC_CTYPE, "");
	g_set_prgname("vprof-vmm");
	/* By default GLib makes a socket to the journal where stderr leads there, which a sandbox does not allow. */
	g_log_set_writer_func(g_log_writer_standard_streams, NULL, NULL);
	if (!options_parse(&argc, &argv, &machine.options, &error)) {
		engine_complain(&engine_ops, error);
		status = OPTIONS_ERROR_STATUS;
	} else if (machine.options.version) {
		puts("vprof-vmm " VPROF_VERSION);
	} else if (machine.options.probe) {
		if (!print_probe(machine.options.kernel, &error)) {
			engine_complain(&engine_ops, error);
			status = EXIT_FAILURE;
		}
	} else if (machine.options.list_events) {
		print_json(control_host_events());
	} else {
		status = run(&machine);
	}
	options_clear(&machine.options);
	return status;
}
