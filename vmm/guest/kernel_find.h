// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which kernel a running guest has, and where that has put itself: one of the systems of the guest (struct os_search)
 * finds it, in memory or as the image given. An image is checked by its build-id.
 */
#ifndef VPROF_GUEST_KERNEL_FIND_H
#define VPROF_GUEST_KERNEL_FIND_H

#include "guest/look.h"
#include "guest/page_walk.h"
#include "lib/symbol/image.h"

#define KERNEL_FIND_ERROR kernel_find_error_quark()
GQuark kernel_find_error_quark(void);
enum kernel_find_error {
	KERNEL_FIND_ERROR_EARLY, /* no kernel runs yet: the vCPU is not in long mode */
	KERNEL_FIND_ERROR_NONE,  /* no kernel of a known system runs (yet) */
	KERNEL_FIND_ERROR_OTHER, /* it is another one than the image given */
};

/* All zero: not found. */
struct kernel_found {
	struct image *image; /* with the addresses of the guest */
	int fd;              /* its file; -1: the image has no contents any more */
};

/*
 * `registers`: of any vCPU. `path`: an image that it should be, or NULL for what the guest's memory holds; `file`: that
 * image, open for reading. An image of no known system is taken to be where it was linked. Any thread. Errors:
 * KERNEL_FIND_ERROR, IMAGE_ERROR, SYMTAB_ERROR, and those of what reads it in memory.
 */
bool kernel_find(struct look *look, const struct seen_vcpu *registers, const char *path, int file,
                 struct kernel_found *found, GError **error);
/*
 * Whether a kernel with a build-id that was found earlier is still where it was, by a vCPU's page tables. False also
 * where they do not map it, as those of a guest that is being reset.
 */
bool kernel_find_again(struct guest *guest, const struct seen_vcpu *registers, const struct kernel_found *found);
/* A number that is the same, and not 0, as long as a search by this vCPU would begin with the same. */
uint64_t kernel_find_mark(struct guest *guest, const struct seen_vcpu *registers);
/* What was found, as the guest's memory has it, by the page tables of a vCPU; NULL: it cannot be read. */
struct image *kernel_find_running(struct look *look, const struct seen_vcpu *registers,
                                  const struct kernel_found *found);
/* Where its first segment is in the guest; 0: it has none. */
uint64_t kernel_find_address(const struct image *image);
void kernel_found_clear(struct kernel_found *found);

/*
 * For the systems: sets the slide of the image given if it is one and the build-id is where it says then. Of several
 * tries, the first error stays.
 */
bool kernel_find_slide(struct kernel_found *found, struct page_walk *walk, uint64_t slide, GError **error);

#endif
