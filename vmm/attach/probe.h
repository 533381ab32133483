// SPDX-License-Identifier: BSD-2-Clause
/* What was found out about an attached guest, and which routes lead to it. */
#ifndef VPROF_ATTACH_PROBE_H
#define VPROF_ATTACH_PROBE_H

#include <jansson.h>
#include <stdio.h>

#include "attach/qemu.h"

/* Of the guest's process, by name, or the number where it has none; new string. Reads files of /etc. */
char *probe_user(const struct qemu_guest *qemu);

/*
 * {"name", "pid", "user", "accelerator"?, "vcpus", "memory-bytes", "monitor": {"usable", "why"?}, "memory": {"usable",
 * "why"?}, "kernel": {"known", "release"?, "build-id"?, "slide"?, "why"?}, "routes": `routes`, stolen}
 */
json_t *probe_json(const struct qemu_guest *qemu, const char *user, json_t *routes);

/* The same in lines. */
void probe_describe(struct qemu_guest *qemu, FILE *stream);

#endif
