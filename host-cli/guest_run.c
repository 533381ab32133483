// SPDX-License-Identifier: BSD-2-Clause
#include "guest_run.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vprof/control.h>

#include "command.h"
#include "message.h"
#include "program.h"
#include "run_terminal.h"
#include "text.h"
#include "units.h"

#define DEMO_IMAGE "demo-guest.elf"
#define DEMO_VCPUS "2"
#define DEMO_MEMORY "128M"
#define EXIT_PORT_STATUS(code) ((int)(((code) << 1 | 1) & 0xff)) /* as QEMU's isa-debug-exit */
#define INTERRUPTED_STATUS 130                                   /* as a shell reports SIGINT */

G_DEFINE_QUARK(vprof_guest_run_error, guest_run_error)

struct guest_run_options guest_run_options;

static uint64_t duration_s; /* 0: until the guest ends by itself */

bool guest_run_check(GError **error)
{
	const struct guest_run_options *options = &guest_run_options;

	if (options->demo == (options->kernel != NULL)) {
		g_set_error_literal(error, GUEST_RUN_ERROR, GUEST_RUN_ERROR_OPTIONS,
		                    options->demo
		                            ? "--demo brings its own kernel; leave --kernel away"
		                            : "which kernel? give --kernel IMAGE, or --demo for the built-in guest");
		return false;
	}
	return options->duration == NULL || units_parse_duration("--duration", options->duration, &duration_s, error);
}

/* The demonstration guest is a kernel like any other, with its own defaults. */
static bool options_apply_demo(struct guest_run_options *options, GError **error)
{
	if (!options->demo)
		return true;
	options->kernel = program_find(DEMO_IMAGE, error);
	if (options->vcpus == NULL)
		options->vcpus = g_strdup(DEMO_VCPUS);
	if (options->memory == NULL)
		options->memory = g_strdup(DEMO_MEMORY);
	return options->kernel != NULL;
}

static void argument_add(GPtrArray *arguments, const char *option, const char *value)
{
	if (value == NULL)
		return;
	g_ptr_array_add(arguments, g_strdup(option));
	g_ptr_array_add(arguments, g_strdup(value));
}

/* The engine's command line; sizes and numbers are checked there. */
static GPtrArray *engine_arguments(const struct guest_run_options *options)
{
	GPtrArray *arguments = g_ptr_array_new_with_free_func(g_free);
	g_autofree char *seconds = g_strdup_printf("%" G_GUINT64_FORMAT, duration_s);

	argument_add(arguments, "--kernel", options->kernel);
	argument_add(arguments, "--initrd", options->initrd);
	for (char **disk = options->disks; disk != NULL && *disk != NULL; disk++)
		argument_add(arguments, "--disk", *disk);
	argument_add(arguments, "--append", options->append);
	argument_add(arguments, "--memory", options->memory);
	argument_add(arguments, "--vcpus", options->vcpus);
	argument_add(arguments, "--name", options->name);
	argument_add(arguments, "--boot", options->boot);
	argument_add(arguments, "--console", options->console);
	argument_add(arguments, "--pmu", options->pmu);
	argument_add(arguments, "--pmu-filter", options->pmu_filter);
	argument_add(arguments, "--quirks", options->quirks);
	argument_add(arguments, "--sandbox", options->sandbox);
	argument_add(arguments, "--duration", duration_s != 0 ? seconds : NULL);
	if (options->stop_on_panic)
		g_ptr_array_add(arguments, g_strdup("--stop-on-panic"));
	if (options->verbose)
		g_ptr_array_add(arguments, g_strdup("--verbose"));
	g_ptr_array_add(arguments, NULL);
	return arguments;
}

int guest_run_open(struct guest_run *run)
{
	g_autoptr(GPtrArray) arguments = NULL;
	g_autoptr(GError) error = NULL;
	int status = STATUS_FAILED;

	if (!options_apply_demo(&guest_run_options, &error) || (run->loop.signalfd = run_loop_signals(&error)) < 0)
		return failure(error);
	arguments = engine_arguments(&guest_run_options);
	run->engine = engine_start((const char *const *)arguments->pdata, &status, &error);
	if (run->engine == NULL) /* which has said why, if it refused */
		return g_error_matches(error, ENGINE_ERROR, ENGINE_ERROR_REFUSED) ? status : failure(error);
	run->guest = engine_execute(run->engine, "query-guest", NULL, &error);
	return run->guest != NULL ? STATUS_OK : failure(error);
}

void guest_run_clear(struct guest_run *run)
{
	engine_free(run->engine);
	json_decref(run->guest);
	json_decref(run->loop.end);
	g_clear_error(&run->loop.output_error);
	if (run->loop.signalfd > 0)
		close(run->loop.signalfd);
}

bool guest_run_go(struct guest_run *run, struct capture *capture, GError **error)
{
	const char *console = guest_run_options.console;
	json_t *started = engine_execute(run->engine, "guest-start", NULL, error);

	if (started == NULL)
		return false;
	json_decref(started);
	run->loop.engine = run->engine;
	run->loop.capture = capture;
	run->loop.terminal = terminal_new(console == NULL || strcmp(console, "stdio") == 0);
	terminal_raw(run->loop.terminal);
	run_loop_run(&run->loop);
	terminal_free(g_steal_pointer(&run->loop.terminal));
	return true;
}

static void say_engine_gone(const struct guest_run *run, const char *kept)
{
	g_autofree char *death = engine_death(run->engine);

	say("the engine %s while the guest ran; %s", death != NULL ? death : "has closed the connection", kept);
}

static void say_guest_end(const struct run_loop *loop)
{
	g_autofree char *message = text_printable(member_text(loop->end, "message"));
	const char *details = member_text(loop->end, "details");

	say("%s", loop->stop_asked ? "the guest was stopped" : message);
	if (details != NULL)
		fprintf(stderr, "%s%s", details, g_str_has_suffix(details, "\n") ? "" : "\n");
}

void guest_run_say_end(const struct guest_run *run, const char *kept)
{
	/* That the guest was stopped when its recording could not be written says nothing new. */
	if (run->loop.end != NULL && run->loop.output_error == NULL)
		say_guest_end(&run->loop);
	if (run->loop.engine_gone)
		say_engine_gone(run, kept);
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

int guest_run_status(const struct guest_run *run)
{
	return run->loop.engine_gone ? STATUS_FAILED : end_status(run->loop.end);
}

int guest_run_abandon(struct guest_run *run)
{
	engine_abandon(g_steal_pointer(&run->engine));
	return INTERRUPTED_STATUS;
}
