// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <string.h>

#include "compare/measured_priv.h"
#include "lib/profile/histogram.h"
#include "reading/input.h"
#include "reading/phases.h"
#include "ui/text.h"

/* The index of an event in a recording's histograms, which have one. */
#define ONLY 0u

/* A stretch of time in which the work was done once. */
struct repetition {
	uint64_t from_ns, to_ns; /* [from, to) */
	const json_t *run;       /* what it says of itself; NULL: it is the whole recording */
	struct histogram *histogram;
	uint64_t first_ns, last_ns;                  /* of its samples */
	uint64_t waiting_ns[VPROF_TASK_STATE_COUNT]; /* by state */
};

struct gathering {
	struct input *input;
	const char *phase;   /* each time that it came is a repetition; NULL: those of run --exec */
	GArray *repetitions; /* of struct repetition, by time */
	unsigned event;      /* that is compared */
	int waits;           /* the event of waits; -1: it has none */
};

static struct repetition *repetition_at(const struct gathering *in, uint64_t time_ns)
{
	for (guint i = 0; i < in->repetitions->len; i++) {
		struct repetition *repetition = &g_array_index(in->repetitions, struct repetition, i);

		if (time_ns >= repetition->from_ns && time_ns < repetition->to_ns)
			return repetition;
	}
	return NULL;
}

static bool gather_sample(const struct record_sample *sample, unsigned event, void *data)
{
	struct gathering *in = data;
	struct repetition *repetition =
		event == in->event || (int)event == in->waits ? repetition_at(in, sample->time_ns) : NULL;
	const unsigned state = (sample->misc & VPROF_TASK_STATE_MASK) >> VPROF_TASK_STATE_SHIFT;

	if (repetition && (int)event == in->waits && state < VPROF_TASK_STATE_COUNT)
		repetition->waiting_ns[state] += sample->period;
	if (repetition && event == in->event) {
		histogram_add(repetition->histogram, sample, ONLY);
		repetition->first_ns = MIN(repetition->first_ns, sample->time_ns);
		repetition->last_ns = MAX(repetition->last_ns, sample->time_ns);
	}
	return true;
}

static void repetition_clear(void *data)
{
	histogram_free(((struct repetition *)data)->histogram);
}

static void add_repetition(struct gathering *in, uint64_t from_ns, uint64_t to_ns, const json_t *run)
{
	const struct repetition repetition = {
		.from_ns = from_ns,
		.to_ns = to_ns,
		.run = run,
		.histogram = histogram_new(in->input->names, 0),
		.first_ns = UINT64_MAX,
	};

	g_array_append_val(in->repetitions, repetition);
}

#define REPETITION_PREFIX "repeat-"

static bool add_spans(struct gathering *in, const char *phase, const json_t *run, GError **error)
{
	g_autoptr(GArray) spans = phases_find(in->input->description, phase, error);

	for (guint i = 0; spans && i < spans->len; i++) {
		const struct phase_span *span = &g_array_index(spans, struct phase_span, i);

		add_repetition(in, span->begin_ns, span->end_ns, run);
	}
	return spans != NULL;
}

static bool add_phase(struct gathering *in, const json_t *run, const char *phase, GError **error)
{
	uint64_t status = member_number(run, "status", 0);

	if (status != 0) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT,
		            "%s of %s ended with status %" G_GUINT64_FORMAT ": it is not the same work", phase,
		            in->input->path, status);
		return false;
	}
	return add_spans(in, phase, run, error);
}

/* What the VMM could not go on with is incomplete. */
static bool check_end(const struct gathering *in, GError **error)
{
	const json_t *end = json_object_get(in->input->description, "end");
	const char *reason = member_text(end, "reason");
	g_autofree char *message = text_printable(member_text(end, "message"));

	if (g_strcmp0(reason, "vmm-error") != 0)
		return true;
	g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT, "%s is incomplete: %s", in->input->path, message);
	return false;
}

static bool is_repetition(const json_t *run)
{
	const char *phase = member_text(run, "phase");

	return phase && g_str_has_prefix(phase, REPETITION_PREFIX);
}

const char *measured_repetitions(const json_t *description)
{
	const json_t *run;
	size_t i;

	json_array_foreach(json_object_get(json_object_get(description, "exec"), "runs"), i, run) {
		if (is_repetition(run))
			return REPETITION_PREFIX "*";
	}
	return NULL;
}

