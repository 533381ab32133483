// SPDX-License-Identifier: BSD-2-Clause
/*
 * The bytes of a guest's file on the host: sealed memory (lib/parser), or a file that is only opened yet. The caller
 * closes both.
 */
#ifndef VPROF_SYMBOL_USER_FILE_H
#define VPROF_SYMBOL_USER_FILE_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define USER_FILE_BYTES_MAX (UINT64_C(1) << 30)

/* Sealed memory with all of a regular file, and its size. -1 with IMAGE_ERROR_IO, as a clause without a subject. */
int user_file_open(const char *path, uint64_t *bytes, GError **error);

/* A regular file below `folder`, opened; -1 when there is none. `name` is an absolute path in the guest, which chose
 * it. */
int user_file_symfs(const char *folder, const char *name);

struct user_archive;

/* The archives in a file, which is read when a member is looked for. */
struct user_archive *user_archive_new(const char *path);
void user_archive_free(struct user_archive *archive);
const char *user_archive_path(const struct user_archive *archive);

/*
 * Sealed memory with a member of it; -1 when there is none, and with PARSER_ERROR when the archive cannot be unpacked.
 * After that, it is not read again: each try may take all the time that a parser has.
 */
int user_archive_find(struct user_archive *archive, const char *name, GError **error);

#ifdef VPROF_HAVE_DEBUGINFOD
/* Loads libdebuginfod. Error: SHARED_LIBRARY_ERROR. */
bool user_file_debuginfod_load(GError **error);
#define USER_FILE_DEBUGINFOD_SECONDS 600
/*
 * The file with the debug information, unless `executable`, else the program itself, opened; -1 when there is none, it
 * is larger than vprof-parse reads, or the servers take longer.
 */
int user_file_debuginfod(const uint8_t *build_id, size_t build_id_bytes, bool executable);
#else
static inline bool user_file_debuginfod_load(GError **error)
{
	g_set_error_literal(error, G_FILE_ERROR, G_FILE_ERROR_NOSYS, "this vprof was built without libdebuginfod");
	return false;
}
static inline int user_file_debuginfod(const uint8_t *build_id, size_t build_id_bytes, bool executable)
{
	(void)build_id, (void)build_id_bytes, (void)executable;
	return -1;
}
#endif

#endif
