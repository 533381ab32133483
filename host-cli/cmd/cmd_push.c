// SPDX-License-Identifier: BSD-2-Clause
#include "cmd/command.h"
#include "push/push_headers.h"
#include "push/push_queue.h"
#include "push/push_recording.h"
#include "reading/filter.h"
#include "reading/symbol_options.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/units.h"

#define DEFAULT_TIME_LIMIT_S 60
#define SPOOL_BYTES_MAX (UINT64_C(256) << 20)

struct push_values {
	struct symbol_options symbols;
	struct filter_options filter;
	char *input, *event, *name, *spool, *kernel, *api, *header_file;
	uint64_t time_limit_s;
	char **labels, **headers;
	gboolean spooled, force;
};

static const struct push_values defaults = {.time_limit_s = DEFAULT_TIME_LIMIT_S};

static const struct option_row options[] = {
	{"input", OPTION_FILE, offsetof(struct push_values, input),
         "recording to upload (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"event", OPTION_TEXT, offsetof(struct push_values, event), "event to upload (default: the first)", "EVENT",
         "@recorded-events"},
	{"name", OPTION_TEXT, offsetof(struct push_values, name),
         "application name on the server (default " PUSH_DEFAULT_NAME ")", "NAME"},
	{"label", OPTION_TEXTS, offsetof(struct push_values, labels), "add the label NAME=VALUE; may be repeated",
         "LABEL"},
	{"api", OPTION_TEXT, offsetof(struct push_values, api),
         "type of the server: pyroscope (the default), parca or otlp", "API", "pyroscope parca otlp"},
	{"header", OPTION_TEXTS, offsetof(struct push_values, headers),
         "add an HTTP header, e.g. X-Scope-OrgID: NAME; may be repeated", "HEADER"},
	{"header-file", OPTION_FILE, offsetof(struct push_values, header_file),
         "add the HTTP headers in FILE, one a line; for secrets", "FILE"},
	{"time-limit", OPTION_TIME, offsetof(struct push_values, time_limit_s),
         "stop retrying after DURATION (default 60s)", "DURATION"},
	{"spool", OPTION_FILE, offsetof(struct push_values, spool), "keep what cannot be uploaded yet in DIR", "DIR"},
	{"spooled", OPTION_FLAG, offsetof(struct push_values, spooled), "upload what is kept there, and no recording",
         NULL},
	{"kernel", OPTION_FILE, offsetof(struct push_values, kernel),
         "take symbols from IMAGE instead of the recording", "IMAGE"},
	{"force", OPTION_FLAG, offsetof(struct push_values, force),
         "use IMAGE and files even if their build-ids differ", NULL},
	OPTION_ROWS(filter_option_rows, struct push_values, filter),
	OPTION_ROWS(symbol_option_rows, struct push_values, symbols),
	{NULL},
};

static bool api_choose(const struct push_values *given, enum push_api *api, GError **error)
{
	*api = PUSH_API_PYROSCOPE;
	if (!given->api || push_api_parse(given->api, api))
		return true;
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--api is pyroscope, parca or otlp, not \"%s\"",
	            given->api);
	return false;
}

static bool recording_spool(const struct push_values *given, enum push_format format, struct push_spool *spool,
                            const char *path, GError **error)
{
	struct input *input = input_open(path, given->kernel, given->force, error);
	const struct push_naming naming = {given->name, (const char *const *)given->labels};
	struct push_profile profile = {0};
	bool made;

	if (!input)
		return false;
	input_take_symbol_options(input, &given->symbols, given->force);
	made = input_select(input, &given->filter, error) &&
	       push_profile_make(input, given->event, format, &naming, &profile, error) &&
	       push_spool_add(spool, &profile, error);
	input_say_warnings(input);
	push_profile_clear(&profile);
	input_free(input);
	return made;
}

struct pushing {
	const struct push_values *given;
	const char *input; /* NULL: INPUT_DEFAULT_PATH */
	int64_t deadline_us;
	struct push_queue queue;
};

static int conclude(const struct pushing *pushing, const GError *error)
{
	g_autoptr(GPtrArray) left = push_spool_list(pushing->queue.spool);
	g_autofree char *size = units_format_bytes(pushing->queue.bytes);

	if (pushing->queue.sent > 0)
		say("sent %u profile%s (%s)", pushing->queue.sent, pushing->queue.sent == 1 ? "" : "s", size);
	if (pushing->queue.too_old > 0)
		say("%u profile%s lost: older than the server accepts", pushing->queue.too_old,
		    pushing->queue.too_old == 1 ? " is" : "s are");
	if (pushing->queue.other > 0)
		say("%u profile%s kept in %s for a server with another --api", pushing->queue.other,
		    pushing->queue.other == 1 ? " is" : "s are", push_spool_folder(pushing->queue.spool));
	if (!error)
		return pushing->queue.refused > 0 ? STATUS_FAILED : STATUS_OK;
	failure(error);
	if (left->len > pushing->queue.other)
		say("%u profile%s kept in %s for the next push", left->len - pushing->queue.other,
		    left->len - pushing->queue.other == 1 ? " is" : "s are", push_spool_folder(pushing->queue.spool));
	return STATUS_FAILED;
}

