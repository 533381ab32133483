// SPDX-License-Identifier: BSD-2-Clause
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vprof/control.h>

#include "command.h"
#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"
#include "message.h"
#include "program.h"
#include "report.h"
#include "run_engine.h"
#include "run_loop.h"
#include "run_record.h"
#include "run_terminal.h"
#include "text.h"
#include "units.h"

#define DEMO_IMAGE "demo-guest.elf"
#define DEMO_VCPUS "2"
#define DEMO_MEMORY "128M"
#define DEFAULT_FREQUENCY_HZ 999 /* not 1000: no lockstep with the guest's timer tick */
#define TOP_ROWS 20
#define EXIT_PORT_STATUS(code) ((int)(((code) << 1 | 1) & 0xff)) /* as QEMU's isa-debug-exit */

static struct {
	char *kernel, *initrd, *append, *memory, *vcpus, *name, *boot, *console, *quirks, *delivery;
	char *frequency, *period, *duration, *output;
	char **events;
	char *call_graph, *call_depth;
	gboolean call_chains, demo, no_tasks, no_report, stop_on_panic, verbose;
} given;

static const GOptionEntry options[] = {
	{"kernel", 'k', 0, G_OPTION_ARG_FILENAME, &given.kernel,
         "vmlinux, vmlinuz, or another ELF that has a PVH entry", "IMAGE"},
	{"initrd", 0, 0, G_OPTION_ARG_FILENAME, &given.initrd, "initial RAM file system", "FILE"},
	{"append", 'a', 0, G_OPTION_ARG_STRING, &given.append, "kernel command line, behind vprof's own", "TEXT"},
	{"memory", 'm', 0, G_OPTION_ARG_STRING, &given.memory, "guest memory, as 512M or 2G", "SIZE"},
	{"vcpus", 0, 0, G_OPTION_ARG_STRING, &given.vcpus, "number of virtual CPUs", "N"},
	{"event", 'e', 0, G_OPTION_ARG_STRING_ARRAY, &given.events,
         "event to sample, as cycles, instructions:u, task-clock; may be given again", "EVENT"},
	{"frequency", 'F', 0, G_OPTION_ARG_STRING, &given.frequency, "samples per second and vCPU (default 999)", "HZ"},
	{"count", 'c', 0, G_OPTION_ARG_STRING, &given.period, "events (nanoseconds, for clocks) between two samples",
         "PERIOD"},
	{"call-chains", 'g', 0, G_OPTION_ARG_NONE, &given.call_chains,
         "record call chains, of the guest's kernel and user space (--call-graph=auto)", NULL},
	{"call-graph", 0, 0, G_OPTION_ARG_STRING, &given.call_graph,
         "how kernel callers are found: auto, orc, fp (frame pointers) or none", "HOW"},
	{"call-depth", 0, 0, G_OPTION_ARG_STRING, &given.call_depth, "frames of a call chain (default 64, at most 127)",
         "N"},
	{"no-tasks", 0, 0, G_OPTION_ARG_NONE, &given.no_tasks, "do not look up which task of a Linux guest runs", NULL},
	{"output", 'o', 0, G_OPTION_ARG_FILENAME, &given.output, "recording to write (default " INPUT_DEFAULT_PATH ")",
         "FILE"},
	{"no-report", 0, 0, G_OPTION_ARG_NONE, &given.no_report, "do not print the profile at the end", NULL},
	{"duration", 'd', 0, G_OPTION_ARG_STRING, &given.duration, "end the guest after TIME, as 10s or 2m", "TIME"},
	{"demo", 0, 0, G_OPTION_ARG_NONE, &given.demo, "run the built-in guest: no --kernel needed", NULL},
	{"console", 0, 0, G_OPTION_ARG_STRING, &given.console, "the guest's first serial port: stdio, none or a file",
         "WHERE"},
	{"stop-on-panic", 0, 0, G_OPTION_ARG_NONE, &given.stop_on_panic, "end the guest when its console says panic",
         NULL},
	{"name", 0, 0, G_OPTION_ARG_STRING, &given.name, "name in `vprof list` and in the recording", "NAME"},
	{"boot", 0, 0, G_OPTION_ARG_STRING, &given.boot, "boot protocol: auto, linux or pvh", "PROTOCOL"},
	{"quirks", 0, 0, G_OPTION_ARG_STRING, &given.quirks, "what this host's KVM needs of a guest: auto or off",
         "WHEN"},
	{"delivery", 0, 0, G_OPTION_ARG_STRING, &given.delivery,
         "how an overflow becomes an exit: sigmask, sigtrap or setsig", "NAME"},
	{"verbose", 'v', 0, G_OPTION_ARG_NONE, &given.verbose, "say what is done to the guest and how it is sampled",
         NULL},
	{NULL},
};

