// SPDX-License-Identifier: BSD-2-Clause
#include "run/guest_run.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vprof/control.h>

#include "engine/engine_process.h"
#include "lib/process/program_find.h"
#include "run/run_terminal.h"
#include "ui/message.h"
#include "ui/text.h"

#define DEMO_IMAGE "demo-guest.elf"
#define DEMO_VCPUS 2
#define DEMO_MEMORY "128M"
#define KERNEL_VARIABLE "VPROF_KERNEL"                           /* --kernel, when that is not given */
#define EXIT_PORT_STATUS(code) ((int)(((code) << 1 | 1) & 0xff)) /* as QEMU's isa-debug-exit */
#define INTERRUPTED_STATUS 130                                   /* as a shell reports SIGINT */

G_DEFINE_QUARK(vprof_guest_run_error, guest_run_error)

const struct option_row guest_run_option_rows[] = {
	OPTION_ROWS(exec_option_rows, struct guest_run_options, exec),
	{"kernel", OPTION_FILE, offsetof(struct guest_run_options, kernel),
         "kernel to boot: vmlinux, vmlinuz, or another ELF file with a PVH entry", "IMAGE"},
	{"initrd", OPTION_FILE, offsetof(struct guest_run_options, initrd), "initial RAM file system", "FILE"},
	{"disk", OPTION_FILES, offsetof(struct guest_run_options, disks),
         "attach a disk as /dev/vda, /dev/vdb, ...; may be repeated", "IMAGE[,ro]"},
	{"append", OPTION_TEXT, offsetof(struct guest_run_options, append),
         "kernel command line, appended to vprof's own", "TEXT"},
	{"memory", OPTION_TEXT, offsetof(struct guest_run_options, memory), "guest memory, e.g. 512M or 2G", "SIZE"},
	{"vcpus", OPTION_NUMBER, offsetof(struct guest_run_options, vcpus), "number of virtual CPUs", "N", .min = 1,
         .max = VPROF_VCPUS_MAX},
	{"duration", OPTION_TIME, offsetof(struct guest_run_options, duration_s),
         "end the guest after TIME, e.g. 10s or 2m", "TIME", .max = VPROF_DURATION_S_MAX},
	{"demo", OPTION_FLAG, offsetof(struct guest_run_options, demo), "run the built-in guest; needs no --kernel",
         NULL},
	{"console", OPTION_TEXT, offsetof(struct guest_run_options, console),
         "where the guest's first serial port goes: stdio, stderr, none or a file", "WHERE", "stdio stderr none"},
	{"uart", OPTION_TEXT, offsetof(struct guest_run_options, uart),
         "what the guest's serial ports are: auto, 16550 or, on arm64, pl011", "WHICH", "auto 16550 pl011"},
	{"on-panic", OPTION_TEXT, offsetof(struct guest_run_options, on_panic),
         "when the guest's console prints a panic: end the guest, or keep it for `vprof stack`", "WHAT", "end keep"},
	{"stop-on-panic", OPTION_FLAG, offsetof(struct guest_run_options, stop_on_panic), "the same as --on-panic=end",
         NULL},
	{"name", OPTION_TEXT, offsetof(struct guest_run_options, name), "name in `vprof list` and in the recording",
         "NAME"},
	{"boot", OPTION_TEXT, offsetof(struct guest_run_options, boot), "boot protocol: auto, linux or pvh", "PROTOCOL",
         "auto linux pvh"},
	{"pmu", OPTION_TEXT, offsetof(struct guest_run_options, pmu), "the guest's own PMU: off, emulated or kvm",
         "WHICH", "off emulated kvm"},
	{"pmu-filter", OPTION_TEXT, offsetof(struct guest_run_options, pmu_filter),
         "with --pmu kvm: events that the guest may count, or deny:LIST", "LIST"},
	{"quirks", OPTION_TEXT, offsetof(struct guest_run_options, quirks),
         "adapt the guest to this host's KVM: auto or off", "WHEN", "auto off"},
	{"sandbox", OPTION_TEXT, offsetof(struct guest_run_options, sandbox),
         "limit the system calls of the guest's VMM: on or off", "WHICH", "on off"},
	{"fail-on-reboot", OPTION_FLAG, offsetof(struct guest_run_options, fail_on_reboot),
         "exit with 90 instead of 0 when the guest ends by a reboot", NULL},
	{"verbose", OPTION_FLAG, offsetof(struct guest_run_options, verbose), "print what is done to the guest", NULL},
	{NULL},
};

