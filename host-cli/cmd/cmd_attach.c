// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <vprof/control.h>

#include "attach/attach.h"
#include "cmd/command.h"
#include "engine/attach_engine.h"
#include "engine/engine_process.h"
#include "engine/guest_list.h"
#include "reading/symbol_options.h"
#include "record/recorder.h"
#include "record/recorder_options.h"
#include "run/run_loop.h"
#include "ui/message.h"
#include "ui/text.h"

struct attach_values {
	struct attach_engine_options engine;
	struct recorder_options recording;
	struct symbol_options symbols;
	char *route, *agent;
	uint64_t duration_s; /* 0: until the guest ends */
	gboolean list, json, all, host;
};

#define DOMAINS_MAX 64u /* at once */

static const struct option_row options[] = {
	{"list", OPTION_FLAG, offsetof(struct attach_values, list),
         "list the running guests, and how each can be sampled", NULL},
	{"json", OPTION_FLAG, offsetof(struct attach_values, json), "with --list: print a JSON array", NULL},
	{"all", OPTION_FLAG, offsetof(struct attach_values, all), "record all running guests", NULL},
	OPTION_ROWS(attach_engine_option_rows, struct attach_values, engine),
	{"route", OPTION_TEXT, offsetof(struct attach_values, route),
         "how to sample (default: the best route that works)", "NAME", "bpf perf monitor"},
	{"host", OPTION_FLAG, offsetof(struct attach_values, host),
         "also name what the host's kernel and QEMU do for the guest, with call chains", NULL},
	{"agent", OPTION_FILE, offsetof(struct attach_values, agent),
         "socket of the guest's agent, or vsock:PORT; records its phases and mapped files", "SOCKET"},
	{"duration", OPTION_TIME, offsetof(struct attach_values, duration_s), "detach after TIME, e.g. 30s or 5m",
         "TIME", .max = VPROF_DURATION_S_MAX},
	{"frequency", OPTION_NUMBER, offsetof(struct attach_values, recording.frequency_hz),
         "samples per second and vCPU (default: the route's)", "HZ", .min = 1, .max = VPROF_FREQUENCY_HZ_MAX},
	OPTION_ROWS(recorder_option_rows, struct attach_values, recording),
	OPTION_ROWS(symbol_option_rows, struct attach_values, symbols),
	{NULL},
};

/* All state of one recording of an attached guest. */
struct attachment {
	const struct attach_values *given;
	struct engine_process *engine;
	json_t *guest; /* as query-guest */
	struct recorder *recorder;
	char *pause;        /* how the guest stands still, as was said; NULL: it runs */
	uint64_t paused_ns; /* since when */
	struct run_loop loop;
	const char *output;
};

static void attachment_clear(struct attachment *attachment)
{
	agent_service_free(attachment->loop.agent);
	recorder_free(attachment->recorder);
	engine_process_free(attachment->engine);
	json_decref(attachment->guest);
	json_decref(attachment->loop.end);
	g_free(attachment->pause);
	if (attachment->loop.signalfd > 0)
		close(attachment->loop.signalfd);
}

/* ---- before ---- */

static void say_attached(const struct attachment *attachment)
{
	const json_t *session = recorder_session(attachment->recorder);
	g_autofree char *name = text_printable(member_text(attachment->guest, "name"));
	g_autofree char *release = text_printable(member_text(attachment->guest, "release"));
	const uint64_t period = member_number(session, "period", 0);
	g_autofree char *rate =
		period != 0 ? g_strdup_printf("every %" G_GUINT64_FORMAT, period)
			    : g_strdup_printf("at %" G_GUINT64_FORMAT " Hz", member_number(session, "frequency-hz", 0));

	say("%s (%s%s%" G_GUINT64_FORMAT " vCPUs): route %s, %s %s; Ctrl-C detaches", name, release,
	    release[0] != '\0' ? ", " : "", member_number(attachment->guest, "vcpus", 0),
	    member_text(session, "delivery"),
	    member_text(json_array_get(json_object_get(session, "events"), 0), "name"), rate);
	recorder_say_session(attachment->recorder, attachment->given->engine.verbose);
}

