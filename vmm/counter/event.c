// SPDX-License-Identifier: BSD-2-Clause
/* Event names, modifiers and rates. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <vprof/control.h>
#include <vprof/recording.h>

#include "counter/counter_priv.h"

G_DEFINE_QUARK(vprof_counter_error, counter_error)

/* A sample costs some microseconds of the vCPU; below these periods a guest would do nothing else. */
#define PERIOD_NS_MIN (UINT64_C(1000000000) / VPROF_FREQUENCY_HZ_MAX)
#define PERIOD_EVENTS_MIN UINT64_C(1000)
/* perf_event_open refuses periods with the top bit (kernel/events/core.c), and schedules add up several. */
#define PERIOD_MAX (UINT64_C(1) << 56)

#define NEAR_NAMES_MAX 3u
#define NEAR_DISTANCE_MAX 3u
#define NAME_BYTES_MAX 32u

_Static_assert(sizeof(struct perf_event_attr) >= VPROF_ATTR_BYTES, "linux/perf_event.h has PERF_ATTR_SIZE_VER7");

/* X(name, backend, type, config, guess_hz, summary) */
#define EVENTS(X)                                                                                    \
	X("cycles", hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, 1000000000,              \
	  "CPU cycles spent in the guest")                                                           \
	X("instructions", hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS, 1000000000,      \
	  "instructions the guest retired")                                                          \
	X("ref-cycles", hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES, 1000000000,      \
	  "cycles at constant frequency spent in the guest")                                         \
	X("branches", hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_INSTRUCTIONS, 100000000,    \
	  "branches the guest retired")                                                              \
	X("branch-misses", hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES, 1000000,       \
	  "branches the guest mispredicted")                                                         \
	X("cache-references", hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES, 1000000, \
	  "last-level cache accesses of the guest")                                                  \
	X("cache-misses", hardware, PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES, 1000000,         \
	  "last-level cache misses of the guest")                                                    \
	X("task-clock", clock, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000000000,             \
	  "nanoseconds the vCPU thread ran, in the guest and outside")                               \
	X("cpu-clock", clock, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK, 1000000000,               \
	  "nanoseconds of its CPU while the vCPU thread ran there")                                  \
	X("timer", timer, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_TASK_CLOCK, 1000000000,                  \
	  "a POSIX timer that samples the vCPU thread's CPU time; needs no perf")                    \
	X("steps", step, PERF_TYPE_SOFTWARE, PERF_COUNT_SW_DUMMY, 1,                                 \
	  "every instruction of the guest, one by one: exact, and very slow (vprof run --exact)")

static const struct event_row {
	const char *name;
	const struct counter_backend *backend;
	uint32_t type;
	uint64_t config;
	uint64_t guess_hz;
	const char *summary;
} event_rows[] = {
#define X(name, backend, type, config, guess_hz, summary) \
	{name, &counter_backend_##backend, type, config, guess_hz, summary},
	EVENTS(X)
#undef X
};

static const char *const event_names[] = {
#define X(name, ...) name,
	EVENTS(X)
#undef X
		NULL,
};

const struct counter_backend *const counter_backends[] = {
	&counter_backend_hardware, &counter_backend_clock, &counter_backend_timer, &counter_backend_step, NULL,
};

const char *const *counter_event_names(void)
{
	return event_names;
}

static const struct event_row *event_row_find(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(event_rows); i++)
		if (strcmp(event_rows[i].name, name) == 0)
			return &event_rows[i];
	return NULL;
}

const char *counter_event_summary(const char *name)
{
	const struct event_row *row = event_row_find(name);

	return row ? row->summary : NULL;
}

uint64_t counter_event_guess_hz(const struct counter_event *event)
{
	for (size_t i = 0; i < G_N_ELEMENTS(event_rows); i++)
		if (event_rows[i].type == event->type && event_rows[i].config == event->config)
			return event_rows[i].guess_hz;
	return 1000000;
}

