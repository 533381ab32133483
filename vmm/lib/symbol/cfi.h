// SPDX-License-Identifier: BSD-2-Clause
/*
 * Call frame information (DWARF 5, 6.4; LSB Core, 10.6 "Exception Frames"): how to step from an address of a program
 * to its caller. The programs in .eh_frame and .debug_frame are run once, and become a table of rows, sorted by where
 * the code is in its file: from there up to the next row, these cells say how the caller's registers are found.
 *
 * A table is a block of bytes without pointers, so that one process can make it and another can use it, which trusts
 * nothing in it: cfi_table_open checks all of it.
 */
#ifndef VPROF_SYMBOL_CFI_H
#define VPROF_SYMBOL_CFI_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "lib/symbol/image.h"

/*
 * Registers: on x86-64 all by their DWARF numbers (x86/cfi_x86.h); on arm64 those that lead to the caller have the
 * places of their likes, and the others have no rules (arm64/cfi_arm64.h).
 */
enum cfi_register {
	CFI_FP = 6, /* the frame pointer */
	CFI_SP = 7, /* the stack pointer */
	CFI_RETURN =
		16, /* the return address; arm64: the link register, which has it until the function calls another */
	CFI_REGISTERS,
	CFI_CFA,        /* the canonical frame address: the stack pointer of the caller */
	CFI_CFA_SIGNAL, /* the same, where the caller was interrupted and did not make a call */
};

/* What a walk has to know of an architecture's registers. */
struct cfi_arch {
	uint8_t return_address; /* its DWARF number */
	bool links;             /* that is a register, and without a rule it has the return address */
	uint32_t preserved;     /* a bit for each that a call leaves alone */
	/* The place of a register by its DWARF number; CFI_REGISTERS and more: it has no rules. */
	uint64_t (*place)(uint64_t dwarf);
};
extern const struct cfi_arch cfi_x86_64, cfi_arm64;

enum cfi_how {
	CFI_UNDEFINED, /* the caller's value is lost; of the return address: there is no caller */
	CFI_SAME,      /* the caller's value is still in the register */
	CFI_VALUE,     /* base + offset + add */
	CFI_MEMORY,    /* the word at base + offset, plus add */
};

/* How one register of the caller, or the CFA, is found. */
struct cfi_cell {
	uint8_t target; /* enum cfi_register */
	uint8_t how;    /* enum cfi_how */
	uint8_t base;   /* enum cfi_register; CFI_CFA not for the CFA itself */
	uint8_t count;  /* of the CFA's: how many cells the row has, with this one */
	int32_t offset, add;
};
/*
 * For one row: the CFA's first, and then those of registers with a rule of their own. Without one, the stack pointer of
 * the caller is the CFA.
 */
#define CFI_CELLS_MAX (1u + CFI_REGISTERS)

struct cfi_row {
	uint32_t offset; /* in the file, of the first byte of code */
	uint32_t cells;  /* number of the first one; CFI_NONE, CFI_UNKNOWN */
};
#define CFI_NONE UINT32_MAX           /* code without call frame information */
#define CFI_UNKNOWN (UINT32_MAX - 1u) /* with information of a form that has no cell */

/* How much of a file went into its table, and why the rest did not. */
struct cfi_statistics {
	uint64_t functions; /* FDEs in the table */
	uint64_t rows;
	uint64_t unknown;     /* rows whose form has no cell */
	uint64_t corrupt;     /* FDEs that contradict themselves, or end too early */
	uint64_t overlapping; /* FDEs of code that another one has */
	uint64_t outside;     /* FDEs of code that is not in the file */
	uint64_t missing;     /* FDEs of which bytes are not known */
};

/* A section, as it is in memory at `address`. NULL: none. */
struct cfi_section {
	const uint8_t *bytes;
	size_t n;
	uint64_t address;
};

struct cfi_source {
	const struct cfi_arch *arch;              /* NULL: x86-64 */
	struct cfi_section eh_frame, debug_frame; /* where both have code, the first counts */
	/* Of which some bytes may not be known; .eh_frame_hdr leads past them. NULL: all are known. */
	const struct image *partial;
	struct cfi_section header;
	const struct image_segment *segments; /* executable ones tell where code is in the file */
	size_t n_segments;
};

#define CFI_ROWS_MAX (8u << 20) /* cc1 of GCC 12, with 32 MB, has 480,464 */
#define CFI_TABLE_BYTES_MAX (UINT64_C(96) << 20)

/*
 * By vprof-parse: the table of a program or library; without its .debug_frame, which is not loaded, for one of
 * image_open_partial. NULL when it describes no code, and with PARSER_ERROR or IMAGE_ERROR when it cannot be read. What
 * is in it is not checked: cfi_table_open does that where it is used.
 */
GBytes *cfi_table_load(const struct image *image, struct cfi_statistics *statistics, GError **error);

/* In vprof-parse: makes a table; NULL when the sections describe no code, or have more rows than CFI_ROWS_MAX. */
GBytes *cfi_table_make(const struct cfi_source *source, struct cfi_statistics *statistics);
/* The same from the sections of a program or library. */
GBytes *cfi_table_make_of_image(const struct image *image, struct cfi_statistics *statistics);
/* The same for one of image_open_partial. */
GBytes *cfi_table_make_of_partial(const struct image *image, struct cfi_statistics *statistics);

/* A table in memory. Borrows the block. */
struct cfi_table {
	const struct cfi_row *rows;
	const struct cfi_cell *cells;
	/* For every CFI_INDEX_BYTES of code from the first row's on: the last row that begins at or before them. */
	const uint32_t *index;
	uint32_t n_rows, n_cells, n_index;
};
#define CFI_INDEX_BYTES 256u

/* False when anything in the block is not as it should be. It must be aligned to 4 bytes, and nobody may change it. */
bool cfi_table_open(const void *block, size_t bytes, struct cfi_table *table);

/*
 * The cells for the byte of code at `offset` of the file: the CFA's, and those that it counts. NULL: there is no
 * information (*why is CFI_NONE), or of a form that has no cell (CFI_UNKNOWN). No lock, no allocation.
 */
const struct cfi_cell *cfi_table_find(const struct cfi_table *table, uint64_t offset, uint32_t *why);

/*
 * Whether all code between two offsets has information: as a rule that of one function, since compilers leave gaps
 * between functions. At most CFI_COVERS_ROWS_MAX rows are looked at, and then it does not count as that.
 */
#define CFI_COVERS_ROWS_MAX 4096u
bool cfi_table_covers(const struct cfi_table *table, uint64_t from, uint64_t to);

#endif
