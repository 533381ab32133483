// SPDX-License-Identifier: BSD-2-Clause
#include "linux/module.h"

#include <string.h>

G_DEFINE_QUARK(vprof_module_error, module_error)

#define UPPER_HALF (UINT64_C(1) << 63)
#define LINKS_OFFSET_MAX 4096u /* of a struct module, which has 1 KiB */
#define ORC_MODULE_ENTRIES_MAX (1u << 22)
#define NOTES_MAX 8u /* sections with notes that are looked at */

/* enum module_state, and the two of enum mod_mem_type that are code (include/linux/module.h). */
enum { STATE_LIVE, STATE_COMING, STATE_GOING, STATES };
static const uint32_t memory_types[MODULE_PARTS] = {[MODULE_TEXT] = 0, [MODULE_INIT_TEXT] = 4};

/* ---- layouts ---- */

/* Since 6.4: an array of struct module_memory. */
static bool layout_memory(struct module_layout *layout, const struct types *types)
{
	uint32_t memory, base, size, bytes;

	if (!types_has(types, "module", "mem", TYPES_PLACE, &memory) ||
	    !types_has(types, "module_memory", "base", 8, &base) ||
	    !types_has(types, "module_memory", "size", 4, &size) || !types_size(types, "module_memory", &bytes) ||
	    bytes > LINKS_OFFSET_MAX)
		return false;
	for (unsigned i = 0; i < MODULE_PARTS; i++) {
		layout->parts[i].base = memory + memory_types[i] * bytes + base;
		layout->parts[i].bytes = memory + memory_types[i] * bytes + size;
	}
	return true;
}

/* Before. */
static bool layout_core_and_init(struct module_layout *layout, const struct types *types, GError **error)
{
	uint32_t core, init, base, size;
	const struct types_member members[] = {
		{"module", "core_layout", TYPES_PLACE, &core},
		{"module", "init_layout", TYPES_PLACE, &init},
		{"module_layout", "base", 8, &base},
		{"module_layout", "text_size", 4, &size},
	};

	if (!types_find(types, members, G_N_ELEMENTS(members), error))
		return false;
	layout->parts[MODULE_TEXT].base = core + base;
	layout->parts[MODULE_TEXT].bytes = core + size;
	layout->parts[MODULE_INIT_TEXT].base = init + base;
	layout->parts[MODULE_INIT_TEXT].bytes = init + size;
	return true;
}

/* What sysfs shows of a module's notes. */
static void notes_find(struct module_layout *layout, const struct types *types)
{
	uint32_t group, list;

	if (!types_has(types, "module", "notes_attrs", 8, &layout->notes.attributes))
		return;
	layout->notes.has_list = types_has(types, "module_notes_attrs", "grp", TYPES_PLACE, &group) &&
	                         types_has(types, "attribute_group", "bin_attrs", 8, &list);
	if (layout->notes.has_list)
		layout->notes.list = group + list;
	else if (!types_has(types, "module_notes_attrs", "notes", 4, &layout->notes.n) ||
	         !types_has(types, "module_notes_attrs", "attrs", TYPES_PLACE, &layout->notes.first))
		layout->notes.attributes = 0;
	if (!types_has(types, "bin_attribute", "size", 8, &layout->notes.size) ||
	    !types_has(types, "bin_attribute", "private", 8, &layout->notes.at) ||
	    !types_size(types, "bin_attribute", &layout->notes.bytes))
		layout->notes.attributes = 0;
}

/* What not every kernel has. */
static void layout_options(struct module_layout *layout, const struct types *types)
{
	uint32_t arch, ips, entries, n;

	if (!types_has(types, "module", "build_id", MODULE_BUILD_ID_BYTES, &layout->build_id))
		layout->build_id = 0;
	notes_find(layout, types);
	layout->has_orc = types_has(types, "module", "arch", TYPES_PLACE, &arch) &&
	                  types_has(types, "mod_arch_specific", "orc_unwind_ip", 8, &ips) &&
	                  types_has(types, "mod_arch_specific", "orc_unwind", 8, &entries) &&
	                  types_has(types, "mod_arch_specific", "num_orcs", 4, &n);
	if (layout->has_orc) {
		layout->orc_ips = arch + ips;
		layout->orc_entries = arch + entries;
		layout->orc_n = arch + n;
	}
	layout->has_kallsyms = types_has(types, "module", "kallsyms", 8, &layout->kallsyms) &&
	                       types_has(types, "mod_kallsyms", "symtab", 8, &layout->symbols) &&
	                       types_has(types, "mod_kallsyms", "num_symtab", 4, &layout->n_symbols) &&
	                       types_has(types, "mod_kallsyms", "strtab", 8, &layout->names);
}

