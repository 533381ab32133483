// SPDX-License-Identifier: BSD-2-Clause
/* A guest as it was when its memory was dumped to a file: tasks and stacks can be looked at, nothing runs. */
#ifndef VPROF_ATTACH_DUMP_GUEST_H
#define VPROF_ATTACH_DUMP_GUEST_H

#include "guest/guest.h"

/*
 * `path`: of the dump (core_file.h). kernel_path: the kernel that it ran, or NULL for what its memory holds, for which
 * dump_guest_begin reads that, on a thread, and calls `looked` on the main thread then: with an error where it has not
 * the kernel that was given. `searches`: struct guest. Errors: CORE_FILE_ERROR, IMAGE_ERROR.
 */
struct guest *dump_guest_new(const char *path, const char *kernel_path, const struct os_search *const *searches,
                             GError **error);
void dump_guest_begin(struct guest *guest, void (*looked)(void *data, const GError *why), void *data);
void dump_guest_end(struct guest *guest);
void dump_guest_free(struct guest *guest); /* NULL is fine */

#endif
