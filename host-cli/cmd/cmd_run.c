// SPDX-License-Identifier: BSD-2-Clause
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vprof/control.h>

#include "cmd/command.h"
#include "lib/profile/shift.h"
#include "reading/symbol_options.h"
#include "record/recorder.h"
#include "record/recorder_options.h"
#include "run/agent_mappings.h"
#include "run/guest_run.h"
#include "ui/message.h"
#include "ui/text.h"

struct run_values {
	struct guest_run_options guest;
	struct recorder_options recording;
	struct symbol_options symbols;
	char *delivery;
	gboolean exact, boot_each;
};

static const struct option_row options[] = {
	OPTION_ROWS(guest_run_option_rows, struct run_values, guest),
	{"frequency", OPTION_NUMBER, offsetof(struct run_values, recording.frequency_hz),
         "samples per second and vCPU (default " G_STRINGIFY(VPROF_FREQUENCY_HZ_DEFAULT) ")", "HZ", .min = 1,
         .max = VPROF_FREQUENCY_HZ_MAX},
	OPTION_ROWS(recorder_option_rows, struct run_values, recording),
	{"off-cpu", OPTION_FLAG, offsetof(struct run_values, recording.off_cpu),
         "also sample each wait of a task, at its end (event off-cpu; implies -g); uses one of the guest's breakpoints",
         NULL},
	{"switch-events", OPTION_FLAG, offsetof(struct run_values, recording.switches),
         "also record context switches of a Linux guest; uses one of its breakpoints", NULL},
	OPTION_ROWS(symbol_option_rows, struct run_values, symbols),
	{"boot-each", OPTION_FLAG, offsetof(struct run_values, boot_each),
         "boot a new guest for each of --repeat; --output is a folder of recordings", NULL},
	{"exact", OPTION_FLAG, offsetof(struct run_values, exact),
         "count every instruction by single-stepping: no noise, but very slow", NULL},
	{"delivery", OPTION_TEXT, offsetof(struct run_values, delivery),
         "how a counter overflow becomes an exit: sigmask, sigtrap or setsig", "NAME", "sigmask sigtrap setsig"},
	{NULL},
};

/* All state of one run. */
struct run {
	const struct run_values *given;
	struct guest_run base;
	struct recorder *recorder;
	char *initrd;                    /* as guest_run_initramfs */
	struct agent_mappings *mappings; /* NULL without a command */
	struct agent_reads reads;
	const char *output;
};

static void run_clear(struct run *run)
{
	agent_mappings_free(run->mappings);
	recorder_free(run->recorder);
	guest_run_clear(&run->base);
	g_free(run->initrd);
}

static bool on_command_begins(void *data, GError **error)
{
	struct run *run = data;

	return run->base.plan->from_boot || recorder_resume(run->recorder, error);
}

static void on_command_ended(void *data)
{
	struct run *run = data;

	/* If the guest is gone, no session can be stopped; the rings are drained at the end. */
	if (!run->base.plan->from_boot)
		recorder_pause(run->recorder, NULL);
}

static void on_mark(const char *name, bool begins, uint64_t time_ns, void *data)
{
	struct run *run = data;

	recorder_mark(run->recorder, name, begins, time_ns);
}

/* With --exec, only the command is profiled, unless --from-boot includes the boot. */
static bool run_prepare_exec(struct run *run, GError **error)
{
	if (!run->base.exec)
		return true;
	run->mappings = agent_mappings_new(run->recorder);
	agent_reads_init(&run->reads, run->recorder);
	const struct exec_hooks hooks = {
		.begin = on_command_begins,
		.end = on_command_ended,
		.mark = on_mark,
		.data = run,
		.mappings = run->mappings,
		.reads = &run->reads,
	};

	exec_set_hooks(run->base.exec, &hooks);
	return run->base.plan->from_boot || recorder_pause(run->recorder, error);
}

