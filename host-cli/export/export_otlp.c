// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profiles signal of OpenTelemetry: a ProfilesData of opentelemetry/proto/profiles/v1development/profiles.proto as
 * it is in opentelemetry-proto 1.9 to 1.11. A profile has one value for each sample, so there are two: samples, and
 * what the event counts. All that they have in common stands in the tables of a dictionary.
 */
#include <string.h>

#include "export/export.h"
#include "export/protobuf.h"
#include "ui/text.h"

enum {
	/* profiles.proto */
	DATA_RESOURCE_PROFILES = 1,
	DATA_DICTIONARY = 2,
	DICTIONARY_MAPPING = 1,
	DICTIONARY_LOCATION = 2,
	DICTIONARY_FUNCTION = 3,
	DICTIONARY_LINK = 4,
	DICTIONARY_STRING = 5,
	DICTIONARY_ATTRIBUTE = 6,
	DICTIONARY_STACK = 7,
	DICTIONARY_FIELDS,
	RESOURCE_PROFILES_RESOURCE = 1,
	RESOURCE_PROFILES_SCOPE_PROFILES = 2,
	SCOPE_PROFILES_SCOPE = 1,
	SCOPE_PROFILES_PROFILE = 2,
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_TIME_UNIX_NANO = 3,
	PROFILE_DURATION_NANO = 4,
	PROFILE_PERIOD_TYPE = 5,
	PROFILE_PERIOD = 6,
	VALUE_TYPE_TYPE = 1,
	VALUE_TYPE_UNIT = 2,
	SAMPLE_STACK = 1,
	SAMPLE_ATTRIBUTE = 2,
	SAMPLE_VALUE = 4,
	MAPPING_FILENAME = 4,
	MAPPING_ATTRIBUTE = 5,
	STACK_LOCATION = 1,
	LOCATION_MAPPING = 1,
	LOCATION_LINE = 3,
	LOCATION_ATTRIBUTE = 4,
	LINE_FUNCTION = 1,
	FUNCTION_NAME = 1,
	FUNCTION_SYSTEM_NAME = 2,
	ATTRIBUTE_KEY = 1,
	ATTRIBUTE_VALUE = 2,
	LINK_TRACE_ID = 1,
	LINK_SPAN_ID = 2,
	/* resource.proto and common.proto */
	RESOURCE_ATTRIBUTE = 1,
	KEY_VALUE_KEY = 1,
	KEY_VALUE_VALUE = 2,
	ANY_VALUE_STRING = 1,
	SCOPE_NAME = 1,
	SCOPE_VERSION = 2,
};

enum { OF_SAMPLES, OF_EVENT, N_PROFILES };

struct encoder {
	const struct export_profile *profile;
	GByteArray *dictionary;
	GHashTable *numbers[DICTIONARY_FIELDS]; /* of each table: an element's bytes (GBytes) -> index + 1 */
	GByteArray *samples[N_PROFILES];        /* fields of a Profile */
	GArray *path;                           /* of uint64_t locations, callers first */
};

/* The index of an element, which is another one when its bytes are others. Frees it. */
static uint64_t element_index(struct encoder *encoder, unsigned table, GByteArray *element)
{
	GHashTable *numbers = encoder->numbers[table];
	GBytes *bytes = g_byte_array_free_to_bytes(element);
	gsize number = GPOINTER_TO_SIZE(g_hash_table_lookup(numbers, bytes));

	if (number == 0) {
		number = g_hash_table_size(numbers) + 1;
		protobuf_bytes(encoder->dictionary, table, g_bytes_get_data(bytes, NULL), g_bytes_get_size(bytes));
		g_hash_table_insert(numbers, g_bytes_ref(bytes), GSIZE_TO_POINTER(number));
	}
	g_bytes_unref(bytes);
	return number - 1;
}

static uint64_t string_index(struct encoder *encoder, const char *text)
{
	g_autofree char *printable = text_printable(text);
	GByteArray *element = g_byte_array_new();

	g_byte_array_append(element, (const uint8_t *)printable, (guint)strlen(printable));
	return element_index(encoder, DICTIONARY_STRING, element);
}

static GByteArray *any_string(const char *text)
{
	GByteArray *value = g_byte_array_new();

	protobuf_string(value, ANY_VALUE_STRING, text);
	return value;
}

/* Keys are those of the semantic conventions (opentelemetry.io/docs/specs/semconv). */
static uint64_t attribute_index(struct encoder *encoder, const char *key, const char *text)
{
	GByteArray *attribute = g_byte_array_new();

	protobuf_number(attribute, ATTRIBUTE_KEY, string_index(encoder, key));
	protobuf_message(attribute, ATTRIBUTE_VALUE, any_string(text));
	return element_index(encoder, DICTIONARY_ATTRIBUTE, attribute);
}

