// SPDX-License-Identifier: BSD-2-Clause
/* What a kernel module carries that only costs time where the guest's kernel is emulated. */
#ifndef VPROF_AGENT_MODULE_BARE_H
#define VPROF_AGENT_MODULE_BARE_H

#include <stdbool.h>

/*
 * Takes the signature off the module in a file that can be written, and hides its types (BTF), so that the kernel,
 * which may do without both, does not look into them. False: it could not be written. A file that is no module stays as
 * it is.
 */
bool module_bare(int fd);

/* Brings the types back that module_bare has hidden. */
bool module_with_types(int fd);

#endif
