// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guests of this host as they come and go. Processes are looked for in /proc; libvirt's domains are told by
 * `vprof-attach --list --follow`, a process that hears libvirt's events for as long as it is wanted.
 */
#ifndef VPROF_CLI_ENGINE_GUEST_WATCH_H
#define VPROF_CLI_ENGINE_GUEST_WATCH_H

#include <glib.h>
#include <jansson.h>
#include <stdint.h>

#include "engine/attach_engine.h"

/* What options.connect points to is borrowed; the other members are zero at first. One thread at a time. */
struct guest_watch {
	struct attach_engine_options options;
	GPid follower;     /* 0: none */
	int fd;            /* of its messages; valid with a follower */
	GString *partial;  /* a line of it that is not yet complete */
	unsigned lines;    /* of it until now */
	int64_t due_us;    /* of the next one */
	int64_t lost_us;   /* when the last one ended; 0: domains are as they are now */
	json_t *processes; /* when libvirt was asked last */
	json_t *domains;   /* what it said; NULL: nothing */
	char *why;         /* it says nothing; NULL: it does */
};

/*
 * All of them, as guest_list has them: new objects, which the caller may change. Waits for libvirt where a process has
 * come or gone, for some seconds at most. While libvirt is away for less than a minute, its domains are those of
 * before.
 */
json_t *guest_watch_look(struct guest_watch *watch);
/* Readable when libvirt has something to tell; -1: it never has. */
int guest_watch_fd(const struct guest_watch *watch);
void guest_watch_deinit(struct guest_watch *watch);

#endif