/* Levenshtein distance, one row of the table at a time. Both at most NAME_BYTES_MAX. */
static unsigned name_distance(const char *a, const char *b)
{
	unsigned row[NAME_BYTES_MAX + 1];
	size_t n = strlen(b);

	for (unsigned j = 0; j <= n; j++)
		row[j] = j;
	for (unsigned i = 1; a[i - 1] != '\0'; i++) {
		unsigned diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= n; j++) {
			unsigned substitute = diagonal + (a[i - 1] != b[j - 1]);

			diagonal = row[j];
			row[j] = MIN(substitute, MIN(row[j], row[j - 1]) + 1);
		}
	}
	return row[n];
}

static bool names_near(const char *asked, const char *name)
{
	if (strlen(asked) > NAME_BYTES_MAX || strlen(asked) < 2)
		return false;
	return strstr(name, asked) || name_distance(asked, name) <= MIN(NEAR_DISTANCE_MAX, strlen(asked) / 2);
}

static void set_unknown(const char *asked, GError **error)
{
	g_autoptr(GString) near = g_string_new(NULL);
	unsigned found = 0;

	for (size_t i = 0; event_names[i] && found < NEAR_NAMES_MAX; i++)
		if (names_near(asked, event_names[i]))
			g_string_append_printf(near, "%s%s", found++ ? ", " : "", event_names[i]);
	if (found) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNKNOWN_EVENT, "unknown event \"%s\"; near names: %s",
		            asked, near->str);
		return;
	}
	g_autofree char *all = g_strjoinv(", ", (char **)event_names);
	g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNKNOWN_EVENT,
	            "unknown event \"%s\"; known are %s, and rNNN for a raw event in hexadecimal", asked, all);
}

/* "r01c2": event select and unit mask as the PMU's manual has them (perf list, "rNNN"). */
static bool raw_parse(const char *name, uint64_t *config)
{
	if (name[0] != 'r')
		return false;
	size_t digits = strspn(name + 1, "0123456789abcdefABCDEF");

	if (digits == 0 || digits > 16 || name[1 + digits] != '\0')
		return false;
	*config = g_ascii_strtoull(name + 1, NULL, 16);
	return true;
}

static bool modifier_parse(const char *modifier, struct counter_event *event)
{
	if (*modifier == '\0')
		return false;
	event->user = event->kernel = false;
	for (; *modifier != '\0'; modifier++) {
		bool *which = *modifier == 'u' ? &event->user : *modifier == 'k' ? &event->kernel : NULL;

		if (!which || *which)
			return false;
		*which = true;
	}
	return true;
}

static bool name_parse(const char *name, struct counter_event *event)
{
	const struct event_row *row = event_row_find(name);

	if (row) {
		event->type = row->type;
		event->config = row->config;
		event->backend = row->backend;
		return true;
	}
	event->type = PERF_TYPE_RAW;
	event->backend = &counter_backend_hardware;
	return raw_parse(name, &event->config);
}

bool counter_event_parse(const char *text, struct counter_event *event, GError **error)
{
	struct counter_event parsed = {.user = true, .kernel = true};
	const char *colon = strchr(text, ':');
	g_autofree char *name = colon ? g_strndup(text, (gsize)(colon - text)) : g_strdup(text);

	if (strlen(text) >= sizeof(parsed.name)) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNKNOWN_EVENT,
		            "unknown event \"%.32s...\"; a name has at most %zu bytes", text, sizeof(parsed.name) - 1);
		return false;
	}
	if (!name_parse(name, &parsed)) {
		set_unknown(name, error);
		return false;
	}
	if (colon && !modifier_parse(colon + 1, &parsed)) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNKNOWN_EVENT,
		            "unknown modifier \"%s\" of event \"%s\"; there are :u (guest user) and :k (guest kernel)",
		            colon, name);
		return false;
	}
	g_strlcpy(parsed.name, text, sizeof(parsed.name));

	const char *reason = parsed.backend->unavailable(&parsed);
	if (reason) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_UNAVAILABLE, "cannot count %s: %s", text, reason);
		return false;
	}
	*event = parsed;
	return true;
}

void counter_event_default(struct counter_event *event, const char **why)
{
	g_autoptr(GError) error = NULL;

	if (counter_event_parse("cycles", event, &error)) {
		*why = "taking cycles: the host has a PMU that counts them for guests";
		return;
	}
	if (!counter_event_parse("task-clock", event, NULL))
		counter_event_parse("timer", event, NULL); /* always there */
	/* The text after the semicolon says what to do about it, which is being done. */
	g_autofree char *text =
		g_strdup_printf("taking %s: %.*s", event->name, (int)strcspn(error->message, ";"), error->message);
	*why = g_intern_string(text);
}

