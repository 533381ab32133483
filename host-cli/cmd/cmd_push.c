// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cmd/command.h"
#include "export/export.h"
#include "push/push_sender.h"
#include "push/push_spool.h"
#include "reading/symbol_options.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/units.h"

#define DEFAULT_NAME "vprof"
#define DEFAULT_TIME_LIMIT_S 60
#define REQUEST_MS_MAX 30000
#define WAIT_FIRST_US (G_USEC_PER_SEC / 4)
#define WAIT_MAX_US (30 * G_USEC_PER_SEC)
#define SPOOL_BYTES_MAX (UINT64_C(256) << 20)

struct push_values {
	struct symbol_options symbols;
	char *input, *event, *name, *spool, *time_limit, *kernel, *api;
	char **labels, **headers;
	gboolean spooled, force;
};

static const struct option_row options[] = {
	{"input", 'i', OPTION_FILE, offsetof(struct push_values, input),
         "recording to upload (default " INPUT_DEFAULT_PATH ")", "FILE"},
	{"event", 'e', OPTION_TEXT, offsetof(struct push_values, event), "event to upload (default: the first)",
         "EVENT"},
	{"name", 'n', OPTION_TEXT, offsetof(struct push_values, name),
         "application name on the server (default " DEFAULT_NAME ")", "NAME"},
	{"label", 'l', OPTION_TEXTS, offsetof(struct push_values, labels), "add the label NAME=VALUE; may be repeated",
         "LABEL"},
	{"api", 'a', OPTION_TEXT, offsetof(struct push_values, api),
         "type of the server: pyroscope (the default) or parca", "API"},
	{"header", 'H', OPTION_TEXTS, offsetof(struct push_values, headers),
         "add an HTTP header, e.g. X-Scope-OrgID: NAME; may be repeated", "HEADER"},
	{"time-limit", 0, OPTION_TEXT, offsetof(struct push_values, time_limit),
         "stop retrying after DURATION (default 60s)", "DURATION"},
	{"spool", 0, OPTION_FILE, offsetof(struct push_values, spool), "keep what cannot be uploaded yet in DIR",
         "DIR"},
	{"spooled", 0, OPTION_FLAG, offsetof(struct push_values, spooled),
         "upload what is kept there, and no recording", NULL},
	{"kernel", 'k', OPTION_FILE, offsetof(struct push_values, kernel),
         "take symbols from IMAGE instead of the recording", "IMAGE"},
	{"force", 'f', OPTION_FLAG, offsetof(struct push_values, force),
         "use IMAGE and files even if their build-ids differ", NULL},
	OPTION_ROWS(symbol_option_rows, struct push_values, symbols),
	{NULL},
};

/* ---- a profile of a recording ---- */

/* The server's syntax has no quotes, so a value cannot contain the characters that end it. */
static char *label_value(const char *text)
{
	g_autofree char *valid = g_utf8_make_valid(text, -1);
	g_autofree char *printable = text_printable(valid);

	g_strdelimit(printable, ",{}=\"", '_');
	return g_steal_pointer(&printable);
}

static void label_add(GString *name, const char *label, const char *text)
{
	g_autofree char *value = NULL;

	if (!text || *text == '\0')
		return;
	value = label_value(text);
	g_string_append_printf(name, "%s%s=%s", g_str_has_suffix(name->str, "{") ? "" : ",", label, value);
}

static bool label_name_is_good(const char *label, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!g_ascii_isalpha(label[i]) && label[i] != '_' && (i == 0 || !g_ascii_isdigit(label[i])))
			return false;
	return n > 0;
}

static bool labels_check(const struct push_values *given, GError **error)
{
	for (char **label = given->labels; label && *label; label++)
		if (!label_name_is_good(*label, strcspn(*label, "=")) || !strchr(*label, '=')) {
			g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			            "--label takes NAME=VALUE with letters, digits and _ in its name, not \"%s\"",
			            *label);
			return false;
		}
	return true;
}

