// SPDX-License-Identifier: BSD-2-Clause
/* The loadable modules of a guest's kernel, as a system has read them last (struct os_modules). */
#ifndef VPROF_GUEST_MODULE_H
#define VPROF_GUEST_MODULE_H

#include <stdbool.h>
#include <stdint.h>

#include "guest/elf_note.h"

#define MODULES_MAX 512u
#define MODULE_NAME_BYTES 56u
#define MODULE_BUILD_ID_BYTES ELF_NOTE_BUILD_ID_BYTES_MAX
#define MODULE_TEXT_BYTES_MAX (UINT32_C(1) << 30) /* more than fit into the area that a kernel has for modules */

/* What the symbols of all modules of a guest may take (symtab_bytes); Debian's 150 modules of a server have 4 MiB. */
#define MODULE_SYMBOLS_BYTES_MAX (UINT64_C(16) << 20)

/* The code of a module: the part that stays, and the part that is freed after its init function. */
enum module_part { MODULE_TEXT, MODULE_INIT_TEXT, MODULE_PARTS };

struct module {
	uint64_t address; /* of the system's own record of it */
	char name[MODULE_NAME_BYTES];
	struct {
		uint64_t start;
		uint32_t bytes; /* 0: none */
	} parts[MODULE_PARTS];
	uint8_t build_id[MODULE_BUILD_ID_BYTES];
	bool has_build_id;
	/* Its unwind tables, in the system's form: where they are, and how many entries they have; 0: it has none. */
	uint64_t unwind_at[2];
	uint32_t unwind_n;
};

/* The file offset at which the code of this part of a module is said to be mapped. */
uint64_t module_file_offset(const struct module *module, unsigned part);

/*
 * The modules at the last reading. Of fixed size; starts as zero; only one thread uses it. A reading takes some ten
 * reads of guest memory for each module, no lock and no allocation.
 */
struct module_table {
	uint64_t first, last; /* links of the list's head when it was read; the system's own use */
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

/* The range becomes part of the table, for the module that is about to be the table's next, if it overlaps none. */
void module_table_add(struct module_table *table, enum module_part part);

/* The module code at `address`; NULL: none. */
const struct module_range *module_table_find(const struct module_table *table, uint64_t address);

#endif
