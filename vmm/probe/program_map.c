// SPDX-License-Identifier: BSD-2-Clause
#include "probe/program_map.h"

#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

G_DEFINE_QUARK(vprof_program_error, program_error)

/* Where a key may be, from its hash on. A table is at most half full. */
#define PLACES 32u

/* What the first word of an entry may be instead of a hash. */
enum { FREE, BUSY, DELETED, HASH_MIN };

/* [I] but for the entries and the counts, which are atomic. */
struct program_map {
	struct program_map_spec spec;
	unsigned value_words;
	size_t entry_words, n_entries; /* n_entries: a power of two */
	_Atomic uint64_t *words;       /* each entry: its hash, key and value */
	_Atomic uint64_t used, dropped;
};

static unsigned value_words(const struct program_map_spec *spec)
{
#define X(id, name, words) words,
	static const unsigned all[] = {VPROF_MAP_KINDS(X)};
#undef X

	if (spec->kind != VPROF_MAP_LHIST)
		return all[spec->kind];
	return (unsigned)((spec->high - spec->low) / spec->range) + 2;
}

static bool limit_error(GError **error, const char *what)
{
	g_set_error(error, PROGRAM_ERROR, PROGRAM_ERROR_LIMIT, "a map of a program has %s", what);
	return false;
}

/* Numbers of half the range, so that their differences do not overflow. */
static bool check_ranges(const struct program_map_spec *spec, GError **error)
{
	const int64_t most = INT64_MAX / 2;

	if (spec->range < 1 || spec->range > most || spec->low < -most || spec->high > most || spec->low >= spec->high)
		return limit_error(error, "no ranges like these: they go from a number up to a higher one");
	return (spec->high - spec->low) / spec->range <= VPROF_MAP_RANGES_MAX ||
	       limit_error(error, "more ranges than the " G_STRINGIFY(VPROF_MAP_RANGES_MAX) " that it may have");
}

static bool check(const struct program_map_spec *spec, GError **error)
{
	if (spec->key_words > VPROF_MAP_KEY_WORDS_MAX)
		return limit_error(error, "a key that is too long");
	if (spec->key_words > 0 && (spec->entries < 1 || spec->entries > VPROF_MAP_ENTRIES_MAX))
		return limit_error(error, "1 to " G_STRINGIFY(VPROF_MAP_ENTRIES_MAX) " entries");
	return spec->kind != VPROF_MAP_LHIST || check_ranges(spec, error);
}

struct program_map *program_map_new(const struct program_map_spec *spec, GError **error)
{
	if (!check(spec, error))
		return NULL;
	struct program_map *map = g_new0(struct program_map, 1);

