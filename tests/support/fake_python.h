// SPDX-License-Identifier: BSD-2-Clause
/*
 * A process of CPython in memory: a thread that executes <module> in one _PyEval_EvalFrameDefault, which has called C
 * code, which executes outer and inner, which outer has called, in another.
 */
#ifndef VPROF_TEST_SUPPORT_FAKE_PYTHON_H
#define VPROF_TEST_SUPPORT_FAKE_PYTHON_H

#include "fake_guest_memory.h"
#include "guest/python.h"
#include "guest/x86/page_tables_x86.h"

#define FAKE_PYTHON UINT64_C(0x440000) /* guest physical 0x40000, where the objects are; 64 KiB */
#define FAKE_PYTHON_GPA UINT64_C(0x40000)
#define FAKE_PYTHON_STACK (FAKE_PYTHON + 0x8000)
#define FAKE_PYTHON_UNITS 10u

struct fake_python {
	struct fake_guest fake;
	struct page_walk memory;
	struct python_process process;
	bool old; /* 3.11 */
};

static inline void fake_python_set(struct fake_python *python, uint64_t at, uint64_t value)
{
	fake_write(&python->fake, at - FAKE_PYTHON + FAKE_PYTHON_GPA, value);
}

static inline uint64_t fake_python_text(struct fake_python *python, uint64_t at, const char *text)
{
	fake_python_set(python, at + 16, strlen(text));
	fake_python_set(python, at + 32, 0x60); /* compact and ASCII */
	memcpy(python->fake.ram + (at - FAKE_PYTHON + FAKE_PYTHON_GPA) + (python->old ? 48 : 40), text, strlen(text));
	return at;
}

static inline uint64_t fake_python_code(struct fake_python *python, uint64_t at, const char *name)
{
	fake_python_set(python, at + 16, FAKE_PYTHON_UNITS);
	fake_python_set(python, at + 112, fake_python_text(python, at + 0x200, "/a.py"));
	fake_python_set(python, at + 128, fake_python_text(python, at + 0x300, name));
	fake_python_set(python, at + (python->old ? 72 : 64), python->old ? 7 : UINT64_C(7) << 32);
	return at;
}

/* unit: the instruction; -1: it has not begun. entry: no other one is executed by the same native frame. */
static inline uint64_t fake_python_frame(struct fake_python *python, uint64_t at, uint64_t code, int unit,
                                         uint64_t previous, bool entry)
{
	fake_python_set(python, at + (python->old ? 32 : 0), code);
	fake_python_set(python, at + (python->old ? 48 : 8), previous);
	fake_python_set(python, at + 56, code + (python->old ? 184 : 192) + (uint64_t)(int64_t)(2 * unit));
	fake_python_set(python, at + 64, python->old && entry ? UINT64_C(1) << 32 : 0);
	return at;
}

/* In 3.12, a frame of the C stack ends those of a native frame. */
static inline uint64_t fake_python_shim(struct fake_python *python, uint64_t at)
{
	fake_python_set(python, at + 64, UINT64_C(3) << 48);
	return at;
}

static inline void fake_python_init(struct fake_python *python, uint32_t version)
{
	const uint64_t runtime = FAKE_PYTHON, interpreter = FAKE_PYTHON + 0x400, thread = FAKE_PYTHON + 0x800,
		       stack = FAKE_PYTHON_STACK;
	const uint64_t inner = FAKE_PYTHON + 0x4100, outer = FAKE_PYTHON + 0x4200, module = FAKE_PYTHON + 0x4300;

	fake_guest_init(&python->fake);
	const uint64_t tables = fake_table_new(&python->fake);

	fake_map(&python->fake, tables, 4, FAKE_PYTHON - FAKE_PYTHON_GPA, 0, 2);
	page_walk_init(&python->memory, &python->fake.guest, tables, false);
	python->old = version < 0x030c0000;
	python->process = (struct python_process){python_layout_find(version), runtime};
	fake_python_set(python, runtime + 40, interpreter);
	fake_python_set(python, interpreter + (python->old ? 16 : 72), thread);
	fake_python_set(python, thread + 56, stack + 0x180);
	fake_python_set(python, stack + 0x180 + (python->old ? 8 : 0), inner);
	fake_python_set(python, stack + 0x180 + (python->old ? 16 : 8), stack + 0x380);
	fake_python_set(python, stack + 0x380 + (python->old ? 8 : 0), module);
	fake_python_frame(python, inner, fake_python_code(python, FAKE_PYTHON + 0x1000, "inner"), 3, outer, false);
	fake_python_frame(python, outer, fake_python_code(python, FAKE_PYTHON + 0x2000, "outer"), -1,
	                  python->old ? module : fake_python_shim(python, stack + 0x1a0), true);
	fake_python_frame(python, module, fake_python_code(python, FAKE_PYTHON + 0x3000, "<module>"), 5,
	                  python->old ? 0 : fake_python_shim(python, stack + 0x3a0), true);
}

/* outer seems to have been called by inner. */
static inline void fake_python_circle(struct fake_python *python)
{
	fake_python_frame(python, FAKE_PYTHON + 0x4200, FAKE_PYTHON + 0x2000, 1, FAKE_PYTHON + 0x4100, false);
}

#endif