/* Those of `run --exec --repeat`, or the recording as a whole. */
static bool find_repetitions(struct gathering *in, GError **error)
{
	const json_t *runs = json_object_get(json_object_get(in->input->description, "exec"), "runs"), *run;
	size_t i;

	if (!check_end(in, error))
		return false;
	if (in->phase)
		return add_spans(in, in->phase, NULL, error);
	json_array_foreach(runs, i, run) {
		if (is_repetition(run) && !add_phase(in, run, member_text(run, "phase"), error))
			return false;
	}
	if (in->repetitions->len == 0)
		add_repetition(in, 0, UINT64_MAX, NULL);
	return true;
}

/* What the rows of a profile add to each metric. The first is the sum of all rows. */
static const struct {
	const char *name;
	unsigned modes; /* bits of enum profile_mode */
} mode_metrics[] = {
	{"total", ~0u},
	{"guest", 1u << PROFILE_KERNEL | 1u << PROFILE_USER},
	{"kernel", 1u << PROFILE_KERNEL},
	{"user", 1u << PROFILE_USER},
	{"vmm", 1u << PROFILE_HYPERVISOR},
};

bool measured_is_mode(const char *name)
{
	for (size_t i = 0; i < G_N_ELEMENTS(mode_metrics); i++)
		if (strcmp(mode_metrics[i].name, name) == 0)
			return true;
	return false;
}

static void measure_row(struct measurements *measurements, const struct profile_row *row, size_t repetition)
{
	double value = (double)row->period;

	measurements_add_function(measurements, row->symbol, row->module, row->mode)->values[repetition] += value;
	for (size_t i = 0; i < G_N_ELEMENTS(mode_metrics); i++)
		if (mode_metrics[i].modes & 1u << row->mode)
			measurements_add_metric(measurements, mode_metrics[i].name, measurements->unit)
				->values[repetition] += value;
}

/* A missing number is not added, not even as 0. */
static void add_number(struct measurements *measurements, const char *name, const char *unit, double value,
                       size_t index)
{
	if (value >= 0 && isfinite(value))
		measurements_add_partial(measurements, name, unit)->values[index] = value;
}

static void add_metric(struct measurements *measurements, const json_t *metric, size_t index)
{
	const char *name = member_text(metric, "name"), *unit = member_text(metric, "unit");
	const json_t *value = json_object_get(metric, "value");

	if (name && unit && json_is_number(value) && !measured_is_own(name))
		add_number(measurements, name, unit, json_number_value(value), index);
}

/* Adds the metrics of `run`, one of exec.runs of VPROF_FEATURE_DESCRIPTION, as values[index]. Untrusted; may be NULL.
 */
static void add_run(struct measurements *measurements, const json_t *run, size_t index)
{
	const json_t *user = json_object_get(run, "user-ns"), *system = json_object_get(run, "system-ns"),
		     *memory = json_object_get(run, "memory-bytes"), *metric;
	size_t i;

	if (json_is_integer(user) && json_is_integer(system))
		add_number(measurements, "cpu", "ns", json_number_value(user) + json_number_value(system), index);
	if (json_is_integer(memory))
		add_number(measurements, "memory", "bytes", json_number_value(memory), index);
	json_array_foreach(json_object_get(run, "metrics"), i, metric) {
		add_metric(measurements, metric, index);
	}
}

/* The time for which tasks waited, and by state. */
static void measure_waiting(struct measurements *measurements, const struct repetition *repetition, size_t index)
{
	struct series *waiting = measurements_add_metric(measurements, measured_waiting_name(VPROF_TASK_RUNNING), "ns");

	for (unsigned state = 1; state < VPROF_TASK_STATE_COUNT; state++) {
		const double value = (double)repetition->waiting_ns[state];

		waiting->values[index] += value;
		if (value > 0)
			measurements_add_metric(measurements, measured_waiting_name(state), "ns")->values[index] =
				value;
	}
}

/* Between its marks; of a recording without any, from the first sample to the last. */
static uint64_t repetition_wall_ns(const struct repetition *repetition)
{
	return repetition->to_ns != UINT64_MAX ? repetition->to_ns - repetition->from_ns
	                                       : repetition->last_ns - repetition->first_ns;
}

static void measure_repetition(struct measurements *measurements, const struct repetition *repetition, size_t index,
                               const struct gathering *in)
{
	const struct input *input = in->input;
	const char *event_name = recording_event(input->recording, in->event)->name;
	struct profile_row *rows;
	struct column_list list;
	size_t n;

	column_list_parse("mode,module,sym", &list, NULL);
	rows = histogram_rows(repetition->histogram, &list, input->resolver, &event_name, &n);
	for (size_t i = 0; i < n; i++)
		measure_row(measurements, &rows[i], index);
	measurements_add_metric(measurements, "wall", "ns")->values[index] = (double)repetition_wall_ns(repetition);
	if (in->waits >= 0)
		measure_waiting(measurements, repetition, index);
	add_run(measurements, repetition->run, index);
	g_free(rows);
}

