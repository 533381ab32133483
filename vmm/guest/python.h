// SPDX-License-Identifier: BSD-2-Clause
/*
 * The frames of a program in Python, as CPython keeps them in memory: lib/symbol/python_file.h tells where its
 * _PyRuntime is. In 3.11 and 3.12, each _PyEval_EvalFrameDefault has a _PyCFrame in its own stack frame, which leads to
 * the Python frames that it executes: so they have their places between the native ones, whatever the compiler has
 * made of that function.
 *
 * Whatever guest memory contains: at most PYTHON_THREADS_MAX threads are looked at, and one frame is read at each step.
 * No lock, no allocation.
 */
#ifndef VPROF_GUEST_PYTHON_H
#define VPROF_GUEST_PYTHON_H

#include "guest/page_walk.h"
#include "guest/user_code.h"

#define PYTHON_THREADS_MAX 64u
#define PYTHON_NAME_BYTES 384u /* longer ones are cut */

/* A code object, and the place in it. */
struct python_frame {
	uint64_t code;       /* its address */
	uint64_t start, end; /* its instructions; they are data of the process */
	uint64_t ip;         /* in them, behind the first byte of what is executed */
	uint64_t name, file; /* addresses of its texts */
	uint32_t line;       /* where it begins */
};

struct python_walk {
	const struct python_layout *layout; /* NULL: there are no frames */
	uint64_t cframe;                    /* the next _PyCFrame; 0: none */
	uint64_t frame;                     /* the next frame of the one before; 0: none */
};

/* Whether frames of this version (PY_VERSION_HEX) can be read: the layout of python_process; else NULL. */
const struct python_layout *python_layout_find(uint32_t version);

/* Finds the thread with this stack pointer. `process`: of user_code. */
void python_walk_init(struct python_walk *walk, const struct python_process *process, struct page_walk *memory,
                      uint64_t sp);

/*
 * The next Python frame, innermost first, that is executed by the native frame with the stack from `from` to `to`;
 * false: it executes no more. Call it for native frames in their order until it returns false.
 */
bool python_walk_next(struct python_walk *walk, struct page_walk *memory, uint64_t from, uint64_t to,
                      struct python_frame *frame);

/* "py::NAME:FILE", as perf trampolines of Python name it; what cannot be read or printed is '?'. */
void python_frame_name(const struct python_frame *frame, const struct python_process *process, struct page_walk *memory,
                       char name[PYTHON_NAME_BYTES]);

#endif
