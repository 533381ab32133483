// SPDX-License-Identifier: BSD-2-Clause
/*
 * Source lines of what was sampled, for formats that have them: by the debug information of the kernel's image and of
 * the programs that --symfs and --modules lead to.
 */
#ifndef VPROF_CLI_EXPORT_EXPORT_LINES_H
#define VPROF_CLI_EXPORT_EXPORT_LINES_H

#include "reading/input.h"

struct export_lines;

/* `input` is borrowed. */
struct export_lines *export_lines_new(struct input *input);
void export_lines_free(struct export_lines *lines);

/* mapping: as of resolver_find. *file lives as long as `lines`. False: not known. */
bool export_lines_find(struct export_lines *lines, enum profile_mode mode, uint64_t ip, const struct mapping *mapping,
                       const char **file, int *line);

#endif
