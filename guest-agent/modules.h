// SPDX-License-Identifier: BSD-2-Clause
/* The kernel modules that the host put into the initramfs. */
#ifndef VPROF_AGENT_MODULES_H
#define VPROF_AGENT_MODULES_H

#include <stdbool.h>

/*
 * Loads them in the order of their file names, bare (module_bare.h) or unchanged. Prints on standard error which ones
 * cannot be loaded.
 */
void modules_load(bool bare);

#endif
