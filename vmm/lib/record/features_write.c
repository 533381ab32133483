// SPDX-License-Identifier: BSD-2-Clause
/* Feature sections, encoded (Linux, tools/perf/util/header.c, the write_* functions say what each holds). */
#include <string.h>

#include "lib/record/recording_priv.h"

#define TEXT_ALIGN 64u /* perf pads its texts to this (NAME_ALIGN) */

static void put(GByteArray *to, const void *bytes, size_t n)
{
	g_byte_array_append(to, bytes, (guint)n);
}

static void put_u32(GByteArray *to, uint32_t value)
{
	put(to, &value, sizeof(value));
}

static void put_u64(GByteArray *to, uint64_t value)
{
	put(to, &value, sizeof(value));
}

/* NUL-terminated and padded with NULs to a multiple of TEXT_ALIGN. */
static size_t text_padded_bytes(const char *text)
{
	return (strlen(text) / TEXT_ALIGN + 1) * TEXT_ALIGN;
}

static void put_text_padded(GByteArray *to, const char *text)
{
	static const uint8_t padding[TEXT_ALIGN];
	const size_t n = strlen(text);

	put(to, text, n);
	put(to, padding, text_padded_bytes(text) - n);
}

static void put_string(GByteArray *to, const char *text)
{
	put_u32(to, (uint32_t)text_padded_bytes(text));
	put_text_padded(to, text);
}

struct encoding {
	const struct recording_features *features;
	const struct recording_event *events;
	size_t n_events;
	const struct recording_span *span;
};

static void build_id_encode(const struct encoding *in, GByteArray *to)
{
	const size_t n = in->features->kernel_build_id_bytes;
	struct build_id_wire entry = {
		.header = {.misc = PERF_RECORD_MISC_KERNEL | BUILD_ID_MISC_SIZE,
	                   .size = (uint16_t)(sizeof(entry) + text_padded_bytes(KERNEL_DSO_NAME))},
		.pid = -1,
		.build_id_bytes = (uint8_t)n,
	};

	if (!in->features->kernel_build_id || n < 1 || n > sizeof(entry.build_id))
		return;
	memcpy(entry.build_id, in->features->kernel_build_id, n);
	put(to, &entry, sizeof(entry));
	put_text_padded(to, KERNEL_DSO_NAME);
}

static void hostname_encode(const struct encoding *in, GByteArray *to)
{
	if (in->features->hostname)
		put_string(to, in->features->hostname);
}

static void release_encode(const struct encoding *in, GByteArray *to)
{
	if (in->features->release)
		put_string(to, in->features->release);
}

static void version_encode(const struct encoding *in, GByteArray *to)
{
	g_autofree char *text = g_strdup_printf("vprof %s", in->features->version ? in->features->version : "");

	put_string(to, text);
}

static void arch_encode(const struct encoding *in, GByteArray *to)
{
	const char *name = arch_uname(in->features->arch);

	if (name)
		put_string(to, name);
}

static void cpus_encode(const struct encoding *in, GByteArray *to)
{
	put_u32(to, in->features->vcpus); /* present */
	put_u32(to, in->features->vcpus); /* online */
}

static void memory_encode(const struct encoding *in, GByteArray *to)
{
	put_u64(to, in->features->memory_bytes / 1024); /* kB, as /proc/meminfo's MemTotal */
}

static void cmdline_encode(const struct encoding *in, GByteArray *to)
{
	const char *const *words = in->features->cmdline;

	if (!words)
		return;
	put_u32(to, g_strv_length((char **)words));
	for (; *words; words++)
		put_string(to, *words);
}

static void events_encode(const struct encoding *in, GByteArray *to)
{
	put_u32(to, (uint32_t)in->n_events);
	put_u32(to, VPROF_ATTR_BYTES);
	for (size_t i = 0; i < in->n_events; i++) {
		const struct recording_event *event = &in->events[i];

		put(to, &event->attr, VPROF_ATTR_BYTES);
		put_u32(to, (uint32_t)event->n_ids);
		put_string(to, event->name);
		put(to, event->ids, event->n_ids * sizeof(uint64_t));
	}
}

static void sample_time_encode(const struct encoding *in, GByteArray *to)
{
	put_u64(to, in->span->first_ns);
	put_u64(to, in->span->last_ns);
}

static void description_encode(const struct encoding *in, GByteArray *to)
{
	if (in->features->description)
		put(to, in->features->description, strlen(in->features->description));
}