static int push(struct pushing *pushing)
{
	g_autoptr(GError) error = NULL;
	unsigned dropped;

	if (!pushing->given->spooled &&
	    !recording_spool(pushing->given, pushing->queue.format, pushing->queue.spool, pushing->input, &error))
		return failure(error);
	dropped = push_spool_trim(pushing->queue.spool, SPOOL_BYTES_MAX, NULL);
	if (dropped > 0)
		warn("%s is full: its oldest %u profiles are dropped", push_spool_folder(pushing->queue.spool),
		     dropped);
	push_queue_send(&pushing->queue, pushing->deadline_us, &error);
	return conclude(pushing, error);
}

static int push_run(void *values, unsigned n, char **arguments)
{
	const struct push_values *given = values;
	g_autoptr(GError) error = NULL;
	struct pushing pushing = {.given = given, .input = given->input};
	g_auto(GStrv) headers = NULL;
	enum push_api api;
	int status;

	if (n == 0)
		return usage_error(command_push.name, "the URL of the server is missing");
	if (given->spooled && (given->input || n > 1))
		return usage_error(command_push.name, "--spooled sends no recording; omit %s",
		                   n > 1 ? arguments[1] : "--input");
	if (!input_choose(&pushing.input, n > 1 ? arguments[1] : NULL, &error) ||
	    !push_labels_check("--label", (const char *const *)given->labels, &error) ||
	    !push_arguments_check(arguments[0], (const char *const *)given->headers, &error) ||
	    !push_headers_check("--header", (const char *const *)given->headers, &error) ||
	    !api_choose(given, &api, &error) || !symbol_options_check(&given->symbols, &error) ||
	    !filter_options_check(&given->filter, &error))
		return usage_error(command_push.name, "%s", error->message);
	headers = push_headers_all((const char *const *)given->headers, given->header_file, &error);
	if (!headers)
		return failure(error);
	pushing.queue.sender = push_sender_new(api, arguments[0], (const char *const *)headers, &error);
	if (!pushing.queue.sender)
		return g_error_matches(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_URL)
		               ? usage_error(command_push.name, "%s", error->message)
		               : failure(error);
	pushing.queue.format = push_api_format(api);
	pushing.deadline_us = g_get_monotonic_time() + (int64_t)given->time_limit_s * G_USEC_PER_SEC;
	pushing.queue.spool = push_spool_open(given->spool, &error);
	status = pushing.queue.spool ? push(&pushing) : failure(error);
	push_spool_free(pushing.queue.spool);
	push_sender_free(pushing.queue.sender);
	return status;
}

const struct command command_push = {
	.name = "push",
	.summary = "Upload a recording's profile to a profile server",
	.arguments = "URL [FILE]",
	.max_arguments = 2,
	.argument_words = {"", "@files"},
	.manual = "vprof-push",
	.description =

		"URL is the address of a server with Pyroscope's HTTP API, such as Grafana Pyroscope and Alloy,\n"
		"or, with --api parca, of Parca, to which the profile is sent as pprof; or, with --api otlp, of an\n"
		"OpenTelemetry collector. Its labels are the guest (domain), the host, the event, and the kernel's\n"
		"release and build-id.\n"
		"\n"
		"A profile that cannot be uploaded is kept on disk (--spool), retried with growing pauses until\n"
		"--time-limit, and uploaded by the next push. Recording does not depend on it.\n"
		"\n"
		"Every user can read a command's arguments. Headers with secrets are read from --header-file, or\n"
		"from " PUSH_HEADERS_VARIABLE ".\n"
		"\n"
		"Examples:\n"
		"  vprof push http://pyroscope:4040 web01.data --label rack=b7\n"
		"  vprof push https://profiles.example.org -H 'X-Scope-OrgID: kernel'\n"
		"  vprof push https://profiles.example.org --header-file ~/.config/vprof/headers\n"
		"  vprof push --api parca http://parca:7070 web01.data\n"
		"  vprof push --api otlp http://collector:4318 web01.data\n"
		"  vprof push http://pyroscope:4040 --spooled",
	.options = options,
	.values_bytes = sizeof(struct push_values),
	.defaults = &defaults,
	.run = push_run,
};