/* Everything that one run holds. */
struct run {
	struct engine *engine;
	struct capture *capture;
	struct terminal *terminal;
	struct image *image;
	struct symtab *symtab; /* NULL when the image has no symbols */
	json_t *guest;         /* as query-guest */
	json_t *statistics;    /* as query-stats; NULL when the engine did not live to say it */
	struct run_loop loop;
	const char *output;
};

static void run_clear(struct run *run)
{
	terminal_free(run->terminal);
	capture_free(run->capture);
	engine_free(run->engine);
	symtab_free(run->symtab);
	image_free(run->image);
	json_decref(run->guest);
	json_decref(run->statistics);
	json_decref(run->loop.end);
	g_clear_error(&run->loop.output_error);
	if (run->loop.signalfd > 0)
		close(run->loop.signalfd);
}

/* The demonstration guest is a kernel like any other, with its own defaults. */
static bool options_apply_demo(GError **error)
{
	if (!given.demo)
		return true;
	given.kernel = program_find(DEMO_IMAGE, error);
	if (given.vcpus == NULL)
		given.vcpus = g_strdup(DEMO_VCPUS);
	if (given.memory == NULL)
		given.memory = g_strdup(DEMO_MEMORY);
	return given.kernel != NULL;
}

static json_t *events_json(void)
{
	json_t *names = json_array();

	for (char **event = given.events; *event != NULL; event++)
		json_array_append_new(names, text_json(*event));
	return names;
}

static void call_chain_arguments(json_t *arguments, uint64_t depth)
{
	if (given.call_graph != NULL)
		json_object_set_new(arguments, "call-graph", text_json(given.call_graph));
	else if (given.call_chains)
		json_object_set_new(arguments, "call-graph", json_string("auto"));
	if (depth != 0)
		json_object_set_new(arguments, "call-depth", json_integer((json_int_t)depth));
}

/* The arguments of session-start, or NULL. */
static json_t *session_arguments(GError **error)
{
	uint64_t frequency_hz = DEFAULT_FREQUENCY_HZ, period = 0, depth = 0;
	json_t *arguments;

	if ((given.frequency != NULL &&
	     !units_parse_number("--frequency", given.frequency, 1, INT64_MAX, &frequency_hz, error)) ||
	    (given.call_depth != NULL &&
	     !units_parse_number("--call-depth", given.call_depth, 1, INT64_MAX, &depth, error)) ||
	    (given.period != NULL && !units_parse_number("--count", given.period, 1, INT64_MAX, &period, error)))
		return NULL;
	arguments = json_object();
	if (given.events != NULL)
		json_object_set_new(arguments, "events", events_json());
	if (period != 0)
		json_object_set_new(arguments, "period", json_integer((json_int_t)period));
	else
		json_object_set_new(arguments, "frequency-hz", json_integer((json_int_t)frequency_hz));
	call_chain_arguments(arguments, depth);
	if (given.no_tasks)
		json_object_set_new(arguments, "tasks", json_integer(0));
	if (given.delivery != NULL)
		json_object_set_new(arguments, "delivery", text_json(given.delivery));
	return arguments;
}

