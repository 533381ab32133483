// SPDX-License-Identifier: BSD-2-Clause
/* What instructions of files are, of any system. */
#include "guest/file_code.h"

#include <string.h>

#include "guest/processor.h"

void file_code_walk(struct guest *guest, const struct guest_regs *regs, struct page_walk *walk)
{
	struct guest_regs kernels = *regs;

	processor_of(regs->processor)->memory->kernels(guest, 0, &kernels);
	page_walk_init_regs(walk, guest, &kernels);
}

bool file_code_equal(const struct file_code *a, const struct file_code *b)
{
	return a->mapping == b->mapping && a->number == b->number && a->super == b->super && a->offset == b->offset &&
	       a->n == b->n && memcmp(a->code, b->code, a->n) == 0;
}
