// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profile.proto of pprof (github.com/google/pprof, proto/profile.proto), gzip around it. An address is a location,
 * with its source line where that is known; the names of the task and of the event are labels of the sample.
 *
 * Servers build the profile's type from the sample types. Pyroscope accepts no "-" in them (grafana/pyroscope,
 * pkg/validation/validate.go, ValidateProfile); in Parca they are part of a PromQL metric name (parca-dev/parca,
 * pkg/profilestore/profilecolumnstore.go, writeSeries). Clocks have the names that Go's CPU profiles use, so that both
 * show them as CPU time.
 */
#include <export/proto/pprof.pb-c.h>
#include <string.h>
#include <zlib.h>

#include "export/export.h"
#include "export/export_lines.h"
#include "export/protobuf.h"
#include "lib/record/hex.h"
#include "ui/text.h"

#define GZIP_WRAPPER 16 /* for deflateInit2's windowBits */
#define MEMORY_LEVEL 8  /* zlib's default */

/* A profile of one element. */
#define PART(field, element) (&(const Pprof__Profile){MESSAGE(pprof__profile), .n_##field = 1, .field = ONE(element)})

struct encoder {
	const struct export_profile *profile;
	char *type;          /* of the event's values, in [a-z_] */
	GByteArray *out;     /* a Pprof__Profile, in parts */
	GHashTable *strings; /* text -> index; 0 is the empty one */
	struct export_lines *lines;
	GHashTable *mappings;  /* "module\nstart" -> id, from 1 */
	GHashTable *functions; /* "symbol\nfile" -> id, from 1 */
	GHashTable *locations; /* "mode address mapping symbol" -> id, from 1 */
	GArray *path;          /* of uint64_t location ids, callers first */
	GArray *stack;         /* the same, the leaf first */
};

static uint64_t intern(GHashTable *table, const char *key, bool *is_new)
{
	gsize number = GPOINTER_TO_SIZE(g_hash_table_lookup(table, key));

	*is_new = number == 0;
	if (*is_new) {
		number = g_hash_table_size(table) + 1;
		g_hash_table_insert(table, g_strdup(key), GSIZE_TO_POINTER(number));
	}
	return number;
}

static void part_put(struct encoder *encoder, const Pprof__Profile *part)
{
	protobuf_append(encoder->out, &part->base);
}

static int64_t string_index(struct encoder *encoder, const char *text)
{
	g_autofree char *printable = text_printable(text);
	bool is_new;
	uint64_t number = intern(encoder->strings, printable, &is_new);

	if (is_new)
		part_put(encoder, PART(string_table, printable));
	return (int64_t)number - 1;
}

/* In lower-case hexadecimal digits. New string; NULL: not known. */
static char *build_id_of(const struct encoder *encoder, const struct call_node *node)
{
	const struct mapped_file *file = node->mapping ? node->mapping->file : NULL;

	if (!file)
		return g_strdup(export_build_id(encoder->profile, node->module));
	return file->build_id_bytes != 0 ? hex_encode(file->build_id, file->build_id_bytes) : NULL;
}

static uint64_t mapping_id(struct encoder *encoder, const struct call_node *node)
{
	const struct mapping *mapped = node->mapping;
	g_autofree char *build_id = build_id_of(encoder, node);
	g_autofree char *key = g_strdup_printf("%s\n%" G_GINT64_MODIFIER "x\n%s", node->module,
	                                       mapped ? mapped->start : 0, build_id ? build_id : "");
	bool is_new;
	uint64_t id = intern(encoder->mappings, key, &is_new);

	if (!is_new)
		return id;
	Pprof__Mapping mapping = {
		MESSAGE(pprof__mapping),
		.id = id,
		.memory_start = mapped ? mapped->start : 0,
		.memory_limit = mapped ? mapped->end : 0,
		.file_offset = mapped ? mapped->file_offset : 0,
		.filename = string_index(encoder, node->module),
		.build_id = build_id ? string_index(encoder, build_id) : 0,
		/* As far as they are known: readers do not look for more. */
		.has_functions = true,
		.has_filenames = true,
		.has_line_numbers = true,
	};

	part_put(encoder, PART(mapping, &mapping));
	return id;
}

