// SPDX-License-Identifier: BSD-2-Clause
/*
 * What vprof-vmm and vprof-attach have in common: one guest, its session and its control socket, from the start to the
 * exit status. A program supplies how its guest is made (struct engine_ops); the main loop, the signals, the client
 * that owns the guest, the order of the tear-down and the rules of who lives how long are here.
 *
 * Signals. SIGPIPE, SIGTTIN and SIGTTOU are ignored. Until the control socket is served, the others have their default
 * action: there is nothing to finish. From then on SIGINT (with an owner: ignored, as it interrupts the owner, too),
 * SIGTERM and SIGHUP stop the guest; the second one exits at once, with 128 and its number.
 *
 * The end. An engine without an owner exits when its guest has ended. With an owner it waits until the owner has read
 * what it wants, which then executes `quit` or disconnects. A `quit` before the guest's end stops the guest.
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
	/* Clients are served, the guest has not run: for what is given up, and what is said, before it does. */
	bool (*ready)(void *data, GError **error);
	/* The loop has ended, or the start has failed; clients are still connected. */
	void (*finish)(void *data);
	/* No client is left. Ends the guest, if it still runs, with its threads. */
	void (*shutdown)(struct guest *guest);
	void (*free)(struct guest *guest);
	int (*status)(void *data); /* exit status after a guest; NULL: EXIT_SUCCESS */
};

/* What the programs' command lines have in common. */
struct engine_config {
	int client_fd;        /* a connected socket, the owner's; -1: no owner */
	const char *control;  /* path of the control socket, or "none"; NULL: a service manager's, or the default */
	const char *policy;   /* file (control/policy.h); NULL: none */
	const char *delivery; /* or route, when a session does not say; NULL: the first that works */
	bool paused;          /* the guest waits for guest-start */
};

/* Runs the guest to its end. Returns the exit status; errors go to standard error. */
int engine_run(const struct engine_ops *ops, const struct engine_config *config, void *data);

/* "NAME: MESSAGE" on standard error. */
void engine_complain(const struct engine_ops *ops, const GError *error);

#endif
