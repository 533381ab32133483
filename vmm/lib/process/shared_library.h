// SPDX-License-Identifier: BSD-2-Clause
/*
 * Libraries that are loaded when they are needed: what few commands use must not cost all of them. The functions of a
 * library are a list, from which their table and their names come:
 *
 *	#define FUNCTIONS(F) F(curl_easy_init) F(curl_easy_perform)
 *	static struct { FUNCTIONS(SHARED_LIBRARY_POINTER) } libcurl;
 *	static const char *const names[] = {FUNCTIONS(SHARED_LIBRARY_NAME)};
 *
 * and after shared_library_load(CURL_SONAME, names, G_N_ELEMENTS(names), &libcurl, sizeof(libcurl), &error), calls are
 * libcurl.curl_easy_init().
 */
#ifndef VPROF_PROCESS_SHARED_LIBRARY_H
#define VPROF_PROCESS_SHARED_LIBRARY_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>

#define SHARED_LIBRARY_ERROR shared_library_error_quark()
GQuark shared_library_error_quark(void);
enum shared_library_error { SHARED_LIBRARY_ERROR_MISSING };

#define SHARED_LIBRARY_POINTER(function) __typeof__(&(function)) function;
#define SHARED_LIBRARY_NAME(function) #function,

/*
 * Fills table[0..bytes-1], n pointers to the functions of these names. soname: as in the program's own list of
 * libraries. The library stays loaded. Error: SHARED_LIBRARY_ERROR_MISSING, the library or a function; the table is
 * unchanged then.
 */
bool shared_library_load(const char *soname, const char *const *names, size_t n, void *table, size_t bytes,
                         GError **error);

/*
 * Tells packagers what the program loads at run time, in a note that dpkg's and rpm's tools read:
 * https://uapi-group.org/specifications/specs/elf_dlopen_metadata/. soname and feature: literals, which JSON takes as
 * they are.
 */
#define SHARED_LIBRARY_NOTE(soname, feature)                                                                  \
	__asm__(".pushsection .note.dlopen, \"a\", %note\n"                                                   \
	        "	.balign 4\n"                                                                                \
	        "	.long 2f - 1f, 4f - 3f, 0x407c0c0a\n"                                                       \
	        "1:	.asciz \"FDO\"\n"                                                                         \
	        "2:	.balign 4\n"                                                                              \
	        "3:	.asciz \"[{\\\"feature\\\":\\\"" feature "\\\",\\\"priority\\\":\\\"recommended\\\"," \
	        "\\\"soname\\\":[\\\"" soname "\\\"]}]\"\n"                                                   \
	        "4:	.balign 4\n"                                                                              \
	        ".popsection\n")

#endif
