// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the guest's kernel keeps the files that its processes execute, by build-id: samplers note it with the mappings
 * that they see, and the main thread reads the files' pages there (linux/page_cache.h). A process that is gone by then
 * matters not; a file that is gone is told from the one that was noted by its build-id.
 */
#ifndef VPROF_SAMPLE_FILE_PLACES_H
#define VPROF_SAMPLE_FILE_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "guest/elf_note.h"

#define FILE_PLACES_MAX 1024u

/* [a] atomic, [I] immutable once `ready` is set */
struct file_place {
	_Atomic bool ready;                            /* [a] */
	uint8_t bytes;                                 /* [I] of the build-id */
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX]; /* [I] */
	_Atomic uint64_t mapping;                      /* [a] address of the struct address_space that was seen last */
};

/* Starts as zero, which is empty. */
struct file_places {
	_Atomic unsigned n; /* [a] taken, beyond FILE_PLACES_MAX too */
	struct file_place places[FILE_PLACES_MAX];
};

/* Any thread; no lock, no allocation. What is beyond FILE_PLACES_MAX is not kept. */
void file_places_note(struct file_places *places, const uint8_t *build_id, size_t build_id_bytes, uint64_t mapping);
/* The address of the file's struct address_space; 0: not seen. */
uint64_t file_places_find(const struct file_places *places, const uint8_t *build_id, size_t build_id_bytes);

#endif