static bool api_choose(const struct push_values *given, enum push_api *api, GError **error)
{
	*api = g_strcmp0(given->api, "parca") == 0 ? PUSH_API_PARCA : PUSH_API_PYROSCOPE;
	if (!given->api || *api == PUSH_API_PARCA || strcmp(given->api, "pyroscope") == 0)
		return true;
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--api is pyroscope or parca, not \"%s\"",
	            given->api);
	return false;
}

static char *server_name(const struct push_values *given, const struct export_profile *profile)
{
	const struct input *input = profile->input;
	g_autofree char *application = label_value(given->name ? given->name : DEFAULT_NAME);
	GString *name = g_string_new(NULL);

	g_string_append_printf(name, "%s{", application);
	label_add(name, "domain", member_text(json_object_get(input->description, "guest"), "name"));
	label_add(name, "event", profile->event);
	label_add(name, "host", g_get_host_name());
	label_add(name, "kernel_build_id", recording_kernel_build_id(input->recording));
	label_add(name, "kernel_release", recording_release(input->recording));
	for (char **label = given->labels; label && *label; label++) {
		g_autofree char *key = g_strndup(*label, strcspn(*label, "="));

		label_add(name, key, *label + strlen(key) + 1);
	}
	g_string_append_c(name, '}');
	return g_string_free(name, FALSE);
}

/* Older recordings do not contain their start time: their end is taken from the time stamp of the file. */
static void start_guess(struct export_profile *profile)
{
	const uint64_t duration_ns = profile->last_ns - profile->first_ns;
	struct stat status;
	uint64_t end_ns;

	if (profile->start_unix_ns != 0 || stat(profile->path, &status) != 0 || status.st_mtim.tv_sec < 0)
		return;
	end_ns = (uint64_t)status.st_mtim.tv_sec * UINT64_C(1000000000) + (uint64_t)status.st_mtim.tv_nsec;
	profile->start_unix_ns = end_ns > duration_ns ? end_ns - duration_ns : 0;
}

static GBytes *pprof_bytes(const struct export_profile *profile, GError **error)
{
	char *bytes = NULL;
	size_t n = 0;
	FILE *file = open_memstream(&bytes, &n);
	bool written = export_pprof.write(profile, file, error);

	fclose(file);
	if (written && n > PUSH_PROFILE_BYTES_MAX) {
		g_set_error(error, PUSH_SPOOL_ERROR, PUSH_SPOOL_ERROR_FORMAT,
		            "the profile has %zu bytes; the maximum is %u", n, PUSH_PROFILE_BYTES_MAX);
		written = false;
	}
	if (written)
		return g_bytes_new_with_free_func(bytes, n, free, bytes);
	free(bytes);
	return NULL;
}

static bool profile_make(const struct push_values *given, struct input *input, struct push_profile *made,
                         GError **error)
{
	const int event = input_event_number(input, given->event, error);
	struct export_profile profile;

	if (event < 0)
		return false;
	export_profile_read(&profile, input, (unsigned)event, true);
	input_say_warnings(input);
	start_guess(&profile);
	made->from_s = profile.start_unix_ns / 1000000000;
	made->until_s = made->from_s + (profile.last_ns - profile.first_ns) / 1000000000 + 1;
	made->name = server_name(given, &profile);
	made->pprof = pprof_bytes(&profile, error);
	export_profile_clear(&profile);
	if (!made->pprof)
		push_profile_clear(made);
	return made->pprof != NULL;
}

static bool recording_spool(const struct push_values *given, struct push_spool *spool, const char *path, GError **error)
{
	struct input *input = input_open(path, given->kernel, given->force, error);
	struct push_profile profile = {0};
	bool made;

	if (!input)
		return false;
	input_take_symbol_options(input, &given->symbols, given->force);
	made = profile_make(given, input, &profile, error) && push_spool_add(spool, &profile, error);
	push_profile_clear(&profile);
	input_free(input);
	return made;
}