static bool prepare(struct attachment *attachment, json_t *session, GError **error)
{
	const struct attach_values *given = attachment->given;
	struct client *client = engine_process_client(attachment->engine);

	attachment->guest = engine_ask(client, "query-guest", NULL, error);
	if (!attachment->guest)
		return false;
	const struct recorder_config config = {
		.client = client,
		.guest = attachment->guest,
		.session = session,
		.symbols = &given->symbols,
		.tables = true,
	};

	attachment->recorder = recorder_new(&config, error);
	if (!attachment->recorder)
		return false;
	if (given->agent)
		attachment->loop.agent =
			agent_service_new(given->agent, attachment->guest, attachment->recorder, error);
	if (given->agent && !attachment->loop.agent)
		return false;
	say_attached(attachment);
	return recorder_open(attachment->recorder, attachment->output, error);
}

/* ---- meanwhile and after ---- */

/* The guest was reset, or its kernel has only now started. */
static void on_kernel(void *data)
{
	struct attachment *attachment = data;
	const char *booted = recorder_reboot(attachment->recorder);
	json_t *guest = engine_ask(engine_process_client(attachment->engine), "query-guest", NULL, NULL);

	if (guest) {
		json_decref(attachment->guest);
		attachment->guest = guest;
	}
	if (!booted)
		return;
	g_autofree char *name = text_printable(member_text(attachment->guest, "name"));
	g_autofree char *release = text_printable(booted);

	say("%s has booted%s%s; symbols are taken from it from now on", name, release[0] != '\0' ? " " : " again",
	    release);
}

static void on_pause(const json_t *pause, void *data)
{
	struct attachment *attachment = data;
	uint64_t time_ns = member_number(pause, "time-ns", 0);
	g_autofree char *name = text_printable(member_text(attachment->guest, "name"));
	g_autofree char *how = text_printable(member_text(pause, "pause"));

	if (how[0] == '\0') {
		if (attachment->pause && time_ns >= attachment->paused_ns)
			say("%s runs again, after %.0f s", name, (double)(time_ns - attachment->paused_ns) / 1e9);
		g_clear_pointer(&attachment->pause, g_free);
		return;
	}
	if (!attachment->pause)
		attachment->paused_ns = time_ns;
	if (g_strcmp0(attachment->pause, how) != 0)
		say("%s %s; the recording goes on", name, how);
	g_free(attachment->pause);
	attachment->pause = g_steal_pointer(&how);
}

static bool follow(struct attachment *attachment, GError **error)
{
	attachment->loop.engine = attachment->engine;
	attachment->loop.recorder = attachment->recorder;
	attachment->loop.on_kernel = on_kernel;
	attachment->loop.on_pause = on_pause;
	attachment->loop.data = attachment;
	return run_loop_run(&attachment->loop, false, error);
}

static void say_end(const struct attachment *attachment)
{
	g_autofree char *name = text_printable(member_text(attachment->guest, "name"));
	g_autofree char *message = text_printable(member_text(attachment->loop.end, "message"));

	if (attachment->loop.engine_gone) {
		g_autofree char *death = engine_process_death(attachment->engine);

		say("the engine %s; %s keeps running, and what was recorded until then is kept",
		    death ? death : "has closed the connection", name);
	} else {
		say("%s", attachment->loop.stop_asked ? "detached; the guest keeps running" : message);
	}
}

static int conclude(struct attachment *attachment)
{
	run_loop_close(&attachment->loop);
	say_end(attachment);
	if (attachment->loop.agent)
		agent_service_say_end(attachment->loop.agent);
	const struct recorder_end end = {.guest = attachment->guest, .end = attachment->loop.end};
	const int status =
		recorder_conclude(attachment->recorder, &end, attachment->given->recording.no_report ? NULL : stdout);

	return attachment->loop.engine_gone ? STATUS_FAILED : status;
}

static int record(struct attachment *attachment, const char *domain, json_t *session)
{
	g_autoptr(GError) error = NULL;
	int status = STATUS_FAILED;

	attachment->loop.signalfd = run_loop_signals(false, &error);
	if (attachment->loop.signalfd < 0)
		return failure(error);
	attachment->engine =
		attach_engine_start(&attachment->given->engine, domain, attachment->given->duration_s, &status, &error);
	if (!attachment->engine)
		return engine_process_failure(status, error);
	if (!prepare(attachment, session, &error) || !follow(attachment, &error))
		return failure(error);
	if (attachment->loop.left_at_once) {
		say("left at once; %s holds what was recorded until now", attachment->output);
		engine_process_abandon(g_steal_pointer(&attachment->engine));
		return STATUS_FAILED;
	}
	return conclude(attachment);
}

/* ---- the command ---- */

