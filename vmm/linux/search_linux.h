// SPDX-License-Identifier: BSD-2-Clause
/*
 * How Linux is found in a guest's memory: for the list of searches of an engine's main.c. On x86-64, the first gate of
 * the interrupt descriptor table leads to the handler of divide errors, which every Linux has; where it does not, the
 * guest's page tables are searched for the kernel's mapping. On arm64, VBAR_EL1 leads to the kernel's vectors. What is
 * found there is checked by its banner and its own symbols.
 */
#ifndef VPROF_LINUX_SEARCH_LINUX_H
#define VPROF_LINUX_SEARCH_LINUX_H

#include "guest/os.h"

extern const struct os_search search_linux;

#endif
