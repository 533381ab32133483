// SPDX-License-Identifier: BSD-2-Clause
#include "reading/filter.h"

#include <fnmatch.h>
#include <string.h>

#include "lib/profile/mode.h"
#include "ui/units.h"

const struct option_row filter_option_rows[] = {
	{"comm", OPTION_LIST, offsetof(struct filter_options, comms),
         "only tasks of these names, which may contain * and ?", "NAME,..."},
	{"pid", OPTION_LIST, offsetof(struct filter_options, pids), "only these processes of the guest", "PID,..."},
	{"cgroup", OPTION_LIST, offsetof(struct filter_options, cgroups),
         "only cgroups of these paths, which may contain * and ?", "PATH,..."},
	{"vcpu", OPTION_LIST, offsetof(struct filter_options, vcpus), "only these vCPUs, e.g. 0,2-3", "LIST"},
	{"mode", OPTION_LIST, offsetof(struct filter_options, modes), "only these modes: kernel, user, vmm or other",
         "MODE,...", "kernel user vmm other"},
	{"time", OPTION_TEXT, offsetof(struct filter_options, time),
         "only from A to B, seconds as `vprof script` prints them, or parts of the recording: 10%,20%; either may be omitted",
         "A,B"},
	{NULL},
};

const struct option_row filter_event_rows[] = {
	{"event", OPTION_LIST, offsetof(struct filter_options, events), "only these events of the recording",
         "EVENT,...", "@recorded-events"},
	{NULL},
};

/* Texts that were compared with the patterns of a list: names gives equal texts the same address. */
struct matcher {
	char **patterns; /* NULL: everything matches */
	GHashTable *known;
};

struct range {
	uint64_t first, last;
};

struct filter {
	const struct filter_options *options;
	struct names *names;
	struct matcher comm, cgroup;
	GArray *pids, *vcpus; /* of struct range; NULL: all */
	unsigned modes;       /* bits; 0: all */
	struct range time;    /* without its last ns */
	bool *events;         /* by number; NULL: all */
};

/* ---- the values ---- */

/* "3" or "2-5". */
static bool range_parse(const char *option, const char *text, struct range *range, GError **error)
{
	g_auto(GStrv) ends = g_strsplit(text, "-", 2);

	if (!units_parse_number(option, ends[0], 0, UINT32_MAX, &range->first, error))
		return false;
	range->last = range->first;
	return !ends[1] || units_parse_number(option, ends[1], range->first, UINT32_MAX, &range->last, error);
}

/* False: error. *ranges is NULL without any. */
static bool ranges_parse(const char *option, char *const *texts, GArray **ranges, GError **error)
{
	g_autoptr(GArray) parsed = g_array_new(FALSE, FALSE, sizeof(struct range));

	for (; texts && *texts; texts++) {
		struct range range;

		if (!range_parse(option, *texts, &range, error))
			return false;
		g_array_append_val(parsed, range);
	}
	*ranges = parsed->len > 0 ? g_steal_pointer(&parsed) : NULL;
	return true;
}

static bool modes_parse(char *const *texts, unsigned *modes, GError **error)
{
	*modes = 0;
	for (; texts && *texts; texts++) {
		unsigned mode = PROFILE_KERNEL;

		while (mode <= PROFILE_OTHER && strcmp(profile_mode_name(mode), *texts) != 0)
			mode++;
		if (mode > PROFILE_OTHER) {
			g_set_error(error, UNITS_ERROR, UNITS_ERROR_FORMAT,
			            "--mode takes kernel, user, vmm or other, not \"%s\"", *texts);
			return false;
		}
		*modes |= 1u << mode;
	}
	return true;
}