static json_t *session_arguments(const struct attach_values *given, GError **error)
{
	json_t *arguments = recorder_options_arguments(&given->recording, error);

	if (arguments && given->route)
		json_object_set_new(arguments, "route", text_json(given->route));
	if (arguments && given->host)
		json_object_set_new(arguments, "host", json_true());
	return arguments;
}

static int attach_record(const struct attach_values *given, const char *domain, const char *output)
{
	g_autoptr(GError) error = NULL;
	struct attachment attachment = {.given = given, .output = output};
	json_t *session = attach_engine_check(&given->engine, domain, &error) &&
	                                  symbol_options_check(&given->symbols, &error) &&
	                                  (!given->agent || agent_service_check(given->agent, &error))
	                          ? session_arguments(given, &error)
	                          : NULL;
	int status;

	if (!session)
		return usage_error(command_attach.name, "%s", error->message);
	status = record(&attachment, domain, session);
	json_decref(session);
	attachment_clear(&attachment);
	return status;
}

/* As attach_one; `data`: struct attach_values. */
static int attach_record_guest(const json_t *guest, const char *output, void *data)
{
	struct attach_values given = *(const struct attach_values *)data;
	const char *domain;

	given.engine = guest_options(&given.engine, guest, &domain);
	return attach_record(&given, domain, output);
}

static int attach_record_all(const struct attach_values *given, const json_t *guests)
{
	struct attach_values each = *given;

	each.recording.no_report = TRUE; /* the reports come at the end */
	return attach_several(guests, given->recording.output, !given->recording.no_report, attach_record_guest, &each);
}

/* New guests join no recording: the list is that of the start. */
static int attach_every(const struct attach_values *given)
{
	g_autoptr(GError) error = NULL;
	unsigned denied;
	json_t *guests = guest_list(&given->engine, &denied, &error);
	int status = STATUS_FAILED;

	if (!guests)
		return failure(error);
	if (json_array_size(guests) > 0)
		status = attach_record_all(given, guests);
	else
		say("no guest is running%s",
		    denied > 0 ? " that this user may look at; as root, vprof finds every guest of this host" : "");
	json_decref(guests);
	return status;
}

static int attach_named(const struct attach_values *given, unsigned n, char **names)
{
	json_t *guests = json_array();
	int status;

	for (unsigned i = 0; i < n; i++)
		json_array_append_new(
			guests, json_pack("{s:o, s:o}", "name", text_json(names[i]), "uuid", text_json(names[i])));
	status = attach_record_all(given, guests);
	json_decref(guests);
	return status;
}

static int attach_run(void *values, unsigned n, char **arguments)
{
	const struct attach_values *given = values;

	if (given->list)
		return attach_list(&given->engine, given->json);
	if (given->all && n > 0)
		return usage_error(command_attach.name, "--all includes every guest; omit the names");
	if ((given->all || n > 1) && (given->engine.pid != 0 || given->engine.kernel || given->agent))
		return usage_error(command_attach.name, "--pid, --kernel and --agent apply to a single guest");
	if (given->all)
		return attach_every(given);
	if (n > 1)
		return attach_named(given, n, arguments);
	return attach_record(given, n > 0 ? arguments[0] : NULL,
	                     given->recording.output ? given->recording.output : INPUT_DEFAULT_PATH);
}

const struct command command_attach = {
	.name = "attach",
	.summary = "Profile a running guest",
	.arguments = "[GUEST...]",
	.max_arguments = DOMAINS_MAX,
	.argument_words = {"@guests"},
	.manual = "vprof-attach",
	.description =
		"GUEST is a name that --list shows, or the UUID or id of a libvirt domain. The guest is not paused\n"
		"and needs nothing installed. Ctrl-C detaches and finishes the recording. Kernel symbols are read\n"
		"from the guest's memory.\n"
		"With several guests, or --all, each is recorded into NAME.data, in the folder that -o names.\n"
		"\n"
		"Examples:\n"
		"  vprof attach --list\n"
		"  vprof attach web01 -g --duration 30s\n"
		"  vprof attach web01 web02 db --duration 30s -o recordings\n"
		"  vprof attach --connect qemu:///session builder -F 499 -o builder.data\n"
		"  vprof attach --all --duration 30s -o recordings\n"
		"  vprof attach --pid 4711 --qmp /run/qmp.sock --kernel vmlinux",
	.options = options,
	.values_bytes = sizeof(struct attach_values),
	.run = attach_run,
};
