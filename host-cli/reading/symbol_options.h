// SPDX-License-Identifier: BSD-2-Clause
/* Where to take the symbols of the guest's programs and modules from: options that several commands have. */
#ifndef VPROF_CLI_READING_SYMBOL_OPTIONS_H
#define VPROF_CLI_READING_SYMBOL_OPTIONS_H

#include <glib.h>

#include "lib/symbol/user_symbols.h"
#include "ui/option.h"

struct symbol_options {
	char *symfs, *modules;
	gboolean debuginfod;
};

extern const struct option_row symbol_option_rows[];

/* False, and why, when this build cannot do what was asked for. */
bool symbol_options_check(const struct symbol_options *options, GError **error);
/* Whether they name a source at all. */
bool symbol_options_given(const struct symbol_options *options);
/* initrd: a source besides them, or NULL. */
struct user_symbol_sources symbol_options_sources(const struct symbol_options *options, const char *initrd,
                                                  enum arch arch, bool force);

#endif
