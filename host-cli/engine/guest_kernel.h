// SPDX-License-Identifier: BSD-2-Clause
/* The kernel of a guest, at its addresses there, and its symbols. */
#ifndef VPROF_CLI_ENGINE_GUEST_KERNEL_H
#define VPROF_CLI_ENGINE_GUEST_KERNEL_H

#include <jansson.h>

#include "lib/client/client.h"
#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"

/* A guest without symbols can still be profiled by mode, vCPU and address. */
struct guest_kernel {
	struct image *image;   /* NULL: unknown */
	struct symtab *symtab; /* NULL: without symbols */
};

/*
 * What the engine has found or unpacked, or else the file that query-guest names (`guest`). `path`: a file that goes
 * before both; NULL: none. The error says why there are no symbols; a warning says how many
 * of the guest's are left out.
 */
struct guest_kernel guest_kernel_load(struct client *client, const json_t *guest, const char *path, GError **error);
/* The same for many recordings: only the symbols of its code stay in memory. */
struct guest_kernel guest_kernel_load_code(struct client *client, const json_t *guest);
void guest_kernel_clear(struct guest_kernel *kernel);

#endif
