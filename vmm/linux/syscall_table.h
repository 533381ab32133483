// SPDX-License-Identifier: BSD-2-Clause
/*
 * The system calls of a Linux kernel with the names and types of their parameters, as its own trace points have them:
 * struct syscall_metadata of linux/syscalls.h, in a kernel with CONFIG_FTRACE_SYSCALLS. The tables are untrusted.
 */
#ifndef VPROF_LINUX_SYSCALL_TABLE_H
#define VPROF_LINUX_SYSCALL_TABLE_H

#include "guest/btf.h"
#include "lib/symbol/symtab.h"

#define SYSCALL_PARAMETERS_MAX 6u

struct syscall_table;

/* Everything that is used of the image is copied. A kernel without such tables has no system calls here. */
struct syscall_table *syscall_table_load(const struct image *image, const struct symtab *symtab);
void syscall_table_free(struct syscall_table *table); /* NULL is fine */

/* Their names in the kernel's source, "openat" and "newstat", in alphabetic order, up to NULL. Borrowed. */
const char *const *syscall_table_names(const struct syscall_table *table);

bool syscall_table_has(const struct syscall_table *table, const char *call);

/*
 * Parameter number `i`, from 0 on, of a system call by the name above; types are found in `btf`, without which
 * numbers have 64 bits. The caller frees both. False: it has fewer, or there is no such call.
 */
bool syscall_table_parameter(const struct syscall_table *table, const struct btf *btf, const char *call, unsigned i,
                             char **name, struct btf_value *value);

#endif
