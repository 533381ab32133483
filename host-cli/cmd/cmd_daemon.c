// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <string.h>

#include "cmd/command.h"
#include "daemon/daemon.h"
#include "ui/message.h"
#include "ui/text.h"

struct daemon_values {
	char *config;
	gboolean json;
};

static const struct option_row options[] = {
	{"config", OPTION_FILE, offsetof(struct daemon_values, config),
         "configuration (default " DAEMON_CONFIG_PATH ", which need not exist)", "FILE"},
	{"json", OPTION_FLAG, offsetof(struct daemon_values, json), "with status: print a JSON document", NULL},
	{NULL},
};

static int status_show(const struct daemon_config *config, bool json)
{
	g_autoptr(GError) error = NULL;
	json_t *status = daemon_status_ask(config, &error);

	if (!status)
		return failure(error);
	if (json)
		text_print_json(status, 0, stdout);
	else
		daemon_status_print(status, stdout);
	json_decref(status);
	return STATUS_OK;
}

static int with_config(const struct daemon_values *given, const char *what)
{
	g_autoptr(GError) error = NULL;
	struct daemon_config *config = daemon_config_read(given->config, &error);
	int status = STATUS_OK;

	if (!config)
		return failure(error);
	if (strcmp(what, "status") == 0)
		status = status_show(config, given->json);
	else
		printf("%s is in order\n", given->config ? given->config : DAEMON_CONFIG_PATH);
	daemon_config_free(config);
	return status;
}

static int daemon_command_run(void *values, unsigned n, char **arguments)
{
	const struct daemon_values *given = values;
	const char *what = n > 0 ? arguments[0] : "run";

	if (strcmp(what, "run") != 0 && strcmp(what, "status") != 0 && strcmp(what, "check") != 0)
		return usage_error(command_daemon.name, "there is no \"%s\"; expected run, status or check", what);
	if (given->json && strcmp(what, "status") != 0)
		return usage_error(command_daemon.name, "--json goes with status");
	return strcmp(what, "run") == 0 ? daemon_run(given->config) : with_config(given, what);
}

const struct command command_daemon = {
	.name = "daemon",
	.summary = "Profile all guests of this host, all the time",
	.arguments = "[run|status|check]",
	.max_arguments = 1,
	.argument_words = {"run status check"},
	.manual = "vprof-daemon",
	.description =
		"Finds the guests of this host as they come and go, samples each at 19 Hz, sends their profiles to\n"
		"Pyroscope, Parca or an OpenTelemetry collector, and serves metrics for Prometheus. `status` prints\n"
		"what a running daemon does, `check` whether the configuration is in order. SIGHUP reads it again.\n"
		"The unit is vprofd.service.\n"
		"\n"
		"Examples:\n"
		"  vprof daemon\n"
		"  vprof daemon status\n"
		"  vprof daemon check --config daemon.conf\n"
		"  systemctl enable --now vprofd",
	.options = options,
	.values_bytes = sizeof(struct daemon_values),
	.run = daemon_command_run,
};