static void argument_add(GPtrArray *arguments, const char *option, const char *value)
{
	if (value == NULL)
		return;
	g_ptr_array_add(arguments, g_strdup(option));
	g_ptr_array_add(arguments, g_strdup(value));
}

/* The engine's command line; sizes and numbers are checked there. */
static GPtrArray *engine_arguments(uint64_t duration_s)
{
	GPtrArray *arguments = g_ptr_array_new_with_free_func(g_free);
	g_autofree char *seconds = g_strdup_printf("%" G_GUINT64_FORMAT, duration_s);

	argument_add(arguments, "--kernel", given.kernel);
	argument_add(arguments, "--initrd", given.initrd);
	argument_add(arguments, "--append", given.append);
	argument_add(arguments, "--memory", given.memory);
	argument_add(arguments, "--vcpus", given.vcpus);
	argument_add(arguments, "--name", given.name);
	argument_add(arguments, "--boot", given.boot);
	argument_add(arguments, "--console", given.console);
	argument_add(arguments, "--quirks", given.quirks);
	argument_add(arguments, "--duration", duration_s != 0 ? seconds : NULL);
	if (given.stop_on_panic)
		g_ptr_array_add(arguments, g_strdup("--stop-on-panic"));
	if (given.verbose)
		g_ptr_array_add(arguments, g_strdup("--verbose"));
	g_ptr_array_add(arguments, NULL);
	return arguments;
}

/* A guest without symbols is worth profiling all the same: by mode, vCPU and address. */
static bool run_load_symbols(struct run *run, GError **error)
{
	g_autoptr(GError) why = NULL;

	run->image = image_open(given.kernel, error);
	if (run->image == NULL)
		return false;
	run->symtab = symtab_load(run->image, &why);
	if (run->symtab == NULL)
		warn("%s; addresses will have no names", why->message);
	return true;
}

static void run_say_session(const struct run *run)
{
	const json_t *session = capture_session(run->capture);
	const char *why = member_text(session, "why"), *delivery = member_text(session, "delivery");
	const char *tasks_why = member_text(session, "tasks-why");

	if (why != NULL)
		say("%s", why);
	if (given.verbose && delivery != NULL)
		say("overflows become exits by %s; call chains: %s", delivery, member_text(session, "call-graph"));
	if (given.verbose && tasks_why != NULL)
		say("samples have no pid and no name of a task: %s", tasks_why);
}

/* Everything that can fail does so before the guest runs its first instruction. */
static bool run_prepare(struct run *run, json_t *session, GError **error)
{
	run->guest = engine_execute(run->engine, "query-guest", NULL, error);
	if (run->guest == NULL) {
		json_decref(session);
		return false;
	}
	run->capture = capture_new(run->engine, session, error);
	if (run->capture == NULL || !run_load_symbols(run, error))
		return false;
	run_say_session(run);
	return capture_open_file(run->capture, run->output, run->image, run->symtab, member_text(run->guest, "kernel"),
	                         error);
}

static bool run_guest(struct run *run, GError **error)
{
	json_t *started = engine_execute(run->engine, "guest-start", NULL, error);

	if (started == NULL)
		return false;
	json_decref(started);
	run->terminal = terminal_new(given.console == NULL || strcmp(given.console, "stdio") == 0);
	terminal_raw(run->terminal);
	run->loop.engine = run->engine;
	run->loop.capture = run->capture;
	run->loop.terminal = run->terminal;
	run_loop_run(&run->loop);
	terminal_free(g_steal_pointer(&run->terminal));
	return true;
}

/* What an engine that is still there has to say at the end. It is let go afterwards. */
static void run_close_session(struct run *run)
{
	json_t *stopped;

	if (run->loop.engine_gone)
		return;
	stopped = engine_execute(run->engine, "session-stop", NULL, NULL);
	run->statistics = json_incref(json_object_get(stopped, "statistics"));
	json_decref(stopped);
	json_decref(engine_execute(run->engine, "quit", NULL, NULL));
}

