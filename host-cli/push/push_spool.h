// SPDX-License-Identifier: BSD-2-Clause
/*
 * Profiles that wait on disk until a server has taken them: a file each, oldest first, in a folder that several pushes
 * may share. A file is one line of JSON and the profile behind it; what cannot be read is nobody's profile.
 */
#ifndef VPROF_CLI_PUSH_SPOOL_H
#define VPROF_CLI_PUSH_SPOOL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define PUSH_SPOOL_ERROR push_spool_error_quark()
GQuark push_spool_error_quark(void);
enum push_spool_error { PUSH_SPOOL_ERROR_FORMAT, PUSH_SPOOL_ERROR_BUSY };

#define PUSH_PROFILE_BYTES_MAX (64u << 20)

/* A profile on its way. */
struct push_profile {
	char *name;               /* "APP{LABEL=VALUE,...}" */
	uint64_t from_s, until_s; /* seconds since the epoch */
	GBytes *pprof;
};

void push_profile_clear(struct push_profile *profile);

struct push_spool;

/* Makes the folder if there is none; NULL: the user's own. */
struct push_spool *push_spool_open(const char *folder, GError **error);
void push_spool_free(struct push_spool *spool);
const char *push_spool_folder(const struct push_spool *spool);

/* Puts it on disk. */
bool push_spool_add(struct push_spool *spool, const struct push_profile *profile, GError **error);

/* Waits until `deadline_us` (monotonic) for others that send; PUSH_SPOOL_ERROR_BUSY. By push_spool_free. */
bool push_spool_lock(struct push_spool *spool, int64_t deadline_us, GError **error);

/* The names of all files, oldest first: array of char *. */
GPtrArray *push_spool_list(const struct push_spool *spool);
/* Removes the oldest until at most max_bytes are left; returns how many that were. */
unsigned push_spool_trim(struct push_spool *spool, uint64_t max_bytes);
bool push_spool_read(const struct push_spool *spool, const char *name, struct push_profile *profile, GError **error);
void push_spool_remove(struct push_spool *spool, const char *name);

#endif
