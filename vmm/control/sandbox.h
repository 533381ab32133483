// SPDX-License-Identifier: BSD-2-Clause
/*
 * What an engine can still do to the host after its guest has broken out: a list of system calls (seccomp), without new
 * privileges. Code that has taken over the engine can use what is already open, use the VM that there is, count events
 * of its own threads and answer its clients. It cannot open, write, make, remove or run a file, open a socket, make a
 * VM, or touch another process. Each kind of thread has a shorter list of its own beside.
 */
#ifndef VPROF_CONTROL_SANDBOX_H
#define VPROF_CONTROL_SANDBOX_H

#include <glib.h>
#include <stdbool.h>

#define SANDBOX_ERROR sandbox_error_quark()
GQuark sandbox_error_quark(void);
enum sandbox_error { SANDBOX_ERROR_UNAVAILABLE };

/* What a thread is for; a set of these is what a system call is for. */
enum sandbox_role {
	SANDBOX_CONTROL = 1, /* the main thread, and those that it starts */
	SANDBOX_VCPU = 2,
	SANDBOX_DEVICE = 4,  /* disks, consoles, the agent's port */
	SANDBOX_KEEPER = 8,  /* control/keeper.h, a process of its own */
	SANDBOX_ATTACH = 16, /* an engine that attaches: all of its threads */
	SANDBOX_ASKER = 32,  /* attach/asker.h, a process of its own */
};

/*
 * For all present and future threads, and for good; call it once: the calls of all kinds of thread. A system call that
 * is not on the list ends the program with SIGSYS, after a line on stderr that names it; those by which a C library
 * looks for files it can do without fail with EACCES. What needs other calls must be done before. `events`: this
 * process may open perf events itself.
 */
bool sandbox_enter(bool events, GError **error);

/* After it, for this thread and for good: only the calls of the role. Those that it starts inherit that. */
bool sandbox_narrow(enum sandbox_role role, GError **error);

/* For a process with one thread and one role. */
bool sandbox_enter_alone(enum sandbox_role role);

/*
 * The other engine's: for all present and future threads, and for good. It reads files (its user says which), and uses
 * the BPF programs that are loaded; it makes and connects no socket. Another call fails with EPERM. `events`: this
 * process may open perf events itself.
 */
bool sandbox_enter_attach(bool events, GError **error);

/*
 * That of its process that asks libvirt and QEMU: it reads files, and connects UNIX sockets. Another call fails with
 * EPERM, as libvirt's library tries some that it can do without.
 */
bool sandbox_enter_asker(GError **error);

/* Of control/x86 and control/arm64: what has another name, or is not there, on other processors. */
struct sandbox_call {
	int call;
	unsigned roles;
};
extern const struct sandbox_call sandbox_processor_calls[];
extern const size_t sandbox_processor_calls_n;
extern const int sandbox_processor_lookups[]; /* fail with EACCES */
extern const size_t sandbox_processor_lookups_n;
struct sandbox_ioctl {
	unsigned long number;
	unsigned roles;
};
extern const struct sandbox_ioctl sandbox_processor_ioctls[];
extern const size_t sandbox_processor_ioctls_n;

#endif
