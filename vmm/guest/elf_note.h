// SPDX-License-Identifier: BSD-2-Clause
/* The build-id of an ELF file that is mapped in the guest, out of the mapping's own bytes. */
#ifndef VPROF_GUEST_ELF_NOTE_H
#define VPROF_GUEST_ELF_NOTE_H

#include "guest/page_walk.h"

#define ELF_NOTE_BUILD_ID_BYTES_MAX 20u /* of SHA-1, as linkers make them; longer ones are cut */

/*
 * `start`: where the file's first byte is mapped, and `bytes` of it behind. Returns how many bytes `build_id` has, 0
 * when there is none or it cannot be read: the pages may not be there yet. At most some 30 reads; no lock, no
 * allocation.
 */
size_t elf_build_id_read(struct page_walk *walk, gva_t start, uint64_t bytes,
                         uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX]);

/* The same among the notes at `start` themselves. */
size_t elf_notes_build_id(struct page_walk *walk, gva_t start, uint64_t bytes,
                          uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX]);

#endif
