// SPDX-License-Identifier: BSD-2-Clause
/*
 * The loadable modules of a Linux guest, read in its memory: the kernel's list `modules` of struct modules (Linux,
 * include/linux/module.h). A module's code is in core_layout and init_layout up to 6.3, and in mem[] from 6.4 on.
 *
 * All of a list is the guest's word: at most MODULES_MAX links are followed, and what cannot be is left out.
 */
#ifndef VPROF_GUEST_MODULE_H
#define VPROF_GUEST_MODULE_H

#include "guest/elf_note.h"
#include "guest/orc.h"
#include "guest/page_walk.h"
#include "guest/types.h"
#include "lib/symbol/symtab.h"

#define MODULES_MAX 512u
#define MODULE_NAME_BYTES 56u /* MODULE_NAME_LEN */
#define MODULE_BUILD_ID_BYTES ELF_NOTE_BUILD_ID_BYTES_MAX
#define MODULE_TEXT_BYTES_MAX (UINT32_C(1) << 30) /* more than the area that a kernel has for modules */

#define MODULE_ERROR module_error_quark()
GQuark module_error_quark(void);
enum module_error {
	MODULE_ERROR_NONE,   /* a kernel without loadable modules */
	MODULE_ERROR_SYMBOL, /* one that does not say where their list is */
};

/* A module's code: what stays, and what is freed when its init function has returned. */
enum module_part { MODULE_TEXT, MODULE_INIT_TEXT, MODULE_PARTS };

/* Where things are. build_id and parts' are 0 where a kernel does not have them: a struct module begins otherwise. */
struct module_layout {
	uint64_t head;              /* address of the list's struct list_head */
	uint32_t list, name, state; /* in struct module, as all that follow */
	struct {
		uint32_t base, bytes;
	} parts[MODULE_PARTS];
	uint32_t build_id; /* from 5.14 on, with CONFIG_STACKTRACE_BUILD_ID; else it is among the notes */
	struct {
		uint32_t attributes; /* address of a struct module_notes_attrs, for sysfs; 0: none */
		uint32_t n, first;   /* in it: how many, and an array of struct bin_attribute */
		uint32_t bytes;      /* of a struct bin_attribute */
		uint32_t size, at;   /* in that: of the notes, and where they are */
	} notes;
	uint32_t orc_ips, orc_entries, orc_n; /* with CONFIG_UNWINDER_ORC */
	uint32_t kallsyms;                    /* address of a struct mod_kallsyms; with CONFIG_KALLSYMS */
	uint32_t symbols, n_symbols, names;   /* in struct mod_kallsyms */
	bool has_orc, has_kallsyms;
};

/* Errors: MODULE_ERROR, TYPES_ERROR_MEMBER. */
bool module_layout_load(const struct symtab *symtab, const struct types *types, struct module_layout *layout,
                        GError **error);

struct module {
	uint64_t address; /* of its struct module */
	char name[MODULE_NAME_BYTES];
	struct {
		uint64_t start;
		uint32_t bytes; /* 0: none */
	} parts[MODULE_PARTS];
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	bool has_build_id;
	uint64_t orc_ips, orc_entries;
	uint32_t orc_n; /* 0: no unwind table */
};

/* Where the code of a module's part is, as an offset in the file that it is said to be mapped from. */
uint64_t module_file_offset(const struct module *module, unsigned part);

/*
 * The modules as they were when they were last read. Of fixed size and all zero at first; its owner's thread only.
 * Reading takes some ten reads of guest memory for each module, no lock and no allocation.
 */
struct module_table {
	uint64_t first, last; /* links of the list's head when it was read */
	bool settled;         /* every module had been loaded, and none was missed */
	uint64_t wait_ns, not_before_ns;
	unsigned n;
	struct module modules[MODULES_MAX];
	unsigned n_ranges;
	struct module_range {
		uint64_t start;
		uint32_t bytes;
		uint16_t module;
		uint16_t part;
	} ranges[MODULES_MAX * MODULE_PARTS]; /* by address, not overlapping */
};

#define MODULE_WAIT_MIN_NS UINT64_C(10000000) /* between two readings; twice as long each time nothing settles */
#define MODULE_WAIT_MAX_NS UINT64_C(1000000000)

/*
 * Reads the list again if it has changed, or was not complete, and it is time for it: one read when nothing has. True
 * when it was read. `walk`: of any address space, with the kernel's part.
 */
bool module_table_update(struct module_table *table, const struct module_layout *layout, struct page_walk *walk,
                         uint64_t now_ns);

/* The code at `address`; NULL: no module's. */
const struct module_range *module_table_find(const struct module_table *table, uint64_t address);

/*
 * The rule for the code at `address`, searched in the module's own table in guest memory. False: there is none. At most
 * 32 reads.
 */
bool module_orc_find(const struct module_table *table, const struct orc *orc, struct page_walk *walk, uint64_t address,
                     struct orc_entry *entry);

#endif
