// SPDX-License-Identifier: BSD-2-Clause
/*
 * Which users may do what on a control socket: lines "USER ROLE", where USER is a name or a uid and ROLE is observe,
 * instrument or control; "#" begins a comment. Root and the user of the engine may do everything. Other users may do
 * nothing without a line.
 */
#ifndef VPROF_CONTROL_POLICY_H
#define VPROF_CONTROL_POLICY_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

/* What a client may do; each includes those before it. */
enum control_role {
	ROLE_OBSERVE,    /* look */
	ROLE_INSTRUMENT, /* add instruments of its own, without effect on other clients */
	ROLE_CONTROL,    /* start, stop and configure; one client at a time */
};

/* "observe", "instrument", "control" */
const char *control_role_name(enum control_role role);

#define POLICY_USERS_MAX 1024u
#define POLICY_BYTES_MAX (256 * 1024)

struct policy;

/* Loads a file that belongs to root or to the user of the engine, and that other users cannot write. Error:
 * CONTROL_ERROR_LISTEN, with the number of the line. */
struct policy *policy_load(const char *path, GError **error);
/* The same for a text; `name` is for messages. */
struct policy *policy_parse(const char *name, const char *text, GError **error);
void policy_free(struct policy *policy);

/* The role (enum control_role) of a user other than root and the user of the engine, or -1: none. */
int policy_role(const struct policy *policy, uid_t uid);

#endif
