// SPDX-License-Identifier: BSD-2-Clause
#include "attach/monitor.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* ---- requests ---- */

static const struct {
	const char *execute, *human; /* one of them */
	bool has_path, has_address;
} commands[MONITOR_COMMANDS] = {
	[MONITOR_CAPABILITIES] = {.execute = "qmp_capabilities"},
	[MONITOR_CPUS] = {.execute = "query-cpus-fast"},
	[MONITOR_STATUS] = {.execute = "query-status"},
	[MONITOR_KVM] = {.execute = "query-kvm"},
	[MONITOR_MEMORY_SIZE] = {.execute = "query-memory-size-summary"},
	[MONITOR_CONFIDENTIAL] = {.execute = "qom-get"},
	[MONITOR_TYPE] = {.execute = "qom-get", .has_path = true},
	[MONITOR_STATISTICS_NAMES] = {.execute = "query-stats-schemas"},
	[MONITOR_STATISTICS] = {.execute = "query-stats", .has_path = true},
	[MONITOR_MEMORY_MAP] = {.human = "info mtree -f"},
	[MONITOR_ADDRESS] = {.human = "gpa2hva", .has_address = true},
	[MONITOR_REGISTERS] = {.human = "info registers -a"},
};

static bool path_valid(const char path[MONITOR_PATH_BYTES])
{
	size_t n = strnlen(path, MONITOR_PATH_BYTES);

	if (n == 0 || n == MONITOR_PATH_BYTES || path[0] != '/')
		return false;
	for (size_t i = 0; i < n; i++)
		if (!g_ascii_isalnum(path[i]) && !strchr("/-._[]", path[i]))
			return false;
	return true;
}

bool monitor_request_valid(const struct monitor_request *request)
{
	if (request->command == 0 || request->command >= MONITOR_COMMANDS || request->reserved != 0)
		return false;
	return (commands[request->command].has_path ? path_valid(request->path) : request->path[0] == '\0') &&
	       (commands[request->command].has_address || request->address == 0);
}

/* NULL: it takes none. */
static json_t *arguments_of(const struct monitor_request *request)
{
	char line[64];

	switch ((enum monitor_command)request->command) {
	case MONITOR_CONFIDENTIAL:
		return json_pack("{s:s, s:s}", "path", "/machine", "property", "confidential-guest-support");
	case MONITOR_TYPE:
		return json_pack("{s:s, s:s}", "path", request->path, "property", "type");
	case MONITOR_STATISTICS_NAMES:
		return json_pack("{s:s}", "provider", "kvm");
	case MONITOR_STATISTICS:
		return json_pack("{s:s, s:[s], s:[{s:s}]}", "target", "vcpu", "vcpus", request->path, "providers",
		                 "provider", "kvm");
	case MONITOR_MEMORY_MAP:
	case MONITOR_REGISTERS:
		return json_pack("{s:s}", "command-line", commands[request->command].human);
	case MONITOR_ADDRESS:
		snprintf(line, sizeof(line), "%s 0x%" PRIx64, commands[request->command].human, request->address);
		return json_pack("{s:s}", "command-line", line);
	default:
		return NULL;
	}
}

/* As messages name it. */
static const char *name_of(const struct monitor_request *request)
{
	return commands[request->command].human ? commands[request->command].human : commands[request->command].execute;
}

char *monitor_request_text(const struct monitor_request *request)
{
	const char *execute = commands[request->command].execute;
	json_t *line = json_pack("{s:s, s:o*}", "execute", execute ? execute : "human-monitor-command", "arguments",
	                         arguments_of(request));
	char *text = json_dumps(line, JSON_COMPACT);
	char *copy = g_strdup(text);

	free(text);
	json_decref(line);
	return copy;
}

/* ---- answers ---- */

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

json_t *monitor_execute(struct monitor *monitor, const struct monitor_request *request, GError **error)
{
	if (!monitor_request_valid(request)) {
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_ANSWER, "QEMU's monitor gave a name that is none");
		return NULL;
	}
	g_mutex_lock(&monitor->lock);
	g_autofree char *answer = monitor->transport->transact(monitor, request, error);
	g_mutex_unlock(&monitor->lock);
	return answer ? answer_parse(name_of(request), answer, error) : NULL;
}

json_t *monitor_ask(struct monitor *monitor, enum monitor_command command, GError **error)
{
	const struct monitor_request request = {.command = command};

	return monitor_execute(monitor, &request, error);
}

char *monitor_human(struct monitor *monitor, const struct monitor_request *request, GError **error)
{
	json_t *text = monitor_execute(monitor, request, error);
	char *copy = json_is_string(text) ? g_strdup(json_string_value(text)) : NULL;

	if (text && !copy)
		g_set_error(error, MONITOR_ERROR, MONITOR_ERROR_ANSWER, "QEMU's answer to \"%s\" is no text",
		            name_of(request));
	json_decref(text);
	return copy;
}
