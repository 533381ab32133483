// SPDX-License-Identifier: BSD-2-Clause
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vprof/recording.h>

#include "command.h"
#include "guest_run.h"
#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"
#include "message.h"
#include "report.h"
#include "run_record.h"
#include "symbol_options.h"
#include "text.h"
#include "units.h"

#define DEFAULT_FREQUENCY_HZ 999 /* not 1000: no lockstep with the guest's timer tick */
#define TOP_ROWS 20

static struct {
	char *delivery, *frequency, *period, *output;
	char **events;
	char *call_graph, *call_depth;
	gboolean call_chains, call_user, no_call_user, no_tasks, no_report;
} given;

static const GOptionEntry options[] = {
	EXEC_OPTIONS,
	GUEST_RUN_OPTIONS,
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
	{"call-user", 0, 0, G_OPTION_ARG_NONE, &given.call_user,
         "let call chains go on into user space, by frame pointers (the default)", NULL},
	{"no-call-user", 0, 0, G_OPTION_ARG_NONE, &given.no_call_user, "end call chains where the kernel was entered",
         NULL},
	SYMBOL_OPTIONS,
	{"no-tasks", 0, 0, G_OPTION_ARG_NONE, &given.no_tasks, "do not look up which task of a Linux guest runs", NULL},
	{"delivery", 0, 0, G_OPTION_ARG_STRING, &given.delivery,
         "how an overflow becomes an exit: sigmask, sigtrap or setsig", "NAME"},
	{"output", 'o', 0, G_OPTION_ARG_FILENAME, &given.output, "recording to write (default " INPUT_DEFAULT_PATH ")",
         "FILE"},
	{"no-report", 0, 0, G_OPTION_ARG_NONE, &given.no_report, "do not print the profile at the end", NULL},
	{NULL},
};

/* Everything that one run holds. */
struct run {
	struct guest_run base;
	struct capture *capture;
	struct image *image;
	struct symtab *symtab; /* NULL when the image has no symbols */
	json_t *statistics;    /* as query-stats; NULL when the engine did not live to say it */
	const char *output;
};

static void run_clear(struct run *run)
{
	capture_free(run->capture);
	guest_run_clear(&run->base);
	symtab_free(run->symtab);
	image_free(run->image);
	json_decref(run->statistics);
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
	if (given.no_call_user)
		json_object_set_new(arguments, "call-user", json_false());
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
		json_object_set_new(arguments, "tasks", json_false());
	if (given.delivery != NULL)
		json_object_set_new(arguments, "delivery", text_json(given.delivery));
	return arguments;
}

/* A guest without symbols is worth profiling all the same: by mode, vCPU and address. */
static bool run_load_symbols(struct run *run, GError **error)
{
	g_autoptr(GError) why = NULL;

	run->image = image_open(guest_run_options.kernel, error);
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
	if (guest_run_options.verbose && delivery != NULL)
		say("overflows become exits by %s; call chains: %s", delivery, member_text(session, "call-graph"));
	if (guest_run_options.verbose && tasks_why != NULL)
		say("samples have no pid and no name of a task: %s", tasks_why);
}

static bool on_command_begins(void *data, GError **error)
{
	struct run *run = data;

	return run->base.plan->from_boot || capture_resume(run->capture, error);
}

static void on_command_ended(void *data)
{
	struct run *run = data;

	/* With the guest gone there is no session to end; what is in its rings is taken at last. */
	if (!run->base.plan->from_boot)
		capture_pause(run->capture, NULL);
}

static void on_mark(const char *name, bool begins, uint64_t time_ns, void *data)
{
	struct run *run = data;

	capture_mark(run->capture, name, begins, time_ns);
}

/* What is profiled of a guest in which a command runs is the command, unless the boot is wanted, too. */
static bool run_prepare_exec(struct run *run, GError **error)
{
	const struct exec_hooks hooks = {
		.begin = on_command_begins,
		.end = on_command_ended,
		.mark = on_mark,
		.data = run,
	};

	if (run->base.exec == NULL)
		return true;
	exec_set_hooks(run->base.exec, &hooks);
	return run->base.plan->from_boot || capture_pause(run->capture, error);
}

/* Everything that can fail does so before the guest runs its first instruction. */
static bool run_prepare(struct run *run, json_t *session, GError **error)
{
	run->capture = capture_new(run->base.engine, session, error);
	if (run->capture == NULL || !run_load_symbols(run, error))
		return false;
	run_say_session(run);
	return capture_open_file(run->capture, run->output, run->image, run->symtab,
	                         member_text(run->base.guest, "kernel"), error) &&
	       run_prepare_exec(run, error);
}

/* What an engine that is still there has to say at the end. It is let go afterwards. */
static void run_close_session(struct run *run)
{
	json_t *stopped;

	if (run->base.loop.engine_gone)
		return;
	stopped = engine_execute(run->base.engine, "session-stop", NULL, NULL);
	run->statistics = json_incref(stopped != NULL ? json_object_get(stopped, "statistics")
	                                              : (json_t *)capture_statistics(run->capture));
	json_decref(stopped);
	json_decref(engine_execute(run->base.engine, "quit", NULL, NULL));
}

static void run_say_written(const struct run *run)
{
	struct stat status;
	g_autofree char *size = NULL;

	if (stat(run->output, &status) != 0)
		return;
	size = units_format_bytes((uint64_t)status.st_size);
	say("%" G_GUINT64_FORMAT " samples in %s (%s)", capture_samples(run->capture), run->output, size);
	if (capture_marks_left_out(run->capture))
		warn("of the markers the first %u are kept", VPROF_MARKS_MAX);
	if (capture_lost(run->capture) != 0)
		warn("%" G_GUINT64_FORMAT
		     " samples found no room in the rings and are lost; sample less often (-F, -c)",
		     capture_lost(run->capture));
}