/* "5.25": digits decide, since nanoseconds of a year do not fit a double. "" leaves *ns as it is. */
static bool seconds_parse(const char *text, uint64_t *ns)
{
	g_auto(GStrv) parts = g_strsplit(text, ".", 2);
	g_autofree char *fraction = g_strdup("000000000");
	uint64_t seconds = 0, rest = 0;
	size_t n = parts[0] && parts[1] ? strlen(parts[1]) : 0;

	if (text[0] == '\0')
		return true;
	if (n > strlen(fraction))
		return false;
	memcpy(fraction, n > 0 ? parts[1] : "", n);
	if ((parts[0][0] != '\0' &&
	     !g_ascii_string_to_unsigned(parts[0], 10, 0, UINT64_MAX / 2000000000, &seconds, NULL)) ||
	    !g_ascii_string_to_unsigned(fraction, 10, 0, 999999999, &rest, NULL))
		return false;
	*ns = seconds * 1000000000 + rest;
	return true;
}

/* "10%" of the time between two samples. */
static bool part_parse(const char *text, const struct range *span, uint64_t *ns)
{
	g_autofree char *digits = g_strndup(text, strlen(text) - 1);
	char *end;
	const double percent = g_ascii_strtod(digits, &end);

	if (!g_ascii_isdigit(digits[0]) || *end != '\0' || !(percent <= 100))
		return false;
	*ns = span->first + (uint64_t)((double)(span->last - span->first) * percent / 100);
	return true;
}

/* `span`: the times of the first sample of the recording and just behind the last one. */
static bool time_parse(const char *text, const struct range *span, struct range *time, GError **error)
{
	g_auto(GStrv) ends = g_strsplit(text ? text : ",", ",", 2);
	uint64_t *const times[] = {&time->first, &time->last};
	bool good = ends[0] && ends[1];

	*time = (struct range){0, UINT64_MAX};
	for (size_t i = 0; good && i < G_N_ELEMENTS(times); i++)
		good = g_str_has_suffix(ends[i], "%") ? part_parse(ends[i], span, times[i])
		                                      : seconds_parse(ends[i], times[i]);
	if (good && time->first < time->last)
		return true;
	g_set_error(
		error, UNITS_ERROR, UNITS_ERROR_FORMAT,
		"--time takes A,B, two times in seconds or percent, of which one may be omitted, A before B, not \"%s\"",
		text);
	return false;
}

static bool parse(const struct filter_options *options, const struct range *span, struct filter *filter, GError **error)
{
	return ranges_parse("--pid", options->pids, &filter->pids, error) &&
	       ranges_parse("--vcpu", options->vcpus, &filter->vcpus, error) &&
	       modes_parse(options->modes, &filter->modes, error) &&
	       time_parse(options->time, span, &filter->time, error);
}

static void clear(struct filter *filter)
{
	g_clear_pointer(&filter->pids, g_array_unref);
	g_clear_pointer(&filter->vcpus, g_array_unref);
	g_clear_pointer(&filter->comm.known, g_hash_table_unref);
	g_clear_pointer(&filter->cgroup.known, g_hash_table_unref);
	g_free(filter->events);
}

bool filter_options_check(const struct filter_options *options, GError **error)
{
	const struct range any = {0, UINT64_MAX / 2};
	struct filter filter = {0};
	bool good = parse(options, &any, &filter, error);

	clear(&filter);
	return good;
}

/* ---- the filter ---- */

static bool events_find(struct filter *filter, const struct recording *recording, GError **error)
{
	size_t n = recording_n_events(recording);

	filter->events = filter->options->events ? g_new0(bool, n) : NULL;
	for (char **name = filter->options->events; name && *name; name++) {
		size_t i = 0;

		while (i < n && strcmp(recording_event(recording, i)->name, *name) != 0)
			i++;
		if (i == n) {
			g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE,
			            "--event: there is no event \"%s\" in the recording", *name);
			return false;
		}
		filter->events[i] = true;
	}
	return true;
}

struct span {
	struct recording *recording;
	struct range times;
};

static bool span_take(const struct perf_event_header *record, size_t bytes, void *data)
{
	struct span *span = data;
	struct record_sample sample;
	int event;

	if (record->type == PERF_RECORD_SAMPLE && recording_sample(span->recording, record, bytes, &sample, &event) &&
	    event >= 0) {
		span->times.first = MIN(span->times.first, sample.time_ns);
		span->times.last = MAX(span->times.last, sample.time_ns + 1);
	}
	return true;
}

