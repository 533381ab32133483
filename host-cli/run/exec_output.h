// SPDX-License-Identifier: BSD-2-Clause
/* One of the command's output streams on its way to a descriptor of ours, which may be slower than the guest. */
#ifndef VPROF_CLI_EXEC_OUTPUT_H
#define VPROF_CLI_EXEC_OUTPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exec_output;

struct exec_output *exec_output_new(int fd);
void exec_output_free(struct exec_output *output);

void exec_output_put(struct exec_output *output, const uint8_t *bytes, size_t n);
/* Bytes that wait; and whether they are so many that no more should come. */
size_t exec_output_pending(const struct exec_output *output);
bool exec_output_is_full(const struct exec_output *output);
/* It is a terminal: whether bytes for it wait, and whether what was written last ends within a line. */
bool exec_output_writes_here(const struct exec_output *output);
bool exec_output_is_within_line(const struct exec_output *output);

struct pollfd exec_output_poll(const struct exec_output *output);
/* Writes what does not block. False, once, when nobody reads any more; what comes then is thrown away. */
bool exec_output_write(struct exec_output *output);

#endif