	map->spec = *spec;
	map->value_words = value_words(spec);
	map->entry_words = 1 + spec->key_words + map->value_words;
	for (map->n_entries = 1; spec->key_words > 0 && map->n_entries < 2 * (size_t)spec->entries;)
		map->n_entries *= 2;
	void *memory = mmap(NULL, program_map_bytes(map), PROT_READ | PROT_WRITE,
	                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (memory == MAP_FAILED) {
		limit_error(error, "no memory");
		g_free(map);
		return NULL;
	}
	map->words = memory;
	return map;
}

void program_map_free(struct program_map *map)
{
	if (!map)
		return;
	munmap((void *)map->words, program_map_bytes(map));
	g_free(map);
}

const struct program_map_spec *program_map_spec(const struct program_map *map)
{
	return &map->spec;
}

unsigned program_map_value_words(const struct program_map *map)
{
	return map->value_words;
}

size_t program_map_bytes(const struct program_map *map)
{
	return map->n_entries * map->entry_words * sizeof(uint64_t);
}

/* ---- entries ---- */

static uint64_t load(const _Atomic uint64_t *word)
{
	return atomic_load_explicit(word, memory_order_relaxed);
}

static void store(_Atomic uint64_t *word, uint64_t value)
{
	atomic_store_explicit(word, value, memory_order_relaxed);
}

static uint64_t hash_of(const struct program_map *map, const uint64_t *key)
{
	uint64_t hash = HASH_MIN;

	for (unsigned i = 0; i < map->spec.key_words; i++) {
		hash = (hash ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
		hash ^= hash >> 29;
	}
	return MAX(hash, HASH_MIN);
}

/* An odd step reaches all entries of a power of two. */
static _Atomic uint64_t *entry_at(const struct program_map *map, uint64_t hash, unsigned i)
{
	const uint64_t step = hash >> 40 | 1;

	return &map->words[((hash + i * step) & (map->n_entries - 1)) * map->entry_words];
}

/* Acquire: pairs with the release in `claim`, so that the key is there. */
static bool is_of(const struct program_map *map, const _Atomic uint64_t *entry, uint64_t hash, const uint64_t *key)
{
	if (atomic_load_explicit(entry, memory_order_acquire) != hash)
		return false;
	for (unsigned i = 0; i < map->spec.key_words; i++)
		if (load(&entry[1 + i]) != key[i])
			return false;
	return true;
}

static unsigned places(const struct program_map *map)
{
	return (unsigned)MIN(PLACES, map->n_entries);
}

static _Atomic uint64_t *find(const struct program_map *map, uint64_t hash, const uint64_t *key)
{
	for (unsigned i = 0; i < places(map); i++) {
		_Atomic uint64_t *entry = entry_at(map, hash, i);

		if (is_of(map, entry, hash, key))
			return entry;
		if (load(entry) == FREE)
			return NULL;
	}
	return NULL;
}

static _Atomic uint64_t *values(const struct program_map *map, _Atomic uint64_t *entry)
{
	return entry + 1 + map->spec.key_words;
}

static uint64_t first_value(const struct program_map *map)
{
	return map->spec.kind == VPROF_MAP_MIN   ? (uint64_t)INT64_MAX
	       : map->spec.kind == VPROF_MAP_MAX ? (uint64_t)INT64_MIN
	                                         : 0;
}

static void reset(const struct program_map *map, _Atomic uint64_t *entry)
{
	for (unsigned i = 0; i < map->value_words; i++)
		store(values(map, entry) + i, first_value(map));
}

static bool claim(struct program_map *map, _Atomic uint64_t *entry, uint64_t hash, const uint64_t *key)
{
	uint64_t before = load(entry);

	if ((before != FREE && before != DELETED) ||
	    !atomic_compare_exchange_strong_explicit(entry, &before, BUSY, memory_order_relaxed, memory_order_relaxed))
		return false;
	for (unsigned i = 0; i < map->spec.key_words; i++)
		store(&entry[1 + i], key[i]);
	reset(map, entry);
	atomic_store_explicit(entry, hash, memory_order_release);
	return true;
}

static _Atomic uint64_t *add_entry(struct program_map *map, uint64_t hash, const uint64_t *key)
{
	const uint64_t most = map->spec.key_words > 0 ? map->spec.entries : 1;

	if (atomic_fetch_add_explicit(&map->used, 1, memory_order_relaxed) < most) {
		for (unsigned i = 0; i < places(map); i++) {
			_Atomic uint64_t *entry = entry_at(map, hash, i);

			if (claim(map, entry, hash, key))
				return entry;
		}
	}
	atomic_fetch_sub_explicit(&map->used, 1, memory_order_relaxed);
	return NULL;
}

static _Atomic uint64_t *take(struct program_map *map, const uint64_t *key)
{
	const uint64_t hash = hash_of(map, key);
	_Atomic uint64_t *entry = find(map, hash, key);

	if (!entry)
		entry = add_entry(map, hash, key);
	/* Without a key there is one entry, which another vCPU may be making at this moment. */
	if (!entry && map->spec.key_words == 0)
		entry = find(map, hash, key);
	if (!entry)
		atomic_fetch_add_explicit(&map->dropped, 1, memory_order_relaxed);
	return entry;
}

/* ---- on the vCPU's thread ---- */

bool program_map_set(struct program_map *map, const uint64_t *key, const uint64_t *value)
{
	_Atomic uint64_t *entry = take(map, key);

	for (unsigned i = 0; entry && i < map->value_words; i++)
		store(values(map, entry) + i, value[i]);
	return entry != NULL;
}

static void extend(_Atomic uint64_t *word, int64_t number, bool up)
{
	uint64_t before = load(word);

	while ((up ? number > (int64_t)before : number < (int64_t)before) &&
	       !atomic_compare_exchange_weak_explicit(word, &before, (uint64_t)number, memory_order_relaxed,
	                                              memory_order_relaxed))
		;
}

static unsigned power_of(int64_t number)
{
	return number < 0 ? 0 : number == 0 ? 1 : 65 - (unsigned)__builtin_clzll((uint64_t)number);
}

static unsigned range_of(const struct program_map *map, int64_t number)
{
	if (number < map->spec.low)
		return 0;
	if (number >= map->spec.high)
		return map->value_words - 1;
	return 1 + (unsigned)MIN((number - map->spec.low) / map->spec.range, map->value_words - 3);
}

static void count(_Atomic uint64_t *word, uint64_t n)
{
	atomic_fetch_add_explicit(word, n, memory_order_relaxed);
}

bool program_map_add(struct program_map *map, const uint64_t *key, int64_t number)
{
	_Atomic uint64_t *entry = take(map, key), *value = entry ? values(map, entry) : NULL;

	if (!entry)
		return false;
	switch (map->spec.kind) {
	case VPROF_MAP_COUNT:
		count(value, 1);
		break;
	case VPROF_MAP_MIN:
	case VPROF_MAP_MAX:
		extend(value, number, map->spec.kind == VPROF_MAP_MAX);
		break;
	case VPROF_MAP_AVG:
	case VPROF_MAP_STATS:
		count(&value[0], 1);
		count(&value[1], (uint64_t)number);
		break;
	case VPROF_MAP_HIST:
		count(&value[power_of(number)], 1);
		break;
	case VPROF_MAP_LHIST:
		count(&value[range_of(map, number)], 1);
		break;
	default:
		count(value, (uint64_t)number);
	}
	return true;
}

/* Only the caller that takes the hash away has deleted it. */
static void remove_entry(struct program_map *map, _Atomic uint64_t *entry, uint64_t hash, uint64_t to)
{
	if (atomic_compare_exchange_strong_explicit(entry, &hash, to, memory_order_relaxed, memory_order_relaxed))
		atomic_fetch_sub_explicit(&map->used, 1, memory_order_relaxed);
}

void program_map_delete(struct program_map *map, const uint64_t *key)
{
	const uint64_t hash = hash_of(map, key);
	_Atomic uint64_t *entry = find(map, hash, key);

	if (entry)
		remove_entry(map, entry, hash, DELETED);
}

bool program_map_get(const struct program_map *map, const uint64_t *key, uint64_t *value)
{
	const unsigned n = map->spec.kind == VPROF_MAP_TEXT ? VPROF_PROGRAM_TEXT_WORDS : 1;
	_Atomic uint64_t *entry = find(map, hash_of(map, key), key);

	memset(value, 0, n * sizeof(*value));
	if (!entry)
		return false;
	for (unsigned i = 0; i < n; i++)
		value[i] = load(values(map, entry) + i);
	if (map->spec.kind == VPROF_MAP_AVG && value[0] != 0)
		value[0] = (uint64_t)((int64_t)load(values(map, entry) + 1) / (int64_t)value[0]);
	return true;
}

/* ---- main thread ---- */

bool program_map_next(const struct program_map *map, size_t *place, uint64_t *words)
{
	while (*place < map->n_entries) {
		const _Atomic uint64_t *entry = &map->words[(*place)++ * map->entry_words];
		const uint64_t hash = atomic_load_explicit(entry, memory_order_acquire);

		if (hash < HASH_MIN)
			continue;
		for (size_t i = 1; i < map->entry_words; i++)
			words[i - 1] = load(&entry[i]);
		/* Not when it was deleted, and perhaps made anew, meanwhile. */
		atomic_thread_fence(memory_order_acquire);
		if (load(entry) == hash)
			return true;
	}
	return false;
}

void program_map_clear(struct program_map *map, bool keep_keys)
{
	for (size_t i = 0; i < map->n_entries; i++) {
		_Atomic uint64_t *entry = &map->words[i * map->entry_words];
		const uint64_t hash = load(entry);

		if (hash >= HASH_MIN && keep_keys)
			reset(map, entry);
		else if (hash >= HASH_MIN)
			remove_entry(map, entry, hash, DELETED);
	}
}

uint64_t program_map_dropped(const struct program_map *map)
{
	return load(&map->dropped);
}
