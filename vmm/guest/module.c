// SPDX-License-Identifier: BSD-2-Clause
/* Where the code of a guest's modules is: the ranges of struct module_table. */
#include "guest/module.h"

#include <string.h>

#define PAGE_BYTES UINT64_C(4096)

uint64_t module_file_offset(const struct module *module, unsigned part)
{
	return part == MODULE_TEXT ? 0 : (module->parts[MODULE_TEXT].bytes + PAGE_BYTES - 1) & ~(PAGE_BYTES - 1);
}

/* The first range that ends behind `address`. */
static unsigned range_from(const struct module_table *table, uint64_t address)
{
	unsigned low = 0, high = table->n_ranges;

	while (low < high) {
		unsigned middle = (low + high) / 2;
		const struct module_range *range = &table->ranges[middle];

		if (range->start + range->bytes <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void module_table_add(struct module_table *table, enum module_part part)
{
	const struct module *module = &table->modules[table->n];
	const struct module_range range = {module->parts[part].start, module->parts[part].bytes, (uint16_t)table->n,
	                                   (uint16_t)part};
	unsigned at = range_from(table, range.start);

	if (range.bytes == 0 || (at < table->n_ranges && table->ranges[at].start < range.start + range.bytes))
		return;
	memmove(&table->ranges[at + 1], &table->ranges[at], (table->n_ranges - at) * sizeof(range));
	table->ranges[at] = range;
	table->n_ranges++;
}

const struct module_range *module_table_find(const struct module_table *table, uint64_t address)
{
	unsigned at = range_from(table, address);

	return at < table->n_ranges && table->ranges[at].start <= address ? &table->ranges[at] : NULL;
}
