// SPDX-License-Identifier: BSD-2-Clause
/*
 * The profiles signal of OpenTelemetry: a ProfilesData of opentelemetry/proto/profiles/v1development/profiles.proto as
 * it is in opentelemetry-proto 1.10 to 1.11. A profile has one value for each sample, so there are two: samples, and
 * what the event counts. All that they have in common stands in the tables of a dictionary.
 */
#include <export/proto/otlp.pb-c.h>

#include "export/export.h"
#include "export/protobuf.h"
#include "ui/text.h"

enum dictionary_table {
	TABLE_MAPPING,
	TABLE_LOCATION,
	TABLE_FUNCTION,
	TABLE_LINK,
	TABLE_STRING,
	TABLE_ATTRIBUTE,
	TABLE_STACK,
	N_TABLES,
};

/* A dictionary of one element. */
#define PART(table, element) \
	(&(const Otlp__ProfilesDictionary){MESSAGE(otlp__profiles_dictionary), .n_##table = 1, .table = ONE(element)})

enum { OF_SAMPLES, OF_EVENT, N_PROFILES };

struct encoder {
	const struct export_profile *profile;
	GByteArray *dictionary;          /* an Otlp__ProfilesDictionary, in parts */
	GHashTable *numbers[N_TABLES];   /* the part of an element (GBytes) -> index + 1 */
	GByteArray *samples[N_PROFILES]; /* of each an Otlp__Profile, in parts */
	GArray *path;                    /* of int32_t locations, callers first */
	GArray *stack;                   /* the same, the leaf first */
};

/* The index of the one element in `part`, which is another one when its bytes are others. */
static int32_t element_index(struct encoder *encoder, enum dictionary_table table, const Otlp__ProfilesDictionary *part)
{
	GHashTable *numbers = encoder->numbers[table];
	GByteArray *encoding = g_byte_array_new();
	g_autoptr(GBytes) bytes = NULL;
	gsize number, n;

	protobuf_append(encoding, &part->base);
	bytes = g_byte_array_free_to_bytes(encoding);
	number = GPOINTER_TO_SIZE(g_hash_table_lookup(numbers, bytes));
	if (number == 0) {
		const uint8_t *data = g_bytes_get_data(bytes, &n);

		number = g_hash_table_size(numbers) + 1;
		g_byte_array_append(encoder->dictionary, data, (guint)n);
		g_hash_table_insert(numbers, g_bytes_ref(bytes), GSIZE_TO_POINTER(number));
	}
	return (int32_t)number - 1;
}

static int32_t string_index(struct encoder *encoder, const char *text)
{
	g_autofree char *printable = text_printable(text);

	return element_index(encoder, TABLE_STRING, PART(string_table, printable));
}

/* Borrows the text. */
static Otlp__AnyValue any_string(char *printable)
{
	return (Otlp__AnyValue){
		MESSAGE(otlp__any_value),
		.value_case = OTLP__ANY_VALUE__VALUE_STRING_VALUE,
		.string_value = printable,
	};
}

/* Keys are those of the semantic conventions (opentelemetry.io/docs/specs/semconv). */
static int32_t attribute_index(struct encoder *encoder, const char *key, const char *text)
{
	g_autofree char *printable = text_printable(text);
	Otlp__AnyValue value = any_string(printable);
	Otlp__KeyValueAndUnit attribute = {
		MESSAGE(otlp__key_value_and_unit),
		.key_strindex = string_index(encoder, key),
		.value = &value,
	};

	return element_index(encoder, TABLE_ATTRIBUTE, PART(attribute_table, &attribute));
}

static int32_t function_index(struct encoder *encoder, const char *symbol)
{
	const int32_t name = string_index(encoder, symbol);
	Otlp__Function function = {MESSAGE(otlp__function), .name_strindex = name, .system_name_strindex = name};

	return element_index(encoder, TABLE_FUNCTION, PART(function_table, &function));
}

static int32_t mapping_index(struct encoder *encoder, const char *module)
{
	const char *build_id = export_build_id(encoder->profile, module);
	int32_t attribute = build_id ? attribute_index(encoder, "process.executable.build_id.gnu", build_id) : 0;
	Otlp__Mapping mapping = {
		MESSAGE(otlp__mapping),
		.filename_strindex = string_index(encoder, module),
		.n_attribute_indices = build_id ? 1 : 0,
		.attribute_indices = &attribute,
	};

	return element_index(encoder, TABLE_MAPPING, PART(mapping_table, &mapping));
}

static int32_t location_index(struct encoder *encoder, const struct call_node *node)
{
	int32_t attribute =
		attribute_index(encoder, "profile.frame.type", node->mode == PROFILE_KERNEL ? "kernel" : "native");
	Otlp__Line line = {MESSAGE(otlp__line), .function_index = function_index(encoder, node->symbol)};
	Otlp__Location location = {
		MESSAGE(otlp__location),
		.mapping_index = mapping_index(encoder, node->module),
		.n_lines = 1,
		.lines = ONE(&line),
		.n_attribute_indices = 1,
		.attribute_indices = &attribute,
	};

	return element_index(encoder, TABLE_LOCATION, PART(location_table, &location));
}

/* Of the path. */
static int32_t stack_index(struct encoder *encoder)
{
	g_array_set_size(encoder->stack, 0);
	for (guint i = encoder->path->len; i-- > 0;)
		g_array_append_val(encoder->stack, g_array_index(encoder->path, int32_t, i));
	Otlp__Stack stack = {
		MESSAGE(otlp__stack),
		.n_location_indices = encoder->stack->len,
		.location_indices = (int32_t *)(void *)encoder->stack->data,
	};

	return element_index(encoder, TABLE_STACK, PART(stack_table, &stack));
}

static void sample_put(struct encoder *encoder, const struct task_stacks *task, const struct call_node *node)
{
	int64_t values[N_PROFILES] = {
		[OF_SAMPLES] = (int64_t)node->self_samples,
		[OF_EVENT] = (int64_t)node->self_period,
	};
	const int32_t stack = stack_index(encoder);
	int32_t attributes[2] = {attribute_index(encoder, "thread.name", task->comm)};

	if (task->cgroup)
		attributes[1] = attribute_index(encoder, "process.linux.cgroup", task->cgroup);

	for (int i = 0; i < N_PROFILES; i++) {
		Otlp__Sample sample = {
			MESSAGE(otlp__sample),
			.stack_index = stack,
			.n_attribute_indices = task->cgroup ? 2 : 1,
			.attribute_indices = attributes,
			.n_values = 1,
			.values = &values[i],
		};
		const Otlp__Profile part = {
			MESSAGE(otlp__profile),
			.n_samples = 1,
			.samples = ONE(&sample),
		};

		protobuf_append(encoder->samples[i], &part.base);
	}
}

static void nodes_put(struct encoder *encoder, const struct task_stacks *task, size_t first)
{
	const struct call_node *nodes = task->nodes;

	for (size_t i = first; i != 0; i = nodes[i].next_sibling) {
		int32_t location = location_index(encoder, &nodes[i]);

		g_array_append_val(encoder->path, location);
		if (nodes[i].self_samples != 0)
			sample_put(encoder, task, &nodes[i]);
		nodes_put(encoder, task, nodes[i].first_child);
		g_array_set_size(encoder->path, encoder->path->len - 1);
	}
}

/* After its samples. */
static void profile_end(struct encoder *encoder, int which)
{
	const struct export_profile *profile = encoder->profile;
	const struct recording_event *event = recording_event(profile->input->recording, profile->event_number);
	Otlp__ValueType of_samples = {
		MESSAGE(otlp__value_type),
		.type_strindex = string_index(encoder, "samples"),
		.unit_strindex = string_index(encoder, "count"),
	};
	Otlp__ValueType of_event = {
		MESSAGE(otlp__value_type),
		.type_strindex = string_index(encoder, profile->event),
		.unit_strindex = string_index(encoder, profile->unit),
	};
	const Otlp__Profile part = {
		MESSAGE(otlp__profile),
		.sample_type = which == OF_SAMPLES ? &of_samples : &of_event,
		.time_unix_nano = profile->start_unix_ns,
		.duration_nano = profile->last_ns - profile->first_ns,
		.period_type = &of_event,
		.period = event->attr.freq ? 0 : (int64_t)event->attr.sample_period,
	};

	protobuf_append(encoder->samples[which], &part.base);
}

/* OpenTelemetry, semantic conventions, "Host": the values of host.arch. */
static const char *host_arch(enum arch arch)
{
	static const char *const values[] = {[ARCH_X86_64] = "amd64", [ARCH_ARM64] = "arm64"};

	return values[arch];
}

/* The next two of `texts`: the key and the value. None without a value. */
static void resource_attribute_add(GPtrArray *texts, const char *key, const char *text)
{
	if (!text)
		return;
	g_ptr_array_add(texts, text_printable(key));
	g_ptr_array_add(texts, text_printable(text));
}

/* The guest is the machine. Keys and values in turn, new strings. */
static GPtrArray *resource_attributes(const struct export_profile *profile)
{
	const struct input *input = profile->input;
	GPtrArray *texts = g_ptr_array_new_with_free_func(g_free);

	resource_attribute_add(texts, "host.name", member_text(json_object_get(input->description, "guest"), "name"));
	resource_attribute_add(texts, "host.arch", host_arch(recording_arch(input->recording)));
	resource_attribute_add(texts, "os.version", recording_release(input->recording));
	resource_attribute_add(texts, "os.build_id", recording_kernel_build_id(input->recording));
	for (guint i = 0; profile->labels && i < profile->labels->len; i += 2)
		resource_attribute_add(texts, profile->labels->pdata[i], profile->labels->pdata[i + 1]);
	return texts;
}

static ProtobufCBinaryData binary(const GByteArray *bytes)
{
	return (ProtobufCBinaryData){.len = bytes->len, .data = bytes->data};
}

static void data_put(const struct encoder *encoder, GByteArray *to)
{
	g_autoptr(GPtrArray) texts = resource_attributes(encoder->profile);
	const guint n = texts->len / 2;
	g_autofree Otlp__AnyValue *values = g_new(Otlp__AnyValue, n);
	g_autofree Otlp__KeyValue *attributes = g_new(Otlp__KeyValue, n);
	g_autofree Otlp__KeyValue **pointers = g_new(Otlp__KeyValue *, n);

	for (guint i = 0; i < n; i++) {
		values[i] = any_string(texts->pdata[2 * i + 1]);
		attributes[i] =
			(Otlp__KeyValue){MESSAGE(otlp__key_value), .key = texts->pdata[2 * i], .value = &values[i]};
		pointers[i] = &attributes[i];
	}
	Otlp__Resource resource = {MESSAGE(otlp__resource), .n_attributes = n, .attributes = pointers};
	Otlp__InstrumentationScope scope = {MESSAGE(otlp__instrumentation_scope), .name = (char *)"vprof",
	                                    .version = (char *)VPROF_VERSION};
	/* What programs show first is what comes first. */
	ProtobufCBinaryData profiles[] = {binary(encoder->samples[OF_EVENT]), binary(encoder->samples[OF_SAMPLES])};
	Otlp__ScopeProfiles of_scope = {MESSAGE(otlp__scope_profiles), .scope = &scope, .n_profiles = N_PROFILES,
	                                .profiles = profiles};
	Otlp__ResourceProfiles of_resource = {
		MESSAGE(otlp__resource_profiles),
		.resource = &resource,
		.n_scope_profiles = 1,
		.scope_profiles = ONE(&of_scope),
	};
	const Otlp__ProfilesData data = {
		MESSAGE(otlp__profiles_data),
		.n_resource_profiles = 1,
		.resource_profiles = ONE(&of_resource),
		.dictionary = binary(encoder->dictionary),
	};

	protobuf_append(to, &data.base);
}

/* Element 0 of each table stands for "none". */
static void nulls_put(struct encoder *encoder)
{
	static uint8_t zeros[16];
	Otlp__Mapping mapping = {MESSAGE(otlp__mapping)};
	Otlp__Location location = {MESSAGE(otlp__location)};
	Otlp__Function function = {MESSAGE(otlp__function)};
	Otlp__Link link = {MESSAGE(otlp__link), .trace_id = {.len = 16, .data = zeros},
	                   .span_id = {.len = 8, .data = zeros}};
	Otlp__KeyValueAndUnit attribute = {MESSAGE(otlp__key_value_and_unit)};
	Otlp__Stack stack = {MESSAGE(otlp__stack)};
	char *text = (char *)"";

	element_index(encoder, TABLE_MAPPING, PART(mapping_table, &mapping));
	element_index(encoder, TABLE_LOCATION, PART(location_table, &location));
	element_index(encoder, TABLE_FUNCTION, PART(function_table, &function));
	element_index(encoder, TABLE_LINK, PART(link_table, &link));
	element_index(encoder, TABLE_STRING, PART(string_table, text));
	element_index(encoder, TABLE_ATTRIBUTE, PART(attribute_table, &attribute));
	element_index(encoder, TABLE_STACK, PART(stack_table, &stack));
}

static void encoder_init(struct encoder *encoder, const struct export_profile *profile)
{
	*encoder = (struct encoder){
		.profile = profile,
		.dictionary = g_byte_array_new(),
		.path = g_array_new(FALSE, FALSE, sizeof(int32_t)),
		.stack = g_array_new(FALSE, FALSE, sizeof(int32_t)),
	};
	for (int table = 0; table < N_TABLES; table++)
		encoder->numbers[table] =
			g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL);
	for (int i = 0; i < N_PROFILES; i++)
		encoder->samples[i] = g_byte_array_new();
}

static void encoder_deinit(struct encoder *encoder)
{
	for (int table = 0; table < N_TABLES; table++)
		g_hash_table_unref(encoder->numbers[table]);
	for (int i = 0; i < N_PROFILES; i++)
		g_byte_array_unref(encoder->samples[i]);
	g_byte_array_unref(encoder->dictionary);
	g_array_unref(encoder->path);
	g_array_unref(encoder->stack);
}

static bool otlp_write(const struct export_profile *profile, FILE *to, GError **error)
{
	g_autoptr(GByteArray) data = g_byte_array_new();
	struct encoder encoder;

	(void)error;
	encoder_init(&encoder, profile);
	nulls_put(&encoder);
	for (size_t i = 0; i < profile->n_tasks; i++)
		nodes_put(&encoder, &profile->tasks[i], profile->tasks[i].nodes[0].first_child);
	for (int i = 0; i < N_PROFILES; i++)
		profile_end(&encoder, i);
	data_put(&encoder, data);
	encoder_deinit(&encoder);
	fwrite(data->data, 1, data->len, to);
	return true;
}

const struct exporter export_otlp = {
	.name = "otlp",
	.binary = true,
	.by_cgroup = true,
	.summary = "OpenTelemetry's profiles signal: collectors, and what stands behind them",
	.write = otlp_write,
};
