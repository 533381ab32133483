// SPDX-License-Identifier: BSD-2-Clause
/* From a line to its method, and back to a line. */
#include <string.h>
#include <unistd.h>

#include "control/json_text.h"
#include "control/method_priv.h"

/* {"error": ...} for `error`, with the id of its request, if any. */
static void send_error(struct connection *connection, const GError *error, json_t *id)
{
	json_auto_t *answer = json_pack("{s:{s:s, s:o}, s:O*}", "error", "class", control_error_class(error), "desc",
	                                control_text(error->message, CONTROL_MESSAGE_BYTES_MAX), "id", id);

	connection->errors++;
	connection->server->errors++;
	connection_send(connection, answer, NULL, 0, NULL);
}

void request_refuse(struct connection *connection, const char *why)
{
	g_autoptr(GError) error = g_error_new(
		CONTROL_ERROR, CONTROL_ERROR_GENERIC,
		"cannot read the request: %s; a request is one JSON object on a line of at most %u bytes. Disconnected",
		why, VPROF_CONTROL_LINE_BYTES_MAX);

	connection->closing = true;
	send_error(connection, error, NULL);
}

static bool id_check(const json_t *id, GError **error)
{
	if (!id || json_is_integer(id) || (json_is_string(id) && json_string_length(id) <= VPROF_CONTROL_ID_BYTES_MAX))
		return true;
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
	            "member \"id\" must be an integer or a string of at most %u bytes", VPROF_CONTROL_ID_BYTES_MAX);
	return false;
}

static bool members_check(json_t *request, GError **error)
{
	const char *name;
	json_t *value;

	json_object_foreach(request, name, value) {
		if (strcmp(name, "execute") == 0 || strcmp(name, "arguments") == 0 || strcmp(name, "id") == 0)
			continue;
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "unknown member \"%.64s\" in the request; a request has execute, arguments and id", name);
		return false;
	}
	if (!json_is_string(json_object_get(request, "execute"))) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "member \"execute\" must be the name of a method");
		return false;
	}
	const json_t *arguments = json_object_get(request, "arguments");
	if (arguments && !json_is_object(arguments)) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "member \"arguments\" must be an object");
		return false;
	}
	return true;
}

static const struct control_method *find_method(const struct connection *connection, const char *name, GError **error)
{
	const struct control_method *method = control_method_find(name);

	if (!connection->negotiated && !(method && method->before_negotiate)) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_NOT_NEGOTIATED,
		            "cannot execute \"%.64s\" yet: execute \"negotiate\" first", name);
		return NULL;
	}
	if (!method) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_COMMAND_NOT_FOUND,
		            "there is no method \"%.64s\"; query-schema lists them", name);
		return NULL;
	}
	return method;
}

static json_t *run(struct control_call *call, json_t *request, GError **error)
{
	if (!id_check(json_object_get(request, "id"), error) || !members_check(request, error))
		return NULL;

	const char *name = json_string_value(json_object_get(request, "execute"));
	const struct control_method *method = find_method(call->connection, name, error);
	if (!method || !control_role_check(call->connection, method, error) ||
	    !arguments_check(method, call->arguments, error))
		return NULL;
	return method->run(call, error);
}

static void trace_request(const struct connection *connection, const json_t *request, const GError *error)
{
	struct trace *trace = connection->server->trace;

	if (!trace_wants(trace, TRACE_REQUESTS))
		return;
	const char *name = json_string_value(json_object_get(request, "execute"));
	g_autofree char *text =
		g_strdup_printf("pid %d (uid %u): %.64s: %s", connection->peer.pid, connection->peer.uid,
	                        name ? name : "?", error ? control_error_class(error) : "done");
	trace_add(trace, TRACE_NO_VCPU, text);
}

static enum request_outcome answer_request(struct connection *connection, json_t *request)
{
	json_t *id = json_object_get(request, "id");
	json_t *given = json_object_get(request, "arguments");
	json_auto_t *arguments = given ? json_incref(given) : json_object();
	struct control_call call = {
		.server = connection->server,
		.connection = connection,
		.arguments = arguments,
		.last = connection->waiting && g_get_monotonic_time() >= connection->wait_until_us,
		.flushes = connection->waiting ? connection->wait_flushes : connection->server->flushes,
	};

	g_autoptr(GError) error = NULL;
	json_auto_t *value = run(&call, request, &error);
	connection_set_waiting(connection, call.wait ? request : NULL, call.flushes);
	if (call.wait)
		return REQUEST_WAITS;
	trace_request(connection, request, error);
	json_auto_t *answer = value ? json_pack("{s:O, s:O*}", "return", value, "id", id) : NULL;
	if (!answer || !connection_send(connection, answer, call.fds, call.n_fds, &error))
		send_error(connection, error, id_check(id, NULL) ? id : NULL);
	for (size_t i = 0; call.owns_fds && i < call.n_fds; i++)
		close(call.fds[i]);
	return call.quit ? REQUEST_QUIT : call.leave ? REQUEST_LEAVE : REQUEST_ANSWERED;
}

void request_retry(struct connection *connection)
{
	json_auto_t *request = json_incref(connection->waiting);

	answer_request(connection, request);
}

/* JSON, but with a value that jansson does not take, or no object. The next line is read as if nothing had been. */
static void refuse_values(struct connection *connection, const struct json_part *id, const char *why)
{
	json_auto_t *known = id->bytes > 0 ? json_loadb(id->text, id->bytes, JSON_DECODE_ANY, NULL) : NULL;
	g_autoptr(GError) error = g_error_new(
		CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		"cannot take the request: %s; it must be an object with each name once, integers from -2^63 to 2^63-1 and strings without \\u0000",
		why);

	send_error(connection, error, id_check(known, NULL) ? known : NULL);
}

enum request_outcome request_answer(struct connection *connection, const char *line, size_t length)
{
	json_error_t reason;
	json_auto_t *request = json_loadb(line, length, JSON_REJECT_DUPLICATES, &reason);
	struct json_part id = {0};

	connection->requests++;
	connection->server->requests++;
	if (json_is_object(request))
		return answer_request(connection, request);
	if (request || json_text_check(line, length, &id))
		refuse_values(connection, &id, request ? "it is no JSON object" : reason.text);
	else
		request_refuse(connection, reason.text);
	return REQUEST_ANSWERED;
}
