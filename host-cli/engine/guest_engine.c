// SPDX-License-Identifier: BSD-2-Clause
#include "engine/guest_engine.h"

#include "engine/engine_find.h"
#include "engine/engine_process.h"
#include "ui/message.h"
#include "ui/text.h"

static bool engine_attach(struct guest_engine *engine, const struct attach_engine_options *options, const char *name,
                          int *status, GError **error)
{
	if (!attach_engine_check(options, name, error))
		return false;
	engine->own = attach_engine_start(options, name, 0, status, error);
	engine->client = engine->own ? engine_process_client(engine->own) : NULL;
	return engine->client != NULL;
}

static bool engine_connect(struct guest_engine *engine, const struct attach_engine_options *options, const char *name,
                           int *status, GError **error)
{
	g_autoptr(GError) none = NULL;

	if (options->pid != 0 || options->connect || options->no_monitor || options->dump)
		return engine_attach(engine, options, name, status, error);
	engine->client = engine_find(name, &none);
	if (engine->client)
		return true;
	if (!name || !g_error_matches(none, ENGINE_FIND_ERROR, ENGINE_FIND_ERROR_NONE)) {
		g_propagate_error(error, g_steal_pointer(&none));
		return false;
	}
	if (engine_attach(engine, options, name, status, error))
		return true;
	/* An engine that was started has printed why it is no guest either. */
	say("there is no engine \"%s\" either; `vprof list` shows those that run", name);
	return false;
}

bool guest_engine_open(struct guest_engine *engine, const struct attach_engine_options *options, const char *name,
                       int *status, GError **error)
{
	*engine = (struct guest_engine){0};
	if (engine_connect(engine, options, name, status, error))
		engine->guest = engine_ask(engine->client, "query-guest", NULL, error);
	return engine->guest != NULL;
}

void guest_engine_close(struct guest_engine *engine)
{
	json_decref(engine->guest);
	if (engine->own)
		engine_process_free(engine->own);
	else
		client_free(engine->client);
	*engine = (struct guest_engine){0};
}

int guest_engine_failure(const char *command, int status, const GError *error)
{
	if (g_error_matches(error, ATTACH_ENGINE_ERROR, ATTACH_ENGINE_ERROR_OPTIONS))
		return usage_error(command, "%s", error->message);
	return engine_process_failure(status, error);
}
