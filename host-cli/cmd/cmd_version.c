// SPDX-License-Identifier: BSD-2-Clause
#include <stdio.h>
#include <vprof/control.h>
#include <vprof/recording.h>

#include "cmd/command.h"
#include "report/report.h"
#include "ui/message.h"

static int version_run(void *values, unsigned n, char **arguments)
{
	(void)values;
	(void)n;
	(void)arguments;
	printf("vprof %s\n", VPROF_VERSION);
	printf("control protocol %d, symbol section %u, report JSON %d\n", VPROF_CONTROL_PROTOCOL,
	       VPROF_SYMBOLS_VERSION, REPORT_JSON_VERSION);
	printf("built with %s\n", VPROF_LIBRARIES);
	return STATUS_OK;
}

const struct command command_version = {
	.name = "version",
	.summary = "Print the versions of vprof, its protocol and its libraries",
	.arguments = "",
	.manual = "vprof",
	.description = "`vprof --version` prints the same.",
	.run = version_run,
};
