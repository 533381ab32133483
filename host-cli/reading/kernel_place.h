// SPDX-License-Identifier: BSD-2-Clause
/* Where KASLR had put the kernel of a recording, from the mapping that perf takes it from, too. */
#ifndef VPROF_CLI_READING_KERNEL_PLACE_H
#define VPROF_CLI_READING_KERNEL_PLACE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/record/arch.h"
#include "lib/record/record.h"
#include "lib/symbol/symtab.h"

#define KERNEL_PLACE_NAME_BYTES 64u

/* All zero at first. */
struct kernel_place {
	char symbol[KERNEL_PLACE_NAME_BYTES]; /* "_text"; "" while no mapping of a kernel was seen */
	uint64_t address;                     /* where the last one has that symbol */
	bool moved;                           /* another one had it elsewhere: the guest has booted again */
};

/* Takes any record; all but mappings of kernels are ignored. */
void kernel_place_take(struct kernel_place *place, const struct perf_event_header *record, size_t bytes);

/*
 * `symtab` is of an image for `arch`. *slide: how far the kernel was from its address in `symtab`, of its image without
 * a slide; 0 if not known. False: no kernel can be so far away.
 */
bool kernel_place_slide(const struct kernel_place *place, enum arch arch, const struct symtab *symtab, uint64_t *slide);

#endif
