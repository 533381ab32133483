// SPDX-License-Identifier: BSD-2-Clause
/*
 * Profiles that wait on disk for a server: one file each, oldest first, in a folder that several pushes may share. A
 * file is one line of JSON followed by the profile; unreadable files are skipped.
 */
#ifndef VPROF_CLI_PUSH_PUSH_SPOOL_H
#define VPROF_CLI_PUSH_PUSH_SPOOL_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define PUSH_SPOOL_ERROR push_spool_error_quark()
GQuark push_spool_error_quark(void);
enum push_spool_error { PUSH_SPOOL_ERROR_FORMAT, PUSH_SPOOL_ERROR_BUSY };

#define PUSH_PROFILE_BYTES_MAX (64u << 20)

enum push_format { PUSH_FORMAT_PPROF, PUSH_FORMAT_OTLP };

/* A profile to be sent. */
struct push_profile {
	enum push_format format;
	char *name;               /* "APP{LABEL=VALUE,...}" */
	uint64_t from_s, until_s; /* seconds since the epoch */
	GBytes *bytes;
};

void push_profile_clear(struct push_profile *profile);
/* Reads the contents of a file of a spool; false: it is not of this version. */
bool push_profile_parse(const char *text, size_t n, struct push_profile *profile);

struct push_spool;

/* Opens the spool, and creates its folder if needed; NULL: the user's default. */
struct push_spool *push_spool_open(const char *folder, GError **error);
void push_spool_free(struct push_spool *spool);
const char *push_spool_folder(const struct push_spool *spool);

/* Writes the profile to disk. */
bool push_spool_add(struct push_spool *spool, const struct push_profile *profile, GError **error);

/*
 * Waits until `deadline_us` (monotonic) for another push to finish; error PUSH_SPOOL_ERROR_BUSY. Unlocked by
 * push_spool_free.
 */
bool push_spool_lock(struct push_spool *spool, int64_t deadline_us, GError **error);

/* The names of all files, oldest first: array of char *. */
GPtrArray *push_spool_list(const struct push_spool *spool);
struct push_spool_size {
	unsigned profiles;
	uint64_t bytes;
};
/* Removes the oldest files until at most max_bytes are left; returns how many were removed. left: NULL is fine. */
unsigned push_spool_trim(struct push_spool *spool, uint64_t max_bytes, struct push_spool_size *left);
/* False: no file has come or gone since then (microseconds since the epoch). */
bool push_spool_changed(const struct push_spool *spool, int64_t since_us);
/* True for the first time with that name: that the file cannot be read is to be said. */
bool push_spool_complain(struct push_spool *spool, const char *name);
bool push_spool_read(const struct push_spool *spool, const char *name, struct push_profile *profile, GError **error);
void push_spool_remove(struct push_spool *spool, const char *name);

#endif
