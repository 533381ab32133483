// SPDX-License-Identifier: BSD-2-Clause
/* Perf maps of a guest's processes. The first eight bytes are an address that is looked for. */
#include <stdlib.h>
#include <string.h>

#include "fuzz_target.h"
#include "lib/symbol/perf_map.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t address;

	if (size < sizeof(address))
		return 0;
	memcpy(&address, data, sizeof(address));
	g_autoptr(GBytes) answer = g_byte_array_free_to_bytes(
		perf_map_encode((const char *)data + sizeof(address), size - sizeof(address), PERF_MAP_BYTES_MAX));
	struct perf_map *map = perf_map_decode(answer);
	struct perf_map_symbol symbol;

	if (!map)
		abort();
	if (perf_map_find(map, address, &symbol) &&
	    (address - symbol.start >= symbol.size || !symbol.name || memchr(symbol.name, '\n', strlen(symbol.name))))
		abort();
	perf_map_free(map);
	return 0;
}
