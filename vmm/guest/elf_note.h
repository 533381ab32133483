// SPDX-License-Identifier: BSD-2-Clause
/* The build-id of an ELF file that is mapped in the guest, read from the mapping. */
#ifndef VPROF_GUEST_ELF_NOTE_H
#define VPROF_GUEST_ELF_NOTE_H

#include "guest/page_walk.h"

#define ELF_NOTE_BUILD_ID_BYTES_MAX 20u /* of SHA-1, as linkers make them; longer ones are cut */

/*
 * `start`: where the first byte of the file is mapped, with `bytes` from there. Returns the length of `build_id`, 0
 * when there is none or it cannot be read: the pages may not be in memory yet. At most some 30 reads; no lock, no
 * allocation.
 */
size_t elf_build_id_read(struct page_walk *walk, gva_t start, uint64_t bytes,
                         uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX]);

/* The same for the notes at `start` themselves. */
size_t elf_notes_build_id(struct page_walk *walk, gva_t start, uint64_t bytes,
                          uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX]);

#endif