bool module_layout_load(const struct symtab *symtab, const struct types *types, struct module_layout *layout,
                        GError **error)
{
	const struct symbol *head = symtab_find_name(symtab, "modules");
	struct module_layout loaded = {0};
	const struct types_member members[] = {
		{"module", "name", MODULE_NAME_BYTES, &loaded.name},
		{"module", "state", 4, &loaded.state},
	};

	if (!types_has(types, "module", "list", TYPES_PLACE, &loaded.list)) {
		g_set_error_literal(error, MODULE_ERROR, MODULE_ERROR_NONE, "the kernel has no loadable modules");
		return false;
	}
	if (!head) {
		g_set_error_literal(error, MODULE_ERROR, MODULE_ERROR_SYMBOL,
		                    "the kernel has no symbol modules; a stripped image needs CONFIG_KALLSYMS_ALL");
		return false;
	}
	loaded.head = head->address;
	if (!types_find(types, members, G_N_ELEMENTS(members), error) ||
	    (!layout_memory(&loaded, types) && !layout_core_and_init(&loaded, types, error)))
		return false;
	layout_options(&loaded, types);
	*layout = loaded;
	return true;
}

/* ---- reading ---- */

static bool kernel_read(struct page_walk *walk, uint64_t from, void *to, size_t bytes)
{
	return page_walk_read_kernel(walk, (gva_t){from}, to, bytes);
}

/* A module name: characters that file names have, and no path. */
static bool is_name(const char name[MODULE_NAME_BYTES])
{
	size_t n = strnlen(name, MODULE_NAME_BYTES);

	for (size_t i = 0; i < n; i++)
		if (!g_ascii_isalnum(name[i]) && name[i] != '_' && name[i] != '-' && name[i] != '.')
			return false;
	return n > 0 && n < MODULE_NAME_BYTES;
}

static bool part_read(const struct module_layout *layout, struct page_walk *walk, struct module *module,
                      enum module_part part)
{
	uint64_t start;
	uint32_t bytes;

	if (!kernel_read(walk, module->address + layout->parts[part].base, &start, sizeof(start)) ||
	    !kernel_read(walk, module->address + layout->parts[part].bytes, &bytes, sizeof(bytes)))
		return false;
	/* Freed, or what cannot be: no code. */
	if (start < UPPER_HALF || bytes > MODULE_TEXT_BYTES_MAX || bytes >= gva_room(start))
		bytes = 0;
	module->parts[part].start = start;
	module->parts[part].bytes = bytes;
	return true;
}

/* The i-th struct bin_attribute of these attributes; false: there are fewer. */
static bool note_find(const struct module_layout *layout, struct page_walk *walk, uint64_t attributes, uint32_t i,
                      uint64_t *attribute)
{
	uint64_t list;
	uint32_t n;

	if (layout->notes.has_list)
		return kernel_read(walk, attributes + layout->notes.list, &list, sizeof(list)) &&
		       kernel_read(walk, list + i * sizeof(*attribute), attribute, sizeof(*attribute)) &&
		       *attribute != 0;
	*attribute = attributes + layout->notes.first + (uint64_t)i * layout->notes.bytes;
	return kernel_read(walk, attributes + layout->notes.n, &n, sizeof(n)) && i < n;
}

/* Searches the note sections that sysfs shows; there are none until sysfs has them. */
static bool notes_build_id_read(const struct module_layout *layout, struct page_walk *walk, struct module *module)
{
	uint64_t attributes, attribute, bytes, at;

	if (layout->notes.attributes == 0)
		return true;
	if (!kernel_read(walk, module->address + layout->notes.attributes, &attributes, sizeof(attributes)))
		return false;
	for (uint32_t i = 0; i < NOTES_MAX && attributes != 0 && !module->has_build_id &&
	                     note_find(layout, walk, attributes, i, &attribute);
	     i++)
		module->has_build_id =
			kernel_read(walk, attribute + layout->notes.size, &bytes, sizeof(bytes)) &&
			kernel_read(walk, attribute + layout->notes.at, &at, sizeof(at)) && at >= UPPER_HALF &&
			elf_notes_build_id(walk, (gva_t){at}, bytes, module->build_id) == MODULE_BUILD_ID_BYTES;
	return true;
}

/* The kernel copies it from the note of the module; without one, it is all zero. */
static bool build_id_read(const struct module_layout *layout, struct page_walk *walk, struct module *module)
{
	static const uint8_t none[MODULE_BUILD_ID_BYTES];

	if (layout->build_id == 0)
		return notes_build_id_read(layout, walk, module);
	if (!kernel_read(walk, module->address + layout->build_id, module->build_id, sizeof(module->build_id)))
		return false;
	module->has_build_id = memcmp(module->build_id, none, sizeof(none)) != 0;
	return true;
}