/* Above kernel.perf_event_max_sample_rate, the kernel throttles software clocks, too. */
uint32_t counter_frequency_max(const struct counter_event *event)
{
	g_autofree char *text =
		event->backend == &counter_backend_timer ? NULL : counter_setting_read(COUNTER_SAMPLE_RATE_MAX);
	const uint64_t host_max = text ? g_ascii_strtoull(text, NULL, 10) : 0;

	return host_max != 0 ? (uint32_t)MIN(host_max, VPROF_FREQUENCY_HZ_MAX) : VPROF_FREQUENCY_HZ_MAX;
}

static bool frequency_check(uint32_t frequency_hz, const struct counter_event *event, GError **error)
{
	const uint32_t most = counter_frequency_max(event);

	if (frequency_hz > VPROF_FREQUENCY_HZ_MAX) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_RANGE,
		            "frequency %u Hz of %s is out of range; it can be 1 to %u Hz", frequency_hz, event->name,
		            VPROF_FREQUENCY_HZ_MAX);
		return false;
	}
	if (frequency_hz > most) {
		g_set_error(
			error, COUNTER_ERROR, COUNTER_ERROR_RANGE,
			"frequency %u Hz of %s is above kernel.perf_event_max_sample_rate, %u Hz, where the host throttles; take a lower one, or raise it with sysctl",
			frequency_hz, event->name, most);
		return false;
	}
	return true;
}

bool counter_rate_check(const struct counter_rate *rate, const struct counter_event *event, GError **error)
{
	uint64_t least = event->backend->counts_time ? PERIOD_NS_MIN : PERIOD_EVENTS_MIN;

	if ((rate->frequency_hz == 0) == (rate->period == 0)) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_RANGE,
		            "event %s needs a frequency (1 to %u Hz) or a period, and not both", event->name,
		            VPROF_FREQUENCY_HZ_MAX);
		return false;
	}
	if (event->backend->steps && rate->period != 1) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_RANGE,
		            "event %s has no frequency and no period but 1: every step is counted", event->name);
		return false;
	}
	if (event->backend->steps)
		return true;
	if (rate->frequency_hz != 0)
		return frequency_check(rate->frequency_hz, event, error);
	if (rate->period < least || rate->period > PERIOD_MAX) {
		g_set_error(error, COUNTER_ERROR, COUNTER_ERROR_RANGE,
		            "period %" G_GUINT64_FORMAT " of %s is out of range; it can be %" G_GUINT64_FORMAT
		            " to %" G_GUINT64_FORMAT "%s",
		            rate->period, event->name, least, PERIOD_MAX, event->backend->counts_time ? " ns" : "");
		return false;
	}
	return true;
}

static uint64_t first_period(const struct counter_event *event, const struct counter_rate *rate)
{
	if (rate->frequency_hz == 0)
		return rate->period;
	uint64_t period = counter_event_guess_hz(event) / rate->frequency_hz;

	return event->backend->counts_time ? period : MAX(period, PERIOD_EVENTS_MIN);
}

void counter_event_attr(const struct counter_event *event, const struct counter_rate *rate,
                        struct perf_event_attr *attr)
{
	*attr = (struct perf_event_attr){
		.type = event->type,
		.size = VPROF_ATTR_BYTES,
		.config = event->config,
		.sample_period = first_period(event, rate),
		.sample_type = VPROF_SAMPLE_TYPE,
		/* The time that it could count, for the frequency. */
		.read_format = VPROF_READ_FORMAT,
		.disabled = 1,
		.sample_id_all = 1,
		.wakeup_events = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		/*
	         * precise_ip stays 0: PEBS of the host does not fire for a guest. exclude_kernel and exclude_user go by
	         * the mode when the counter is the hardware's, guest included; a clock would take them for the host's
	         * mode in KVM_RUN, which is always the kernel.
	         */
		.exclude_host = event->backend->guest_only,
		.exclude_kernel = event->backend->guest_only && !event->kernel,
		.exclude_user = event->backend->guest_only && !event->user,
	};
}
