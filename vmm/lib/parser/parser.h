// SPDX-License-Identifier: BSD-2-Clause
/*
 * Asks vprof-parse, a process without rights, to read what others wrote (include/vprof/parse.h). One process serves
 * this program for as long as it lives; each question is answered by a child of it. Safe to call from any thread;
 * questions wait for each other.
 */
#ifndef VPROF_PARSER_PARSER_H
#define VPROF_PARSER_PARSER_H

#include <glib.h>
#include <stdbool.h>
#include <vprof/parse.h>

#define PARSER_ERROR parser_error_quark()
GQuark parser_error_quark(void);
#define PARSER_UNREADABLE "cannot be read: "
enum parser_error {
	PARSER_ERROR_UNAVAILABLE, /* vprof-parse cannot be started or has ended */
	PARSER_ERROR_REFUSED, /* it, or a library in it, says what is wrong with the input, after PARSER_UNREADABLE */
	PARSER_ERROR_LIMIT,   /* the input needs more time, memory or room than it may take */
	PARSER_ERROR_CRASHED, /* by a signal that no limit sends */
};

/*
 * Starts vprof-parse and does not wait for it. Called before the program gives up the right to start others; without,
 * the first question starts it. PARSER_ERROR_UNAVAILABLE.
 */
bool parser_start(GError **error);

/* Ends vprof-parse until the next question, for a program that has few of them and may start it again. */
void parser_stop(void);

/*
 * Ends the question that another thread waits for, and all later ones, with PARSER_ERROR_UNAVAILABLE: at the end of the
 * program.
 */
void parser_abandon(void);

/*
 * Asks about the sealed memfd `input`, which stays the caller's. `request` needs no protocol number. Returns a sealed
 * memfd, which the caller closes, or -1 with the reason as a clause without a subject: "ended by signal 11 ...".
 */
int parser_ask(const struct vprof_parse_request *request, int input, GError **error);

/* The same, with the answer mapped. NULL with PARSER_ERROR. */
GBytes *parser_ask_mapped(const struct vprof_parse_request *request, int input, GError **error);

/* Puts the names one after the other into request->text; false when there is no room. */
bool parser_add_name(struct vprof_parse_request *request, const char *name);

/* ---- sealed memory: its size and contents change no more ---- */

/* A memfd to fill with write(2); -1 with errno. */
int sealed_new(const char *name);
/* Seals it; false with errno. */
bool sealed_finish(int fd);
/* Whether it is such memory, made here or in another program. */
bool sealed_is(int fd);
/* A new one with these bytes; -1 with errno. */
int sealed_copy(const char *name, const void *bytes, size_t n);
/* Its contents, for reading; they need `fd` no more. NULL with errno. */
GBytes *sealed_map(int fd);

#endif
