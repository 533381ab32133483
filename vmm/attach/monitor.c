// SPDX-License-Identifier: BSD-2-Clause
#include "attach/monitor.h"

#include <stdlib.h>

G_DEFINE_QUARK(vprof_monitor_error, monitor_error)

void monitor_init(struct monitor *monitor, const struct monitor_transport *transport)
{
	monitor->transport = transport;
	g_mutex_init(&monitor->lock);
}

void monitor_free(struct monitor *monitor)
{
	if (!monitor)
		return;
	g_mutex_clear(&monitor->lock);
	monitor->transport->close(monitor);
}

void monitor_listen(struct monitor *monitor, monitor_event event, void *data)
{
	monitor->event = event;
	monitor->event_data = data;
}

static char *request_text(const char *command, json_t *arguments)
{
	json_t *request = json_pack("{s:s, s:o*}", "execute", command, "arguments", arguments);
	char *text = json_dumps(request, JSON_COMPACT);

	json_decref(request);
	return text;
}

/* {"return": ...} or {"error": {"desc": TEXT}}. */
static json_t *answer_parse(const char *command, const char *text, GError **error)
{
	json_error_t why;
	json_t *answer = json_loads(text, JSON_REJECT_DUPLICATES, &why);
	json_t *value = json_incref(json_object_get(answer, "return"));
	const char *desc = json_string_value(json_object_get(json_object_get(answer, "error"), "desc"));

	if (!value && desc)
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_COMMAND, "QEMU refuses %s: %s", command, desc);
	else if (!value)
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_ANSWER, "QEMU's answer to %s makes no sense: %s",
		            command, answer ? "it has neither \"return\" nor \"error\"" : why.text);
	json_decref(answer);
	return value;
}

json_t *monitor_execute(struct monitor *monitor, const char *command, json_t *arguments, GError **error)
{
	char *request = request_text(command, arguments);

	g_mutex_lock(&monitor->lock);
	g_autofree char *answer = monitor->transport->transact(monitor, request, error);
	g_mutex_unlock(&monitor->lock);
	free(request);
	return answer ? answer_parse(command, answer, error) : NULL;
}

char *monitor_human(struct monitor *monitor, const char *command, GError **error)
{
	json_t *text =
		monitor_execute(monitor, "human-monitor-command", json_pack("{s:s}", "command-line", command), error);
	char *copy = json_is_string(text) ? g_strdup(json_string_value(text)) : NULL;

	if (text && !copy)
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_ANSWER, "QEMU's answer to \"%s\" is no text", command);
	json_decref(text);
	return copy;
}
