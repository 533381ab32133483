// SPDX-License-Identifier: BSD-2-Clause
/*
 * What vprof-vmm and vprof-attach have in common: one guest, its session and its control socket, from the start to the
 * exit status. A program supplies how its guest is made (struct engine_ops); the main loop, the signals, the client
 * that owns the guest, the order of the tear-down and the rules of who lives how long are here.
 *
 * Signals. SIGPIPE, SIGTTIN and SIGTTOU are ignored. Until the control socket is served, the others have their default
 * action: there is nothing to finish. From then on SIGINT (with an owner: ignored, as it interrupts the owner, too),
 * SIGTERM and SIGHUP stop the guest; the second one exits at once, with 128 and its number. Where the main thread waits
 * for one that does not come back, that happens three seconds later (lib/process/watchdog.h).
 *
 * The look. What takes a while to learn of the guest is looked at while signals and other clients are served; the owner
 * is served, and the guest started, when the look has ended. An owner that goes meanwhile ends the guest.
 *
 * The end. An engine without an owner ends when its guest has. With an owner it first waits until the owner has read
 * what it wants, which then executes `quit` or disconnects; before the guest's end that stops the guest. In both cases
 * the engine then lingers while other clients hold the control role, wait for an answer or have not read all
 * (control_server_wanted), for "linger-ms" of the configuration at most. `quit` of another client, or a signal, ends
 * it. An engine that lingers holds nothing that a new one of the same guest needs: it has let go of the guest's disks
 * or its monitor, and with an owner, of standard input, output and error; and its socket is a newcomer's to replace.
 */
#ifndef VPROF_ENGINE_ENGINE_H
#define VPROF_ENGINE_ENGINE_H

#include <glib.h>
#include <stdbool.h>

#include "guest/guest.h"
#include "sample/session.h"

struct engine_ops {
	const char *name;    /* of the program, before each message */
	const char *stopped; /* the guest's end by a signal, as guest_end.message has it */
	/* Makes the guest; the engine sets its listeners. */
	struct guest *(*make)(void *data, GError **error);
	/* The session exists, clients are not served yet. May be NULL, as may the others below, except `free`. */
	bool (*launch)(struct guest *guest, GError **error);
	/*
	 * The socket is there, no client is served yet, the guest has not run: for what is given up, and what is said,
	 * before it does; and for what is read of a guest with fewer rights.
	 */
	bool (*ready)(void *data, GError **error);
	/*
	 * Begins the look, after that, and returns. `looked` is called once when it has ended, on the main thread and
	 * not before the return, unless the guest is released before; with an error, the engine ends. NULL: there is
	 * none.
	 */
	void (*look)(void *data, void (*looked)(void *engine, const GError *why), void *engine);
	/* The exit status after the guest's end; NULL: EXIT_SUCCESS. */
	int (*status)(void *data);
	/*
	 * Once. Ends the guest, if it still runs, with its threads, and lets go of what another engine may want of it.
	 * What describes the guest stays: clients may still be served.
	 */
	void (*release)(void *data);
	void (*free)(struct guest *guest);
};

/* What the programs' command lines have in common. */
struct engine_config {
	int client_fd;        /* a connected socket, the owner's; -1: no owner */
	const char *control;  /* path of the control socket, or "none"; NULL: a service manager's, or the default */
	const char *policy;   /* file (control/policy.h); NULL: none */
	const char *delivery; /* or route, when a session does not say; NULL: the first that works */
	bool paused;          /* the guest waits for guest-start */
	const struct guest_os *const *systems; /* struct guest */
};

/* Runs the guest to its end. Returns the exit status; errors go to standard error. */
int engine_run(const struct engine_ops *ops, const struct engine_config *config, void *data);

/* "NAME: MESSAGE" on standard error. */
void engine_complain(const struct engine_ops *ops, const GError *error);

#endif
