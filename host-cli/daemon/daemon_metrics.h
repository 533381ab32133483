// SPDX-License-Identifier: BSD-2-Clause
/* The status as Prometheus reads it: prometheus.io/docs/instrumenting/exposition_formats, "Text-based format". */
#ifndef VPROF_CLI_DAEMON_DAEMON_METRICS_H
#define VPROF_CLI_DAEMON_DAEMON_METRICS_H

#include <jansson.h>

#define DAEMON_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

/* New string. */
char *daemon_metrics(const json_t *status);

#endif
