// SPDX-License-Identifier: BSD-2-Clause
/* An output stream of the command on its way to a descriptor, which may be slower than the guest. */
#ifndef VPROF_CLI_RUN_EXEC_OUTPUT_H
#define VPROF_CLI_RUN_EXEC_OUTPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct exec_output;

struct exec_output *exec_output_new(int fd);
void exec_output_free(struct exec_output *output);

void exec_output_put(struct exec_output *output, const uint8_t *bytes, size_t n);
/* The number of pending bytes, and whether the command should pause. */
size_t exec_output_pending(const struct exec_output *output);
bool exec_output_is_full(const struct exec_output *output);
/* For a terminal: whether bytes are pending, and whether the last output ends within a line. */
bool exec_output_writes_here(const struct exec_output *output);
bool exec_output_is_within_line(const struct exec_output *output);

struct pollfd exec_output_poll(const struct exec_output *output);
/* Writes without blocking. False, once, when the reader has closed the stream; later output is discarded. */
bool exec_output_write(struct exec_output *output);

#endif
