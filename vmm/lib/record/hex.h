// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_RECORD_HEX_H
#define VPROF_RECORD_HEX_H

#include <stddef.h>

/* `n` bytes as 2n lower-case hexadecimal digits, the way build-ids are written. The caller frees it (g_free). */
char *hex_encode(const void *bytes, size_t n);

#endif
