// SPDX-License-Identifier: BSD-2-Clause
/* The command line of vprof-attach. */
#ifndef VPROF_ATTACH_OPTIONS_H
#define VPROF_ATTACH_OPTIONS_H

#include <glib.h>
#include <stdbool.h>

#include "attach/qemu_guest.h"

#define OPTIONS_ERROR_STATUS 2

struct attach_options {
	char *domain, *connect_uri, *qmp_path, *kernel_path, *route, *control, *dump;
	int pid;       /* 0: by domain */
	int client_fd; /* -1: none */
	double duration_s;
	bool sandbox; /* on, unless it is switched off */
	bool paused, no_monitor, lean, list, follow, probe, version, verbose;
};

bool options_parse(int *argc, char ***argv, struct attach_options *options, GError **error);
void options_clear(struct attach_options *options);

#endif