/* What time_parse wants to know. A damaged end is told when the samples are read. */
static struct range span_of(const struct filter_options *options, struct recording *recording)
{
	struct span span = {recording, {UINT64_MAX, 0}};

	if (!options->time || !strchr(options->time, '%'))
		return (struct range){0, 0};
	recording_each(recording, span_take, &span, NULL);
	return span.times.last == 0 ? (struct range){0, UINT64_MAX / 2} : span.times;
}

struct filter *filter_new(const struct filter_options *options, struct recording *recording, struct names *names,
                          GError **error)
{
	const struct range span = span_of(options, recording);
	struct filter *filter;

	if (!options->comms && !options->pids && !options->cgroups && !options->vcpus && !options->modes &&
	    !options->events && !options->time)
		return NULL;
	filter = g_new0(struct filter, 1);
	filter->options = options;
	filter->names = names;
	filter->comm = (struct matcher){options->comms, g_hash_table_new(NULL, NULL)};
	filter->cgroup = (struct matcher){options->cgroups, g_hash_table_new(NULL, NULL)};
	if (parse(options, &span, filter, error) && events_find(filter, recording, error))
		return filter;
	filter_free(filter);
	return NULL;
}

void filter_free(struct filter *filter)
{
	if (!filter)
		return;
	clear(filter);
	g_free(filter);
}

bool filter_chooses_event(const struct filter *filter, unsigned event)
{
	return !filter->events || filter->events[event];
}

bool filter_chooses_time(const struct filter *filter)
{
	return filter->options->time != NULL;
}

static bool matches(struct matcher *matcher, const char *text)
{
	gpointer known;
	bool found = false;

	if (g_hash_table_lookup_extended(matcher->known, text, NULL, &known))
		return GPOINTER_TO_INT(known);
	for (char **pattern = matcher->patterns; *pattern && !found; pattern++)
		found = fnmatch(*pattern, text, 0) == 0;
	g_hash_table_insert(matcher->known, (char *)text, GINT_TO_POINTER(found));
	return found;
}

static bool has_number(const GArray *ranges, uint64_t number)
{
	for (guint i = 0; ranges && i < ranges->len; i++) {
		const struct range *range = &g_array_index(ranges, struct range, i);

		if (number >= range->first && number <= range->last)
			return true;
	}
	return !ranges;
}

bool filter_passes_switch(struct filter *filter, const struct record_sample *of)
{
	return of->time_ns >= filter->time.first && of->time_ns < filter->time.last &&
	       has_number(filter->pids, of->pid) && has_number(filter->vcpus, of->cpu) &&
	       (!filter->comm.patterns || matches(&filter->comm, names_comm(filter->names, of->tid, of->time_ns)));
}

bool filter_passes(struct filter *filter, const struct record_sample *sample, unsigned event)
{
	return filter_chooses_event(filter, event) &&
	       (filter->modes == 0 || (filter->modes >> profile_mode_of(sample->misc) & 1) != 0) &&
	       filter_passes_switch(filter, sample) &&
	       (!filter->cgroup.patterns || matches(&filter->cgroup, names_cgroup(filter->names, sample)));
}

char *filter_options_text(const struct filter_options *options)
{
	char *time[] = {options->time, NULL};
	const struct {
		const char *what;
		char *const *values;
	} parts[] = {
		{"comm", options->comms}, {"pid", options->pids},   {"cgroup", options->cgroups},
		{"vCPU", options->vcpus}, {"mode", options->modes}, {"event", options->events},
		{"time", time},
	};
	GString *text = g_string_new(NULL);

	for (size_t i = 0; i < G_N_ELEMENTS(parts); i++) {
		g_autofree char *values = parts[i].values ? g_strjoinv(",", (char **)parts[i].values) : NULL;

		if (values && values[0] != '\0')
			g_string_append_printf(text, "%s%s %s", text->len > 0 ? "; " : "", parts[i].what, values);
	}
	return g_string_free(text, text->len == 0);
}

char *filter_text(const struct filter *filter)
{
	return filter_options_text(filter->options);
}
