// SPDX-License-Identifier: BSD-2-Clause
/*
 * The trace points of a Linux kernel for x86-64, by the tables of its image (linux/tracepoint.h, linux/jump_label.h):
 * where they are, and how the code at each place loads the arguments.
 *
 * Such a place is a nop, which the kernel turns into a jump while the trace point is in use. The jump leads to a block
 * of code apart from the function's, which loads the arguments and calls __traceiter_EVENT. That block is interpreted
 * with the registers that a vCPU has at the nop, as if the trace point was in use; nothing of it is executed.
 */
#ifndef VPROF_LINUX_TRACEPOINT_H
#define VPROF_LINUX_TRACEPOINT_H

#include "guest/tracepoint.h"
#include "lib/symbol/symtab.h"

#define TRACEPOINT_ERROR tracepoint_error_quark()
GQuark tracepoint_error_quark(void);
enum tracepoint_error {
	TRACEPOINT_ERROR_NONE, /* the kernel has none, or does not say where */
};

/* Everything that is used of the image is copied. About 50 ms and 6 MiB for the kernel of a distribution. */
struct tracepoints *tracepoints_load(const struct image *image, const struct symtab *symtab, GError **error);
void tracepoints_free(struct tracepoints *self); /* NULL is fine */

/* All of them, by name; of struct tracepoint. */
const GPtrArray *tracepoints_all(const struct tracepoints *self);
/* "sched:sched_switch"; NULL. */
const struct tracepoint *tracepoints_find(const struct tracepoints *self, const char *name);
/*
 * The arguments by the kernel's BTF; NULL: those that can be in registers, by number. Of struct
 * tracepoint_argument, at most TRACEPOINT_ARGUMENTS_MAX; the caller unrefs it.
 */
GArray *tracepoint_arguments(const struct tracepoint *tracepoint, const struct btf *btf);
/* Whether they are known at all of its places. */
bool tracepoint_has_arguments(const struct tracepoint *tracepoint);

/*
 * What a vCPU does that is at `ip`: the nop, or behind it or at the block's begin, where a probe has to be there. No
 * lock and no allocation.
 */
enum tracepoint_outcome tracepoint_site_run(const struct tracepoint *tracepoint, const struct tracepoint_site *site,
                                            struct guest *guest, const struct guest_regs *regs,
                                            const struct guest_gprs *gprs, size_t n, uint64_t *arguments);

#endif
