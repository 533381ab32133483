// SPDX-License-Identifier: BSD-2-Clause
#include "reading/input.h"

#include <string.h>
#include <sys/stat.h>

#include "lib/profile/call_tree.h"
#include "lib/symbol/image.h"
#include "reading/phases.h"
#include "reading/symbol_options.h"
#include "ui/message.h"
#include "ui/progress.h"
#include "ui/text.h"

G_DEFINE_QUARK(vprof_input_error, input_error)

G_GNUC_PRINTF(2, 3)
static void input_warn(struct input *input, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_ptr_array_add(input->warnings, g_strdup_vprintf(format, arguments));
	va_end(arguments);
}

/* A damaged description costs the header of a report, not the report. */
static void input_read_description(struct input *input)
{
	const char *text = recording_description(input->recording);
	json_error_t why;

	if (text)
		input->description = json_read(text, strlen(text), 0, &why);
	if (text && !input->description)
		input_warn(input, "the guest's description in %s is damaged: %s", input->path, why.text);
	if (!json_is_object(input->description)) {
		json_decref(input->description);
		input->description = json_object();
	}
}

/* Symbols of another build would be wrong without a sign of it. */
bool input_check_kernel(struct input *input, const struct image *image, bool force, GError **error)
{
	const char *recorded = recording_kernel_build_id(input->recording);
	const enum arch arch = recording_arch(input->recording);
	g_autofree char *hex = image_build_id_text(image);

	if (arch != ARCH_UNKNOWN && !image_check_arch(image, arch, input->path, error))
		return false;

	if (!recorded || !hex) {
		input_warn(input, "%s has no build-id; whether %s is the kernel that ran cannot be checked",
		           !recorded ? input->path : image_path(image), image_path(image));
		return true;
	}
	if (strcmp(recorded, hex) == 0)
		return true;
	if (force) {
		input_warn(input, "%s is not the kernel that ran: its build-id is %s, the recording's %s",
		           image_path(image), hex, recorded);
		return true;
	}
	g_set_error(
		error, INPUT_ERROR, INPUT_ERROR_BUILD_ID,
		"%s is not the kernel that ran: its build-id is %s, the recording's %s; give the right image, or --force to use this one all the same",
		image_path(image), hex, recorded);
	return false;
}

static struct image *input_open_kernel(struct input *input, const char *kernel, bool force, GError **error)
{
	struct image *image = image_open(kernel, error);

	if (!image || input_check_kernel(input, image, force, error))
		return image;
	image_free(image);
	return NULL;
}

/* With addresses as the guest had them. */
static bool input_load_symbols(struct input *input, struct image *image, GError **error)
{
	input->symtab = symtab_load(image, error);
	if (!input->symtab)
		return false;
	if (input->kernel.moved)
		input_warn(
			input,
			"the guest of %s booted again, with its kernel at another address; names from %s are those of the last boot",
			input->path, image_path(image));
	if (!kernel_place_slide(&input->kernel, image_arch(image), input->symtab, &input->slide))
		input_warn(input,
		           "%s has %s at 0x%" G_GINT64_MODIFIER "x, where %s cannot have it; names will be wrong",
		           input->path, input->kernel.symbol, input->kernel.address, image_path(image));
	if (input->slide == 0)
		return true;
	symtab_free(input->symtab);
	image_set_slide(image, input->slide);
	input->symtab = symtab_load(image, error);
	return input->symtab != NULL;
}

/* As in perf, records other than samples end with the sample_id fields of the first event. */
static uint64_t input_sample_type(const struct input *input)
{
	return recording_n_events(input->recording) != 0 ? recording_event(input->recording, 0)->attr.sample_type : 0;
}

/* recording_each with a progress bar, which `each` moves (progress_step). */
static bool input_each(struct input *input,
                       bool (*each)(const struct perf_event_header *record, size_t bytes, void *data), void *data,
                       GError **error)
{
	struct stat status;
	bool whole;

	progress_begin("reading", input->path,
	               stat(input->path, &status) == 0 && status.st_size > 0 ? (uint64_t)status.st_size : 0);
	whole = recording_each(input->recording, each, data, error);
	progress_end();
	return whole;
}

static bool names_take_record(const struct perf_event_header *record, size_t bytes, void *data)
{
	struct input *input = data;

	progress_step(bytes);
	names_take(input->names, record, bytes, input_sample_type(input));
	kernel_place_take(&input->kernel, record, bytes);
	return true;
}

/* In a walk before the samples: the record that names a sample may come later in the file, from another vCPU. */
static void input_read_names(struct input *input)
{
	input->names = names_new();
	/* input_walk warns of a damaged end. */
	input_each(input, names_take_record, input, NULL);
}

/* Everything but the records. */
static bool input_load(struct input *input, const char *kernel, bool force, GError **error)
{
	struct image *image = NULL;
	bool loaded;

	input->recording = recording_open(input->path, error);
	if (!input->recording)
		return false;
	if (kernel && !(image = input_open_kernel(input, kernel, force, error)))
		return false;
	input_read_names(input);
	loaded = !image || input_load_symbols(input, image, error);
	image_free(image);
	return loaded;
}

