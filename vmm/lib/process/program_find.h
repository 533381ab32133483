// SPDX-License-Identifier: BSD-2-Clause
/* Where the programs are that this one starts. */
#ifndef VPROF_PROCESS_PROGRAM_FIND_H
#define VPROF_PROCESS_PROGRAM_FIND_H

#include <glib.h>

/*
 * The path of `name` ("vprof-vmm", "demo-guest.elf"): in ../libexec/vprof next to the folder of the running program (as
 * installed), else in that folder (as built, and for engines). This order, because the folder of an installed vprof can
 * have the vprof-agent of a service, of another version. Nothing else is searched: another version would not fit. New
 * string; G_FILE_ERROR_NOENT with both places in the message.
 */
char *program_find(const char *name, GError **error);

#endif
