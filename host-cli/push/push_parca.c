// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_parca.h"

#include <string.h>

#include "export/protobuf.h"

enum { WRITE_RAW_SERIES = 2, WRITE_RAW_NORMALIZED = 3 };
enum { SERIES_LABELS = 1, SERIES_SAMPLES = 2 };
enum { LABEL_SET_LABELS = 1 };
enum { LABEL_NAME = 1, LABEL_VALUE = 2 };
enum { SAMPLE_RAW_PROFILE = 1 };

#define FRAME_HEADER_BYTES 5u /* flags, and the length in network order */
#define FRAME_TRAILERS 0x80u

static void label_put(GByteArray *labels, const char *name, const char *value)
{
	GByteArray *label = g_byte_array_new();

	protobuf_string(label, LABEL_NAME, name);
	protobuf_string(label, LABEL_VALUE, value);
	protobuf_message(labels, LABEL_SET_LABELS, label);
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
	GByteArray *body = g_byte_array_new(), *request = g_byte_array_new();
	GByteArray *series = g_byte_array_new(), *sample = g_byte_array_new();
	uint8_t header[FRAME_HEADER_BYTES] = {0};
	guint32 bytes;
	gsize n;

	const void *pprof = g_bytes_get_data(profile->bytes, &n);

	protobuf_bytes(sample, SAMPLE_RAW_PROFILE, pprof, n);
	protobuf_message(series, SERIES_LABELS, labels_of(profile->name));
	protobuf_message(series, SERIES_SAMPLES, sample);
	protobuf_message(request, WRITE_RAW_SERIES, series);
	/* Functions are named, so the server has no addresses to resolve. */
	protobuf_number(request, WRITE_RAW_NORMALIZED, true);
	bytes = GUINT32_TO_BE(request->len);
	memcpy(header + 1, &bytes, sizeof(bytes));
	g_byte_array_append(body, header, sizeof(header));
	g_byte_array_append(body, request->data, request->len);
	g_byte_array_unref(request);
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
