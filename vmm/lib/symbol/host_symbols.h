// SPDX-License-Identifier: BSD-2-Clause
/*
 * Symbols of this host's own code: its kernel, by /proc/kallsyms and /proc/modules, and the files that one process has
 * mapped, by /proc/PID/maps. What runs on a vCPU thread outside the guest is either.
 */
#ifndef VPROF_SYMBOL_HOST_SYMBOLS_H
#define VPROF_SYMBOL_HOST_SYMBOLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct host_symbols;

struct host_symbol {
	uint64_t address, size;
	const char *name;   /* "qemu-system-x86_64+0x3a1b0" in a file without symbols there */
	const char *module; /* "[host]", "[kvm]", a file's path, "[vdso]" */
};

/*
 * As they are now: if the process ends later, its files are still found. `proc`: where the proc file system is.
 * debuginfod: ask the servers of $DEBUGINFOD_URLS for symbols of files. Never NULL.
 */
struct host_symbols *host_symbols_new(const char *proc, pid_t process, bool debuginfod);
void host_symbols_free(struct host_symbols *symbols);

/* Why the kernel, or the process, has no symbols, and what to do about it; NULL: it has. */
const char *host_symbols_kernel_why(const struct host_symbols *symbols);
const char *host_symbols_process_why(const struct host_symbols *symbols);

/* The function at an address. False when nothing is known of it. The strings live as long as `symbols`. */
bool host_symbols_find(struct host_symbols *symbols, uint64_t address, struct host_symbol *symbol);

#endif