/* Everything that can fail does so before the guest runs its first instruction. */
static bool run_prepare(struct run *run, json_t *session, GError **error)
{
	run->initrd = guest_run_initramfs(&run->base);
	const struct recorder_config config = {
		.client = engine_process_client(run->base.engine),
		.guest = run->base.guest,
		.session = session,
		.symbols = &run->given->symbols,
		.initrd = run->initrd,
		.tables = true,
		.programs = run->base.plan ? run->base.plan->programs : NULL,
	};

	run->recorder = recorder_new(&config, error);
	if (!run->recorder)
		return false;
	recorder_say_session(run->recorder, run->given->guest.verbose);
	return recorder_open(run->recorder, run->output, error) && run_prepare_exec(run, error);
}

/* After the guest: the file, the messages, the top of the profile. */
static int run_conclude(struct run *run)
{
	/* With a command, standard output belongs to the command. */
	FILE *const report = run->base.exec ? stderr : stdout;

	run_loop_close(&run->base.loop);
	guest_run_say_end(&run->base, "what was recorded until then is kept");
	json_t *exec = run->base.exec ? exec_json(run->base.exec) : NULL;
	const struct recorder_end end = {.guest = run->base.guest, .end = run->base.loop.end, .exec = exec};
	const int status = recorder_conclude(run->recorder, &end, run->given->recording.no_report ? NULL : report);

	json_decref(exec);
	return status == STATUS_OK ? guest_run_status(&run->base) : status;
}

static int run_all(struct run *run, json_t *session)
{
	g_autoptr(GError) error = NULL;
	int status = guest_run_open(&run->base);

	if (status != STATUS_OK)
		return status;
	if (!run_prepare(run, session, &error) || !guest_run_go(&run->base, run->recorder, &error))
		return failure(error);
	if (run->base.loop.left_at_once) {
		say("left at once; %s holds what was recorded until now", run->output);
		return guest_run_abandon(&run->base);
	}
	return run_conclude(run);
}

/* The arguments of session-start, or NULL if the command line is invalid. */
static json_t *options_check(struct run_values *given, GError **error)
{
	if (!guest_run_check(&given->guest, error))
		return NULL;
	if (!symbol_options_check(&given->symbols, error))
		return NULL;
	if (given->exact &&
	    (given->recording.events || given->recording.frequency_hz != 0 || given->recording.period != 0)) {
		g_set_error(error, RECORDER_OPTIONS_ERROR, RECORDER_OPTIONS_ERROR_EXCLUDE,
		            "--exact counts every instruction and excludes --event, --frequency and --count");
		return NULL;
	}
	json_t *arguments = recorder_options_arguments(&given->recording, error);

	if (arguments && given->exact)
		json_object_set_new(arguments, "events", json_pack("[s]", "steps"));
	if (arguments && given->delivery)
		json_object_set_new(arguments, "delivery", text_json(given->delivery));
	return arguments;
}

static int run_once(struct run_values *given, const char *output, json_t *session)
{
	struct run run = {
		.given = given,
		.base = {.options = &given->guest, .modules = given->symbols.modules},
		.output = output,
	};
	int status = run_all(&run, session);

	run_clear(&run);
	return status;
}

/* Recordings of other runs would be taken for repetitions of this one. */
static bool folder_prepare(const char *path, GError **error)
{
	g_autoptr(GDir) folder = NULL;
	const char *name;

	if (g_mkdir_with_parents(path, 0777) != 0) {
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot make the folder %s: %s",
		            path, g_strerror(errno));
		return false;
	}
	folder = g_dir_open(path, 0, error);
	while (folder && (name = g_dir_read_name(folder)))
		if (g_str_has_suffix(name, ".data")) {
			g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_EXIST,
			            "%s holds recordings already; name another folder with --output", path);
			return false;
		}
	return folder != NULL;
}

