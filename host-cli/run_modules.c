// SPDX-License-Identifier: BSD-2-Clause
#include "run_modules.h"

#include <vprof/control.h>

#include "engine_find.h"
#include "lib/record/writer.h"
#include "message.h"
#include "text.h"

/* JSON: the addresses to ask about. */
static json_t *addresses_new(const struct histogram *histogram)
{
	size_t n;
	g_autofree struct histogram_hit *hits = histogram_hits(histogram, &n);
	json_t *addresses = json_array();

	for (size_t i = 0; i < n; i++)
		if (hits[i].mapping != NULL && mapping_is_module(hits[i].mapping) && !hits[i].mapping->file->is_another)
			json_array_append_new(addresses, json_sprintf("0x%" G_GINT64_MODIFIER "x", hits[i].ip));
	return addresses;
}

static void answer_take(const json_t *answer, GArray *symbols, GStringChunk *texts)
{
	const json_t *places = json_object_get(answer, "symbols"), *place;
	size_t i;

	json_array_foreach(places, i, place)
	{
		const char *module = member_text(place, "module"), *name = member_text(place, "symbol");

		if (module == NULL || name == NULL)
			continue;
		g_autofree char *file = g_strdup_printf("[%s]", module);
		const struct recording_symbol symbol = {
			.address = member_number(place, "offset", 0),
			.size = member_number(place, "bytes", 0),
			.name = g_string_chunk_insert_const(texts, name),
			.module = g_string_chunk_insert_const(texts, file),
		};

		g_array_append_val(symbols, symbol);
	}
}

GArray *module_symbols_ask(struct client *client, const struct histogram *histogram, GStringChunk *texts)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));
	json_t *addresses = addresses_new(histogram), *batch;
	g_autoptr(GError) error = NULL;

	for (size_t at = 0, n; at < json_array_size(addresses) && error == NULL; at += n) {
		batch = json_array();
		for (n = 0; n < VPROF_MODULE_SYMBOLS_MAX && at + n < json_array_size(addresses); n++)
			json_array_append(batch, json_array_get(addresses, at + n));
		json_t *answer = engine_ask(client, "module-symbols", json_pack("{s:o}", "addresses", batch), &error);

		answer_take(answer, symbols, texts);
		json_decref(answer);
	}
	json_decref(addresses);
	if (error != NULL)
		warn("no symbols of the guest's modules: %s", error->message);
	return symbols;
}
