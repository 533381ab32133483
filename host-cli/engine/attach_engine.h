// SPDX-License-Identifier: BSD-2-Clause
/* The engine of an attached guest (vprof-attach), and the options that say which guest. */
#ifndef VPROF_CLI_ATTACH_ENGINE_H
#define VPROF_CLI_ATTACH_ENGINE_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>

#include "engine/run_engine.h"
#include "lib/symbol/image.h"

#define ATTACH_ENGINE_ERROR attach_engine_error_quark()
GQuark attach_engine_error_quark(void);
enum attach_engine_error {
	ATTACH_ENGINE_ERROR_OPTIONS,
	ATTACH_ENGINE_ERROR_PROGRAM, /* vprof-attach --list or --probe failed, and has said why */
};

struct attach_engine_options {
	char *connect, *qmp, *kernel;
	int pid;
	gboolean no_monitor, verbose;
};
extern struct attach_engine_options attach_engine_options;

/* Their rows in a command's table: those that say which guest, and all. */
#define ATTACH_GUEST_OPTIONS                                                                                  \
	{"connect",                                                                                           \
	 0,                                                                                                   \
	 0,                                                                                                   \
	 G_OPTION_ARG_STRING,                                                                                 \
	 &attach_engine_options.connect,                                                                      \
	 "where libvirt is (default: its own choice, as virsh)",                                              \
	 "URI"},                                                                                              \
		{"pid", 0, 0, G_OPTION_ARG_INT, &attach_engine_options.pid, "a QEMU without libvirt", "PID"}, \
		{"qmp", 0, 0, G_OPTION_ARG_FILENAME, &attach_engine_options.qmp, "its QMP socket", "SOCKET"}, \
	{                                                                                                     \
		"no-monitor", 0, 0, G_OPTION_ARG_NONE, &attach_engine_options.no_monitor,                     \
			"send a domain's QEMU no commands, which would taint it; less is known then", NULL    \
	}
#define ATTACH_ENGINE_OPTIONS                                                         \
	ATTACH_GUEST_OPTIONS,                                                         \
		{"kernel",                                                            \
	         'k',                                                                 \
	         0,                                                                   \
	         G_OPTION_ARG_FILENAME,                                               \
	         &attach_engine_options.kernel,                                       \
	         "the kernel that it runs (default: what its memory holds)",          \
	         "IMAGE"},                                                            \
	{                                                                             \
		"verbose", 'v', 0, G_OPTION_ARG_NONE, &attach_engine_options.verbose, \
			"say what is found out about the guest", NULL                 \
	}

/* Whether they name one guest; an error is the user's. `duration`: as given, or NULL. */
bool attach_engine_check(const char *domain, const char *duration, GError **error);

/* As engine_start. After attach_engine_check. */
struct engine *attach_engine_start(const char *domain, const char *duration, int *status, GError **error);

/* The kernel that the guest runs, with the addresses it has there; NULL when the engine does not know it. */
struct image *attach_engine_image(struct client *client, GError **error);

/* What `vprof-attach --list` or, with a domain, `--probe` prints. New reference. */
json_t *attach_engine_ask(const char *domain, GError **error);

/* `vprof attach --list`; returns the exit status. */
int attach_list(bool json);

#endif
