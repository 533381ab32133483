// SPDX-License-Identifier: BSD-2-Clause
/* From the bytes of one FDE to its rows: what the files of the call frame information share. */
#ifndef VPROF_SYMBOL_CFI_PRIV_H
#define VPROF_SYMBOL_CFI_PRIV_H

#include "lib/symbol/cfi.h"
#include "lib/symbol/span_priv.h"

/* Before the rows, cells and index of a table. */
#define CFI_TABLE_MAGIC "CFI1"
struct cfi_table_header {
	char magic[4];
	uint32_t n_rows, n_cells, n_index;
};
_Static_assert(sizeof(struct cfi_table_header) == 16 && sizeof(struct cfi_row) == 8 && sizeof(struct cfi_cell) == 12,
               "a table goes from one process to another");

/* Reads forward; after a read beyond the end, everything is 0 and `failed` is set. */
struct cfi_cursor {
	struct span span;
	size_t at;
	bool failed;
};

static inline uint64_t cfi_fixed(struct cfi_cursor *cursor, unsigned bytes)
{
	uint64_t value = 0;

	if (cursor->failed || !span_read(cursor->span, cursor->at, &value, bytes))
		cursor->failed = true;
	else
		cursor->at += bytes;
	return cursor->failed ? 0 : value;
}

uint64_t cfi_uleb(struct cfi_cursor *cursor);
int64_t cfi_sleb(struct cfi_cursor *cursor);
/* Takes the next n bytes. */
struct span cfi_slice(struct cfi_cursor *cursor, uint64_t n);

#define CFI_HEADER_ENTRY_BYTES 8u /* the address of a function, and that of its FDE */

/* cfi_header.c. Borrows the section's bytes. */
struct cfi_header {
	uint64_t eh_frame; /* address */
	uint64_t n;        /* of FDEs */
	uint64_t address;
	struct span table;
};
/* False when it is not of the form that linkers write, or ends too early. */
bool cfi_header_open(const struct cfi_section *section, struct cfi_header *header);
/* The address of FDE number `i`; returns where its eight bytes are, for image_has. */
const uint8_t *cfi_header_entry(const struct cfi_header *header, uint64_t i, uint64_t *fde);

/* What of a register's rule does not depend on its register. */
struct cfi_rule {
	uint8_t how, base;
	int32_t offset, add;
};

/*
 * cfi_expression.c: the forms that compilers and assembly use: a register plus an offset, and the word there plus
 * another. True and the address or value that the expression computes.
 */
bool cfi_expression(struct span expression, struct cfi_rule *rule);

/* The CFA in an entry of the procedure linkage table: sp + offset, and a word more from byte `pushed` of 16 on. */
struct cfi_plt {
	int32_t offset;
	uint8_t pushed;
};
bool cfi_expression_plt(struct span expression, struct cfi_plt *plt);

/* All rules at one place. */
struct cfi_state {
	bool known;  /* else: of a form that has no cell */
	bool is_plt; /* the CFA is by `plt` */
	struct cfi_plt plt;
	struct cfi_rule cfa;
	struct cfi_rule registers[CFI_REGISTERS];
};

struct cfi_cie {
	const struct cfi_arch *arch;
	uint64_t code_alignment;
	int64_t data_alignment;
	uint8_t encoding; /* of the FDE's addresses: DW_EH_PE_* */
	bool has_augmentation;
	bool signal;
	struct cfi_state initial;
};

/* Runs a program; calls `row` with every change, and from where on it holds. False when it is corrupt. */
struct cfi_run {
	const struct cfi_cie *cie;
	uint64_t from, to; /* addresses of the code */
	uint64_t address;  /* of `program`, for DW_CFA_set_loc */
	void (*row)(uint64_t from, uint64_t to, const struct cfi_state *state, void *data);
	void *data;
};
bool cfi_program_run(const struct cfi_run *run, struct span program);
/* The same for the CIE's own, which has one state. */
bool cfi_program_start(struct cfi_cie *cie, struct span program);

/* An address in the given encoding; `at` is where `cursor`'s span is in memory. False for a form that has none. */
bool cfi_pointer(struct cfi_cursor *cursor, uint8_t encoding, uint64_t at, uint64_t *value);

#endif
