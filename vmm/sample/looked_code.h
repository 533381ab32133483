// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the processes of a look at tasks have code: for the part of their call chains in user space, and to say which
 * file an address there is of. Main thread only.
 */
#ifndef VPROF_SAMPLE_LOOKED_CODE_H
#define VPROF_SAMPLE_LOOKED_CODE_H

#include "guest/os.h"
#include "guest/python.h"
#include "guest/task.h"
#include "guest/user_code.h"
#include "lib/record/record.h"
#include "sample/table_store.h"

struct looked_mapping {
	uint64_t start, end;
	uint64_t file_offset; /* of the byte at `start` */
	const char *file;     /* path in the guest, or what perf calls memory without one */
	uint8_t build_id[RECORD_BUILD_ID_BYTES_MAX];
	size_t build_id_bytes; /* 0: not known */
	bool has_table;        /* by which it is unwound */
};

#define LOOKED_PYTHON_MAX 4096u /* frames of a process that are remembered */

struct looked_code;

/* `kernel`: with mappings. Both are borrowed, as long as mappings are read. */
struct looked_code *looked_code_new(const struct os_kernel *kernel, struct table_store *tables);
void looked_code_free(struct looked_code *code); /* NULL is fine */

/*
 * The code of the task's process, read once; NULL: it has none, or it cannot be read. `walk`: in its address space,
 * with the kernel's part.
 */
const struct user_code *looked_code_read(struct looked_code *code, struct page_walk *walk, const struct task *task);
/* The mapping of a process that was read with an address of it; NULL. */
const struct looked_mapping *looked_code_find(const struct looked_code *code, uint64_t mm, uint64_t address);

/* Remembers the name of a Python frame of a process that was read, by its address. */
void looked_code_add_python(struct looked_code *code, uint64_t mm, const struct python_frame *frame,
                            struct page_walk *walk);
/* "py::NAME:FILE"; NULL: no such frame is at this address. */
const char *looked_code_find_python(const struct looked_code *code, uint64_t mm, uint64_t ip);

#endif
