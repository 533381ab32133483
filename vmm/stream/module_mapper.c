// SPDX-License-Identifier: BSD-2-Clause
#include "stream/module_mapper.h"

#include <stdio.h>

#define FILE_NAME_BYTES_MAX (MODULE_NAME_BYTES + 2u) /* with the brackets */

void module_mapper_init(struct module_mapper *mapper, const struct os_kernel *kernel, struct announcer *announcer)
{
	memset(mapper, 0, sizeof(*mapper));
	mapper->kernel = kernel;
	mapper->announcer = announcer;
}

static uint64_t hash_add(uint64_t hash, const void *bytes, size_t n)
{
	const uint8_t *data = bytes;

	/* FNV-1a */
	for (size_t i = 0; i < n; i++)
		hash = (hash ^ data[i]) * UINT64_C(0x100000001b3);
	return hash;
}

/* A hash of a range; never 0. */
static uint64_t range_hash(const struct module *module, const struct module_range *range)
{
	uint64_t hash = hash_add(UINT64_C(0xcbf29ce484222325), module->name, sizeof(module->name));

	hash = hash_add(hash, module->build_id, sizeof(module->build_id));
	hash = hash_add(hash, &range->start, sizeof(range->start));
	return hash_add(hash, &range->bytes, sizeof(range->bytes)) | 1;
}

static bool range_write(struct module_mapper *mapper, const struct module *module, const struct module_range *range,
                        const struct record_id *id)
{
	char name[FILE_NAME_BYTES_MAX];
	const struct record_mmap mapping = {
		.mode = PERF_RECORD_MISC_KERNEL,
		.pid = UINT32_MAX,
		.tid = id->tid,
		.start = range->start,
		.bytes = range->bytes,
		.page_offset = module_file_offset(module, range->part),
		.build_id = module->has_build_id ? module->build_id : NULL,
		.build_id_bytes = sizeof(module->build_id),
		.file_name = {name},
	};

	snprintf(name, sizeof(name), "[%s]", module->name);
	return announce_mmap(mapper->announcer, &mapping, id);
}

static void range_announce(struct module_mapper *mapper, const struct module_range *range, const struct record_id *id)
{
	const struct module *module = &mapper->table.modules[range->module];
	uint64_t *slot = &mapper->written[(range->start >> 12) & (MODULE_MAPPER_SLOTS - 1)];
	uint64_t hash = range_hash(module, range);

	if (*slot == hash)
		return;
	if (announcer_room(mapper->announcer, ANNOUNCE_MAPPINGS, id->time_ns) != 0 &&
	    range_write(mapper, module, range, id))
		*slot = hash;
	else
		mapper->table.settled = false;
}

bool module_mapper_sample(struct module_mapper *mapper, struct page_walk *walk, const struct record_id *id)
{
	if (!mapper->kernel || !mapper->kernel->modules->is_due(mapper->kernel, &mapper->table, walk, id->time_ns) ||
	    announcer_room(mapper->announcer, ANNOUNCE_MAPPINGS, id->time_ns) == 0)
		return false;
	const uint64_t begin_ns = announcer_begin(mapper->announcer);
	const bool read = mapper->kernel->modules->update(mapper->kernel, &mapper->table, walk, id->time_ns);

	for (unsigned i = 0; read && i < mapper->table.n_ranges; i++)
		range_announce(mapper, &mapper->table.ranges[i], id);
	announcer_end(mapper->announcer, begin_ns);
	return read;
}
