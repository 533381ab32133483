// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an engine can still do to the host after its guest has broken out: a list of system calls (seccomp), without new
 * privileges. Code that has taken over the engine can read files, use what is already open, use KVM, count events of
 * its own threads and answer its clients. It cannot write, make or run a file, open a socket, or touch another process.
 */
#ifndef VPROF_CONTROL_SANDBOX_H
#define VPROF_CONTROL_SANDBOX_H

#include <glib.h>
#include <stdbool.h>

#define SANDBOX_ERROR sandbox_error_quark()
GQuark sandbox_error_quark(void);
enum sandbox_error { SANDBOX_ERROR_UNAVAILABLE };

/*
 * For all present and future threads, and for good; call it once. A system call that is not on the list ends the
 * program with SIGSYS, after a line on stderr that names it. What needs other calls must be done before.
 */
bool sandbox_enter(GError **error);

#endif
