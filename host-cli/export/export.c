// SPDX-License-Identifier: BSD-2-Clause
#include "export/export.h"

#include <string.h>

#include "reading/phases.h"
#include "reading/script_order.h"
#include "ui/output_file.h"
#include "ui/text.h"

const struct exporter *const exporters[] = {
	&export_folded, &export_pprof, &export_speedscope, &export_firefox,  &export_perfetto,      &export_perf_script,
	&export_csv,    &export_otlp,  &export_svg,        &export_kallsyms, &export_buildid_cache, NULL,
};

const struct exporter *exporter_find(const char *name)
{
	for (size_t i = 0; exporters[i]; i++)
		if (strcmp(exporters[i]->name, name) == 0)
			return exporters[i];
	return NULL;
}

char *exporter_names(void)
{
	GString *names = g_string_new(NULL);

	for (size_t i = 0; exporters[i]; i++) {
		const char *gap = i == 0 ? "" : exporters[i + 1] ? ", " : " or ";

		g_string_append_printf(names, "%s%s", gap, exporters[i]->name);
	}
	return g_string_free(names, FALSE);
}

struct reading {
	struct export_profile *profile;
	struct stacks *stacks;
	unsigned event;
	int waits; /* -1: none */
};

static bool read_sample(const struct record_sample *sample, unsigned event, void *data)
{
	struct reading *reading = data;
	struct export_profile *profile = reading->profile;

	if (event != reading->event && (int)event != reading->waits)
		return true;
	if (reading->stacks)
		stacks_add(reading->stacks, sample);
	if (profile->samples == 0 || sample->time_ns < profile->first_ns)
		profile->first_ns = sample->time_ns;
	profile->last_ns = MAX(profile->last_ns, sample->time_ns);
	profile->period += sample->period;
	profile->samples++;
	return true;
}

/* Times in a recording are the host's CLOCK_MONOTONIC. */
static uint64_t start_unix_ns(const struct export_profile *profile)
{
	uint64_t ahead_ns = member_number(profile->input->description, "realtime-offset-ns", 0), start_ns;

	if (profile->samples == 0 || ahead_ns == 0 || __builtin_add_overflow(profile->first_ns, ahead_ns, &start_ns) ||
	    start_ns > INT64_MAX)
		return 0;
	return start_ns;
}

const char *export_build_id(const struct export_profile *profile, const char *module)
{
	return strcmp(module, "[kernel]") == 0 ? recording_kernel_build_id(profile->input->recording) : NULL;
}

void export_profile_read(struct export_profile *profile, const struct exporter *exporter, struct input *input,
                         unsigned event, int waits)
{
	static const struct input_visitor visitor = {.sample = read_sample};
	const struct recording_event *of = recording_event(input->recording, event);
	struct reading reading = {
		.profile = profile,
		.stacks = exporter->by_sample ? NULL : stacks_new(input->names, exporter->by_cgroup),
		.event = event,
		.waits = waits,
	};

	*profile = (struct export_profile){
		.input = input,
		.event_number = event,
		.path = input->path,
		.event = of->name,
		.unit = recording_event_counts_time(of) ? "nanoseconds" : "count",
	};
	if (waits >= 0)
		profile->waits = recording_event(input->recording, (size_t)waits)->name;
	if (reading.stacks && waits >= 0)
		stacks_tell_waits(reading.stacks);
	input_walk(input, &visitor, &reading);
	profile->start_unix_ns = start_unix_ns(profile);
	if (reading.stacks) {
		input_warn_cut(input, stacks_cut(reading.stacks));
		profile->tasks =
			stacks_resolve(reading.stacks, input->resolver, exporter->by_address, &profile->n_tasks);
	}
	stacks_free(reading.stacks);
}

void export_profile_clear(struct export_profile *profile)
{
	task_stacks_free(profile->tasks, profile->n_tasks);
}

