// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/x86/patch.h"

/*
 * A byte is changed atomically, as vCPUs may be about to execute it. Until they leave the guest, which synchronizes
 * them, they may see either value; a caller that needs all of them to see the new one makes them leave.
 */
static bool change(uint8_t *byte, uint8_t from, uint8_t to)
{
	return __atomic_compare_exchange_n(byte, &from, to, false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED);
}

static uint8_t look(const uint8_t *byte)
{
	return __atomic_load_n(byte, __ATOMIC_RELAXED);
}

void patches_init(struct patches *patches)
{
	*patches = (struct patches){.n = 0};
	pthread_mutex_init(&patches->lock, NULL);
}

void patches_deinit(struct patches *patches)
{
	pthread_mutex_destroy(&patches->lock);
}

/* Lock held. */
static struct patch *find(struct patches *patches, gva_t at, const uint8_t *byte)
{
	for (size_t i = 0; i < patches->n; i++)
		if (patches->all[i].at.value == at.value || patches->all[i].byte == byte)
			return &patches->all[i];
	return NULL;
}

bool patches_insert(struct patches *patches, gva_t at, uint8_t *byte)
{
	bool done = true;

	pthread_mutex_lock(&patches->lock);
	struct patch *patch = find(patches, at, byte);
	if (patch) {
		done = patch->at.value == at.value;
	} else {
		patch = &patches->all[patches->n];
		*patch = (struct patch){.at = at, .byte = byte, .original = look(byte)};
		done = patch->original != PATCH_INT3 && change(byte, patch->original, PATCH_INT3);
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
		change(patch->byte, PATCH_INT3, patch->original);
		*patch = patches->all[--patches->n];
	}
	pthread_mutex_unlock(&patches->lock);
}

bool patches_cover(struct patches *patches, gva_t at, const uint8_t *byte)
{
	pthread_mutex_lock(&patches->lock);
	bool found = find(patches, at, byte) != NULL;
	pthread_mutex_unlock(&patches->lock);
	return found;
}

bool patches_intact(struct patches *patches, gva_t at)
{
	pthread_mutex_lock(&patches->lock);
	const struct patch *patch = find(patches, at, NULL);
	bool intact = patch && (patch->lifted || look(patch->byte) == PATCH_INT3);
	pthread_mutex_unlock(&patches->lock);
	return intact;
}

void patches_put_back(struct patches *patches, gva_t from, uint8_t *code, size_t n)
{
	pthread_mutex_lock(&patches->lock);
	for (size_t i = 0; i < patches->n; i++) {
		uint64_t distance = patches->all[i].at.value - from.value;

		if (distance < n && code[distance] == PATCH_INT3)
			code[distance] = patches->all[i].original;
	}
	pthread_mutex_unlock(&patches->lock);
}

bool patches_lift(struct patches *patches, gva_t at, const uint8_t *byte)
{
	pthread_mutex_lock(&patches->lock);
	struct patch *patch = find(patches, at, byte);
	bool done = patch && change(patch->byte, PATCH_INT3, patch->original);
	if (done)
		patch->lifted = true;
	pthread_mutex_unlock(&patches->lock);
	return done;
}

void patches_lay(struct patches *patches, gva_t at, const uint8_t *byte)
{
	pthread_mutex_lock(&patches->lock);
	struct patch *patch = find(patches, at, byte);
	if (patch && patch->lifted) {
		change(patch->byte, patch->original, PATCH_INT3);
		patch->lifted = false;
	}
	pthread_mutex_unlock(&patches->lock);
}
