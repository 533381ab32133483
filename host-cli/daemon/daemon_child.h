// SPDX-License-Identifier: BSD-2-Clause
/*
 * The processes of the daemon besides the supervisor, one for each thing that may take long or fail: a function that
 * runs in a process of its own and says what it knows in lines of JSON on a socket. It ends when the supervisor closes
 * that socket, or is gone; before that, it is started again, with growing pauses.
 */
#ifndef VPROF_CLI_DAEMON_DAEMON_CHILD_H
#define VPROF_CLI_DAEMON_DAEMON_CHILD_H

#include <glib.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* ---- in the supervisor ---- */

/* Runs in the child; returns its exit status. fd: the socket. */
typedef int daemon_child_main(int fd, void *data);
/* A line of the child; `line` is borrowed. */
typedef void daemon_child_line(json_t *line, void *data);

struct daemon_child {
	pid_t pid;          /* 0: it does not run */
	int fd;             /* -1: closed by the child, or it does not run */
	GString *partial;   /* a line that is not yet complete */
	int64_t started_us; /* monotonic */
	int64_t due_us;     /* when it is to be started; 0: at once */
	int64_t pause_us;   /* before the last start */
	int64_t stop_us;    /* when it was told to end; 0: not yet */
	unsigned restarts;  /* after it ended by itself */
};

void daemon_child_init(struct daemon_child *child);
/* Kills the process if it still runs. */
void daemon_child_clear(struct daemon_child *child);

/* `name`: of the process, for ps. Without a process to be had, the next try is due later. */
void daemon_child_start(struct daemon_child *child, const char *name, daemon_child_main *main, void *data);
/* Reads what there is. */
void daemon_child_read(struct daemon_child *child, daemon_child_line *take, void *data);
/* Tells it to end. One that has not ended after DAEMON_CHILD_STOP_US is killed by daemon_child_reap. */
void daemon_child_stop(struct daemon_child *child);
#define DAEMON_CHILD_STOP_US (15 * G_USEC_PER_SEC)
/* True once, when the process has ended. The next start is due as daemon_child_ended says; at once if it was told to
 * end. */
bool daemon_child_reap(struct daemon_child *child);

/* It ended at `now_us`: the next start is due after a second, then twice as long, up to 5 minutes. */
void daemon_child_ended(struct daemon_child *child, int64_t now_us);

/* ---- in the child ---- */

/* Writes a line; steals `line`. False: the supervisor is gone. */
bool daemon_child_say(int fd, json_t *line);
/* Waits until the socket is closed, for timeout_ms at most; true: the child is to end. */
bool daemon_child_wait(int fd, int timeout_ms);

#endif
