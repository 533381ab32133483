// SPDX-License-Identifier: BSD-2-Clause
/*
 * Static probes of programs and libraries (USDT): places in their code that the makers of a program have named, with
 * notes of <sys/sdt.h>, section .note.stapsdt (SystemTap's wiki, UserSpaceProbeImplementation). Each is a NOP.
 */
#ifndef VPROF_SYMBOL_USDT_H
#define VPROF_SYMBOL_USDT_H

#include "lib/symbol/image.h"

#define USDT_NOTES_MAX 65536u /* of one file that are looked at */

struct usdt_note {
	const char *provider, *name;
	const char *operands; /* what its arguments are, separated by blanks: "-4@%edi 8@-16(%rbp)" on x86-64 */
	uint64_t address;     /* where the file is linked */
	bool has_semaphore;   /* the program passes it only while a counter in its data is not 0 */
};

/* In the order of the file. Several may have one name. */
struct usdt_notes {
	GBytes *answer;
	struct usdt_note *all; /* [n] */
	size_t n;
};

/* By vprof-parse. Without any, there are 0. NULL: errors of vprof-parse, IMAGE_ERROR_FORMAT. */
struct usdt_notes *usdt_notes_load(const struct image *image, GError **error);
void usdt_notes_free(struct usdt_notes *notes); /* NULL is fine */

/* For vprof-parse: what usdt_notes_decode takes; empty: there are none. */
GByteArray *usdt_notes_encode(const struct image *image);
/* NULL: the answer contradicts itself. */
struct usdt_notes *usdt_notes_decode(GBytes *answer);

#endif
