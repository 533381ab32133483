// SPDX-License-Identifier: BSD-2-Clause
/* A program or library of the guest, as far as the guest has it in memory. */
#ifndef VPROF_CLI_RECORD_GUEST_FILE_H
#define VPROF_CLI_RECORD_GUEST_FILE_H

#include <stdint.h>

#include "lib/client/client.h"

#define GUEST_FILE_BYTES_MAX (UINT64_C(512) << 20)

/*
 * Sealed memory with the file of this build-id (in hexadecimal digits), for image_open_partial: what the guest does not
 * have in memory are holes. -1 when it has none of it, or the engine does not know the file. The caller closes it.
 */
int guest_file_read(struct client *client, const char *build_id, GError **error);
/* The same of what names the code that a process makes: `which` is "perf-map" or "jit-dump". */
int guest_jit_file_read(struct client *client, const char *which, uint32_t pid, GError **error);

#endif
