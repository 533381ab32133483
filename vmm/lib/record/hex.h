// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_RECORD_HEX_H
#define VPROF_RECORD_HEX_H

#include <stddef.h>
#include <stdint.h>

/* `n` bytes as 2n lower-case hexadecimal digits, the way build-ids are written. The caller frees it (g_free). */
char *hex_encode(const void *bytes, size_t n);
/* The bytes that pairs of digits say: their number, or 0 when they are not pairs of digits or more than `max`. */
size_t hex_decode(const char *text, uint8_t *bytes, size_t max);

#endif
