// SPDX-License-Identifier: BSD-2-Clause
/*
 * Ends the process when something has not happened by a time: also where the main thread waits for a thread that does
 * not come back. It is a timer and its signal (SIGALRM) on the main thread, so it needs none of the program's locks.
 */
#ifndef VPROF_PROCESS_WATCHDOG_H
#define VPROF_PROCESS_WATCHDOG_H

#include <glib.h>

#define WATCHDOG_GRACE_SECONDS 3

/* On the main thread, once; `message` is written to standard error at the end, and must stay. */
void watchdog_start(const char *message);

/*
 * Without watchdog_over, the process exits with `status` WATCHDOG_GRACE_SECONDS after `ms` from now. Time in which the
 * process is stopped, or gets no processor, does not count. The last call counts. May be called in a signal handler;
 * does nothing in a program without watchdog_start.
 */
void watchdog_limit(guint64 ms, int status);
void watchdog_over(void);

#endif
