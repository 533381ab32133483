// SPDX-License-Identifier: BSD-2-Clause
/* Frames of arm64, for what a system adds to them: tasks that were switched away, and entries of the kernel. */
#ifndef VPROF_GUEST_ARM64_FRAME_ARM64_H
#define VPROF_GUEST_ARM64_FRAME_ARM64_H

#include "guest/frame.h"

/* The bits of a return address that may be its signature, by these tables. */
uint64_t frame_return_mask(const struct guest_tables_arm64 *tables);
/* For user space, where call frame information leads on: the registers that the frame has. */
void frame_registers_set(struct frame *frame);

#endif