static void run_say_end(const struct run *run)
{
	g_autofree char *message = text_printable(member_text(run->loop.end, "message"));
	const char *details = member_text(run->loop.end, "details");

	/* That the guest was stopped when its recording could not be written says nothing new. */
	if (run->loop.end == NULL || run->loop.output_error != NULL)
		return;
	say("%s", run->loop.stop_asked ? "the guest was stopped" : message);
	if (details != NULL)
		fprintf(stderr, "%s%s", details, g_str_has_suffix(details, "\n") ? "" : "\n");
}

static void run_say_engine_gone(const struct run *run)
{
	g_autofree char *death = engine_death(run->engine);

	say("the engine %s while the guest ran; what was recorded until then is kept",
	    death != NULL ? death : "has closed the connection");
}

static void run_say_written(const struct run *run)
{
	struct stat status;
	g_autofree char *size = NULL;

	if (stat(run->output, &status) != 0)
		return;
	size = units_format_bytes((uint64_t)status.st_size);
	say("%" G_GUINT64_FORMAT " samples in %s (%s)", capture_samples(run->capture), run->output, size);
	if (capture_lost(run->capture) != 0)
		warn("%" G_GUINT64_FORMAT
		     " samples found no room in the rings and are lost; sample less often (-F, -c)",
		     capture_lost(run->capture));
}

static bool run_finish_file(struct run *run, const char *const *command_line, GError **error)
{
	const struct capture_summary summary = {
		.guest = run->guest,
		.end = run->loop.end,
		.statistics = run->statistics,
	};

	if (run->loop.output_error != NULL) {
		g_propagate_error(error, g_steal_pointer(&run->loop.output_error));
		return false;
	}
	return capture_drain(run->capture, error) &&
	       capture_finish(run->capture, &summary, run->image, run->symtab, command_line, error);
}

static bool run_print_top(const struct run *run, GError **error)
{
	struct report_options report_options = {.limit = TOP_ROWS};
	struct input *input = input_open(run->output, NULL, false, error);
	struct report *report;

	/* The recording is safe; whoever reads no further than this wants silence. */
	signal(SIGPIPE, SIG_DFL);
	if (input == NULL || !column_list_parse(REPORT_DEFAULT_SORT, &report_options.columns, error)) {
		input_free(input);
		return false;
	}
	report = report_new(input, &report_options);
	input_say_warnings(input);
	report_print_text(report, stdout);
	report_free(report);
	input_free(input);
	return true;
}

/* The exit status that stands for the way a guest ended (vprof/control.h). */
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

	if (reason == NULL)
		return STATUS_FAILED;
	if (strcmp(reason, "exit-port") == 0)
		return EXIT_PORT_STATUS(member_number(end, "code", 0));
	for (size_t i = 0; i < G_N_ELEMENTS(statuses); i++)
		if (strcmp(reason, statuses[i].reason) == 0)
			return statuses[i].status;
	return STATUS_FAILED;
}

/* After the guest: the file, the messages, the top of the profile. */
static int run_conclude(struct run *run, const char *const *command_line)
{
	g_autoptr(GError) error = NULL;

	run_close_session(run);
	if (run->loop.stop_asked)
		run_loop_signals_release();
	run_say_end(run);
	if (run->loop.engine_gone)
		run_say_engine_gone(run);
	if (!run_finish_file(run, command_line, &error)) {
		failure(error);
		say("what was recorded until then is in %s", run->output);
		return STATUS_FAILED;
	}
	run_say_written(run);
	if (!given.no_report && !run_print_top(run, &error))
		return failure(error);
	return run->loop.engine_gone ? STATUS_FAILED : end_status(run->loop.end);
}