static bool run_take_output_error(struct run *run, GError **error)
{
	if (run->base.loop.output_error == NULL)
		return true;
	g_propagate_error(error, g_steal_pointer(&run->base.loop.output_error));
	return false;
}

static void warnings_say(const GPtrArray *warnings)
{
	for (guint i = 0; i < warnings->len; i++)
		warn("%s", (const char *)warnings->pdata[i]);
}

static bool run_finish_file(struct run *run, const char *const *command_line, GError **error)
{
	g_autofree char *initrd = guest_run_initramfs(&run->base);
	const struct user_symbol_sources sources = symbol_options_sources(initrd, false);
	struct user_symbols *user_symbols = user_symbols_new(&sources);
	json_t *exec = run->base.exec != NULL ? exec_json(run->base.exec) : NULL;
	const struct capture_summary summary = {
		.guest = run->base.guest,
		.end = run->base.loop.end,
		.statistics = run->statistics,
		.exec = exec,
		.user_symbols = user_symbols,
	};
	bool finished = run_take_output_error(run, error) && capture_drain(run->capture, error) &&
	                capture_finish(run->capture, &summary, run->image, run->symtab, command_line, error);

	warnings_say(user_symbols_warnings(user_symbols));
	user_symbols_free(user_symbols);
	json_decref(exec);
	return finished;
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
	/* Standard output is the command's, if there is one. */
	report_print_text(report, run->base.exec != NULL ? stderr : stdout);
	report_free(report);
	input_free(input);
	return true;
}

/* After the guest: the file, the messages, the top of the profile. */
static int run_conclude(struct run *run, const char *const *command_line)
{
	g_autoptr(GError) error = NULL;

	run_close_session(run);
	if (run->base.loop.stop_asked)
		run_loop_signals_release();
	guest_run_say_end(&run->base, "what was recorded until then is kept");
	if (!run_finish_file(run, command_line, &error)) {
		failure(error);
		say("what was recorded until then is in %s", run->output);
		return STATUS_FAILED;
	}
	run_say_written(run);
	if (!given.no_report && !run_print_top(run, &error))
		return failure(error);
	return guest_run_status(&run->base);
}

static int run_all(struct run *run, json_t *session, const char *const *command_line)
{
	g_autoptr(GError) error = NULL;
	int status = guest_run_open(&run->base);

	if (status != STATUS_OK) {
		json_decref(session);
		return status;
	}
	if (!run_prepare(run, session, &error) || !guest_run_go(&run->base, run->capture, &error))
		return failure(error);
	if (run->base.loop.left_at_once) {
		say("left at once; %s holds what was recorded until now", run->output);
		return guest_run_abandon(&run->base);
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

/* The arguments of session-start, or NULL when the command line makes no sense. */
static json_t *options_check(GError **error)
{
	if (!guest_run_check(error))
		return NULL;
	if (!symbol_options_check(error))
		return NULL;
	if (given.call_user && given.no_call_user) {
		g_set_error_literal(error, GUEST_RUN_ERROR, GUEST_RUN_ERROR_OPTIONS,
		                    "--call-user and --no-call-user exclude each other");
		return NULL;
	}
	if (given.frequency != NULL && given.period != NULL) {
		g_set_error_literal(error, GUEST_RUN_ERROR, GUEST_RUN_ERROR_OPTIONS,
		                    "--frequency and --count exclude each other");
		return NULL;
	}
	return session_arguments(error);
}

static int run_run(unsigned n, char **arguments)
{
	g_auto(GStrv) command_line = command_line_read();
	g_autoptr(GError) error = NULL;
	struct run run = {.output = given.output != NULL ? given.output : INPUT_DEFAULT_PATH};
	json_t *session = options_check(&error);
	int status;

	(void)n;
	(void)arguments;
	if (session == NULL)
		return usage_error(command_run.name, "%s", error->message);
	status = run_all(&run, session, (const char *const *)command_line);
	run_clear(&run);
	return status;
}

const struct command command_run = {
	.name = "run",
	.summary = "Boot a kernel in a virtual machine and record where its time goes",
	.arguments = "",
	.manual = "vprof-run",
	.description =
		"With --exec, COMMAND runs in the guest with what it needs of this host (its libraries, what --add "
		"names),\n"
		"its input, output and exit status are ours, and the profile is that of the command.\n"
		"Without, the guest runs until it powers off, and its console is this terminal. Ctrl-C ends it and "
		"finishes the\n"
		"recording; a second Ctrl-C leaves at once. The exit status is the guest's: 0 after a power-off, see "
		"the manual.\n"
		"Without -e, cycles are sampled where the host has a PMU, else the vCPU threads' clock.\n"
		"\n"
		"Examples:\n"
		"  vprof run --kernel /boot/vmlinuz --exec './bench --iterations 1000'\n"
		"  vprof run --kernel vmlinux --exec ./test --add data.txt --repeat 10 --warmup 2 --time-limit 60s\n"
		"  vprof run --demo\n"
		"  vprof run --kernel /boot/vmlinuz --initrd initrd.img --memory 512M --duration 2m\n"
		"  vprof run --kernel vmlinux --append 'root=none quiet' -F 5000 --console boot.log -o boot.data\n"
		"  vprof run --kernel vmlinuz --initrd initrd.img -g && vprof report -g\n"
		"  vprof run --kernel vmlinux -e instructions:k -e cache-misses -c 100003",
	.options = options,
	.run = run_run,
};
