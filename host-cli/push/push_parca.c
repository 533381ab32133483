// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_parca.h"

#include <export/proto/parca.pb-c.h>
#include <string.h>

#include "export/protobuf.h"
#include "lib/record/text.h"

#define FRAME_HEADER_BYTES 5u /* flags, and the length in network order */
#define FRAME_TRAILERS 0x80u

/* To a Parca__LabelSet, in parts. */
static void label_put(GByteArray *labels, const char *name, const char *value)
{
	g_autofree char *its_name = text_printable(name), *its_value = text_printable(value);
	Parca__Label label = {MESSAGE(parca__label), .name = its_name, .value = its_value};
	const Parca__LabelSet part = {MESSAGE(parca__label_set), .n_labels = 1, .labels = ONE(&label)};

	protobuf_append(labels, &part.base);
}

/*
 * Parca reads the name and the types of a profile as one PromQL metric name (parca-dev/parca,
 * pkg/profilestore/profilecolumnstore.go, writeSeries): "web-01" becomes "web_01".
 */
static char *metric_name(const char *application)
{
	char *name = g_strdup_printf("%s%s", g_ascii_isdigit(*application) ? "_" : "", application);

	return g_strcanon(name, G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_", '_');
}

/*
 * From "APP{LABEL=VALUE,...}". The application becomes the name that every series must have, and the label
 * service_name, as Pyroscope calls it. Parca refuses a series with two labels of one name
 * (pkg/normalizer/normalizer.go, NormalizeWriteRawRequest): the last counts, as in Pyroscope.
 */
static GByteArray *labels_of(const char *name)
{
	GByteArray *labels = g_byte_array_new();
	g_auto(GStrv) parts = g_strsplit_set(name, "{,}", -1);
	g_autoptr(GHashTable) values = g_hash_table_new(g_str_hash, g_str_equal);
	g_autofree char *metric = metric_name(parts[0] ? parts[0] : "");
	g_autoptr(GList) names = NULL;

	label_put(labels, "__name__", metric);
	if (parts[0])
		g_hash_table_insert(values, (char *)"service_name", parts[0]);
	for (char **part = parts[0] ? parts + 1 : parts; *part; part++) {
		char *value = strchr(*part, '=');

		if (!value)
			continue;
		*value++ = '\0';
		g_hash_table_replace(values, *part, value);
	}
	names = g_list_sort(g_hash_table_get_keys(values), (GCompareFunc)strcmp);
	for (const GList *at = names; at; at = at->next)
		label_put(labels, at->data, g_hash_table_lookup(values, at->data));
	return labels;
}

GByteArray *push_parca_request(const struct push_profile *profile)
{
	g_autoptr(GByteArray) labels = labels_of(profile->name);
	GByteArray *body = g_byte_array_new();
	gsize n;
	guint32 bytes;

	const void *pprof = g_bytes_get_data(profile->bytes, &n);
	Parca__RawSample sample = {MESSAGE(parca__raw_sample), .raw_profile = {.len = n, .data = (uint8_t *)pprof}};
	Parca__RawProfileSeries series = {
		MESSAGE(parca__raw_profile_series),
		.labels = {.len = labels->len, .data = labels->data},
		.n_samples = 1,
		.samples = ONE(&sample),
	};
	/* Functions are named, so the server has no addresses to resolve. */
	const Parca__WriteRawRequest request = {MESSAGE(parca__write_raw_request), .n_series = 1,
	                                        .series = ONE(&series), .normalized = true};

	g_byte_array_set_size(body, FRAME_HEADER_BYTES);
	protobuf_append(body, &request.base);
	bytes = GUINT32_TO_BE(body->len - FRAME_HEADER_BYTES);
	body->data[0] = 0;
	memcpy(body->data + 1, &bytes, sizeof(bytes));
	return body;
}

/* From "NAME: VALUE\r\n" lines; NULL if absent. New string. */
static char *trailer_value(const char *trailers, const char *name)
{
	g_auto(GStrv) lines = g_strsplit(trailers, "\r\n", -1);

	for (char **line = lines; *line; line++) {
		char *colon = strchr(*line, ':');

		if (!colon)
			continue;
		*colon = '\0';
		if (g_ascii_strcasecmp(g_strstrip(*line), name) == 0)
			return g_strdup(g_strstrip(colon + 1));
	}
	return NULL;
}

bool push_parca_answer(const char *body, size_t n, unsigned *status, char **message)
{
	*message = NULL;
	while (n >= FRAME_HEADER_BYTES) {
		const uint8_t flags = (uint8_t)body[0];
		guint32 length;

		memcpy(&length, body + 1, sizeof(length));
		length = GUINT32_FROM_BE(length);
		body += FRAME_HEADER_BYTES;
		n -= FRAME_HEADER_BYTES;
		const size_t there = MIN(n, length);

		if (flags & FRAME_TRAILERS) {
			g_autofree char *trailers = g_strndup(body, there);
			g_autofree char *text = trailer_value(trailers, "grpc-status");
			guint64 number;

			if (!text || !g_ascii_string_to_unsigned(text, 10, 0, UINT16_MAX, &number, NULL))
				return false;
			*status = (unsigned)number;
			*message = trailer_value(trailers, "grpc-message");
			return true;
		}
		body += there;
		n -= there;
	}
	return false;
}