static int run_all(struct run *run, uint64_t duration_s, json_t *session, const char *const *command_line)
{
	g_autoptr(GPtrArray) arguments = engine_arguments(duration_s);
	g_autoptr(GError) error = NULL;
	int status = STATUS_FAILED;

	run->engine = engine_start((const char *const *)arguments->pdata, &status, &error);
	if (run->engine == NULL) {
		json_decref(session);
		/* The engine has said why. */
		return g_error_matches(error, ENGINE_ERROR, ENGINE_ERROR_REFUSED) ? status : failure(error);
	}
	if (!run_prepare(run, session, &error) || !run_guest(run, &error))
		return failure(error);
	if (run->loop.left_at_once) {
		engine_abandon(g_steal_pointer(&run->engine));
		say("left at once; %s holds what was recorded until now", run->output);
		return 130; /* as a shell reports SIGINT */
	}
	return run_conclude(run, command_line);
}

/* The command line as the recording keeps it: without options that GOption has taken, there is only /proc to ask. */
static char **command_line_read(void)
{
	g_autofree char *bytes = NULL;
	GPtrArray *words = g_ptr_array_new();
	gsize n;

	if (g_file_get_contents("/proc/self/cmdline", &bytes, &n, NULL))
		for (const char *word = bytes; word < bytes + n; word += strlen(word) + 1)
			g_ptr_array_add(words, g_strdup(word));
	g_ptr_array_add(words, NULL);
	return (char **)g_ptr_array_free(words, FALSE);
}

static const char *options_contradiction(void)
{
	if (given.demo && given.kernel != NULL)
		return "--demo brings its own kernel; leave --kernel away";
	if (!given.demo && given.kernel == NULL)
		return "which kernel? give --kernel IMAGE, or --demo for the built-in guest";
	if (given.frequency != NULL && given.period != NULL)
		return "--frequency and --count exclude each other";
	return NULL;
}

static int run_run(unsigned n, char **arguments)
{
	g_auto(GStrv) command_line = command_line_read();
	const char *contradiction = options_contradiction();
	g_autoptr(GError) error = NULL;
	struct run run = {.output = given.output != NULL ? given.output : INPUT_DEFAULT_PATH};
	uint64_t duration_s = 0;
	json_t *session;
	int status;

	(void)n;
	(void)arguments;
	if (contradiction != NULL)
		return usage_error(command_run.name, "%s", contradiction);
	session = session_arguments(&error);
	if (session == NULL ||
	    (given.duration != NULL && !units_parse_duration("--duration", given.duration, &duration_s, &error))) {
		json_decref(session);
		return usage_error(command_run.name, "%s", error->message);
	}
	if (!options_apply_demo(&error) || (run.loop.signalfd = run_loop_signals(&error)) < 0) {
		json_decref(session);
		return failure(error);
	}
	status = run_all(&run, duration_s, session, (const char *const *)command_line);
	run_clear(&run);
	return status;
}

const struct command command_run = {
	.name = "run",
	.summary = "Boot a kernel in a virtual machine and record where its time goes",
	.arguments = "",
	.manual = "vprof-run",
	.description =
		"The guest runs until it powers off; its console is this terminal. Ctrl-C ends it and finishes the\n"
		"recording; a second Ctrl-C leaves at once. The exit status is the guest's: 0 after a power-off, see "
		"the manual.\n"
		"Without -e, cycles are sampled where the host has a PMU, else the vCPU threads' clock.\n"
		"\n"
		"Examples:\n"
		"  vprof run --demo\n"
		"  vprof run --kernel /boot/vmlinuz --initrd initrd.img --memory 512M --duration 2m\n"
		"  vprof run --kernel vmlinux --append 'root=none quiet' -F 5000 --console boot.log -o boot.data\n"
		"  vprof run --kernel vmlinuz --initrd initrd.img -g && vprof report -g\n"
		"  vprof run --kernel vmlinux -e instructions:k -e cache-misses -c 100003",
	.options = options,
	.run = run_run,
};
