// SPDX-License-Identifier: BSD-2-Clause
/* The bytes of a guest's file on the host. */
#ifndef VPROF_SYMBOL_USER_FILE_H
#define VPROF_SYMBOL_USER_FILE_H

#include <glib.h>
#include <stddef.h>
#include <stdint.h>

#define USER_FILE_BYTES_MAX (UINT64_C(1) << 30)

/* All three: NULL when there is none. `name` is an absolute path in the guest, which chose it. */
GBytes *user_file_symfs(const char *folder, const char *name);
GBytes *user_file_initrd(const char *archive, const char *name);

#ifdef VPROF_HAVE_DEBUGINFOD
/* The file with the debug information, else the program itself. */
GBytes *user_file_debuginfod(const uint8_t *build_id, size_t build_id_bytes);
#else
static inline GBytes *user_file_debuginfod(const uint8_t *build_id, size_t build_id_bytes)
{
	(void)build_id, (void)build_id_bytes;
	return NULL;
}
#endif

#endif
