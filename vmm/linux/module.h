// SPDX-License-Identifier: BSD-2-Clause
/*
 * The loadable modules of a Linux guest, read from its memory: the kernel's list `modules` of struct modules (Linux,
 * include/linux/module.h). The code of a module is in core_layout and init_layout up to 6.3, and in mem[] from 6.4 on.
 *
 * The list is not trusted: at most MODULES_MAX links are followed, and impossible entries are left out.
 */
#ifndef VPROF_LINUX_MODULE_H
#define VPROF_LINUX_MODULE_H

#include "guest/module.h"
#include "guest/page_walk.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"

#define MODULE_ERROR module_error_quark()
GQuark module_error_quark(void);
enum module_error {
	MODULE_ERROR_NONE,   /* a kernel without loadable modules */
	MODULE_ERROR_SYMBOL, /* a kernel that does not say where the list is */
};

/*
 * Offsets of members; 0 for build_id and parts in kernels that do not have them, since a struct module begins with
 * other members.
 */
struct module_layout {
	uint64_t head;              /* address of the list's struct list_head */
	uint32_t list, name, state; /* in struct module, as all that follow */
	struct {
		uint32_t base, bytes;
	} parts[MODULE_PARTS];
	uint32_t build_id; /* from 5.14 on, with CONFIG_STACKTRACE_BUILD_ID; else it is among the notes */
	struct {
		uint32_t attributes; /* address of a struct module_notes_attrs, for sysfs; 0: none */
		bool has_list;       /* since 6.16 */
		uint32_t list;     /* in it, then: address of a list of pointers to struct bin_attribute, ended by 0 */
		uint32_t n, first; /* before: how many, and an array of struct bin_attribute */
		uint32_t bytes;    /* of a struct bin_attribute */
		uint32_t size, at; /* in that: of the notes, and where they are */
	} notes;
	uint32_t orc_ips, orc_entries, orc_n; /* with CONFIG_UNWINDER_ORC */
	uint32_t kallsyms;                    /* address of a struct mod_kallsyms; with CONFIG_KALLSYMS */
	uint32_t symbols, n_symbols, names;   /* in struct mod_kallsyms */
	bool has_orc, has_kallsyms;
};

/* Errors: MODULE_ERROR, TYPES_ERROR_MEMBER. */
bool module_layout_load(const struct symtab *symtab, const struct types *types, struct module_layout *layout,
                        GError **error);

#define MODULE_WAIT_MIN_NS UINT64_C(10000000) /* time between two readings; doubles while modules keep changing */
#define MODULE_WAIT_MAX_NS UINT64_C(1000000000)

/*
 * Reads the list again if it has changed or was incomplete, and the wait is over; takes one read when nothing has
 * changed. True when it was read. `walk`: in any address space, with the kernel's part.
 */
bool module_table_update(struct module_table *table, const struct module_layout *layout, struct page_walk *walk,
                         uint64_t now_ns);

/* Whether module_table_update would read it now. One read. */
bool module_table_is_due(const struct module_table *table, const struct module_layout *layout, struct page_walk *walk,
                         uint64_t now_ns);

/* Whether it is still loaded where it was; it may have been loaded again there. Two reads, no lock, no allocation. */
bool module_is_there(const struct module_layout *layout, struct page_walk *walk, const struct module *module);

#endif
