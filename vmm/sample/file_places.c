// SPDX-License-Identifier: BSD-2-Clause
#include "sample/file_places.h"

#include <glib.h>
#include <stdatomic.h>
#include <string.h>

static bool place_is(const struct file_place *place, const uint8_t *build_id, size_t bytes)
{
	/* With the store in file_places_note. */
	return atomic_load_explicit(&place->ready, memory_order_acquire) && place->bytes == bytes &&
	       memcmp(place->build_id, build_id, bytes) == 0;
}

/* The number of a place with this build-id; FILE_PLACES_MAX: none. */
static unsigned place_number(const struct file_places *places, const uint8_t *build_id, size_t bytes)
{
	unsigned n = MIN(atomic_load_explicit(&places->n, memory_order_relaxed), FILE_PLACES_MAX);

	for (unsigned i = 0; i < n; i++)
		if (place_is(&places->places[i], build_id, bytes))
			return i;
	return FILE_PLACES_MAX;
}

/* Two threads that see a file at the same time may take a place each: the first one counts from then on. */
void file_places_note(struct file_places *places, const uint8_t *build_id, size_t build_id_bytes, uint64_t mapping)
{
	size_t bytes = MIN(build_id_bytes, ELF_NOTE_BUILD_ID_BYTES_MAX);
	unsigned i = place_number(places, build_id, bytes);
	struct file_place *place = &places->places[i % FILE_PLACES_MAX];

	if (i != FILE_PLACES_MAX) {
		atomic_store_explicit(&place->mapping, mapping, memory_order_relaxed);
		return;
	}
	if (atomic_load_explicit(&places->n, memory_order_relaxed) >= FILE_PLACES_MAX)
		return;
	i = atomic_fetch_add_explicit(&places->n, 1, memory_order_relaxed);
	if (i >= FILE_PLACES_MAX)
		return;
	place = &places->places[i];
	place->bytes = (uint8_t)bytes;
	memcpy(place->build_id, build_id, bytes);
	atomic_store_explicit(&place->mapping, mapping, memory_order_relaxed);
	/* With the load in place_is. */
	atomic_store_explicit(&place->ready, true, memory_order_release);
}

uint64_t file_places_find(const struct file_places *places, const uint8_t *build_id, size_t build_id_bytes)
{
	unsigned i = place_number(places, build_id, MIN(build_id_bytes, ELF_NOTE_BUILD_ID_BYTES_MAX));

	return i != FILE_PLACES_MAX ? atomic_load_explicit(&places->places[i].mapping, memory_order_relaxed) : 0;
}
