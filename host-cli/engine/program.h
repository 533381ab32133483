// SPDX-License-Identifier: BSD-2-Clause
/* The files that belong to this vprof. */
#ifndef VPROF_CLI_PROGRAM_H
#define VPROF_CLI_PROGRAM_H

#include <glib.h>

/*
 * The path of `name` ("vprof-vmm", "demo-guest.elf"): in the folder of the running vprof (as built), else in
 * ../libexec/vprof beside it (as installed). Nothing else is searched: an engine of another version would not fit.
 * New string; G_FILE_ERROR_NOENT with both places in the message.
 */
char *program_find(const char *name, GError **error);

#endif
