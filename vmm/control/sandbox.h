// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is left of the host for an engine whose guest has broken out: a list of system calls (seccomp), and no new
 * privileges. Whoever holds the engine can still read files and what is open already, use KVM, count its own threads'
 * events and answer its clients; it cannot write, make or run a file, open a socket, or touch another process.
 */
#ifndef VPROF_CONTROL_SANDBOX_H
#define VPROF_CONTROL_SANDBOX_H

#include <glib.h>
#include <stdbool.h>

#define SANDBOX_ERROR sandbox_error_quark()
GQuark sandbox_error_quark(void);
enum sandbox_error { SANDBOX_ERROR_UNAVAILABLE };

/*
 * For every thread that there is or will be, once, and for good. A call that is not on the list ends the program with
 * SIGSYS, after a line on stderr that says which. Everything that needs more than the list is done before.
 */
bool sandbox_enter(GError **error);

#endif