/* ---- sending what is there ---- */

struct pushing {
	const struct push_values *given;
	struct push_spool *spool;
	struct push_sender *sender;
	const char *input; /* NULL: INPUT_DEFAULT_PATH */
	int64_t deadline_us;
	unsigned sent, refused, too_old; /* refused: the too old ones as well */
	uint64_t bytes;
};

static int64_t left_us(const struct pushing *pushing)
{
	return pushing->deadline_us - g_get_monotonic_time();
}

/* Between half and all of it, so that clients that failed together do not retry together. */
static int64_t spread_us(int64_t wait_us)
{
	return wait_us / 2 + (int64_t)(g_random_double() * (double)wait_us / 2);
}

/* Prints a message and waits; false if there is not enough time left. */
static bool wait_for_server(const struct pushing *pushing, int64_t *wait_us, uint64_t asked_s, const GError *why)
{
	int64_t wait = MAX(spread_us(*wait_us), (int64_t)MIN(asked_s, INT32_MAX) * G_USEC_PER_SEC);

	if (wait >= left_us(pushing))
		return false;
	say("%s; retrying in %.1f s", why->message, (double)wait / G_USEC_PER_SEC);
	g_usleep((gulong)wait);
	*wait_us = MIN(*wait_us * 2, WAIT_MAX_US);
	return true;
}

/* Retries until the server has accepted or refused the profile, or the time is over. */
static bool profile_send(struct pushing *pushing, const struct push_profile *profile, GError **error)
{
	int64_t wait_us = WAIT_FIRST_US;

	for (;;) {
		const int64_t timeout_ms = CLAMP(left_us(pushing) / 1000, 1, REQUEST_MS_MAX);
		g_autoptr(GError) why = NULL;
		uint64_t asked_s;

		if (push_sender_send(pushing->sender, profile, timeout_ms, &asked_s, &why))
			return true;
		if (!g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_LATER) ||
		    !wait_for_server(pushing, &wait_us, asked_s, why)) {
			g_propagate_error(error, g_steal_pointer(&why));
			return false;
		}
	}
}

/* Whether the server will never accept the profile. */
static bool is_final(const GError *why)
{
	return g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_REFUSED) ||
	       g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_TOO_OLD);
}

/* False: the remaining files have to wait as well. */
static bool file_send(struct pushing *pushing, const char *name, GError **error)
{
	struct push_profile profile;
	g_autoptr(GError) why = NULL;
	bool sent;

	if (!push_spool_read(pushing->spool, name, &profile, &why)) {
		warn("%s; it is skipped", why->message);
		return true;
	}
	sent = profile_send(pushing, &profile, &why);
	if (sent) {
		pushing->sent++;
		pushing->bytes += g_bytes_get_size(profile.pprof);
	} else if (is_final(why)) {
		say("%s; %s is discarded", why->message, profile.name);
		pushing->refused++;
		if (g_error_matches(why, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_TOO_OLD))
			pushing->too_old++;
	} else {
		g_propagate_error(error, g_steal_pointer(&why));
	}
	push_profile_clear(&profile);
	if (*error)
		return false;
	push_spool_remove(pushing->spool, name);
	return true;
}

static bool spool_send(struct pushing *pushing, GError **error)
{
	g_autoptr(GPtrArray) names = NULL;

	if (!push_spool_lock(pushing->spool, pushing->deadline_us, error))
		return false;
	names = push_spool_list(pushing->spool);
	for (guint i = 0; i < names->len; i++)
		if (!file_send(pushing, g_ptr_array_index(names, i), error))
			return false;
	return true;
}