/* With --exec, standard input and output belong to the command. */
static bool console_check(const struct guest_run_options *options, GError **error)
{
	if (!options->exec.command)
		return true;
	if (options->demo) {
		g_set_error_literal(error, GUEST_RUN_ERROR, GUEST_RUN_ERROR_OPTIONS,
		                    "--exec runs a command under Linux: give --kernel, not --demo");
		return false;
	}
	if (!options->console || strcmp(options->console, "stdio") != 0)
		return true;
	g_set_error_literal(
		error, GUEST_RUN_ERROR, GUEST_RUN_ERROR_OPTIONS,
		"with --exec, standard input and output are the command's; --console takes stderr, none or a file");
	return false;
}

bool guest_run_check(struct guest_run_options *options, GError **error)
{
	const char *usual = g_getenv(KERNEL_VARIABLE);

	if (!options->demo && !options->kernel && usual && usual[0] != '\0')
		options->kernel = g_strdup(usual);
	if (options->demo == (options->kernel != NULL)) {
		g_set_error_literal(error, GUEST_RUN_ERROR, GUEST_RUN_ERROR_OPTIONS,
		                    options->demo ? "--demo has its own kernel; omit --kernel"
		                                  : "no kernel given: use --kernel IMAGE, or set " KERNEL_VARIABLE
		                                    ", or --demo for the built-in guest");
		return false;
	}
	if (options->exec.root && !options->disks) {
		g_set_error_literal(error, GUEST_RUN_ERROR, GUEST_RUN_ERROR_OPTIONS,
		                    "--root names a disk of the guest; give it one with --disk IMAGE");
		return false;
	}
	return exec_options_check(&options->exec, error) && console_check(options, error);
}

/* The demonstration guest is a kernel like any other, with its own defaults. */
static bool options_apply_demo(struct guest_run_options *options, GError **error)
{
	if (!options->demo)
		return true;
	options->kernel = program_find(DEMO_IMAGE, error);
	if (options->vcpus == 0)
		options->vcpus = DEMO_VCPUS;
	if (!options->memory)
		options->memory = g_strdup(DEMO_MEMORY);
	return options->kernel != NULL;
}

/*
 * Keeps the kernel's messages out of the command's output. The console is still watched, to tell a panic from a reboot.
 */
static void options_apply_exec(struct guest_run_options *options)
{
	if (!options->exec.command)
		return;
	if (!options->console)
		options->console = g_strdup(options->verbose ? "stderr" : "none");
	if (!options->on_panic)
		options->on_panic = g_strdup("end");
}

/* The descriptors that an engine gets when a command runs in its guest. */
enum { ENGINE_AGENT, ENGINE_INITRAMFS, ENGINE_EXEC_FDS };

static void fd_argument_add(GPtrArray *arguments, const char *option, const char *prefix, int which)
{
	g_autofree char *value = g_strdup_printf("%s%d", prefix, ENGINE_FIRST_FD + which);

	engine_argument_add(arguments, option, value);
}

/* The kernel passes unknown parameters to init, which tells the agent its root. New string, or NULL. */
static char *append_new(const struct guest_run_options *options, const struct exec_plan *plan)
{
	if (!plan || !plan->root)
		return g_strdup(options->append);
	return g_strdup_printf("VPROF_ROOT=%s %s", plan->root, options->append ? options->append : "");
}