static uint64_t function_index(struct encoder *encoder, const char *symbol)
{
	const uint64_t name = string_index(encoder, symbol);
	GByteArray *function = g_byte_array_new();

	protobuf_number(function, FUNCTION_NAME, name);
	protobuf_number(function, FUNCTION_SYSTEM_NAME, name);
	return element_index(encoder, DICTIONARY_FUNCTION, function);
}

static uint64_t mapping_index(struct encoder *encoder, const char *module)
{
	const char *build_id = export_build_id(encoder->profile, module);
	GByteArray *mapping = g_byte_array_new();

	protobuf_number(mapping, MAPPING_FILENAME, string_index(encoder, module));
	if (build_id)
		protobuf_number(mapping, MAPPING_ATTRIBUTE,
		                attribute_index(encoder, "process.executable.build_id.gnu", build_id));
	return element_index(encoder, DICTIONARY_MAPPING, mapping);
}

static uint64_t location_index(struct encoder *encoder, const struct call_node *node)
{
	GByteArray *location = g_byte_array_new(), *line = g_byte_array_new();

	protobuf_number(line, LINE_FUNCTION, function_index(encoder, node->symbol));
	protobuf_number(location, LOCATION_MAPPING, mapping_index(encoder, node->module));
	protobuf_message(location, LOCATION_LINE, line);
	protobuf_number(
		location, LOCATION_ATTRIBUTE,
		attribute_index(encoder, "profile.frame.type", node->mode == PROFILE_KERNEL ? "kernel" : "native"));
	return element_index(encoder, DICTIONARY_LOCATION, location);
}

/* Of the path, the leaf first. */
static uint64_t stack_index(struct encoder *encoder)
{
	GByteArray *stack = g_byte_array_new(), *locations = g_byte_array_new();

	for (guint i = encoder->path->len; i-- > 0;)
		protobuf_varint(locations, g_array_index(encoder->path, uint64_t, i));
	protobuf_message(stack, STACK_LOCATION, locations);
	return element_index(encoder, DICTIONARY_STACK, stack);
}

static void sample_put(struct encoder *encoder, uint64_t comm, const struct call_node *node)
{
	const uint64_t values[N_PROFILES] = {[OF_SAMPLES] = node->self_samples, [OF_EVENT] = node->self_period};
	const uint64_t stack = stack_index(encoder);

	for (int i = 0; i < N_PROFILES; i++) {
		GByteArray *sample = g_byte_array_new();

		protobuf_number(sample, SAMPLE_STACK, stack);
		protobuf_number(sample, SAMPLE_ATTRIBUTE, comm);
		protobuf_number(sample, SAMPLE_VALUE, values[i]);
		protobuf_message(encoder->samples[i], PROFILE_SAMPLE, sample);
	}
}

static void nodes_put(struct encoder *encoder, uint64_t comm, const struct call_node *nodes, size_t first)
{
	for (size_t i = first; i != 0; i = nodes[i].next_sibling) {
		uint64_t location = location_index(encoder, &nodes[i]);

		g_array_append_val(encoder->path, location);
		if (nodes[i].self_samples != 0)
			sample_put(encoder, comm, &nodes[i]);
		nodes_put(encoder, comm, nodes, nodes[i].first_child);
		g_array_set_size(encoder->path, encoder->path->len - 1);
	}
}

static void value_type_put(struct encoder *encoder, GByteArray *to, unsigned field, const char *type, const char *unit)
{
	GByteArray *value_type = g_byte_array_new();

	protobuf_number(value_type, VALUE_TYPE_TYPE, string_index(encoder, type));
	protobuf_number(value_type, VALUE_TYPE_UNIT, string_index(encoder, unit));
	protobuf_message(to, field, value_type);
}

/* With the samples, which it takes. */
static GByteArray *profile_message(struct encoder *encoder, int which)
{
	const struct export_profile *profile = encoder->profile;
	const struct recording_event *event = recording_event(profile->input->recording, profile->event_number);
	GByteArray *message = g_steal_pointer(&encoder->samples[which]);

	if (which == OF_SAMPLES)
		value_type_put(encoder, message, PROFILE_SAMPLE_TYPE, "samples", "count");
	else
		value_type_put(encoder, message, PROFILE_SAMPLE_TYPE, profile->event, profile->unit);
	if (profile->start_unix_ns != 0)
		protobuf_fixed64(message, PROFILE_TIME_UNIX_NANO, profile->start_unix_ns);
	protobuf_number(message, PROFILE_DURATION_NANO, profile->last_ns - profile->first_ns);
	value_type_put(encoder, message, PROFILE_PERIOD_TYPE, profile->event, profile->unit);
	if (!event->attr.freq)
		protobuf_number(message, PROFILE_PERIOD, event->attr.sample_period);
	return message;
}

