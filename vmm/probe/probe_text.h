// SPDX-License-Identifier: BSD-2-Clause
/* Where the instructions of the guest's kernel are, so that no breakpoint goes elsewhere. */
#ifndef VPROF_PROBE_PROBE_TEXT_H
#define VPROF_PROBE_PROBE_TEXT_H

#include "guest/guest.h"
#include "lib/code/function_returns.h"
#include "lib/symbol/symtab.h"
#include "sample/session_modules.h"

/* Of an image, of which nothing is kept. */
struct probe_text;
struct guest_os;
struct probe_text *probe_text_load(const struct guest_os *os, const struct image *image);
void probe_text_free(struct probe_text *text); /* NULL is fine */

/* NULL and the error of symtab_load when the image has no symbols. */
const struct symtab *probe_text_symtab(const struct probe_text *text, GError **error);

/*
 * Whether the kernel can execute an instruction at `address`: in its image, where one begins there now, or in memory
 * that it maps for that (code of modules). `text` NULL: the image is not known. Error: PROBE_ERROR_UNKNOWN, with `what`
 * is to be placed there.
 */
bool probe_text_check(const struct probe_text *text, struct guest *guest, const char *what, uint64_t address,
                      GError **error);

/*
 * Where a patch for `address` goes. Linux changes the instruction at a function's entry that ftrace owns, and checks
 * its bytes each time: a patch for such an entry goes on the next instruction. All others stay where they are.
 */
uint64_t probe_text_patch(const struct probe_text *text, uint64_t address);

/*
 * Where the function that begins at `address` returns, by its code as the guest has it now; it is in the kernel's
 * image, of which `text` has symbols, or in one of the modules. modules NULL: none. Error: PROBE_ERROR_UNSUPPORTED.
 */
bool probe_text_returns(const struct probe_text *text, struct session_modules *modules, struct guest *guest,
                        const char *what, uint64_t address, struct function_returns *returns, GError **error);

/*
 * Whether the byte at the address that probe_text_patch has named may be replaced: it belongs to a function of the
 * kernel's image, and the kernel does not change it itself (struct os_texts). Error: PROBE_ERROR_UNSUPPORTED.
 */
bool probe_text_check_patch(const struct probe_text *text, const char *what, uint64_t address, GError **error);

#endif
