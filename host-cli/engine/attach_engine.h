// SPDX-License-Identifier: BSD-2-Clause
/* The engine of an attached guest (vprof-attach), and the options that say which guest. */
#ifndef VPROF_CLI_ENGINE_ATTACH_ENGINE_H
#define VPROF_CLI_ENGINE_ATTACH_ENGINE_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "engine/engine_process.h"
#include "ui/option.h"

#define ATTACH_ENGINE_ERROR attach_engine_error_quark()
GQuark attach_engine_error_quark(void);
enum attach_engine_error {
	ATTACH_ENGINE_ERROR_OPTIONS,
	ATTACH_ENGINE_ERROR_PROGRAM, /* vprof-attach --list or --probe failed and has printed the reason */
};

struct attach_engine_options {
	char *connect, *qmp, *kernel;
	char *dump;   /* a file instead of a guest; only where a command offers it */
	uint64_t pid; /* 0: not given */
	gboolean no_monitor, verbose;
	gboolean lean; /* what only other clients would need is given up: libvirt, the kernel's image */
};

extern const struct option_row attach_guest_option_rows[];  /* those that say which guest */
extern const struct option_row attach_engine_option_rows[]; /* all */

/* Whether the options select exactly one guest; the error is for usage_error. */
bool attach_engine_check(const struct attach_engine_options *options, const char *domain, GError **error);

/*
 * As engine_process_start. After attach_engine_check. `domain`: also as guest_resolve (guest_list.h) takes it.
 * duration_s: when it ends by itself; 0: never.
 */
struct engine_process *attach_engine_start(const struct attach_engine_options *options, const char *domain,
                                           uint64_t duration_s, int *status, GError **error);

/*
 * What `vprof-attach --list` or, with a domain or options->pid, `--probe` prints. New reference. If it fails, it prints
 * the reason; with `said`, it does not, and *said is the reason: a new string, or NULL.
 */
json_t *attach_engine_ask(const struct attach_engine_options *options, const char *domain, char **said, GError **error);

#endif