/* file: of the source; "": not known. Readers open what is there as text. */
static uint64_t function_id(struct encoder *encoder, const char *symbol, const char *file)
{
	g_autofree char *key = g_strdup_printf("%s\n%s", symbol, file);
	bool is_new;
	uint64_t id = intern(encoder->functions, key, &is_new);

	if (!is_new)
		return id;
	Pprof__Function function = {
		MESSAGE(pprof__function),
		.id = id,
		.name = string_index(encoder, symbol),
		.system_name = string_index(encoder, symbol),
		.filename = string_index(encoder, file),
	};

	part_put(encoder, PART(function, &function));
	return id;
}

static uint64_t location_id(struct encoder *encoder, const struct call_node *node)
{
	const uint64_t mapping = mapping_id(encoder, node);
	g_autofree char *key = g_strdup_printf("%d %" G_GINT64_MODIFIER "x %" G_GINT64_MODIFIER "x %s", (int)node->mode,
	                                       node->ip, mapping, node->symbol);
	bool is_new;
	uint64_t id = intern(encoder->locations, key, &is_new);
	const char *file = "";
	int number = 0;

	if (!is_new)
		return id;
	export_lines_find(encoder->lines, node->mode, node->ip, node->mapping, &file, &number);
	Pprof__Line line = {
		MESSAGE(pprof__line),
		.function_id = function_id(encoder, node->symbol, file),
		.line = MAX(number, 0),
	};
	Pprof__Location location = {
		MESSAGE(pprof__location),
		.id = id,
		.mapping_id = mapping,
		.address = node->mode != PROFILE_HYPERVISOR ? node->ip : 0, /* those are numbers of exits */
		.n_line = 1,
		.line = ONE(&line),
	};

	part_put(encoder, PART(location, &location));
	return id;
}

static Pprof__Label label_of(struct encoder *encoder, const char *key, const char *text)
{
	return (Pprof__Label){
		MESSAGE(pprof__label),
		.key = string_index(encoder, key),
		.str = string_index(encoder, text),
	};
}

static void sample_put(struct encoder *encoder, const struct task_stacks *task, const struct call_node *node)
{
	int64_t values[] = {(int64_t)node->self_samples, (int64_t)node->self_period};
	Pprof__Label of_task = label_of(encoder, "comm", task->comm);
	Pprof__Label of_event = label_of(encoder, "event", encoder->profile->event);
	Pprof__Label of_cgroup = {MESSAGE(pprof__label)};
	Pprof__Label *labels[] = {&of_task, &of_event, &of_cgroup};

	if (task->cgroup)
		of_cgroup = label_of(encoder, "cgroup", task->cgroup);
	g_array_set_size(encoder->stack, 0);
	for (guint i = encoder->path->len; i-- > 0;)
		g_array_append_val(encoder->stack, g_array_index(encoder->path, uint64_t, i));
	Pprof__Sample sample = {
		MESSAGE(pprof__sample),
		.n_location_id = encoder->stack->len,
		.location_id = (uint64_t *)(void *)encoder->stack->data,
		.n_value = G_N_ELEMENTS(values),
		.value = values,
		.n_label = G_N_ELEMENTS(labels) - (task->cgroup ? 0 : 1),
		.label = labels,
	};

	part_put(encoder, PART(sample, &sample));
}

static void nodes_put(struct encoder *encoder, const struct task_stacks *task, size_t first)
{
	const struct call_node *nodes = task->nodes;

	for (size_t i = first; i != 0; i = nodes[i].next_sibling) {
		uint64_t location = location_id(encoder, &nodes[i]);

		g_array_append_val(encoder->path, location);
		if (nodes[i].self_samples != 0)
			sample_put(encoder, task, &nodes[i]);
		nodes_put(encoder, task, nodes[i].first_child);
		g_array_set_size(encoder->path, encoder->path->len - 1);
	}
}

