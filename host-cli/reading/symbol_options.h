// SPDX-License-Identifier: BSD-2-Clause
/* Where to take the symbols of the guest's programs and modules from: options that several commands have. */
#ifndef VPROF_CLI_SYMBOL_OPTIONS_H
#define VPROF_CLI_SYMBOL_OPTIONS_H

#include <glib.h>

#include "lib/symbol/user_symbols.h"

extern struct symbol_options {
	char *symfs, *modules;
	gboolean debuginfod;
} symbol_options;

/* Their rows in a command's table. */
#define SYMBOL_OPTIONS                                                                                   \
	{"symfs",                                                                                        \
	 0,                                                                                              \
	 0,                                                                                              \
	 G_OPTION_ARG_FILENAME,                                                                          \
	 &symbol_options.symfs,                                                                          \
	 "take symbols of the guest's programs from the same paths below DIR",                           \
	 "DIR"},                                                                                         \
		{"modules",                                                                              \
	         0,                                                                                      \
	         0,                                                                                      \
	         G_OPTION_ARG_FILENAME,                                                                  \
	         &symbol_options.modules,                                                                \
	         "/lib/modules/VERSION of the guest's kernel: symbols, and disk drivers for run --exec", \
	         "DIR"},                                                                                 \
	{                                                                                                \
		"debuginfod", 0, 0, G_OPTION_ARG_NONE, &symbol_options.debuginfod,                       \
			"ask the servers of $DEBUGINFOD_URLS for symbols of the guest's programs", NULL  \
	}

/* False, and why, when this build cannot do what was asked for. */
bool symbol_options_check(GError **error);
/* Whether they name a source at all. */
bool symbol_options_given(void);
/* initrd: a source besides them, or NULL. */
struct user_symbol_sources symbol_options_sources(const char *initrd, bool force);

#endif
