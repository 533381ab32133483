// SPDX-License-Identifier: BSD-2-Clause
/*
 * Files that a user names for output. A new file is made under a temporary name in its folder and renamed, so that it
 * goes through no file or link of another user. Devices, pipes and the caller's own descriptors (/dev/stdout) are
 * written as they are. A symbolic link is followed only if it belongs to the caller and its target exists.
 */
#ifndef VPROF_RECORD_OUTPUT_H
#define VPROF_RECORD_OUTPUT_H

#include <glib.h>
#include <stdbool.h>
#include <sys/types.h>

struct output {
	int fd;          /* for writing; may be closed by the caller, and is -1 then */
	char *place;     /* the file's path without links */
	char *temporary; /* its path until it is published; NULL: `fd` writes to the place itself */
};

/*
 * Creates an empty file, or opens a device. flags: O_NONBLOCK, or 0. mode: of the file, less the umask. Errors:
 * G_FILE_ERROR, with the path.
 */
bool output_create(struct output *output, const char *path, int flags, mode_t mode, GError **error);
/* Renames the file to its place. keep: a file there becomes PLACE.old. */
bool output_publish(struct output *output, bool keep, GError **error);
/* Closes the file, and removes it unless it was published. */
void output_clear(struct output *output);

/*
 * Opens a file where it is, or creates it: for what is read while it is written, or appended to. flags: O_TRUNC or
 * O_APPEND. Returns a descriptor, or -1 with an error as above.
 */
int output_open(const char *path, int flags, mode_t mode, GError **error);

#endif