/* "cpu" of a clock; "branch_misses" of branch-misses. New string. */
static char *type_of(const struct export_profile *profile)
{
	char *type;

	if (recording_event_counts_time(recording_event(profile->input->recording, profile->event_number)))
		return g_strdup("cpu");
	type = g_ascii_strdown(profile->event, -1);
	return g_strcanon(type, "abcdefghijklmnopqrstuvwxyz_", '_');
}

/* The mean, if the recording has a frequency instead of a period. */
static uint64_t period_of(const struct export_profile *profile)
{
	const struct recording_event *event = recording_event(profile->input->recording, profile->event_number);

	if (!event->attr.freq)
		return event->attr.sample_period;
	return profile->samples != 0 ? profile->period / profile->samples : 0;
}

static Pprof__ValueType value_type_of(struct encoder *encoder, const char *type, const char *unit)
{
	return (Pprof__ValueType){
		MESSAGE(pprof__value_type),
		.type = string_index(encoder, type),
		.unit = string_index(encoder, unit),
	};
}

static void head_put(struct encoder *encoder, const struct export_profile *profile)
{
	string_index(encoder, ""); /* which is the first */
	Pprof__ValueType of_samples = value_type_of(encoder, "samples", "count");
	Pprof__ValueType of_event = value_type_of(encoder, encoder->type, profile->unit);
	Pprof__ValueType *types[] = {&of_samples, &of_event};

	part_put(encoder, &(Pprof__Profile){
				  MESSAGE(pprof__profile),
				  .n_sample_type = G_N_ELEMENTS(types),
				  .sample_type = types,
				  .time_nanos = (int64_t)profile->start_unix_ns,
				  .duration_nanos = (int64_t)(profile->last_ns - profile->first_ns),
				  .period_type = &of_event,
				  .period = (int64_t)period_of(profile),
				  .default_sample_type = of_event.type,
			  });
}

static void profile_put(struct encoder *encoder, const struct export_profile *profile)
{
	head_put(encoder, profile);
	for (size_t i = 0; i < profile->n_tasks; i++)
		nodes_put(encoder, &profile->tasks[i], profile->tasks[i].nodes[0].first_child);
}

static bool gzip_write(const GByteArray *bytes, FILE *to, GError **error)
{
	z_stream stream = {.next_in = bytes->data, .avail_in = bytes->len};
	uint8_t packed[8192];
	int status = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, MAX_WBITS + GZIP_WRAPPER, MEMORY_LEVEL,
	                          Z_DEFAULT_STRATEGY);

	if (status != Z_OK) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_NOMEM, "cannot compress a profile of %u bytes: %s",
		            bytes->len, zError(status));
		return false;
	}
	do {
		stream.next_out = packed;
		stream.avail_out = sizeof(packed);
		status = deflate(&stream, Z_FINISH);
		fwrite(packed, 1, sizeof(packed) - stream.avail_out, to);
	} while (status == Z_OK);
	deflateEnd(&stream);
	return true;
}

static GHashTable *table_new(void)
{
	return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

static bool pprof_write(const struct export_profile *profile, FILE *to, GError **error)
{
	struct encoder encoder = {
		.profile = profile,
		.type = type_of(profile),
		.out = g_byte_array_new(),
		.strings = table_new(),
		.lines = export_lines_new(profile->input),
		.mappings = table_new(),
		.functions = table_new(),
		.locations = table_new(),
		.path = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
		.stack = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
	};
	bool written;

	profile_put(&encoder, profile);
	written = gzip_write(encoder.out, to, error);
	g_free(encoder.type);
	g_byte_array_unref(encoder.out);
	g_hash_table_unref(encoder.strings);
	export_lines_free(encoder.lines);
	g_hash_table_unref(encoder.mappings);
	g_hash_table_unref(encoder.functions);
	g_hash_table_unref(encoder.locations);
	g_array_unref(encoder.path);
	g_array_unref(encoder.stack);
	return written;
}

const struct exporter export_pprof = {
	.name = "pprof",
	.binary = true,
	.by_address = true,
	.by_cgroup = true,
	.summary = "profile.proto: go tool pprof, Pyroscope, Parca, Grafana",
	.write = pprof_write,
};
