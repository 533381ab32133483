// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine_find.h"

#include <string.h>

#include "engine/engine_process.h"
#include "ui/text.h"

#define SOCKET_SUFFIX ".sock"

G_DEFINE_QUARK(vprof_engine_find_error, engine_find_error)

char *engine_name(const char *socket_path)
{
	char *name = g_path_get_basename(socket_path);

	if (g_str_has_suffix(name, SOCKET_SUFFIX))
		name[strlen(name) - strlen(SOCKET_SUFFIX)] = '\0';
	return name;
}

static bool has_name(const char *socket_path, const char *name)
{
	g_autofree char *own = engine_name(socket_path);

	return strcmp(own, name) == 0;
}

static bool has_pid(struct client *client, const char *pid)
{
	json_t *status = engine_ask(client, "query-status", NULL, NULL);
	g_autofree char *number = g_strdup_printf("%" G_GUINT64_FORMAT, member_number(status, "pid", 0));

	json_decref(status);
	return strcmp(number, pid) == 0;
}

/* An engine that does not answer does not match. */
static struct client *connect_if_pid(const char *socket_path, const char *pid)
{
	struct client *client = client_connect(socket_path, ENGINE_ANSWER_TIMEOUT_MS, NULL);

	if (!client || has_pid(client, pid))
		return client;
	client_free(client);
	return NULL;
}

static struct client *find_by_pid(const GArray *sockets, const char *pid)
{
	struct client *client = NULL;

	for (guint i = 0; i < sockets->len && !client; i++) {
		const struct client_socket *socket = &g_array_index(sockets, struct client_socket, i);

		if (socket->live)
			client = connect_if_pid(socket->path, pid);
	}
	return client;
}

/* The socket of the matching engine, or NULL; *n: the number of matches. */
static const char *find_socket(const GArray *sockets, const char *name, unsigned *n)
{
	const char *path = NULL;

	*n = 0;
	for (guint i = 0; i < sockets->len; i++) {
		const struct client_socket *socket = &g_array_index(sockets, struct client_socket, i);

		if (!socket->live || (name && !has_name(socket->path, name)))
			continue;
		path = socket->path;
		(*n)++;
	}
	return *n == 1 ? path : NULL;
}

static struct client *refuse(const char *name, unsigned n, GError **error)
{
	if (n > 1)
		g_set_error(error, ENGINE_FIND_ERROR, ENGINE_FIND_ERROR_AMBIGUOUS,
		            "which engine? there are %u; `vprof list` shows their names", n);
	else if (name)
		g_set_error(error, ENGINE_FIND_ERROR, ENGINE_FIND_ERROR_NONE,
		            "there is no engine \"%s\"; `vprof list` shows those that run", name);
	else
		g_set_error(error, ENGINE_FIND_ERROR, ENGINE_FIND_ERROR_NONE,
		            "no engine is running; `vprof run` starts one");
	return NULL;
}

struct client *engine_find(const char *name, GError **error)
{
	g_autoptr(GArray) sockets = NULL;
	struct client *client = NULL;
	const char *path;
	unsigned n;

	if (name && strchr(name, '/'))
		return client_connect(name, ENGINE_ANSWER_TIMEOUT_MS, error);
	sockets = client_list_sockets(error);
	if (!sockets)
		return NULL;
	path = find_socket(sockets, name, &n);
	if (path)
		return client_connect(path, ENGINE_ANSWER_TIMEOUT_MS, error);
	if (name && name[strspn(name, "0123456789")] == '\0')
		client = find_by_pid(sockets, name);
	return client ? client : refuse(name, n, error);
}
