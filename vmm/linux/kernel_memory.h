// SPDX-License-Identifier: BSD-2-Clause
/*
 * The image of a running Linux kernel, made from the guest's memory: an ELF file as the linker would have made it for
 * where KASLR has put the kernel. Everything that reads kernel images (symbols from kallsyms, ORC, BTF, build-id) then
 * works on it as on a file. What the kernel has freed since its start is missing.
 */
#ifndef VPROF_LINUX_KERNEL_MEMORY_H
#define VPROF_LINUX_KERNEL_MEMORY_H

#include "guest/look.h"
#include "guest/page_walk.h"
#include "lib/symbol/image.h"

#define KERNEL_MEMORY_ERROR kernel_memory_error_quark()
GQuark kernel_memory_error_quark(void);
enum kernel_memory_error {
	KERNEL_MEMORY_ERROR_NONE,   /* no Linux kernel is mapped there */
	KERNEL_MEMORY_ERROR_MEMORY, /* it is, and cannot be read */
};

#define KERNEL_MEMORY_BYTES_MAX (UINT64_C(256) << 20) /* a distribution's kernel has 40 to 70 MiB */

/*
 * `walk`: of the look's guest; `code`: an address in the kernel's code. *fd gets a descriptor of the file, which is the
 * caller's.
 */
struct image *kernel_memory_image(struct look *look, const struct page_walk *walk, uint64_t code, int *fd,
                                  GError **error);

#endif
