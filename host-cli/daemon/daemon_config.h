// SPDX-License-Identifier: BSD-2-Clause
/* The configuration of `vprof daemon`: one file in the syntax of GKeyFile; vprof-daemon.conf(5). */
#ifndef VPROF_CLI_DAEMON_DAEMON_CONFIG_H
#define VPROF_CLI_DAEMON_DAEMON_CONFIG_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "push/push_sender.h"

#define DAEMON_CONFIG_PATH "/etc/vprof/daemon.conf"

#define DAEMON_CONFIG_ERROR daemon_config_error_quark()
GQuark daemon_config_error_quark(void);
enum daemon_config_error { DAEMON_CONFIG_ERROR_VALUE };

struct daemon_config {
	/* [daemon] */
	char *socket; /* of the status */
	char *spool;  /* folder */
	uint64_t spool_bytes;
	/* [guests] */
	char *connect; /* NULL: every guest of this host */
	char **include, **exclude;
	bool monitor; /* whether QEMU may be sent monitor commands */
	/* [sampling] */
	uint64_t frequency_hz;
	char *call_graph;
	uint64_t interval_s; /* of a profile */
	/* [push] */
	char *url; /* NULL: profiles are not made */
	enum push_api api;
	char *name;
	char *header_file; /* NULL: none */
	char **labels;
	char **headers; /* with those of the file and of the environment, once the configuration was read */
	/* [metrics] */
	char *address; /* NULL: off */
	uint16_t port;
};

/*
 * path: NULL for DAEMON_CONFIG_PATH, which need not exist; a file that is named must. Unknown groups and keys are
 * errors, and so are secrets in a file that others can read. Errors: G_KEY_FILE_ERROR, G_FILE_ERROR,
 * DAEMON_CONFIG_ERROR, PUSH_HEADERS_ERROR, with the file's name.
 */
struct daemon_config *daemon_config_read(const char *path, GError **error);
/* The same of a text; `path` names it in errors. */
struct daemon_config *daemon_config_parse(const char *path, const char *text, GError **error);
void daemon_config_free(struct daemon_config *config);

bool daemon_config_wants(const struct daemon_config *config, const char *guest);

#endif
