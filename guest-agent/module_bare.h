// SPDX-License-Identifier: BSD-2-Clause
/* Parts of a kernel module that cost minutes where the guest's kernel is emulated. */
#ifndef VPROF_AGENT_MODULE_BARE_H
#define VPROF_AGENT_MODULE_BARE_H

#include <stdbool.h>

/*
 * Removes the signature from the module in a writable file, and hides its types (BTF), so that the kernel, which needs
 * neither, does not process them. False: it could not be written. A file other than a module stays unchanged.
 */
bool module_bare(int fd);

/* Restores the types that module_bare has hidden. */
bool module_with_types(int fd);

#endif