static bool orc_read(const struct module_layout *layout, struct page_walk *walk, struct module *module)
{
	if (!layout->has_orc)
		return true;
	if (!kernel_read(walk, module->address + layout->orc_ips, &module->unwind_at[0],
	                 sizeof(module->unwind_at[0])) ||
	    !kernel_read(walk, module->address + layout->orc_entries, &module->unwind_at[1],
	                 sizeof(module->unwind_at[1])) ||
	    !kernel_read(walk, module->address + layout->orc_n, &module->unwind_n, sizeof(module->unwind_n)))
		return false;
	if (module->unwind_n > ORC_MODULE_ENTRIES_MAX)
		module->unwind_n = 0;
	return true;
}

/* False when it cannot be read. A module without code yet is not described; *state says so. */
static bool module_read(const struct module_layout *layout, struct page_walk *walk, uint64_t address,
                        struct module *module, uint32_t *state)
{
	*module = (struct module){.address = address};
	if (!kernel_read(walk, address + layout->state, state, sizeof(*state)))
		return false;
	return *state >= STATES ||
	       (kernel_read(walk, address + layout->name, module->name, sizeof(module->name)) &&
	        part_read(layout, walk, module, MODULE_TEXT) && part_read(layout, walk, module, MODULE_INIT_TEXT) &&
	        build_id_read(layout, walk, module) && orc_read(layout, walk, module));
}

/* ---- the table ---- */

/* Follows one link; false: the list cannot be followed any further. */
static bool link_take(struct module_table *table, const struct module_layout *layout, struct page_walk *walk,
                      uint64_t *link)
{
	struct module *module = &table->modules[table->n];
	uint32_t state;

	if (!module_read(layout, walk, *link - layout->list, module, &state) ||
	    !kernel_read(walk, *link, link, sizeof(*link)))
		return false;
	/* Until the init function has returned the module will change: the function is freed then. */
	table->settled &= state == STATE_LIVE && module->parts[MODULE_INIT_TEXT].bytes == 0;
	if (state < STATES && is_name(module->name) && module->parts[MODULE_TEXT].bytes != 0) {
		module_table_add(table, MODULE_TEXT);
		module_table_add(table, MODULE_INIT_TEXT);
		table->n++;
	}
	return true;
}

static void list_read(struct module_table *table, const struct module_layout *layout, struct page_walk *walk)
{
	uint64_t link = table->first;

	table->n = table->n_ranges = 0;
	table->settled = true;
	for (unsigned i = 0; i < MODULES_MAX && link != layout->head; i++) {
		if (link_take(table, layout, walk, &link))
			continue;
		table->settled = false;
		return;
	}
}

/* *changed: since the last reading. */
static bool is_due(const struct module_table *table, const uint64_t links[2], uint64_t now_ns, bool *changed)
{
	*changed = links[0] != table->first || links[1] != table->last;
	return (*changed || !table->settled) && now_ns >= table->not_before_ns;
}

bool module_table_is_due(const struct module_table *table, const struct module_layout *layout, struct page_walk *walk,
                         uint64_t now_ns)
{
	uint64_t links[2];
	bool changed;

	return kernel_read(walk, layout->head, links, sizeof(links)) && is_due(table, links, now_ns, &changed);
}

bool module_table_update(struct module_table *table, const struct module_layout *layout, struct page_walk *walk,
                         uint64_t now_ns)
{
	uint64_t links[2];
	bool changed;

	if (!kernel_read(walk, layout->head, links, sizeof(links)) || !is_due(table, links, now_ns, &changed))
		return false;
	table->wait_ns =
		changed ? MODULE_WAIT_MIN_NS : CLAMP(2 * table->wait_ns, MODULE_WAIT_MIN_NS, MODULE_WAIT_MAX_NS);
	table->not_before_ns = now_ns + table->wait_ns;
	table->first = links[0];
	table->last = links[1];
	list_read(table, layout, walk);
	return true;
}

/* The memory of a module that was unloaded is not mapped, or something else's. */
bool module_is_there(const struct module_layout *layout, struct page_walk *walk, const struct module *module)
{
	char name[MODULE_NAME_BYTES];
	uint64_t start;

	return kernel_read(walk, module->address + layout->name, name, sizeof(name)) &&
	       kernel_read(walk, module->address + layout->parts[MODULE_TEXT].base, &start, sizeof(start)) &&
	       strncmp(name, module->name, sizeof(name)) == 0 && start == module->parts[MODULE_TEXT].start;
}
