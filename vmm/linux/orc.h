// SPDX-License-Identifier: BSD-2-Clause
/*
 * ORC: Linux's table of how to step from a kernel address to its caller (Documentation/arch/x86/orc-unwinder.rst,
 * arch/x86/include/asm/orc_types.h), taken from a kernel image's .orc_unwind_ip, .orc_unwind and .orc_header sections.
 *
 * The encoding changed three times; entries are translated to one form when the table is loaded:
 *   up to 6.2   type in bits 8-9, end in bit 10
 *   6.3         type in bits 8-9, signal in bit 10, end in bit 11
 *   6.4         type in bits 8-10 with "undefined" and "end of stack" as types of their own, signal in bit 11
 *   7.1         as 6.4, with the registers renumbered
 */
#ifndef VPROF_LINUX_ORC_H
#define VPROF_LINUX_ORC_H

#include <glib.h>
#include <stdint.h>

#include "guest/unwind.h"

/* Copies what it needs; the image may be freed. Errors: UNWIND_ERROR; _NONE: the image has no ORC sections: built with
 * frame pointers, or not a Linux kernel; _VERSION: an .orc_header of an unknown version. */
struct unwind_tables *orc_load(const struct image *image, GError **error);
void orc_free(struct unwind_tables *orc);

size_t orc_entries(const struct unwind_tables *orc);

/* struct os_unwinding: step */
enum step unwind_orc_step(const struct unwind_config *config, struct page_walk *memory, struct frame *frame,
                          enum unwind_end *end);

#endif