/* The engine's command line; the size of memory is checked there. */
static GPtrArray *engine_arguments(const struct guest_run_options *options, const struct exec_plan *plan)
{
	g_autofree char *append = append_new(options, plan);
	GPtrArray *arguments = g_ptr_array_new_with_free_func(g_free);

	engine_argument_add(arguments, "--kernel", options->kernel);
	if (options->exec.command) {
		fd_argument_add(arguments, "--initrd", "/dev/fd/", ENGINE_INITRAMFS);
		fd_argument_add(arguments, "--serial2", "", ENGINE_AGENT);
	} else {
		engine_argument_add(arguments, "--initrd", options->initrd);
	}
	for (char **disk = options->disks; disk && *disk; disk++)
		engine_argument_add(arguments, "--disk", *disk);
	engine_argument_add(arguments, "--append", append);
	engine_argument_add(arguments, "--memory", options->memory);
	engine_number_add(arguments, "--vcpus", options->vcpus);
	engine_argument_add(arguments, "--name", options->name);
	engine_argument_add(arguments, "--boot", options->boot);
	engine_argument_add(arguments, "--console", options->console);
	engine_argument_add(arguments, "--uart", options->uart);
	engine_argument_add(arguments, "--pmu", options->pmu);
	engine_argument_add(arguments, "--pmu-filter", options->pmu_filter);
	engine_argument_add(arguments, "--quirks", options->quirks);
	engine_argument_add(arguments, "--sandbox", options->sandbox);
	engine_argument_add(arguments, "--on-panic", options->on_panic);
	engine_number_add(arguments, "--duration", options->duration_s);
	if (options->stop_on_panic)
		g_ptr_array_add(arguments, g_strdup("--stop-on-panic"));
	if (options->verbose)
		g_ptr_array_add(arguments, g_strdup("--verbose"));
	g_ptr_array_add(arguments, NULL);
	return arguments;
}

/* Prepares the command first, before anything else can fail. */
static bool exec_prepare(struct guest_run *run, GError **error)
{
	const struct guest_run_options *options = run->options;
	const struct exec_guest guest = {.kernel = options->kernel,
	                                 .base = options->initrd,
	                                 .modules = run->modules,
	                                 .has_disks = options->disks != NULL};

	if (!options->exec.command)
		return true;
	run->plan = exec_plan_new(&options->exec, error);
	if (!run->plan)
		return false;
	run->initramfs = exec_plan_initramfs(run->plan, &guest, error);
	return run->initramfs >= 0;
}

char *guest_run_initramfs(const struct guest_run *run)
{
	return run->initramfs > 0 ? g_strdup_printf("/proc/self/fd/%d", run->initramfs)
	                          : g_strdup(run->options->initrd);
}

/* The stream to the agent: one end is the guest's second serial port. */
static bool exec_connect(struct guest_run *run, struct engine_process_config *config, GError **error)
{
	int sockets[2];

	if (!run->plan)
		return true;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
		g_set_error(error, EXEC_ERROR, EXEC_ERROR_SYSTEM, "cannot make a socket for the guest's agent: %s",
		            g_strerror(errno));
		return false;
	}
	run->exec = exec_new(run->plan, sockets[0]);
	config->fds[ENGINE_AGENT] = sockets[1];
	config->fds[ENGINE_INITRAMFS] = run->initramfs;
	config->n_fds = ENGINE_EXEC_FDS;
	return true;
}

static int exec_failure(const GError *error)
{
	failure(error);
	if (g_error_matches(error, EXEC_ERROR, EXEC_ERROR_NOT_FOUND))
		return EXEC_STATUS_NOT_FOUND;
	return g_error_matches(error, EXEC_ERROR, EXEC_ERROR_NOT_EXECUTABLE) ? EXEC_STATUS_NOT_EXECUTABLE
	                                                                     : STATUS_FAILED;
}

int guest_run_open(struct guest_run *run)
{
	struct engine_process_config config = {0};
	g_autoptr(GPtrArray) arguments = NULL;
	g_autoptr(GError) error = NULL;
	int status = STATUS_FAILED;

	options_apply_exec(run->options);
	if (!exec_prepare(run, &error))
		return exec_failure(error);
	if (!options_apply_demo(run->options, &error) ||
	    (run->loop.signalfd = run_loop_signals(run->plan != NULL, &error)) < 0 ||
	    !exec_connect(run, &config, &error))
		return failure(error);
	arguments = engine_arguments(run->options, run->plan);
	config.program = "vprof-vmm";
	config.arguments = (const char *const *)arguments->pdata;
	run->engine = engine_process_start(&config, &status, &error);
	if (run->exec)
		close(config.fds[ENGINE_AGENT]);
	if (!run->engine)
		return engine_process_failure(status, error);
	run->guest = engine_ask(engine_process_client(run->engine), "query-guest", NULL, &error);
	return run->guest ? STATUS_OK : failure(error);
}

