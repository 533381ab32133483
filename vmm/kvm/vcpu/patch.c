// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/patch.h"

/*
 * An instruction is changed atomically, as vCPUs may be about to execute it. Until they leave the guest, which
 * synchronizes them, they may see either value; a caller that needs all of them to see the new one makes them leave.
 */
static bool change(const struct patches *patches, uint8_t *place, uint32_t from, uint32_t to)
{
	uint8_t from_byte = (uint8_t)from;
	const bool done = patches->trap.bytes == 1
	                          ? __atomic_compare_exchange_n(place, &from_byte, (uint8_t)to, false, __ATOMIC_SEQ_CST,
	                                                        __ATOMIC_RELAXED)
	                          : __atomic_compare_exchange_n((uint32_t *)(void *)place, &from, to, false,
	                                                        __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);

	/* Processors other than those of x86-64 do not see it in their instruction caches otherwise. */
	__builtin___clear_cache((char *)place, (char *)place + patches->trap.bytes);
	return done;
}

static uint32_t look(const struct patches *patches, const uint8_t *place)
{
	return patches->trap.bytes == 1 ? __atomic_load_n(place, __ATOMIC_RELAXED)
	                                : __atomic_load_n((const uint32_t *)(const void *)place, __ATOMIC_RELAXED);
}

void patches_init(struct patches *patches, const struct patch_trap *trap)
{
	memset(patches, 0, sizeof(*patches));
	patches->trap = *trap;
	pthread_mutex_init(&patches->lock, NULL);
}

void patches_deinit(struct patches *patches)
{
	pthread_mutex_destroy(&patches->lock);
}

/* Lock held. */
static struct patch *find(struct patches *patches, gva_t at, const uint8_t *place)
{
	for (size_t i = 0; i < patches->n; i++)
		if (patches->all[i].at.value == at.value || patches->all[i].place == place)
			return &patches->all[i];
	return NULL;
}

bool patches_insert(struct patches *patches, gva_t at, uint8_t *place)
{
	bool done = true;

	pthread_mutex_lock(&patches->lock);
	struct patch *patch = find(patches, at, place);
	if (patch) {
		done = patch->at.value == at.value;
	} else {
		patch = &patches->all[patches->n];
		*patch = (struct patch){.at = at, .place = place, .original = look(patches, place)};
		done = patch->original != patches->trap.code &&
		       change(patches, place, patch->original, patches->trap.code);
		patches->n += done;
	}
	patch->users += done;
	pthread_mutex_unlock(&patches->lock);
	return done;
}

void patches_drop(struct patches *patches, gva_t at)
{
	pthread_mutex_lock(&patches->lock);
	struct patch *patch = find(patches, at, NULL);
	if (patch && --patch->users == 0) {
		change(patches, patch->place, patches->trap.code, patch->original);
		*patch = patches->all[--patches->n];
	}
	pthread_mutex_unlock(&patches->lock);
}

bool patches_cover(struct patches *patches, gva_t at, const uint8_t *place)
{
	pthread_mutex_lock(&patches->lock);
	bool found = find(patches, at, place) != NULL;
	pthread_mutex_unlock(&patches->lock);
	return found;
}

bool patches_trap(const struct patches *patches, const uint8_t *place)
{
	return look(patches, place) == patches->trap.code;
}

bool patches_intact(struct patches *patches, gva_t at)
{
	pthread_mutex_lock(&patches->lock);
	const struct patch *patch = find(patches, at, NULL);
	bool intact = patch && (patch->lifted || patches_trap(patches, patch->place));
	pthread_mutex_unlock(&patches->lock);
	return intact;
}

/* The first or the last bytes of an instruction may not be among them. */
static void put_back(const struct patches *patches, const struct patch *patch, gva_t from, uint8_t *code, size_t n)
{
	for (int pass = 0; pass < 2; pass++) {
		for (unsigned i = 0; i < patches->trap.bytes; i++) {
			const uint64_t distance = patch->at.value + i - from.value;

			if (distance >= n)
				continue;
			if (pass == 1)
				code[distance] = (uint8_t)(patch->original >> 8 * i);
			else if (code[distance] != (uint8_t)(patches->trap.code >> 8 * i))
				return;
		}
	}
}

void patches_put_back(struct patches *patches, gva_t from, uint8_t *code, size_t n)
{
	pthread_mutex_lock(&patches->lock);
	for (size_t i = 0; i < patches->n; i++)
		put_back(patches, &patches->all[i], from, code, n);
	pthread_mutex_unlock(&patches->lock);
}

bool patches_lift(struct patches *patches, gva_t at, const uint8_t *place)
{
	pthread_mutex_lock(&patches->lock);
	struct patch *patch = find(patches, at, place);
	bool done = patch && change(patches, patch->place, patches->trap.code, patch->original);
	if (done)
		patch->lifted = true;
	pthread_mutex_unlock(&patches->lock);
	return done;
}

void patches_lay(struct patches *patches, gva_t at, const uint8_t *place)
{
	pthread_mutex_lock(&patches->lock);
	struct patch *patch = find(patches, at, place);
	if (patch && patch->lifted) {
		change(patches, patch->place, patch->original, patches->trap.code);
		patch->lifted = false;
	}
	pthread_mutex_unlock(&patches->lock);
}
