// SPDX-License-Identifier: BSD-2-Clause
/* session-configure, query-configuration: what a session is started with where its start says nothing. */
#include "control/control_priv.h"

/* Of two that exclude each other, the one that was said last counts. */
static const struct {
	const char *name, *displaces;
} exclusive[] = {{"frequency-hz", "period"}, {"period", "frequency-hz"}};

json_t *control_configuration_merge(const struct control_server *server, const json_t *arguments)
{
	json_t *merged = json_copy(server->configuration);

	for (size_t i = 0; i < G_N_ELEMENTS(exclusive); i++) {
		if (json_object_get(arguments, exclusive[i].name))
			json_object_del(merged, exclusive[i].displaces);
	}
	json_object_update(merged, (json_t *)arguments);
	return merged;
}

static json_t *key_json(const struct control_server *server, const struct method_argument *key)
{
	json_t *set = json_object_get(server->configuration, key->name);
	json_t *preset = key->preset ? json_loads(key->preset, JSON_DECODE_ANY, NULL) : json_null();

	return json_pack("{s:O, s:o, s:b}", "value", set ? set : preset, "default", preset, "set", set != NULL);
}

json_t *method_query_configuration(struct control_call *call, GError **error G_GNUC_UNUSED)
{
	json_t *keys = json_object();

	for (const struct method_argument *key = control_session_keys; key->name; key++)
		json_object_set_new(keys, key->name, key_json(call->server, key));
	return keys;
}

json_t *method_session_configure(struct control_call *call, GError **error)
{
	struct control_server *server = call->server;
	json_auto_t *merged = control_configuration_merge(server, call->arguments);
	struct session_config config = {0};

	if (!control_session_config(merged, &config, error))
		return NULL;
	json_decref(server->configuration);
	server->configuration = g_steal_pointer(&merged);
	if (json_object_get(call->arguments, "watermark-bytes"))
		session_set_watermark(server->session, config.watermark_bytes);
	return method_query_configuration(call, error);
}