/* One after the other, until one fails. */
static int run_each(struct run_values *given, const char *folder, uint64_t repeats, json_t *session)
{
	g_autoptr(GError) error = NULL;
	int status = STATUS_OK;

	if (!folder_prepare(folder, &error))
		return failure(error);
	for (uint64_t i = 1; i <= repeats && status == STATUS_OK; i++) {
		g_autofree char *name = g_strdup_printf("%03" G_GUINT64_FORMAT ".data", i);
		g_autofree char *output = g_build_filename(folder, name, NULL);

		status = run_once(given, output, session);
	}
	return status;
}

/* --repeat then counts boots, and each boot has one repetition. */
static bool boot_each_check(struct run_values *given, uint64_t *repeats, GError **error)
{
	const uint64_t given_repeats = given->guest.exec.repeats;

	if (given_repeats == 0) {
		g_set_error(error, RECORDER_OPTIONS_ERROR, RECORDER_OPTIONS_ERROR_EXCLUDE,
		            "--boot-each needs --repeat, which says how often");
		return false;
	}
	if (given_repeats > SHIFT_REPETITIONS_MAX) {
		g_set_error(error, RECORDER_OPTIONS_ERROR, RECORDER_OPTIONS_ERROR_EXCLUDE,
		            "--repeat takes 1 to %u with --boot-each, not %" G_GUINT64_FORMAT, SHIFT_REPETITIONS_MAX,
		            given_repeats);
		return false;
	}
	given->recording.no_report = TRUE;
	given->guest.exec.repeats = 0;
	*repeats = given_repeats;
	return true;
}

static int run_run(void *values, unsigned n, char **arguments)
{
	struct run_values *given = values;
	g_autoptr(GError) error = NULL;
	uint64_t repeats = 0;
	json_t *session =
		given->boot_each && !boot_each_check(given, &repeats, &error) ? NULL : options_check(given, &error);

	(void)n;
	(void)arguments;
	if (!session)
		return usage_error(command_run.name, "%s", error->message);
	const char *output = given->recording.output;
	const int status = given->boot_each ? run_each(given, output ? output : "vprof.repeats", repeats, session)
	                                    : run_once(given, output ? output : INPUT_DEFAULT_PATH, session);

	json_decref(session);
	return status;
}

const struct command command_run = {
	.name = "run",
	.summary = "Boot a kernel in a virtual machine and record where its time goes",
	.arguments = "",
	.manual = "vprof-run",
	.description =

		"With --exec, COMMAND runs in the guest, with the files of this host that it needs (its libraries\n"
		"and what --add names). Its standard streams and its exit status are those of vprof, and only the\n"
		"command is profiled.\n"
		"Without --exec, the guest runs until it powers off, and this terminal is its console. Ctrl-C ends\n"
		"the guest and finishes the recording; a second Ctrl-C exits at once. The exit status is the\n"
		"guest's: 0 after a power-off; see the manual page.\n"
		"Without -e, vprof samples cycles where the host has a PMU, and the clock of the vCPU threads\n"
		"elsewhere.\n"
		"\n"
		"Examples:\n"
		"  vprof run --kernel /boot/vmlinuz --exec './bench --iterations 1000'\n"
		"  vprof run --kernel vmlinux --exec ./test --repeat 10 --time-limit 60s\n"
		"  vprof run --demo\n"
		"  vprof run --kernel vmlinuz --initrd initrd.img -m 512M --duration 2m\n"
		"  vprof run --kernel vmlinux --append 'root=none quiet' -F 5000 -o boot.data\n"
		"  vprof run --kernel vmlinuz --initrd initrd.img -g && vprof report -g\n"
		"  vprof run --kernel vmlinux -e instructions:k,cache-misses -c 100003\n"
		"  vprof run --kernel vmlinux --exec ./bench --boot-each --repeat 10 -o new/\n"
		"  vprof run --kernel unikernel.elf --exact -o new.data",
	.options = options,
	.values_bytes = sizeof(struct run_values),
	.run = run_run,
};
