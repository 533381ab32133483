// SPDX-License-Identifier: BSD-2-Clause
/* What was found out about an attached guest, and which routes lead to it. */
#ifndef VPROF_ATTACH_PROBE_H
#define VPROF_ATTACH_PROBE_H

#include <jansson.h>
#include <stdio.h>

#include "attach/qemu.h"

/*
 * {"name", "pid", "user", "accelerator"?, "vcpus", "memory-bytes", "monitor": {"usable", "why"?}, "memory": {"usable",
 * "why"?}, "kernel": {"known", "release"?, "build-id"?, "slide"?, "why"?}, "routes": `routes`, stolen}
 */
json_t *probe_json(const struct qemu_guest *qemu, json_t *routes);

/* The same in lines. */
void probe_describe(struct qemu_guest *qemu, FILE *stream);

#endif
