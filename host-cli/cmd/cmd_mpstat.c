// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "cmd/command.h"
#include "engine/engine_process.h"
#include "engine/guest_engine.h"
#include "reading/vcpu_clocks.h"
#include "ui/message.h"
#include "ui/text.h"
#include "ui/units.h"

#define COUNT_MAX UINT64_C(1000000000)

struct mpstat_values {
	struct attach_engine_options engine;
	gboolean json, raw, reset;
};

static const struct option_row options[] = {
	{"json", OPTION_FLAG, offsetof(struct mpstat_values, json),
         "print each report as a JSON object on a line of its own", NULL},
	{"raw", OPTION_FLAG, offsetof(struct mpstat_values, raw),
         "print the clocks behind the percentages, in nanoseconds", NULL},
	{"reset", OPTION_FLAG, offsetof(struct mpstat_values, reset), "reset all clocks to 0 afterwards", NULL},
	OPTION_ROWS(attach_guest_option_rows, struct mpstat_values, engine),
	{NULL},
};

#define ATTACHED_INTERVAL_S 1 /* without INTERVAL, for a guest that was not counted before */

/* The engine that is asked, and its last answer. */
struct watch {
	const struct mpstat_values *given;
	struct guest_engine engine;
	bool attached; /* the guest is another process's */
	unsigned vcpus;
	struct vcpu_clocks last[VCPU_CLOCKS_MAX];
};

static bool watch_open(struct watch *watch, const char *name, int *status, GError **error)
{
	if (!guest_engine_open(&watch->engine, &watch->given->engine, name, status, error))
		return false;
	watch->vcpus = (unsigned)MIN(member_number(watch->engine.guest, "vcpus", 0), VCPU_CLOCKS_MAX);
	watch->attached = g_strcmp0(member_text(watch->engine.guest, "kind"), "qemu") == 0;
	return true;
}

static void clocks_print(const struct mpstat_values *given, const struct vcpu_clocks *vcpus, size_t n)
{
	if (given->json) {
		json_t *report = vcpu_clocks_json(vcpus, n);

		json_write(report, JSON_COMPACT, stdout);
		putchar('\n');
		json_decref(report);
	} else if (given->raw) {
		vcpu_clocks_print_raw(vcpus, n, stdout);
	} else {
		vcpu_clocks_print_table(vcpus, n, stdout);
	}
	fflush(stdout);
}

/* Reports the time since the last report; the first report starts at the guest's start. */
static bool watch_report(struct watch *watch, bool print, GError **error)
{
	json_t *answers = vcpu_clocks_query(watch->engine.client, watch->vcpus, ENGINE_ANSWER_TIMEOUT_MS, error);
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];

	if (!answers)
		return false;
	for (unsigned i = 0; i < watch->vcpus; i++) {
		struct vcpu_clocks now = vcpu_clocks_parse(json_array_get(answers, i));

		vcpus[i] = vcpu_clocks_between(&watch->last[i], &now);
		watch->last[i] = now;
	}
	if (print) {
		vcpu_clocks_say_missing(answers);
		clocks_print(watch->given, vcpus, watch->vcpus);
	}
	json_decref(answers);
	return true;
}

/* True once the guest or its engine has ended; *error is not set then. */
static bool watch_ended(struct watch *watch, GError **error)
{
	g_autoptr(GError) why = NULL;
	json_t *status = engine_ask(watch->engine.client, "query-status", NULL, &why);
	bool ended = g_strcmp0(member_text(status, "state"), "ended") == 0 ||
	             g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_CLOSED);

	if (why && !ended)
		g_propagate_error(error, g_steal_pointer(&why));
	json_decref(status);
	return ended;
}

struct watch_times {
	uint64_t interval_s; /* 0: one report, of all the time until now */
	uint64_t count;      /* 0: until the guest's end */
};

static bool watch_intervals(struct watch *watch, const struct watch_times *times, GError **error)
{
	GError *why = NULL;

	if (!watch_report(watch, false, error))
		return false;
	for (uint64_t i = 0; times->count == 0 || i < times->count; i++) {
		g_usleep(times->interval_s * G_USEC_PER_SEC);
		if (watch_ended(watch, &why) || why || !watch_report(watch, true, &why))
			break;
	}
	/* An engine that goes away between two reports does so because its guest has ended. */
	if (g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_CLOSED))
		g_clear_error(&why);
	if (why)
		g_propagate_error(error, why);
	return !why;
}

static bool watch_reset(struct watch *watch, GError **error)
{
	json_t *answer = engine_ask(watch->engine.client, "vcpu-time-reset", NULL, error);

	json_decref(answer);
	return answer != NULL;
}

/* [ENGINE|DOMAIN [INTERVAL [COUNT]]]; --pid replaces the first. */
static bool parse_arguments(const struct mpstat_values *given, unsigned n, char **arguments, const char **name,
                            struct watch_times *times, GError **error)
{
	if (given->engine.pid == 0 && n > 0) {
		*name = arguments[0];
		arguments++;
		n--;
	}
	return (n == 0 || units_parse_duration("INTERVAL", arguments[0], INT64_MAX, &times->interval_s, error)) &&
	       (n <= 1 || units_parse_number("COUNT", arguments[1], 1, COUNT_MAX, &times->count, error));
}

static bool watch_run(struct watch *watch, struct watch_times times, GError **error)
{
	if (times.interval_s == 0 && watch->attached)
		times = (struct watch_times){ATTACHED_INTERVAL_S, 1};
	return times.interval_s != 0 ? watch_intervals(watch, &times, error) : watch_report(watch, true, error);
}

static int mpstat_run(void *values, unsigned n, char **arguments)
{
	const struct mpstat_values *given = values;
	g_autoptr(GError) error = NULL;
	struct watch_times times = {0};
	struct watch watch = {.given = given};
	const char *name = NULL;
	int status = STATUS_FAILED;
	bool done;

	if (given->json && given->raw)
		return usage_error("mpstat", "--json includes the raw clocks; omit --raw");
	if (!parse_arguments(given, n, arguments, &name, &times, &error))
		return usage_error("mpstat", "%s", error->message);
	done = watch_open(&watch, name, &status, &error) && watch_run(&watch, times, &error) &&
	       (!given->reset || watch_reset(&watch, &error));
	guest_engine_close(&watch.engine);
	return done ? STATUS_OK : guest_engine_failure("mpstat", status, error);
}

const struct command command_mpstat = {
	.name = "mpstat",
	.summary = "Show where the time of a running guest's vCPUs goes",
	.arguments = "[ENGINE|DOMAIN [INTERVAL [COUNT]]]",
	.max_arguments = 3,
	.argument_words = {"@engines @guests", ""},
	.manual = "vprof-mpstat",
	.description =

		"ENGINE is a name or process id from `vprof list`, or the path of a socket. It may be omitted if\n"
		"only one engine runs.\n"
		"DOMAIN is a libvirt domain without an engine; vprof attaches to it meanwhile.\n"
		"Without INTERVAL, vprof prints one report, for the time since the guest's start or the last\n"
		"reset; for a domain, for one second.\n"
		"\n"
		"Examples:\n"
		"  vprof mpstat\n"
		"  vprof mpstat bzImage-1234 1 10\n"
		"  vprof mpstat 1234 5s --json\n"
		"  vprof mpstat web01 1",
	.options = options,
	.values_bytes = sizeof(struct mpstat_values),
	.run = mpstat_run,
};
