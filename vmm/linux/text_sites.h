// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where Linux changes its own code: the tables in its image that say so. Linux compares what it finds there with what
 * it expects before it changes it, and panics or warns where they differ (arch/x86/kernel/jump_label.c, static_call.c,
 * alternative.c). Lock prefixes, which it leaves alone where there is something else, are not among them. The tables
 * are untrusted; a wrong entry makes an address count that should not, at worst.
 */
#ifndef VPROF_LINUX_TEXT_SITES_H
#define VPROF_LINUX_TEXT_SITES_H

#include "lib/symbol/symtab.h"

struct text_sites;

/* Of the image that `symtab` is of. One without such tables has no sites. */
struct text_sites *text_sites_read(const struct image *image, const struct symtab *symtab);
void text_sites_free(struct text_sites *sites); /* NULL is fine */

/* What changes the byte at `address`: "a jump label", "a static call", "an alternative", ...; NULL: nothing does. */
const char *text_sites_find(const struct text_sites *sites, uint64_t address);

#endif