struct input *input_open(const char *path, const char *kernel, bool force, GError **error)
{
	struct input *input = g_new0(struct input, 1);
	const char *warning;

	input->path = g_strdup(path ? path : INPUT_DEFAULT_PATH);
	input->image_path = g_strdup(kernel);
	input->warnings = g_ptr_array_new_with_free_func(g_free);
	if (!input_load(input, kernel, force, error)) {
		input_free(input);
		return NULL;
	}
	input->resolver = input->symtab ? resolver_new_symtab(input->symtab, input->recording)
	                                : resolver_new_recording(input->recording);
	warning = recording_warning(input->recording);
	if (warning)
		input_warn(input, "%s", warning);
	/* A finished recording of vprof has a description, and all the symbols that were found. */
	if (!kernel && recording_n_symbols(input->recording) == 0 && !recording_description(input->recording))
		input_warn(input, "%s has no symbols; --kernel IMAGE takes them from the kernel that ran", input->path);
	input_read_description(input);
	return input;
}

void input_take_symbol_options(struct input *input, const struct symbol_options *options, bool force)
{
	const struct user_symbol_sources sources =
		symbol_options_sources(options, NULL, recording_arch(input->recording), force);

	if (!symbol_options_given(options))
		return;
	input->user_symbols = user_symbols_new(&sources);
	resolver_set_user(input->resolver, input->user_symbols);
}

void input_free(struct input *input)
{
	if (!input)
		return;
	resolver_free(input->resolver);
	names_free(input->names);
	user_symbols_free(input->user_symbols);
	symtab_free(input->symtab);
	recording_free(input->recording);
	json_decref(input->description);
	filter_free(input->filter);
	g_clear_pointer(&input->spans, g_array_unref);
	g_free(input->phase);
	g_ptr_array_unref(input->warnings);
	g_free(input->image_path);
	g_free(input->path);
	g_free(input);
}

mode_t input_mode(const struct input *input)
{
	struct stat status;

	return stat(input->path, &status) == 0 ? status.st_mode & 0666 : 0600;
}

bool input_select_phase(struct input *input, const char *pattern, GError **error)
{
	input->spans = phases_find(input->description, pattern, error);
	input->phase = g_strdup(pattern);
	return input->spans != NULL;
}

bool input_select(struct input *input, const struct filter_options *options, GError **error)
{
	g_autoptr(GError) why = NULL;

	input->filter = filter_new(options, input->recording, input->names, &why);
	if (!why)
		return true;
	g_propagate_error(error, g_steal_pointer(&why));
	return false;
}

struct walk {
	struct input *input;
	const struct input_visitor *visitor;
	void *data;
	uint64_t strangers; /* samples of no event of the recording */
	uint64_t malformed;
	uint64_t passed;
	uint64_t first_ns, last_ns; /* of those that do not */
};

static bool walk_sample(struct walk *walk, const struct perf_event_header *record, size_t bytes)
{
	struct record_sample sample;
	const struct perf_event_attr *attr;
	int event;

	if (!recording_sample(walk->input->recording, record, bytes, &sample, &event)) {
		walk->malformed++;
		return true;
	}
	if (event < 0) {
		walk->strangers++;
		return true;
	}
	if ((walk->input->spans && !phases_hold(walk->input->spans, sample.time_ns)) ||
	    (walk->input->filter && !filter_passes(walk->input->filter, &sample, (unsigned)event))) {
		walk->first_ns = MIN(walk->first_ns, sample.time_ns);
		walk->last_ns = MAX(walk->last_ns, sample.time_ns);
		return true;
	}
	/* perf record leaves a fixed period out of the samples; the attr has it. */
	attr = &recording_event(walk->input->recording, (size_t)event)->attr;
	if ((attr->sample_type & PERF_SAMPLE_PERIOD) == 0)
		sample.period = attr->sample_period;
	walk->passed++;
	return walk->visitor->sample(&sample, (unsigned)event, walk->data);
}

static bool walk_switch(struct walk *walk, const struct perf_event_header *record, size_t bytes)
{
	struct record_switch change;
	struct record_id id;

	if (!walk->visitor->switched || !record_switch_decode(record, bytes, &change) ||
	    !record_id_decode(record, bytes, input_sample_type(walk->input), &id) ||
	    (walk->input->spans && !phases_hold(walk->input->spans, id.time_ns)))
		return true;
	const struct record_sample of = {.time_ns = id.time_ns, .cpu = id.cpu, .pid = id.pid, .tid = id.tid};

	if (walk->input->filter && !filter_passes_switch(walk->input->filter, &of))
		return true;
	return walk->visitor->switched(&change, &id, walk->data);
}

