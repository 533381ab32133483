// SPDX-License-Identifier: BSD-2-Clause
/* Output files that are written completely or not at all; devices and pipes are written directly. */
#ifndef VPROF_CLI_UI_OUTPUT_FILE_H
#define VPROF_CLI_UI_OUTPUT_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * Lets `write` fill a temporary file in the folder of `path`, then renames it to `path`; an existing file stays as it
 * is on failure. Devices and pipes are written directly. mode: of the file, less the umask. `write` may leave write
 * errors in the stream; it returns false for other errors. "-" is standard output.
 */
bool output_file_write(const char *path, mode_t mode, bool (*write)(FILE *to, const void *data, GError **error),
                       const void *data, GError **error);

/* Appends what `write` prints to a file, which is created if it does not exist; not atomic. */
bool output_file_append(const char *path, bool (*write)(FILE *to, const void *data, GError **error), const void *data,
                        GError **error);

/* Flushes `file`. Returns the errno of what could not be written, now or before; 0 if all was. */
int output_file_lost(FILE *file);

#endif