static void resource_attribute_put(GByteArray *resource, const char *key, const char *text)
{
	GByteArray *attribute;

	if (!text)
		return;
	attribute = g_byte_array_new();
	protobuf_string(attribute, KEY_VALUE_KEY, key);
	protobuf_message(attribute, KEY_VALUE_VALUE, any_string(text));
	protobuf_message(resource, RESOURCE_ATTRIBUTE, attribute);
}

/* OpenTelemetry, semantic conventions, "Host": the values of host.arch. */
static const char *host_arch(enum arch arch)
{
	static const char *const values[] = {[ARCH_X86_64] = "amd64", [ARCH_ARM64] = "arm64"};

	return values[arch];
}

/* The guest is the machine. */
static GByteArray *resource_message(const struct export_profile *profile)
{
	const struct input *input = profile->input;
	GByteArray *resource = g_byte_array_new();

	resource_attribute_put(resource, "host.name",
	                       member_text(json_object_get(input->description, "guest"), "name"));
	resource_attribute_put(resource, "host.arch", host_arch(recording_arch(input->recording)));
	resource_attribute_put(resource, "os.version", recording_release(input->recording));
	resource_attribute_put(resource, "os.build_id", recording_kernel_build_id(input->recording));
	for (guint i = 0; profile->labels && i < profile->labels->len; i += 2)
		resource_attribute_put(resource, profile->labels->pdata[i], profile->labels->pdata[i + 1]);
	return resource;
}

static GByteArray *scope_message(void)
{
	GByteArray *scope = g_byte_array_new();

	protobuf_string(scope, SCOPE_NAME, "vprof");
	protobuf_string(scope, SCOPE_VERSION, VPROF_VERSION);
	return scope;
}

static GByteArray *resource_profiles_message(struct encoder *encoder)
{
	GByteArray *message = g_byte_array_new(), *scope = g_byte_array_new();

	protobuf_message(message, RESOURCE_PROFILES_RESOURCE, resource_message(encoder->profile));
	protobuf_message(scope, SCOPE_PROFILES_SCOPE, scope_message());
	/* What programs show first is what comes first. */
	protobuf_message(scope, SCOPE_PROFILES_PROFILE, profile_message(encoder, OF_EVENT));
	protobuf_message(scope, SCOPE_PROFILES_PROFILE, profile_message(encoder, OF_SAMPLES));
	protobuf_message(message, RESOURCE_PROFILES_SCOPE_PROFILES, scope);
	return message;
}

/* Element 0 of each table stands for "none". */
static void nulls_put(struct encoder *encoder)
{
	static const uint8_t zeros[16];
	GByteArray *link = g_byte_array_new();

	for (unsigned table = DICTIONARY_MAPPING; table < DICTIONARY_FIELDS; table++)
		if (table != DICTIONARY_LINK)
			element_index(encoder, table, g_byte_array_new());
	protobuf_bytes(link, LINK_TRACE_ID, zeros, 16);
	protobuf_bytes(link, LINK_SPAN_ID, zeros, 8);
	element_index(encoder, DICTIONARY_LINK, link);
}

static void encoder_init(struct encoder *encoder, const struct export_profile *profile)
{
	*encoder = (struct encoder){
		.profile = profile,
		.dictionary = g_byte_array_new(),
		.path = g_array_new(FALSE, FALSE, sizeof(uint64_t)),
	};
	for (unsigned table = DICTIONARY_MAPPING; table < DICTIONARY_FIELDS; table++)
		encoder->numbers[table] =
			g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
	for (int i = 0; i < N_PROFILES; i++)
		encoder->samples[i] = g_byte_array_new();
}

/* The dictionary and the samples have become part of the message. */
static void encoder_deinit(struct encoder *encoder)
{
	for (unsigned table = DICTIONARY_MAPPING; table < DICTIONARY_FIELDS; table++)
		g_hash_table_unref(encoder->numbers[table]);
	g_array_unref(encoder->path);
}

static bool otlp_write(const struct export_profile *profile, FILE *to, GError **error)
{
	g_autoptr(GByteArray) data = g_byte_array_new();
	struct encoder encoder;

	(void)error;
	encoder_init(&encoder, profile);
	nulls_put(&encoder);
	for (size_t i = 0; i < profile->n_tasks; i++)
		nodes_put(&encoder, attribute_index(&encoder, "thread.name", profile->tasks[i].comm),
		          profile->tasks[i].nodes, profile->tasks[i].nodes[0].first_child);
	protobuf_message(data, DATA_RESOURCE_PROFILES, resource_profiles_message(&encoder));
	protobuf_message(data, DATA_DICTIONARY, encoder.dictionary);
	encoder_deinit(&encoder);
	fwrite(data->data, 1, data->len, to);
	return true;
}

const struct exporter export_otlp = {
	.name = "otlp",
	.binary = true,
	.summary = "OpenTelemetry's profiles signal: collectors, and what stands behind them",
	.write = otlp_write,
};
