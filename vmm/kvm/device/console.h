// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where a UART's characters go: a descriptor, written by a thread of its own so that a slow or stopped reader never
 * holds up a vCPU, and a memory of the last lines for reports.
 */
#ifndef VPROF_KVM_DEVICE_CONSOLE_H
#define VPROF_KVM_DEVICE_CONSOLE_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define CONSOLE_BACKLOG_BYTES (256u << 10) /* beyond it, characters are dropped and counted */
#define CONSOLE_WATER_BYTES (64u << 10)    /* of a console with flow control: beyond it, console_put asks for a pause */
#define CONSOLE_TAIL_BYTES 8192u

struct console;

/* fd: -1 for none; stays the caller's. */
struct console *console_new(int fd, GError **error);
/* Gives the reader up to 2 s to take what is left. */
void console_free(struct console *console);

/* `line` is called with every finished line (without its end, cut at 255 bytes), on the putting thread. */
void console_on_line(struct console *console, void (*line)(const char *text, void *data), void *data);

/*
 * For a stream in which nothing may get lost: console_put says when its caller should pause, and `room` is called when
 * it may go on, on the writing thread and with no lock of the console's held.
 */
void console_on_room(struct console *console, void (*room)(void *data), void *data);

/* False: the backlog is as long as flow control allows, until on_room. Always true without console_on_room. */
bool console_put(struct console *console, uint8_t byte);

/* The last `lines` lines or fewer. New string. */
char *console_tail(struct console *console, unsigned lines);

/* Waits until everything put so far is written, at most timeout_ms. */
void console_flush(struct console *console, unsigned timeout_ms);

/* Characters dropped because the reader was too slow. */
uint64_t console_dropped(struct console *console);

#endif