static bool walk_read(struct walk *walk, const struct perf_event_header *record, size_t bytes)
{
	const struct recording *recording = walk->input->recording;
	struct record_read read;
	struct record_id id;

	if (!walk->visitor->counted || !record_id_decode(record, bytes, input_sample_type(walk->input), &id) ||
	    (walk->input->spans && !phases_hold(walk->input->spans, id.time_ns)))
		return true;
	struct record_sample of = {.id = id.id, .time_ns = id.time_ns, .cpu = id.cpu};
	const int event = recording_event_of(recording, &of);

	if (event < 0 ||
	    !record_read_decode(record, bytes, recording_event(recording, (size_t)event)->attr.read_format, &read))
		return true;
	of.pid = read.pid;
	of.tid = read.tid;
	if (walk->input->filter && !filter_passes_switch(walk->input->filter, &of))
		return true;
	return walk->visitor->counted(&read, (unsigned)event, &id, walk->data);
}

static bool walk_record(const struct perf_event_header *record, size_t bytes, void *data)
{
	struct walk *walk = data;

	progress_step(bytes);
	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		return walk_sample(walk, record, bytes);
	case PERF_RECORD_SWITCH_CPU_WIDE:
		return walk_switch(walk, record, bytes);
	case PERF_RECORD_READ:
		return walk_read(walk, record, bytes);
	case PERF_RECORD_LOST:
	case PERF_RECORD_LOST_SAMPLES:
		record_losses_take(&walk->input->losses, record, bytes);
		return true;
	case RECORD_FINISHED_ROUND:
		return !walk->visitor->round || walk->visitor->round(walk->data);
	default:
		return true;
	}
}

bool input_choose(const char **path, const char *argument, GError **error)
{
	if (*path && argument) {
		g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "--input and %s exclude each other",
		            argument);
		return false;
	}
	if (argument)
		*path = argument;
	return true;
}

int input_event_number(const struct input *input, const char *name, GError **error)
{
	const size_t n = recording_n_events(input->recording);

	for (size_t i = 0; i < n; i++)
		if (!name || strcmp(recording_event(input->recording, i)->name, name) == 0)
			return (int)i;
	g_set_error(error, G_OPTION_ERROR, G_OPTION_ERROR_BAD_VALUE, "%s has no event \"%s\"", input->path,
	            name ? name : "");
	return -1;
}

int input_waits_number(const struct input *input, int beside)
{
	const int exact = input_event_number(input, VPROF_OFF_CPU_EVENT, NULL);
	const int waits = exact >= 0 ? exact : input_event_number(input, VPROF_WALL_EVENT, NULL);

	if (beside >= 0 && (strcmp(recording_event(input->recording, (size_t)beside)->name, VPROF_OFF_CPU_EVENT) == 0 ||
	                    strcmp(recording_event(input->recording, (size_t)beside)->name, VPROF_WALL_EVENT) == 0 ||
	                    !recording_event_counts_time(recording_event(input->recording, (size_t)beside))))
		return -1;
	return waits;
}

void input_walk(struct input *input, const struct input_visitor *visitor, void *data)
{
	struct walk walk = {.input = input, .visitor = visitor, .data = data, .first_ns = UINT64_MAX};
	g_autoptr(GError) error = NULL;

	input->losses = (struct record_losses){0};
	if (!input_each(input, walk_record, &walk, &error))
		input_warn(input, "%s", error->message);
	if (walk.strangers != 0)
		input_warn(input, "%" G_GUINT64_FORMAT " samples in %s belong to no event of it and are left out",
		           walk.strangers, input->path);
	if (walk.malformed != 0)
		input_warn(input, "%" G_GUINT64_FORMAT " samples in %s are malformed and left out", walk.malformed,
		           input->path);
	if (input->filter && filter_chooses_time(input->filter) && walk.passed == 0 && walk.last_ns != 0)
		input_warn(input, "no sample passes; those of %s are from %.6f to %.6f s", input->path,
		           (double)walk.first_ns / 1e9, (double)walk.last_ns / 1e9);
}

void input_warn_cut(struct input *input, uint64_t samples)
{
	if (samples != 0)
		input_warn(input,
		           "%s has more than %u places in call chains: %" G_GUINT64_FORMAT
		           " samples count at one of their callers; --time, --comm or --pid selects a part",
		           input->path, CALL_TREE_PLACES_MAX, samples);
}

static void warnings_say(const GPtrArray *warnings)
{
	for (guint i = 0; i < warnings->len; i++) {
		g_autofree char *sentence = text_printable(g_ptr_array_index(warnings, i));

		warn("%s", sentence);
	}
}

void input_find_place(const struct input *input, const struct record_sample *sample, enum profile_mode mode,
                      uint64_t ip, struct place *place)
{
	const struct mapping *mapping = names_mapping(input->names, mode, sample->pid, ip, sample->time_ns);

	resolver_find(input->resolver, mode, ip, mapping, place);
}

void input_say_warnings(const struct input *input)
{
	warnings_say(input->warnings);
	if (input->user_symbols)
		warnings_say(user_symbols_warnings(input->user_symbols));
}
