// SPDX-License-Identifier: BSD-2-Clause
/* Whether a program or library is CPython, and where it keeps what its frames are found by (guest/python.h). */
#ifndef VPROF_SYMBOL_PYTHON_FILE_H
#define VPROF_SYMBOL_PYTHON_FILE_H

#include "lib/symbol/image.h"

struct python_file {
	uint32_t version; /* PY_VERSION_HEX; 0: it is no CPython from 3.11 on, or that part of it is not known */
	uint64_t runtime; /* address of _PyRuntime, from where the file's first byte would be by its mapping of code */
};

struct python_file python_file_read(const struct image *image);

#endif
