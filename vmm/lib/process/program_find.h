// SPDX-License-Identifier: BSD-2-Clause
/* Where the programs are that this one starts. */
#ifndef VPROF_PROCESS_PROGRAM_FIND_H
#define VPROF_PROCESS_PROGRAM_FIND_H

#include <glib.h>

/*
 * The path of `name` ("vprof-vmm", "demo-guest.elf"): in the folder of the running program (as built, and for engines),
 * else in ../libexec/vprof beside it (as installed). Nothing else is searched: an engine of another version would not
 * fit. New string; G_FILE_ERROR_NOENT with both places in the message.
 */
char *program_find(const char *name, GError **error);

#endif
