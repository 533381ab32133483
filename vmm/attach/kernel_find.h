// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which kernel a running guest has, and where KASLR has put it. On x86-64, the first gate of the interrupt descriptor
 * table leads to the handler of divide errors, which every Linux has; where it does not, the guest's page tables are
 * searched for the kernel's mapping. On arm64, VBAR_EL1 leads to the kernel's vectors. What is found there is checked:
 * by its banner and its own symbols, or against the build-id of the image given.
 */
#ifndef VPROF_ATTACH_KERNEL_FIND_H
#define VPROF_ATTACH_KERNEL_FIND_H

#include "guest/look.h"
#include "lib/symbol/image.h"
#include "lib/symbol/symtab.h"

#define KERNEL_FIND_ERROR kernel_find_error_quark()
GQuark kernel_find_error_quark(void);
enum kernel_find_error {
	KERNEL_FIND_ERROR_EARLY, /* no kernel runs yet: the vCPU is not in long mode */
	KERNEL_FIND_ERROR_NONE,  /* no Linux kernel runs (yet) */
	KERNEL_FIND_ERROR_OTHER, /* it is another one than the image given */
};

/* All zero: not found. */
struct kernel_found {
	struct image *image; /* with the addresses of the guest */
	int fd;              /* its file; -1: the image has no contents any more */
};

/*
 * `registers`: of any vCPU. `path`: an image that it should be, or NULL for what the guest's memory holds; `file`: that
 * image, open for reading. An image that is no Linux kernel is taken to be where it was linked. Any thread. Errors:
 * KERNEL_FIND_ERROR, KERNEL_MEMORY_ERROR, IMAGE_ERROR, SYMTAB_ERROR.
 */
bool kernel_find(struct look *look, const struct seen_vcpu *registers, const char *path, int file,
                 struct kernel_found *found, GError **error);
/*
 * Whether a kernel with a build-id that was found earlier is still where it was, by a vCPU's page tables. False also
 * where they do not map it, as those of a guest that is being reset.
 */
bool kernel_find_again(struct guest *guest, const struct seen_vcpu *registers, const struct kernel_found *found);
/*
 * A number that is the same, and not 0, as long as a search by this vCPU would begin with the same: its table of
 * vectors and the page tables of the kernel's half. Ten reads at most.
 */
uint64_t kernel_find_mark(struct guest *guest, const struct seen_vcpu *registers);
/* Where its first segment is in the guest; 0: it has none. */
uint64_t kernel_find_address(const struct image *image);
void kernel_found_clear(struct kernel_found *found);

#endif