void export_phases_each(const struct export_profile *profile,
                        void (*each)(const char *name, uint64_t begin_ns, uint64_t end_ns, void *data), void *data)
{
	g_autoptr(GPtrArray) phases = phases_all(profile->input->description);

	for (guint i = 0; i < phases->len; i++) {
		const struct phase_named *phase = g_ptr_array_index(phases, i);

		for (guint j = 0; j < phase->spans->len; j++) {
			const struct phase_span *span = &g_array_index(phase->spans, struct phase_span, j);
			const uint64_t begin_ns = MAX(span->begin_ns, profile->first_ns);
			const uint64_t end_ns = MIN(span->end_ns, profile->last_ns);

			if (begin_ns <= end_ns)
				each(phase->name, begin_ns, end_ns, data);
		}
	}
}

struct samples_walk {
	const struct export_profile *profile;
	export_visitor *visit;
	void *data;
	struct export_frame frames[CHAIN_FRAMES_MAX];
};

static void frame_resolve(const struct input *input, const struct record_sample *sample, const struct chain_frame *from,
                          struct export_frame *frame)
{
	frame->ip = from->ip;
	frame->mode = profile_mode_of(from->misc);
	input_find_place(input, sample, frame->mode, from->ip, &frame->place);
}

size_t export_frames(const struct input *input, const struct record_sample *sample,
                     struct export_frame frames[CHAIN_FRAMES_MAX])
{
	g_autofree struct chain_frame *chain = g_new(struct chain_frame, CHAIN_FRAMES_MAX);
	const size_t n = chain_frames(sample, chain);

	for (size_t i = 0; i < n; i++)
		frame_resolve(input, sample, &chain[i], &frames[i]);
	return n;
}

static bool sample_visit(struct samples_walk *walk, const struct record_sample *sample)
{
	const struct export_profile *profile = walk->profile;
	const size_t n = export_frames(profile->input, sample, walk->frames);

	return walk->visit(sample, names_comm(profile->input->names, sample->tid, sample->time_ns), walk->frames, n,
	                   walk->data);
}

static struct samples_walk *samples_walk_new(const struct export_profile *profile, export_visitor *visit, void *data)
{
	struct samples_walk *walk = g_new(struct samples_walk, 1);

	walk->profile = profile;
	walk->visit = visit;
	walk->data = data;
	return walk;
}

static bool walk_sample(const struct record_sample *sample, unsigned event, void *data)
{
	struct samples_walk *walk = data;

	return event != walk->profile->event_number || sample_visit(walk, sample);
}

void export_samples_each(const struct export_profile *profile, export_visitor *visit, void *data)
{
	static const struct input_visitor visitor = {.sample = walk_sample};
	g_autofree struct samples_walk *walk = samples_walk_new(profile, visit, data);

	input_walk(profile->input, &visitor, walk);
}

struct ordering {
	struct sample_order *order;
	unsigned event;
};

static bool order_sample(const struct record_sample *sample, unsigned event, void *data)
{
	const struct ordering *ordering = data;

	if (event == ordering->event)
		sample_order_add(ordering->order, &(struct script_item){.sample = *sample, .event = event});
	return true;
}

static bool order_round(void *data)
{
	const struct ordering *ordering = data;

	return sample_order_round(ordering->order);
}

static bool order_visit(const struct script_item *item, void *data)
{
	return sample_visit(data, &item->sample);
}

void export_samples_in_time(const struct export_profile *profile, export_visitor *visit, void *data)
{
	static const struct input_visitor visitor = {.sample = order_sample, .round = order_round};
	g_autofree struct samples_walk *walk = samples_walk_new(profile, visit, data);
	struct ordering ordering = {sample_order_new(true, order_visit, walk), profile->event_number};

	input_walk(profile->input, &visitor, &ordering);
	sample_order_finish(ordering.order);
	sample_order_free(ordering.order);
}

struct writing {
	const struct exporter *exporter;
	const struct export_profile *profile;
};

static bool writing_write(FILE *to, const void *data, GError **error)
{
	const struct writing *writing = data;

	return writing->exporter->write(writing->profile, to, error);
}

bool export_input(const struct exporter *exporter, struct input *input, unsigned event, int waits, const char *path,
                  GError **error)
{
	struct export_profile profile;
	bool written;

	export_profile_read(&profile, exporter, input, event, waits);
	input_say_warnings(input);
	written =
		output_file_write(path, input_mode(input), writing_write, &(struct writing){exporter, &profile}, error);
	export_profile_clear(&profile);
	return written;
}
