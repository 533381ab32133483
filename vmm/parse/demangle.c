// SPDX-License-Identifier: BSD-2-Clause
/* By libiberty, which binutils, GDB and perf use. */
#include <demangle.h>
#include <setjmp.h>
#include <string.h>

#include "parse/parse.h"

/* Longer ones stay as they are: a name of a hundred bytes can stand for one of a gigabyte. */
#define MANGLED_BYTES_MAX 2000u
#define DEMANGLED_BYTES_MAX 4000u

/* libiberty's functions with a callback keep nothing of their own that leaving them would lose. */
static struct {
	char name[DEMANGLED_BYTES_MAX + 1];
	size_t n;
	jmp_buf full;
} written;

static void write_piece(const char *piece, size_t n, void *data)
{
	(void)data;
	if (n > DEMANGLED_BYTES_MAX - written.n)
		longjmp(written.full, 1);
	memcpy(written.name + written.n, piece, n);
	written.n += n;
}

/* As perf has them: without the types of arguments. Those of Rust first, which in its old form are C++'s with a hash.
 */
static bool demangle(const char *name)
{
	written.n = 0;
	if (setjmp(written.full) != 0)
		return false;
	if (rust_demangle_callback(name, DMGL_NO_OPTS, write_piece, NULL))
		return written.n > 0;
	written.n = 0;
	return cplus_demangle_v3_callback(name, DMGL_NO_OPTS, write_piece, NULL) && written.n > 0;
}

const char *parse_demangled(const char *name)
{
	if ((!g_str_has_prefix(name, "_Z") && !g_str_has_prefix(name, "_R")) || strlen(name) > MANGLED_BYTES_MAX ||
	    !demangle(name))
		return name;
	written.name[written.n] = '\0';
	return written.name;
}
