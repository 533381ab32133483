// SPDX-License-Identifier: BSD-2-Clause
#include "sample/table_store.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "guest/elf_note.h"
#include "sample/session_config.h"

struct stored {
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	size_t build_id_bytes;
	void *block;
	size_t bytes;
	struct cfi_table table;
	struct python_file python;
};

/* [M] main thread only, [I] immutable once `n` includes it, [a] atomic */
struct table_store {
	int pending;                                  /* [M] a table that a client writes; -1 */
	uint64_t pending_bytes, bytes;                /* [M] */
	_Atomic unsigned n;                           /* [a] stored by the main thread, loaded by samplers */
	struct stored tables[TABLE_STORE_TABLES_MAX]; /* [I] */
	struct file_places places;                    /* its members have their own legend */
};

struct table_store *table_store_new(void)
{
	struct table_store *store = g_new0(struct table_store, 1);

	store->pending = -1;
	return store;
}

struct file_places *table_store_places(struct table_store *store)
{
	return &store->places;
}

static void pending_drop(struct table_store *store)
{
	if (store->pending >= 0)
		close(store->pending);
	store->pending = -1;
}

void table_store_free(struct table_store *store)
{
	if (!store)
		return;
	pending_drop(store);
	for (unsigned i = 0; i < store->n; i++)
		munmap(store->tables[i].block, store->tables[i].bytes);
	g_free(store);
}

static bool system_error(GError **error, const char *what)
{
	int errnum = errno;

	g_set_error(error, SESSION_ERROR, SESSION_ERROR_SYSTEM, "cannot take an unwind table: %s: %s", what,
	            g_strerror(errnum));
	return false;
}

/* Sealed in its size, so that a client cannot take memory away from under a sampler. */
int table_store_prepare(struct table_store *store, uint64_t bytes, GError **error)
{
	pending_drop(store);
	if (bytes == 0 || bytes > CFI_TABLE_BYTES_MAX || bytes > TABLE_STORE_BYTES_MAX - store->bytes) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_RANGE,
		            "cannot take an unwind table of %" G_GUINT64_FORMAT
		            " bytes: the engine holds %" G_GUINT64_FORMAT " already, and takes %" G_GUINT64_FORMAT
		            " in all, %" G_GUINT64_FORMAT " at once",
		            bytes, store->bytes, TABLE_STORE_BYTES_MAX, CFI_TABLE_BYTES_MAX);
		return -1;
	}
	store->pending = memfd_create("vprof-unwind-table", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (store->pending < 0)
		return system_error(error, "memfd_create"), -1;
	store->pending_bytes = bytes;
	if (ftruncate(store->pending, (off_t)bytes) == 0 &&
	    fcntl(store->pending, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW) == 0)
		return store->pending;
	system_error(error, "a sealed memfd");
	pending_drop(store);
	return -1;
}

/* Nobody can write to it any more, so what is checked is what is used. */
static bool pending_map(struct table_store *store, struct stored *stored, GError **error)
{
	if (fcntl(store->pending, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SEAL) != 0)
		return system_error(error, "the client still has it mapped; unmap it first");
	stored->bytes = store->pending_bytes;
	stored->block = mmap(NULL, stored->bytes, PROT_READ, MAP_PRIVATE, store->pending, 0);
	if (stored->block == MAP_FAILED)
		return system_error(error, "mmap");
	if (cfi_table_open(stored->block, stored->bytes, &stored->table))
		return true;
	munmap(stored->block, stored->bytes);
	g_set_error_literal(
		error, SESSION_ERROR, SESSION_ERROR_RANGE,
		"cannot take an unwind table: what was written is not one; make it with this vprof's library");
	return false;
}

bool table_store_add(struct table_store *store, const uint8_t *build_id, size_t build_id_bytes,
                     const struct python_file *python, GError **error)
{
	unsigned n = atomic_load_explicit(&store->n, memory_order_relaxed);
	struct stored *stored = &store->tables[n];
	bool added;

	if (store->pending < 0 || n == TABLE_STORE_TABLES_MAX) {
		g_set_error(error, SESSION_ERROR, SESSION_ERROR_STATE,
		            store->pending < 0
		                    ? "cannot take an unwind table: none was written; execute unwind-table-new first"
		                    : "cannot take an unwind table: the engine holds %u, the most it takes",
		            n);
		return false;
	}
	stored->build_id_bytes = MIN(build_id_bytes, sizeof(stored->build_id));
	memcpy(stored->build_id, build_id, stored->build_id_bytes);
	stored->python = *python;
	added = pending_map(store, stored, error);
	pending_drop(store);
	if (!added)
		return false;
	const struct cfi_table *before = table_store_find(store, build_id, build_id_bytes);

	if (before && before->n_rows >= stored->table.n_rows) {
		munmap(stored->block, stored->bytes);
		return true;
	}
	store->bytes += stored->bytes;
	/* With table_store_count: a sampler that sees the number sees the table. */
	atomic_store_explicit(&store->n, n + 1, memory_order_release);
	return true;
}

unsigned table_store_count(const struct table_store *store)
{
	return atomic_load_explicit(&store->n, memory_order_acquire);
}

const struct cfi_table *table_store_find(const struct table_store *store, const uint8_t *build_id,
                                         size_t build_id_bytes)
{
	unsigned n = table_store_count(store);
	size_t bytes = MIN(build_id_bytes, ELF_NOTE_BUILD_ID_BYTES_MAX);

	/* The last one has the most rows. */
	for (unsigned i = n; i-- > 0;)
		if (store->tables[i].build_id_bytes == bytes && memcmp(store->tables[i].build_id, build_id, bytes) == 0)
			return &store->tables[i].table;
	return NULL;
}

const struct python_file *table_store_python(const struct cfi_table *table)
{
	return &((const struct stored *)(const void *)((const char *)table - offsetof(struct stored, table)))->python;
}
