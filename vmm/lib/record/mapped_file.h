// SPDX-License-Identifier: BSD-2-Clause
/*
 * A file in memory that may become shorter, by another process, while it is read. What is cut off reads as zeros then,
 * instead of ending this process by SIGBUS.
 */
#ifndef VPROF_RECORD_MAPPED_FILE_H
#define VPROF_RECORD_MAPPED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct mapped_file;

/* The regular file behind `fd`, which the caller still owns. NULL with errno. From any thread. */
struct mapped_file *mapped_file_new(int fd, size_t bytes);
void mapped_file_free(struct mapped_file *file);

/* NULL when it has none. */
const uint8_t *mapped_file_bytes(const struct mapped_file *file);
/* Whether zeros have been read for bytes that are no longer there. */
bool mapped_file_is_cut(const struct mapped_file *file);

#endif
