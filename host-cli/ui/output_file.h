// SPDX-License-Identifier: BSD-2-Clause
/* Files that are there as a whole or not at all; what is no file stays what it is. */
#ifndef VPROF_CLI_OUTPUT_FILE_H
#define VPROF_CLI_OUTPUT_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stdio.h>

/*
 * Has `write` fill a temporary file beside `path`, and then replaces `path` by it; what stands there stays when
 * anything fails. A device or a pipe is written to. `write` leaves errors of writing in the stream; another one: false.
 * "-" is standard output.
 */
bool output_file_write(const char *path, bool (*write)(FILE *to, const void *data, GError **error), const void *data,
                       GError **error);

/* Adds what `write` prints to the end of a file, which is made if need be; the same otherwise, but not as a whole. */
bool output_file_append(const char *path, bool (*write)(FILE *to, const void *data, GError **error), const void *data,
                        GError **error);

/* Flushes `file`: the errno of what could not be written, now or before; 0: all was. */
int output_file_lost(FILE *file);

#endif
