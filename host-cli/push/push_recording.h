// SPDX-License-Identifier: BSD-2-Clause
/* What is sent of a recording: a profile, with the labels by which a server finds it. */
#ifndef VPROF_CLI_PUSH_PUSH_RECORDING_H
#define VPROF_CLI_PUSH_PUSH_RECORDING_H

#include "push/push_spool.h"
#include "reading/input.h"

#define PUSH_DEFAULT_NAME "vprof"

/* Borrowed. */
struct push_naming {
	const char *application;   /* NULL: PUSH_DEFAULT_NAME */
	const char *const *labels; /* "NAME=VALUE", after push_labels_check; NULL-terminated, or NULL */
};

/*
 * The profile of event `event` (NULL: the first) in that format. Its labels are the guest, the host, the event, the
 * kernel's release and build-id, and those of `naming`. Errors: G_OPTION_ERROR; PUSH_SPOOL_ERROR_FORMAT, the profile is
 * larger than PUSH_PROFILE_BYTES_MAX.
 */
bool push_profile_make(struct input *input, const char *event, enum push_format format,
                       const struct push_naming *naming, struct push_profile *made, GError **error);

#endif
