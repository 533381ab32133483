// SPDX-License-Identifier: BSD-2-Clause
/*
 * The names of a running guest's addresses: functions of its kernel, and those of its programs as far as there are
 * copies of their files, in the guest's initramfs, under the same path on this host, or below a folder.
 */
#ifndef VPROF_CLI_TRACE_TRACE_NAMES_H
#define VPROF_CLI_TRACE_TRACE_NAMES_H

#include "lib/client/client.h"
#include "lib/profile/chain.h"

struct trace_names;

/* Without a readable image of the kernel, there are no names of its functions. symfs: a folder, or NULL. */
struct trace_names *trace_names_new(struct client *client, const char *symfs);
void trace_names_free(struct trace_names *names);

/* Takes a record about a mapping; others are ignored. */
void trace_names_take(struct trace_names *names, const struct perf_event_header *record, size_t bytes);

/* "vfs_read" or "vfs_read+0x12" in the kernel, or the number when nothing is known. New string. */
char *trace_names_kernel(const struct trace_names *names, uint64_t ip);
/* The same without the offset. New string. */
char *trace_names_function(const struct trace_names *names, uint64_t ip);
/* The same for a frame of a chain of this process at this time; in user space also "libc.so.6+0x2a1b0". New string. */
char *trace_names_frame(struct trace_names *names, const struct chain_frame *frame, uint32_t pid, uint64_t time_ns);

/* The copies of programs that it looks in. */
struct user_symbols *trace_names_copies(const struct trace_names *names);

#endif