/* Recordings of perf itself have the rate in their attr only. */
static json_t *rate_of(const struct gathering *in)
{
	const struct perf_event_attr *attr = &recording_event(in->input->recording, in->event)->attr;
	json_t *rate = json_object_get(in->input->description, "rate");

	/* Looks at the tasks that wait have a rate of their own. */
	if (rate && (int)in->event != in->waits)
		return json_incref(rate);
	return json_pack("{s:I}", attr->freq ? "frequency-hz" : "period",
	                 (json_int_t)(attr->freq ? attr->sample_freq : attr->sample_period));
}

static json_t *conditions_of(const struct gathering *in)
{
	const struct input *input = in->input;
	static const char *const of_guest[] = {"kind", "vcpus", "memory-bytes"};
	json_t *conditions = json_object();
	const json_t *guest = json_object_get(input->description, "guest");
	g_autofree char *filter = input->filter ? filter_text(input->filter) : NULL;

	json_object_set_new(conditions, "event", text_json(recording_event(input->recording, in->event)->name));
	json_object_set_new(conditions, "rate", rate_of(in));
	if (in->phase)
		json_object_set_new(conditions, "phase", text_json(in->phase));
	if (filter)
		json_object_set_new(conditions, "filter", text_json(filter));
	json_object_set(conditions, "cpu", json_object_get(input->description, "host-cpu"));
	for (size_t i = 0; i < G_N_ELEMENTS(of_guest); i++)
		json_object_set(conditions, of_guest[i], json_object_get(guest, of_guest[i]));
	return conditions;
}

static bool counts_steps(const struct gathering *in)
{
	return g_str_has_prefix(recording_event(in->input->recording, in->event)->name, MEASURED_EVENT_STEPS);
}

static bool gather(struct gathering *in, GError **error)
{
	static const struct input_visitor visitor = {.sample = gather_sample};

	if (!find_repetitions(in, error))
		return false;
	input_walk(in->input, &visitor, in);
	input_say_warnings(in->input);
	if (recording_cut_off(in->input->recording)) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT,
		            "%s was cut off: its last repetition is not whole; leave it out of the comparison",
		            in->input->path);
		return false;
	}
	const uint64_t lost = record_losses_samples(&in->input->losses);

	if (lost != 0 && counts_steps(in)) {
		g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_FORMAT,
		            "%s has lost %" G_GUINT64_FORMAT " steps: its counts are not exact; record it again",
		            in->input->path, lost);
		return false;
	}
	for (guint i = 0; i < in->repetitions->len; i++)
		if (histogram_samples(g_array_index(in->repetitions, struct repetition, i).histogram) == 0) {
			g_set_error(error, MEASURED_ERROR, MEASURED_ERROR_EMPTY,
			            "repetition %u of %s has no samples of %s%s; sample more often", i + 1,
			            in->input->path, recording_event(in->input->recording, in->event)->name,
			            in->input->filter ? " that pass the filters" : "");
			return false;
		}
	return true;
}

static const char *unit_of(const struct recording_event *event)
{
	if (recording_event_counts_time(event))
		return "ns";
	return g_str_has_prefix(event->name, MEASURED_EVENT_STEPS) ? "instructions" : event->name;
}

static struct measured *measure_input(struct input *input, const char *phase, unsigned event_number, GError **error)
{
	struct gathering in = {
		.input = input,
		.phase = phase,
		.repetitions = g_array_new(FALSE, FALSE, sizeof(struct repetition)),
		.event = event_number,
		.waits = input_waits_number(input, -1),
	};
	const struct recording_event *event = recording_event(input->recording, event_number);
	struct measured *measured = NULL;

	g_array_set_clear_func(in.repetitions, repetition_clear);
	if (gather(&in, error)) {
		measured = measured_new(input->path, unit_of(event), in.repetitions->len, conditions_of(&in));
		for (guint i = 0; i < in.repetitions->len; i++)
			measure_repetition(measured->measurements, &g_array_index(in.repetitions, struct repetition, i),
			                   i, &in);
		measurements_drop_partial(measured->measurements);
	}
	g_array_unref(in.repetitions);
	return measured;
}

struct measured *measured_from_recording(const char *path, const char *phase, const char *event,
                                         const struct filter_options *filter, GError **error)
{
	struct input *input = input_open(path, NULL, false, error);
	struct measured *measured = NULL;
	int number;

	if (!input)
		return NULL;
	number = input_event_number(input, event, error);
	if (number >= 0 && input_select(input, filter, error))
		measured = measure_input(input, phase, (unsigned)number, error);
	if (measured)
		measured->typical = g_strdup(path);
	input_free(input);
	return measured;
}
