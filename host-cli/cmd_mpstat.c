// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "command.h"
#include "engine_find.h"
#include "message.h"
#include "text.h"
#include "units.h"
#include "vcpu_clocks.h"

#define COUNT_MAX UINT64_C(1000000000)

static struct {
	gboolean json, raw, reset;
} given;

static const GOptionEntry options[] = {
	{"json", 'j', 0, G_OPTION_ARG_NONE, &given.json, "print a JSON object for each report, on a line of its own",
         NULL},
	{"raw", 0, 0, G_OPTION_ARG_NONE, &given.raw, "print the clocks behind the percentages, in nanoseconds", NULL},
	{"reset", 0, 0, G_OPTION_ARG_NONE, &given.reset, "let everything start from 0 afterwards", NULL},
	{NULL},
};

/* The engine that is asked, and what it said last. */
struct watch {
	struct client *client;
	unsigned vcpus;
	struct vcpu_clocks last[VCPU_CLOCKS_MAX];
};

static json_t *watch_execute(struct watch *watch, const char *method, GError **error)
{
	return client_execute(watch->client, method, NULL, NULL, NULL, ENGINE_ANSWER_TIMEOUT_MS, error);
}

static bool watch_open(struct watch *watch, const char *name, GError **error)
{
	json_t *guest;

	watch->client = engine_find(name, error);
	guest = watch->client != NULL ? watch_execute(watch, "query-guest", error) : NULL;
	if (guest == NULL)
		return false;
	watch->vcpus = (unsigned)MIN(member_number(guest, "vcpus", 0), VCPU_CLOCKS_MAX);
	json_decref(guest);
	return true;
}

static void clocks_print(const struct vcpu_clocks *vcpus, size_t n)
{
	if (given.json) {
		json_t *report = vcpu_clocks_json(vcpus, n);

		json_dumpf(report, stdout, JSON_COMPACT);
		putchar('\n');
		json_decref(report);
	} else if (given.raw) {
		vcpu_clocks_print_raw(vcpus, n, stdout);
	} else {
		vcpu_clocks_print_table(vcpus, n, stdout);
	}
	fflush(stdout);
}

/* What happened since the last report, the first time since the guest's start. */
static bool watch_report(struct watch *watch, bool print, GError **error)
{
	json_t *answers = vcpu_clocks_query(watch->client, watch->vcpus, ENGINE_ANSWER_TIMEOUT_MS, error);
	struct vcpu_clocks vcpus[VCPU_CLOCKS_MAX];

	if (answers == NULL)
		return false;
	for (unsigned i = 0; i < watch->vcpus; i++) {
		struct vcpu_clocks now = vcpu_clocks_parse(json_array_get(answers, i));

		vcpus[i] = vcpu_clocks_between(&watch->last[i], &now);
		watch->last[i] = now;
	}
	if (print) {
		vcpu_clocks_say_missing(answers);
		clocks_print(vcpus, watch->vcpus);
	}
	json_decref(answers);
	return true;
}

/* True once the guest has ended, or its engine: *error is left alone then. */
static bool watch_ended(struct watch *watch, GError **error)
{
	g_autoptr(GError) why = NULL;
	json_t *status = watch_execute(watch, "query-status", &why);
	bool ended = g_strcmp0(member_text(status, "state"), "ended") == 0 ||
	             g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_CLOSED);

	if (why != NULL && !ended)
		g_propagate_error(error, g_steal_pointer(&why));
	json_decref(status);
	return ended;
}

/* Reports at every interval; 0 times: until the guest's end. */
static bool watch_intervals(struct watch *watch, uint64_t interval_s, uint64_t times, GError **error)
{
	GError *why = NULL;

	if (!watch_report(watch, false, error))
		return false;
	for (uint64_t i = 0; times == 0 || i < times; i++) {
		g_usleep(interval_s * G_USEC_PER_SEC);
		if (watch_ended(watch, &why) || why != NULL || !watch_report(watch, true, &why))
			break;
	}
	/* An engine that goes away between two reports has had its guest end. */
	if (g_error_matches(why, CLIENT_ERROR, CLIENT_ERROR_CLOSED))
		g_clear_error(&why);
	if (why != NULL)
		g_propagate_error(error, why);
	return why == NULL;
}

static bool watch_reset(struct watch *watch, GError **error)
{
	json_t *answer = watch_execute(watch, "vcpu-time-reset", error);

	json_decref(answer);
	return answer != NULL;
}

static int mpstat_run(unsigned n, char **arguments)
{
	g_autoptr(GError) error = NULL;
	uint64_t interval_s = 0, times = 0;
	struct watch watch = {.client = NULL};
	bool done;

	if (given.json && given.raw)
		return usage_error("mpstat", "--json has the raw clocks, too; leave --raw away");
	if ((n > 1 && !units_parse_duration("INTERVAL", arguments[1], &interval_s, &error)) ||
	    (n > 2 && !units_parse_number("COUNT", arguments[2], 1, COUNT_MAX, &times, &error)))
		return usage_error("mpstat", "%s", error->message);
	done = watch_open(&watch, n > 0 ? arguments[0] : NULL, &error) &&
	       (n > 1 ? watch_intervals(&watch, interval_s, times, &error) : watch_report(&watch, true, &error)) &&
	       (!given.reset || watch_reset(&watch, &error));
	client_free(watch.client);
	return done ? STATUS_OK : failure(error);
}

const struct command command_mpstat = {
	.name = "mpstat",
	.summary = "Say where the time of a running guest's vCPUs goes",
	.arguments = "[ENGINE [INTERVAL [COUNT]]]",
	.max_arguments = 3,
	.manual = "vprof-mpstat",
	.description = "ENGINE is a name or a process id from `vprof list`, or a socket's path; without it, the only "
		       "one there "
		       "is.\n"
		       "Without INTERVAL, the time since the guest's start or the last reset is reported, once.\n"
		       "\n"
		       "Examples:\n"
		       "  vprof mpstat\n"
		       "  vprof mpstat bzImage-1234 1 10\n"
		       "  vprof mpstat 1234 5s --json",
	.options = options,
	.run = mpstat_run,
};