void guest_run_clear(struct guest_run *run)
{
	engine_process_free(run->engine);
	json_decref(run->guest);
	json_decref(run->loop.end);
	if (run->loop.signalfd > 0)
		close(run->loop.signalfd);
	exec_free(run->exec);
	exec_plan_free(run->plan);
	if (run->initramfs > 0)
		close(run->initramfs);
}

bool guest_run_go(struct guest_run *run, struct recorder *recorder, GError **error)
{
	const char *console = run->options->console;

	run->loop.engine = run->engine;
	run->loop.recorder = recorder;
	run->loop.exec = run->exec;
	return run_loop_run(&run->loop, !console || strcmp(console, "stdio") == 0, error);
}

static void say_engine_gone(const struct guest_run *run, const char *kept)
{
	g_autofree char *death = engine_process_death(run->engine);

	say("the engine %s while the guest ran; %s", death ? death : "has closed the connection", kept);
}

static void say_lines(const char *title, const char *lines)
{
	g_autofree char *printable = text_lines_printable(lines);

	if (printable[0] != '\0')
		fprintf(stderr, "%s%s", title, printable);
}

static void say_guest_end(const struct guest_run *run)
{
	const struct run_loop *loop = &run->loop;
	g_autofree char *message = text_printable(member_text(loop->end, "message"));

	say("%s%s", loop->stop_asked ? "the guest was stopped" : message,
	    !run->exec                    ? ""
	    : exec_has_started(run->exec) ? ", before the command had ended"
	                                  : ", before the command could start");
	say_lines("", member_text(loop->end, "details"));
	/* With a command, the console was not shown, so its last lines help. */
	if (run->exec && !loop->stop_asked)
		say_lines("Last console lines:\n", member_text(loop->end, "console"));
}

/* If the command has ended, its own status is reported and not the guest's end. */
static bool command_ended(const struct guest_run *run)
{
	return run->exec && exec_status(run->exec) >= 0;
}

void guest_run_say_end(const struct guest_run *run, const char *kept)
{
	if (run->exec)
		exec_say_end(run->exec);
	/* If the recording could not be written, the guest was stopped for that, which is reported elsewhere. */
	if (run->loop.end && !run_loop_failed(&run->loop) && !command_ended(run))
		say_guest_end(run);
	if (run->loop.engine_gone)
		say_engine_gone(run, kept);
}

/* The exit status for the way a guest ended (vprof/control.h). */
static int end_status(const json_t *end)
{
	static const struct {
		const char *reason;
		int status;
	} statuses[] = {
#define X(id, name, exit_status) {name, exit_status},
		VPROF_GUEST_ENDS(X)
#undef X
	};
	const char *reason = member_text(end, "reason");

	if (!reason)
		return STATUS_FAILED;
	if (strcmp(reason, "exit-port") == 0)
		return EXIT_PORT_STATUS(member_number(end, "code", 0));
	for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++)
		if (strcmp(reason, statuses[i].reason) == 0)
			return statuses[i].status;
	return STATUS_FAILED;
}

/* The end that was asked for, or one that most guests without ACPI have. */
static bool is_good_end(const struct guest_run *run)
{
	const char *reason = member_text(run->loop.end, "reason");

	return g_strcmp0(reason, "duration") == 0 ||
	       (g_strcmp0(reason, "reboot") == 0 && !run->options->fail_on_reboot);
}

int guest_run_status(const struct guest_run *run)
{
	int status;

	if (command_ended(run))
		return exec_status(run->exec);
	status = run->loop.engine_gone ? STATUS_FAILED : end_status(run->loop.end);
	if (run->exec)
		return status == STATUS_OK ? STATUS_FAILED : status;
	return is_good_end(run) ? STATUS_OK : status;
}

int guest_run_abandon(struct guest_run *run)
{
	engine_process_abandon(g_steal_pointer(&run->engine));
	return INTERRUPTED_STATUS;
}
