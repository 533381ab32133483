// SPDX-License-Identifier: BSD-2-Clause
#include "attach/host_chain.h"

#include <unistd.h>

#define USER_BITS 48u     /* of addresses of user space, at most */
#define FRAMES_MAX 160u   /* perf_event_max_stack, and marks */
#define KNOWN_MAX 100000u /* addresses that were looked at; then they are looked at again */

struct host_chain {
	int memory;        /* of the process; -1: none */
	GHashTable *known; /* address -> whether it is a return address */
	uint64_t words[FRAMES_MAX];
};

struct host_chain *host_chain_new(int memory)
{
	struct host_chain *chain = g_new0(struct host_chain, 1);

	chain->memory = memory;
	chain->known = g_hash_table_new(NULL, NULL);
	return chain;
}

void host_chain_free(struct host_chain *chain)
{
	if (!chain)
		return;
	g_hash_table_unref(chain->known);
	g_free(chain);
}

static bool read_call(int memory, uint64_t address)
{
	uint8_t bytes[HOST_CHAIN_CALL_BYTES];

	return address >= sizeof(bytes) &&
	       pread(memory, bytes, sizeof(bytes), (off_t)(address - sizeof(bytes))) == (ssize_t)sizeof(bytes) &&
	       host_chain_is_call(bytes);
}

static bool is_return(struct host_chain *chain, uint64_t address)
{
	gpointer known;

	if (address >> USER_BITS != 0)
		return false;
	if (g_hash_table_lookup_extended(chain->known, (gpointer)(uintptr_t)address, NULL, &known))
		return known != NULL;
	if (g_hash_table_size(chain->known) == KNOWN_MAX)
		g_hash_table_remove_all(chain->known);
	bool found = read_call(chain->memory, address);

	g_hash_table_insert(chain->known, (gpointer)(uintptr_t)address, GINT_TO_POINTER(found));
	return found;
}

void host_chain_take(struct host_chain *chain, const struct record_sample *record, struct counter_sample *sample)
{
	bool user = false;
	size_t n = 0, n_user = 0;

	if (sample->in_guest || sample->nested)
		return;
	for (uint32_t i = 0; i < record->n_chain && n < FRAMES_MAX; i++) {
		uint64_t word = record->chain[i];

		if (word >= (uint64_t)PERF_CONTEXT_MAX)
			user = word == (uint64_t)PERF_CONTEXT_USER;
		/* The first is where the process was, not whence it was called. */
		else if (user && n_user++ > 0 && !is_return(chain, word))
			break;
		chain->words[n++] = word;
	}
	sample->host_ip = record->ip;
	sample->host_chain = chain->words;
	sample->n_host_chain = n;
}
