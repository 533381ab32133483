// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>

#include "cmd/command.h"
#include "lib/client/client.h"
#include "ui/message.h"
#include "ui/text.h"

#define ANSWER_TIMEOUT_MS 1000u /* an engine that takes longer is stuck and must not delay the list */

struct list_values {
	gboolean json;
};

static const struct option_row options[] = {
	{"json", OPTION_FLAG, offsetof(struct list_values, json), "print a JSON array", NULL},
	{NULL},
};

/* {"socket", "status": as query-status, "guest": as query-guest}; NULL when the engine does not answer. */
static json_t *engine_ask(const char *socket_path, GError **error)
{
	struct client *client = client_connect(socket_path, ANSWER_TIMEOUT_MS, error);
	json_t *status = NULL, *guest = NULL;

	if (!client)
		return NULL;
	status = json_printable(client_execute(client, "query-status", NULL, NULL, NULL, ANSWER_TIMEOUT_MS, error));
	if (status)
		guest = json_printable(
			client_execute(client, "query-guest", NULL, NULL, NULL, ANSWER_TIMEOUT_MS, error));
	client_free(client);
	if (!guest) {
		json_decref(status);
		return NULL;
	}
	return json_pack("{s:o, s:o, s:o}", "socket", text_json(socket_path), "status", status, "guest", guest);
}

/* An engine that ends during the query is no error, and a socket without an engine is none either. */
static json_t *engines_ask(const GArray *sockets)
{
	json_t *engines = json_array();

	for (guint i = 0; i < sockets->len; i++) {
		const struct client_socket *socket = &g_array_index(sockets, struct client_socket, i);
		g_autoptr(GError) error = NULL;
		json_t *engine;

		if (!socket->live)
			continue;
		engine = engine_ask(socket->path, &error);
		if (engine)
			json_array_append_new(engines, engine);
		else if (!g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_CLOSED))
			warn("%s: %s", socket->path, error->message);
	}
	return engines;
}

static char *uptime_text(uint64_t ns)
{
	unsigned seconds = (unsigned)(ns / 1000000000);

	return g_strdup_printf("%u:%02u:%02u", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

static void engine_print(const json_t *engine)
{
	const json_t *status = json_object_get(engine, "status"), *guest = json_object_get(engine, "guest");
	g_autofree char *name = text_printable(member_text(guest, "name"));
	g_autofree char *state = text_printable(member_text(status, "state"));
	g_autofree char *session = text_printable(member_text(status, "session"));
	g_autofree char *kernel = text_printable(member_text(guest, "kernel"));
	g_autofree char *uptime = uptime_text(member_number(status, "uptime-ns", 0));

	printf("%-20s %8" G_GUINT64_FORMAT " %-8s %-8s %5" G_GUINT64_FORMAT " %9s %s\n", name,
	       member_number(status, "pid", 0), state, session, member_number(guest, "vcpus", 0), uptime, kernel);
}

static int list_run(void *values, unsigned n, char **arguments)
{
	const struct list_values *given = values;
	g_autoptr(GError) error = NULL;
	g_autoptr(GArray) sockets = client_list_sockets(&error);
	json_t *engines, *engine;
	size_t i;

	(void)n;
	(void)arguments;
	if (!sockets)
		return failure(error);
	engines = engines_ask(sockets);
	if (given->json) {
		text_print_json(engines, 0, stdout);
	} else if (json_array_size(engines) != 0) {
		printf("%-20s %8s %-8s %-8s %5s %9s %s\n", "NAME", "PID", "STATE", "SESSION", "VCPUS", "UPTIME",
		       "KERNEL");
		json_array_foreach(engines, i, engine)
			engine_print(engine);
	}
	json_decref(engines);
	return STATUS_OK;
}

const struct command command_list = {
	.name = "list",
	.summary = "List the running engines",
	.arguments = "",
	.manual = "vprof-list",
	.description = "Prints nothing if no engine runs. Only engines of the current user are listed.\n"
		       "\n"
		       "Examples:\n"
		       "  vprof list\n"
		       "  vprof list --json | jq -r '.[].guest.name'",
	.options = options,
	.values_bytes = sizeof(struct list_values),
	.run = list_run,
};
