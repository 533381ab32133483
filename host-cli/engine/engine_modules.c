// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine_modules.h"

#include <vprof/control.h>

#include "engine/engine_process.h"
#include "lib/record/writer.h"
#include "ui/message.h"
#include "ui/text.h"

GArray *module_addresses(const struct histogram *histogram, GHashTable *asked)
{
	GArray *addresses = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	size_t n;
	g_autofree struct histogram_hit *hits = histogram_hits(histogram, &n);

	for (size_t i = 0; i < n; i++) {
		const struct mapping *mapping = hits[i].mapping;

		if (mapping && mapping_is_module(mapping) && !mapping->file->is_another &&
		    (!asked || g_hash_table_add(asked, g_memdup2(&hits[i].ip, sizeof(hits[i].ip)))))
			g_array_append_val(addresses, hits[i].ip);
	}
	return addresses;
}

static void answer_take(const json_t *answer, module_symbol_visitor *visit, void *data)
{
	const json_t *places = json_object_get(answer, "symbols"), *place;
	size_t i;

	json_array_foreach(places, i, place) {
		const char *address = member_text(place, "address"), *module = member_text(place, "module");
		const char *name = member_text(place, "symbol");

		if (!address || !module || !name)
			continue;
		g_autofree char *file = g_strdup_printf("[%s]", module);

		visit(g_ascii_strtoull(address, NULL, 16),
		      &(struct recording_symbol){
			      .address = member_number(place, "offset", 0),
			      .size = member_number(place, "bytes", 0),
			      .name = name,
			      .module = file,
		      },
		      data);
	}
}

bool module_symbols_ask(struct client *client, const GArray *addresses, module_symbol_visitor *visit, void *data,
                        GError **error)
{
	uint64_t left_out = 0;

	for (guint at = 0; at < addresses->len;) {
		json_t *batch = json_array(), *answer;

		while (json_array_size(batch) < VPROF_MODULE_SYMBOLS_MAX && at < addresses->len)
			json_array_append_new(batch, json_sprintf("0x%" G_GINT64_MODIFIER "x",
			                                          g_array_index(addresses, uint64_t, at++)));
		answer = engine_ask(client, "module-symbols", json_pack("{s:o}", "addresses", batch), error);
		if (!answer)
			return false;
		answer_take(answer, visit, data);
		left_out += member_number(answer, "left-out", 0);
		json_decref(answer);
	}
	if (left_out > 0)
		warn("the guest's modules have %" G_GUINT64_FORMAT " symbols more than fit into the memory that these "
		     "may take: they are left out, and addresses there have no names",
		     left_out);
	return true;
}