/* Offset of `text` in the table of texts; each text stands there once. */
static uint32_t text_intern(GByteArray *texts, GHashTable *offsets, const char *text)
{
	gpointer known;

	if (!text || !*text)
		return 0;
	if (g_hash_table_lookup_extended(offsets, text, NULL, &known))
		return GPOINTER_TO_UINT(known);
	const uint32_t offset = texts->len;
	put(texts, text, strlen(text) + 1);
	g_hash_table_insert(offsets, (gpointer)text, GUINT_TO_POINTER(offset));
	return offset;
}

static void symbol_table_put(GByteArray *to, const struct recording_symbol *symbols, size_t n)
{
	g_autoptr(GByteArray) entries = g_byte_array_new();
	g_autoptr(GByteArray) texts = g_byte_array_new();
	g_autoptr(GHashTable) offsets = g_hash_table_new(g_str_hash, g_str_equal);

	put(texts, "", 1);
	for (size_t i = 0; i < n; i++) {
		const struct recording_symbol *symbol = &symbols[i];
		const struct symbol_wire entry = {
			.address = symbol->address,
			.size = symbol->size,
			.name = text_intern(texts, offsets, symbol->name),
			.module = text_intern(texts, offsets, symbol->module),
		};

		put(entries, &entry, sizeof(entry));
	}
	const struct symbols_wire header = {
		.version = VPROF_SYMBOLS_VERSION,
		.count = (uint32_t)n,
		.text_bytes = texts->len,
	};
	put(to, &header, sizeof(header));
	put(to, entries->data, entries->len);
	put(to, texts->data, texts->len);
}

static void symbols_encode(const struct encoding *in, GByteArray *to)
{
	symbol_table_put(to, in->features->symbols, in->features->n_symbols);
}

static void user_symbols_encode(const struct encoding *in, GByteArray *to)
{
	if (in->features->n_user_symbols != 0)
		symbol_table_put(to, in->features->user_symbols, in->features->n_user_symbols);
}

static void host_symbols_encode(const struct encoding *in, GByteArray *to)
{
	if (in->features->n_host_symbols != 0)
		symbol_table_put(to, in->features->host_symbols, in->features->n_host_symbols);
}

/* In the order of their numbers, as the table of sections is. One that encodes to nothing is left out. */
static const struct {
	unsigned feature;
	void (*encode)(const struct encoding *in, GByteArray *to);
} encoders[] = {
	{FEATURE_BUILD_ID, build_id_encode},
	{FEATURE_HOSTNAME, hostname_encode},
	{FEATURE_RELEASE, release_encode},
	{FEATURE_VERSION, version_encode},
	{FEATURE_ARCH, arch_encode},
	{FEATURE_CPUS, cpus_encode},
	{FEATURE_MEMORY, memory_encode},
	{FEATURE_CMDLINE, cmdline_encode},
	{FEATURE_EVENTS, events_encode},
	{FEATURE_SAMPLE_TIME, sample_time_encode},
	{VPROF_FEATURE_DESCRIPTION, description_encode},
	{VPROF_FEATURE_SYMBOLS, symbols_encode},
	{VPROF_FEATURE_USER_SYMBOLS, user_symbols_encode},
	{VPROF_FEATURE_HOST_SYMBOLS, host_symbols_encode},
};

GByteArray *features_encode(const struct recording_features *features, const struct recording_event *events,
                            size_t n_events, const struct recording_span *span, uint64_t offset, uint64_t bits[4])
{
	const struct encoding in = {features, events, n_events, span};
	struct file_section sections[G_N_ELEMENTS(encoders)];
	size_t n = 0;
	g_autoptr(GByteArray) body = g_byte_array_new();
	GByteArray *out = g_byte_array_new();

	memset(bits, 0, FEATURE_BITS / 8);
	for (size_t i = 0; i < G_N_ELEMENTS(encoders); i++) {
		const uint64_t start = body->len;

		encoders[i].encode(&in, body);
		if (body->len == start)
			continue;
		sections[n++] = (struct file_section){start, body->len - start};
		bits[encoders[i].feature / 64] |= UINT64_C(1) << encoders[i].feature % 64;
	}
	const size_t table_bytes = n * sizeof(sections[0]);
	for (size_t i = 0; i < n; i++)
		sections[i].offset += offset + table_bytes;
	put(out, sections, table_bytes);
	put(out, body->data, body->len);
	return out;
}
