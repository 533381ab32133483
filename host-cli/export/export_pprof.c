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
#include <gio/gio.h>
#include <string.h>

#include "export/export.h"
#include "export/export_lines.h"
#include "export/protobuf.h"
#include "lib/record/hex.h"
#include "ui/text.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME_NANOS = 9,
	PROFILE_DURATION_NANOS = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_PERIOD = 12,
	PROFILE_DEFAULT_SAMPLE_TYPE = 14,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
	SAMPLE_LOCATION_ID = 1,
	SAMPLE_VALUE = 2,
	SAMPLE_LABEL = 3,
	LABEL_KEY = 1,
	LABEL_STR = 2,
	MAPPING_ID = 1,
	MAPPING_MEMORY_START = 2,
	MAPPING_MEMORY_LIMIT = 3,
	MAPPING_FILE_OFFSET = 4,
	MAPPING_FILENAME = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILENAMES = 8,
	MAPPING_HAS_LINE_NUMBERS = 9,
	LOCATION_ID = 1,
	LOCATION_MAPPING_ID = 2,
	LOCATION_ADDRESS = 3,
	LOCATION_LINE = 4,
	LINE_FUNCTION_ID = 1,
	LINE_LINE = 2,
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILENAME = 4,
};

struct encoder {
	const struct export_profile *profile;
	char *type; /* of the event's values, in [a-z_] */
	GByteArray *out;
	GHashTable *strings; /* text -> index; 0 is the empty one */
	struct export_lines *lines;
	GHashTable *mappings;  /* "module\nstart" -> id, from 1 */
	GHashTable *functions; /* "symbol\nfile" -> id, from 1 */
	GHashTable *locations; /* "mode address mapping symbol" -> id, from 1 */
	GArray *path;          /* of uint64_t location ids, callers first */
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

static uint64_t string_index(struct encoder *encoder, const char *text)
{
	g_autofree char *printable = text_printable(text);
	bool is_new;
	uint64_t number = intern(encoder->strings, printable, &is_new);

	if (is_new)
		protobuf_bytes(encoder->out, PROFILE_STRING_TABLE, printable, strlen(printable));
	return number - 1;
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
	GByteArray *mapping;

	if (!is_new)
		return id;
	mapping = g_byte_array_new();
	protobuf_number(mapping, MAPPING_ID, id);
	if (mapped) {
		protobuf_number(mapping, MAPPING_MEMORY_START, mapped->start);
		protobuf_number(mapping, MAPPING_MEMORY_LIMIT, mapped->end);
		protobuf_number(mapping, MAPPING_FILE_OFFSET, mapped->file_offset);
	}
	protobuf_number(mapping, MAPPING_FILENAME, string_index(encoder, node->module));
	if (build_id)
		protobuf_number(mapping, MAPPING_BUILD_ID, string_index(encoder, build_id));
	/* As far as they are known: readers do not look for more. */
	protobuf_number(mapping, MAPPING_HAS_FUNCTIONS, 1);
	protobuf_number(mapping, MAPPING_HAS_FILENAMES, 1);
	protobuf_number(mapping, MAPPING_HAS_LINE_NUMBERS, 1);
	protobuf_message(encoder->out, PROFILE_MAPPING, mapping);
	return id;
}

/* file: of the source, or of the program where that is not known. */
static uint64_t function_id(struct encoder *encoder, const char *symbol, const char *file)
{
	g_autofree char *key = g_strdup_printf("%s\n%s", symbol, file);
	bool is_new;
	uint64_t id = intern(encoder->functions, key, &is_new);
	GByteArray *function;

	if (!is_new)
		return id;
	function = g_byte_array_new();
	protobuf_number(function, FUNCTION_ID, id);
	protobuf_number(function, FUNCTION_NAME, string_index(encoder, symbol));
	protobuf_number(function, FUNCTION_SYSTEM_NAME, string_index(encoder, symbol));
	protobuf_number(function, FUNCTION_FILENAME, string_index(encoder, file));
	protobuf_message(encoder->out, PROFILE_FUNCTION, function);
	return id;
}

static uint64_t location_id(struct encoder *encoder, const struct call_node *node)
{
	const uint64_t mapping = mapping_id(encoder, node);
	g_autofree char *key = g_strdup_printf("%d %" G_GINT64_MODIFIER "x %" G_GINT64_MODIFIER "x %s", (int)node->mode,
	                                       node->ip, mapping, node->symbol);
	bool is_new;
	uint64_t id = intern(encoder->locations, key, &is_new);
	const char *file = node->module;
	GByteArray *location, *line;
	int number = 0;

	if (!is_new)
		return id;
	export_lines_find(encoder->lines, node->mode, node->ip, node->mapping, &file, &number);
	line = g_byte_array_new();
	protobuf_number(line, LINE_FUNCTION_ID, function_id(encoder, node->symbol, file));
	if (number > 0)
		protobuf_number(line, LINE_LINE, (uint64_t)number);
	location = g_byte_array_new();
	protobuf_number(location, LOCATION_ID, id);
	protobuf_number(location, LOCATION_MAPPING_ID, mapping);
	if (node->mode != PROFILE_HYPERVISOR) /* those are numbers of exits */
		protobuf_number(location, LOCATION_ADDRESS, node->ip);
	protobuf_message(location, LOCATION_LINE, line);
	protobuf_message(encoder->out, PROFILE_LOCATION, location);
	return id;
}

static void label_put(struct encoder *encoder, GByteArray *sample, const char *key, const char *text)
{
	GByteArray *label = g_byte_array_new();

	protobuf_number(label, LABEL_KEY, string_index(encoder, key));
	protobuf_number(label, LABEL_STR, string_index(encoder, text));
	protobuf_message(sample, SAMPLE_LABEL, label);
}

static void sample_put(struct encoder *encoder, const char *comm, const struct call_node *node)
{
	GByteArray *sample = g_byte_array_new();

	for (guint i = encoder->path->len; i-- > 0;) /* the leaf first */
		protobuf_number(sample, SAMPLE_LOCATION_ID, g_array_index(encoder->path, uint64_t, i));
	protobuf_number(sample, SAMPLE_VALUE, node->self_samples);
	protobuf_number(sample, SAMPLE_VALUE, node->self_period);
	label_put(encoder, sample, "comm", comm);
	label_put(encoder, sample, "event", encoder->profile->event);
	protobuf_message(encoder->out, PROFILE_SAMPLE, sample);
}

static void nodes_put(struct encoder *encoder, const char *comm, const struct call_node *nodes, size_t first)
{
	for (size_t i = first; i != 0; i = nodes[i].next_sibling) {
		uint64_t location = location_id(encoder, &nodes[i]);

		g_array_append_val(encoder->path, location);
		if (nodes[i].self_samples != 0)
			sample_put(encoder, comm, &nodes[i]);
		nodes_put(encoder, comm, nodes, nodes[i].first_child);
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

static void value_type_put(struct encoder *encoder, unsigned field, const char *type, const char *unit)
{
	GByteArray *value_type = g_byte_array_new();

	protobuf_number(value_type, VALUE_TYPE_TYPE, string_index(encoder, type));
	protobuf_number(value_type, VALUE_TYPE_UNIT, string_index(encoder, unit));
	protobuf_message(encoder->out, field, value_type);
}

static void profile_put(struct encoder *encoder, const struct export_profile *profile)
{
	string_index(encoder, "");
	value_type_put(encoder, PROFILE_SAMPLE_TYPE, "samples", "count");
	value_type_put(encoder, PROFILE_SAMPLE_TYPE, encoder->type, profile->unit);
	value_type_put(encoder, PROFILE_PERIOD_TYPE, encoder->type, profile->unit);
	protobuf_number(encoder->out, PROFILE_PERIOD, period_of(profile));
	if (profile->start_unix_ns != 0)
		protobuf_number(encoder->out, PROFILE_TIME_NANOS, profile->start_unix_ns);
	protobuf_number(encoder->out, PROFILE_DURATION_NANOS, profile->last_ns - profile->first_ns);
	protobuf_number(encoder->out, PROFILE_DEFAULT_SAMPLE_TYPE, string_index(encoder, encoder->type));
	for (size_t i = 0; i < profile->n_tasks; i++)
		nodes_put(encoder, profile->tasks[i].comm, profile->tasks[i].nodes,
		          profile->tasks[i].nodes[0].first_child);
}

static bool gzip_write(const GByteArray *bytes, FILE *to, GError **error)
{
	g_autoptr(GZlibCompressor) gzip = g_zlib_compressor_new(G_ZLIB_COMPRESSOR_FORMAT_GZIP, -1);
	GConverterResult result = G_CONVERTER_CONVERTED;
	size_t at = 0;

	while (result != G_CONVERTER_FINISHED) {
		uint8_t packed[65536];
		gsize n_read, n_written;

		result = g_converter_convert(G_CONVERTER(gzip), bytes->data + at, bytes->len - at, packed,
		                             sizeof(packed), G_CONVERTER_INPUT_AT_END, &n_read, &n_written, error);
		if (result == G_CONVERTER_ERROR)
			return false;
		at += n_read;
		fwrite(packed, 1, n_written, to);
	}
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
	return written;
}

const struct exporter export_pprof = {
	.name = "pprof",
	.binary = true,
	.by_address = true,
	.summary = "profile.proto: go tool pprof, Pyroscope, Parca, Grafana",
	.write = pprof_write,
};