static int conclude(const struct pushing *pushing, const GError *error)
{
	g_autoptr(GPtrArray) left = push_spool_list(pushing->spool);
	g_autofree char *size = units_format_bytes(pushing->bytes);

	if (pushing->sent > 0)
		say("sent %u profile%s (%s)", pushing->sent, pushing->sent == 1 ? "" : "s", size);
	if (pushing->too_old > 0)
		say("%u profile%s lost: older than the server accepts", pushing->too_old,
		    pushing->too_old == 1 ? " is" : "s are");
	if (!error)
		return pushing->refused > 0 ? STATUS_FAILED : STATUS_OK;
	failure(error);
	if (left->len > 0)
		say("%u profile%s kept in %s for the next push", left->len, left->len == 1 ? " is" : "s are",
		    push_spool_folder(pushing->spool));
	return STATUS_FAILED;
}

static int push(struct pushing *pushing)
{
	g_autoptr(GError) error = NULL;
	unsigned dropped;

	if (!pushing->given->spooled && !recording_spool(pushing->given, pushing->spool, pushing->input, &error))
		return failure(error);
	dropped = push_spool_trim(pushing->spool, SPOOL_BYTES_MAX);
	if (dropped > 0)
		warn("%s is full: its oldest %u profiles are dropped", push_spool_folder(pushing->spool), dropped);
	spool_send(pushing, &error);
	return conclude(pushing, error);
}

static int push_run(void *values, unsigned n, char **arguments)
{
	const struct push_values *given = values;
	g_autoptr(GError) error = NULL;
	struct pushing pushing = {.given = given, .input = given->input};
	uint64_t limit_s = DEFAULT_TIME_LIMIT_S;
	enum push_api api;
	int status;

	if (n == 0)
		return usage_error(command_push.name, "the URL of the server is missing");
	if (given->spooled && (given->input || n > 1))
		return usage_error(command_push.name, "--spooled sends no recording; omit %s",
		                   n > 1 ? arguments[1] : "--input");
	if ((given->time_limit && !units_parse_duration("--time-limit", given->time_limit, &limit_s, &error)) ||
	    !input_choose(&pushing.input, n > 1 ? arguments[1] : NULL, &error) || !labels_check(given, &error) ||
	    !api_choose(given, &api, &error) || !symbol_options_check(&given->symbols, &error))
		return usage_error(command_push.name, "%s", error->message);
	pushing.sender = push_sender_new(api, arguments[0], (const char *const *)given->headers, &error);
	if (!pushing.sender)
		return g_error_matches(error, PUSH_SENDER_ERROR, PUSH_SENDER_ERROR_URL)
		               ? usage_error(command_push.name, "%s", error->message)
		               : failure(error);
	pushing.deadline_us = g_get_monotonic_time() + (int64_t)limit_s * G_USEC_PER_SEC;
	pushing.spool = push_spool_open(given->spool, &error);
	status = pushing.spool ? push(&pushing) : failure(error);
	push_spool_free(pushing.spool);
	push_sender_free(pushing.sender);
	return status;
}

const struct command command_push = {
	.name = "push",
	.summary = "Upload a recording's profile to a profile server",
	.arguments = "URL [FILE]",
	.max_arguments = 2,
	.manual = "vprof-push",
	.description =

		"URL is the address of a server with Pyroscope's HTTP API, such as Grafana Pyroscope and Alloy,\n"
		"or, with --api parca, of Parca. The profile is sent as pprof. Its labels are the guest (domain),\n"
		"the host, the event, and the kernel's release and build-id.\n"
		"\n"
		"A profile that cannot be uploaded is kept on disk (--spool), retried with growing pauses until\n"
		"--time-limit, and uploaded by the next push. Recording does not depend on it.\n"
		"\n"
		"Examples:\n"
		"  vprof push http://pyroscope:4040 web01.data -l rack=b7\n"
		"  vprof push https://profiles.example.org -H 'X-Scope-OrgID: kernel' --time-limit 10m\n"
		"  vprof push --api parca http://parca:7070 web01.data\n"
		"  vprof push http://pyroscope:4040 --spooled",
	.options = options,
	.values_bytes = sizeof(struct push_values),
	.run = push_run,
};
