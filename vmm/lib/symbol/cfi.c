// SPDX-License-Identifier: BSD-2-Clause
/* Walks the entries of .eh_frame and .debug_frame, and makes a table of what their programs say. */
#include "lib/symbol/cfi.h"

#include <elf.h>
#include <stdlib.h>

#include "lib/symbol/cfi_priv.h"

/* LSB Core, 10.5.1 "DWARF Exception Header Encoding". */
enum {
	EH_ABSOLUTE = 0x00,
	EH_ULEB = 0x01,
	EH_U2 = 0x02,
	EH_U4 = 0x03,
	EH_U8 = 0x04,
	EH_SLEB = 0x09,
	EH_S2 = 0x0a,
	EH_S4 = 0x0b,
	EH_S8 = 0x0c,
	EH_FORM_MASK = 0x0f,
	EH_RELATIVE = 0x10, /* to where it stands */
	EH_BASE_MASK = 0x70,
	EH_OMIT = 0xff,
};

#define CIE_BYTES_MAX 1024u /* its program runs once for each FDE at worst */
#define DWARF64 UINT32_MAX
#define PLT_BYTES_MAX (UINT64_C(1) << 20) /* 65,536 entries */
#define PLT_ENTRY_BYTES 16u

/* The rows of an FDE, in `rows` of the maker. */
struct function {
	uint32_t start, end; /* in the file */
	bool second;         /* of .debug_frame */
	size_t first, n;
};

struct maker {
	const struct cfi_source *source;
	struct cfi_statistics *statistics;
	GArray *functions; /* of struct function */
	GArray *rows;      /* of struct cfi_row */
	GArray *cells;     /* of struct cfi_cell */
	GHashTable *known; /* the cells of a row (GBytes *) -> number of the first + 1 */
	int64_t to_file;   /* from an address of the FDE at hand */
	bool full;
	bool second;
	uint64_t cie_at; /* of `cie`; UINT64_MAX: none */
	struct cfi_cie cie;
	bool cie_fits, cie_known;
};

bool cfi_pointer(struct cfi_cursor *cursor, uint8_t encoding, uint64_t at, uint64_t *value)
{
	uint64_t place = at + cursor->at;

	switch (encoding & EH_FORM_MASK) {
	case EH_ABSOLUTE:
	case EH_U8:
	case EH_S8:
		*value = cfi_fixed(cursor, 8);
		break;
	case EH_ULEB:
		*value = cfi_uleb(cursor);
		break;
	case EH_U2:
		*value = cfi_fixed(cursor, 2);
		break;
	case EH_U4:
		*value = cfi_fixed(cursor, 4);
		break;
	case EH_SLEB:
		*value = (uint64_t)cfi_sleb(cursor);
		break;
	case EH_S2:
		*value = (uint64_t)(int16_t)cfi_fixed(cursor, 2);
		break;
	case EH_S4:
		*value = (uint64_t)(int32_t)cfi_fixed(cursor, 4);
		break;
	default:
		return false;
	}
	if ((encoding & EH_BASE_MASK) == EH_RELATIVE)
		*value += place;
	return !cursor->failed && !(encoding & ~(EH_FORM_MASK | EH_RELATIVE));
}

/* Cells that other rows have, too, are kept once. */
static uint32_t cells_add(struct maker *maker, const struct cfi_cell *cells, unsigned n)
{
	g_autoptr(GBytes) key = g_bytes_new(cells, n * sizeof(*cells));
	gpointer found = g_hash_table_lookup(maker->known, key);

	if (found)
		return GPOINTER_TO_UINT(found) - 1;
	uint32_t first = maker->cells->len;

	g_array_append_vals(maker->cells, cells, n);
	g_hash_table_insert(maker->known, g_steal_pointer(&key), GUINT_TO_POINTER(first + 1));
	return first;
}

static struct cfi_cell cell_of(uint8_t target, const struct cfi_rule *rule)
{
	return (struct cfi_cell){target, rule->how, rule->base, 0, rule->offset, rule->add};
}

/* What goes without saying. */
static bool is_cfa(uint8_t target, const struct cfi_rule *rule)
{
	return target == CFI_SP && rule->how == CFI_VALUE && rule->base == CFI_CFA && rule->offset == 0 &&
	       rule->add == 0;
}

static uint32_t state_add(struct maker *maker, const struct cfi_state *state, bool signal)
{
	static const struct cfi_rule in_link_register = {.how = CFI_VALUE, .base = CFI_RETURN};
	struct cfi_cell cells[CFI_CELLS_MAX] = {cell_of(CFI_CFA, &state->cfa)};
	const bool returns = state->registers[CFI_RETURN].how != CFI_SAME;
	unsigned n = 1;

	if (!state->known || state->cfa.how < CFI_VALUE || (!returns && !maker->cie.arch->links))
		return CFI_UNKNOWN;
	for (uint8_t i = 0; i < CFI_REGISTERS; i++)
		if (state->registers[i].how != CFI_SAME && !is_cfa(i, &state->registers[i]))
			cells[n++] = cell_of(i, &state->registers[i]);
	if (!returns)
		cells[n++] = cell_of(CFI_RETURN, &in_link_register);
	cells[0].target = signal ? CFI_CFA_SIGNAL : CFI_CFA;
	cells[0].count = (uint8_t)n;
	return cells_add(maker, cells, n);
}

static void row_add(struct maker *maker, uint64_t address, uint32_t cells)
{
	const struct cfi_row row = {(uint32_t)(address + (uint64_t)maker->to_file), cells};

	maker->full |= maker->rows->len >= CFI_ROWS_MAX;
	if (!maker->full)
		g_array_append_val(maker->rows, row);
}

/* Two rows for each entry, before and after it has pushed its number. */
static void plt_add(struct maker *maker, uint64_t from, uint64_t to, const struct cfi_state *state)
{
	struct cfi_state pushed = *state;

	pushed.cfa.offset += (int32_t)sizeof(uint64_t);
	uint32_t before = state_add(maker, state, maker->cie.signal);
	uint32_t after = state_add(maker, &pushed, maker->cie.signal);

	for (uint64_t entry = from - from % PLT_ENTRY_BYTES; entry < to; entry += PLT_ENTRY_BYTES) {
		if (state->plt.pushed != 0 && from < entry + state->plt.pushed)
			row_add(maker, MAX(from, entry), before);
		if (entry + state->plt.pushed < to)
			row_add(maker, MAX(from, entry + state->plt.pushed), after);
	}
}

static void program_row(uint64_t from, uint64_t to, const struct cfi_state *state, void *data)
{
	struct maker *maker = data;

	if (!state->known || !state->is_plt)
		row_add(maker, from, state_add(maker, state, maker->cie.signal));
	else if (to - from <= PLT_BYTES_MAX)
		plt_add(maker, from, to, state);
	else
		row_add(maker, from, CFI_UNKNOWN);
}

/* How far addresses are from offsets in the file. Offsets have 32 bits in a table. */
static bool code_find(struct maker *maker, uint64_t start, uint64_t bytes)
{
	for (size_t i = 0; i < maker->source->n_segments; i++) {
		const struct image_segment *segment = &maker->source->segments[i];
		uint64_t at = start - segment->gva, end;

		if (!(segment->flags & PF_X) || at >= segment->memory_bytes || bytes > segment->memory_bytes - at)
			continue;
		maker->to_file = (int64_t)(segment->file_offset - segment->gva);
		return !__builtin_add_overflow(segment->file_offset, at + bytes, &end) && end < CFI_UNKNOWN;
	}
	return false;
}

static bool program_of_fde(struct maker *maker, struct cfi_cursor *cursor, uint64_t at, uint64_t start, uint64_t bytes)
{
	struct function function = {
		.second = maker->second,
		.first = maker->rows->len,
	};
	struct span program = {cursor->span.data + cursor->at, cursor->span.n - cursor->at};
	const struct cfi_run run = {
		.cie = &maker->cie,
		.from = start,
		.to = start + bytes,
		.address = at + cursor->at,
		.row = program_row,
		.data = maker,
	};
	bool done = cfi_program_run(&run, program);

	function.start = (uint32_t)(start + (uint64_t)maker->to_file);
	function.end = (uint32_t)(function.start + bytes);
	function.n = maker->rows->len - function.first;
	g_array_append_val(maker->functions, function);
	return done;
}

/* `cursor` is behind the CIE pointer; its span is at `at` in memory. */
static void fde_take(struct maker *maker, struct cfi_cursor *cursor, uint64_t at)
{
	uint64_t start, bytes;

	if (maker->source->partial && !maker->cie_known) {
		maker->statistics->missing++;
		return;
	}
	if (!maker->cie_fits || !cfi_pointer(cursor, maker->cie.encoding, at, &start) ||
	    !cfi_pointer(cursor, maker->cie.encoding & EH_FORM_MASK, at, &bytes)) {
		maker->statistics->corrupt++;
		return;
	}
	if (maker->cie.has_augmentation)
		cfi_slice(cursor, cfi_uleb(cursor));
	if (bytes == 0)
		return; /* of a function that the linker has discarded */
	if (cursor->failed)
		maker->statistics->corrupt++;
	else if (!code_find(maker, start, bytes))
		maker->statistics->outside++;
	else if (!program_of_fde(maker, cursor, at, start, bytes))
		maker->statistics->corrupt++;
}

/* 'R': encoding of the FDE's addresses, 'S': a signal's frame; the rest is passed over. */
static bool augmentation_take(struct cfi_cie *cie, struct cfi_cursor *cursor, const char *letters)
{
	uint64_t ignored;

	cie->has_augmentation = letters[0] == 'z';
	if (!cie->has_augmentation)
		return letters[0] == '\0';
	uint64_t bytes = cfi_uleb(cursor);
	struct cfi_cursor data = {.span = cfi_slice(cursor, bytes)};

	for (letters++; *letters != '\0'; letters++) {
		uint8_t encoding;

		switch (*letters) {
		case 'R':
			cie->encoding = (uint8_t)cfi_fixed(&data, 1);
			break;
		case 'P':
			encoding = (uint8_t)cfi_fixed(&data, 1);
			/* Through a pointer (0x80), from any base: only its size is of interest. */
			if (encoding != EH_OMIT && !cfi_pointer(&data, encoding & EH_FORM_MASK, 0, &ignored))
				return false;
			break;
		case 'L':
			cfi_fixed(&data, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		default: /* the data of a letter that is not known may be anything, but FDEs can be read */
			return *letters == 'B';
		}
	}
	return !data.failed;
}

static bool cie_fields_take(struct cfi_cie *cie, struct cfi_cursor *cursor)
{
	uint64_t version = cfi_fixed(cursor, 1);
	const char *letters = span_string(cursor->span, cursor->at);

	if (!letters || version == 0 || version == 2 || version > 4)
		return false;
	cursor->at += strlen(letters) + 1;
	/* Addresses of 8 bytes, without segments. */
	if (version == 4 && cfi_fixed(cursor, 2) != sizeof(uint64_t))
		return false;
	cie->code_alignment = cfi_uleb(cursor);
	cie->data_alignment = cfi_sleb(cursor);
	uint64_t return_address = version == 1 ? cfi_fixed(cursor, 1) : cfi_uleb(cursor);

	return return_address == cie->arch->return_address && augmentation_take(cie, cursor, letters) &&
	       !cursor->failed;
}

static bool cie_take(struct cfi_cie *cie, const struct cfi_arch *arch, struct cfi_cursor *cursor)
{
	*cie = (struct cfi_cie){.arch = arch, .encoding = EH_ABSOLUTE};
	for (unsigned i = 0; i < CFI_REGISTERS; i++)
		cie->initial.registers[i].how = CFI_SAME;
	if (cursor->span.n > CIE_BYTES_MAX || !cie_fields_take(cie, cursor))
		return false;
	/* The stack pointer of the caller is the CFA, unless a rule says otherwise. */
	cie->initial.registers[CFI_SP] = (struct cfi_rule){.how = CFI_VALUE, .base = CFI_CFA};
	return cfi_program_start(cie, (struct span){cursor->span.data + cursor->at, cursor->span.n - cursor->at});
}

/* An entry without its length: what it is, and its bytes. */
struct entry {
	uint64_t at, next; /* in the section */
	uint64_t id, id_at;
	bool wide;         /* 64-bit DWARF */
	struct span bytes; /* from the id on */
};

/* False at the end: no more room, or a length of 0. */
static bool entry_read(struct span section, uint64_t at, struct entry *entry)
{
	struct cfi_cursor cursor = {.span = section, .at = (size_t)at};
	uint64_t bytes = cfi_fixed(&cursor, 4);

	entry->wide = bytes == DWARF64;
	if (entry->wide)
		bytes = cfi_fixed(&cursor, 8);
	entry->at = at;
	entry->id_at = cursor.at;
	if (cursor.failed || bytes == 0 || !span_slice(section, cursor.at, bytes, &entry->bytes))
		return false;
	entry->next = entry->id_at + bytes;
	entry->id = cfi_fixed(&cursor, entry->wide ? 8 : 4);
	return !cursor.failed;
}

static bool entry_known(const struct maker *maker, struct span section, const struct entry *entry)
{
	const struct image *partial = maker->source->partial;

	return !partial || image_has(partial, section.data + entry->at, (size_t)(entry->next - entry->at));
}

static struct cfi_cursor behind_id(const struct entry *entry)
{
	return (struct cfi_cursor){.span = entry->bytes, .at = entry->wide ? 8 : 4};
}

static bool is_cie(const struct maker *maker, const struct entry *entry)
{
	return maker->second ? entry->id == (entry->wide ? UINT64_MAX : UINT32_MAX) : entry->id == 0;
}

/* Of an FDE: .eh_frame counts back from the id, .debug_frame from the start of the section. */
static void cie_of(struct maker *maker, struct span section, const struct entry *fde)
{
	uint64_t at = maker->second ? fde->id : fde->id_at - fde->id;
	struct entry entry;

	if (at == maker->cie_at)
		return;
	maker->cie_at = at;
	maker->cie_fits = at < section.n && entry_read(section, at, &entry);
	maker->cie_known = maker->cie_fits && entry_known(maker, section, &entry);
	maker->cie_fits = maker->cie_known && is_cie(maker, &entry);
	if (!maker->cie_fits)
		return;
	struct cfi_cursor cursor = behind_id(&entry);

	maker->cie_fits = cie_take(&maker->cie, maker->source->arch ? maker->source->arch : &cfi_x86_64, &cursor);
}

static void entry_take(struct maker *maker, const struct cfi_section *from, const struct entry *entry)
{
	struct cfi_cursor cursor = behind_id(entry);

	if (is_cie(maker, entry))
		return;
	cie_of(maker, (struct span){from->bytes, from->n}, entry);
	fde_take(maker, &cursor, from->address + entry->id_at);
}

static void section_walk(struct maker *maker, const struct cfi_section *from, bool second)
{
	struct span section = {from->bytes, from->bytes ? from->n : 0};
	struct entry entry;

	maker->second = second;
	maker->cie_at = UINT64_MAX;
	for (uint64_t at = 0; !maker->full && entry_read(section, at, &entry); at = entry.next)
		entry_take(maker, from, &entry);
}

/* Entries of .eh_frame up to one that is not known: programs that are linked statically have no header. */
static void known_walk(struct maker *maker, const struct cfi_section *from)
{
	struct span section = {from->bytes, from->n};
	struct entry entry;

	for (uint64_t at = 0; !maker->full && entry_read(section, at, &entry) && entry_known(maker, section, &entry);
	     at = entry.next)
		entry_take(maker, from, &entry);
	maker->statistics->missing += !image_has(maker->source->partial, from->bytes, from->n);
}

/* .eh_frame of a file of which some bytes are not known. */
static void partial_walk(struct maker *maker, const struct cfi_source *source)
{
	struct span section = {source->eh_frame.bytes, source->eh_frame.n};
	struct cfi_header header;
	struct entry entry;
	uint64_t fde;

	maker->second = false;
	maker->cie_at = UINT64_MAX;
	if (!cfi_header_open(&source->header, &header)) {
		known_walk(maker, &source->eh_frame);
		return;
	}
	for (uint64_t i = 0; !maker->full && i < header.n; i++) {
		const uint8_t *at = cfi_header_entry(&header, i, &fde);

		if (image_has(source->partial, at, CFI_HEADER_ENTRY_BYTES) &&
		    entry_read(section, fde - source->eh_frame.address, &entry) && entry_known(maker, section, &entry))
			entry_take(maker, &source->eh_frame, &entry);
		else
			maker->statistics->missing++;
	}
}

static int compare_functions(const void *a, const void *b)
{
	const struct function *left = a, *right = b;

	if (left->start != right->start)
		return left->start < right->start ? -1 : 1;
	if (left->second != right->second)
		return left->second ? 1 : -1;
	return (left->first > right->first) - (left->first < right->first);
}

/* Rows that say the same as the one before are left out. */
static void ordered_add(GArray *ordered, const struct cfi_row *row)
{
	const struct cfi_row *last =
		ordered->len > 0 ? &g_array_index(ordered, struct cfi_row, ordered->len - 1) : NULL;

	if (!last || last->cells != row->cells)
		g_array_append_vals(ordered, row, 1);
}

static GArray *rows_order(struct maker *maker)
{
	GArray *ordered = g_array_new(FALSE, FALSE, sizeof(struct cfi_row));
	uint32_t end = 0;

	g_array_sort(maker->functions, compare_functions);
	for (guint i = 0; i < maker->functions->len; i++) {
		const struct function *function = &g_array_index(maker->functions, struct function, i);
		const struct cfi_row gap = {end, CFI_NONE};

		if (function->start < end) {
			maker->statistics->overlapping++;
			continue;
		}
		if (function->start > end && ordered->len > 0)
			ordered_add(ordered, &gap);
		for (size_t k = 0; k < function->n; k++)
			ordered_add(ordered, &g_array_index(maker->rows, struct cfi_row, function->first + k));
		end = function->end;
		maker->statistics->functions++;
	}
	if (ordered->len > 0)
		ordered_add(ordered, &(struct cfi_row){end, CFI_NONE});
	return ordered;
}

static GArray *index_new(const GArray *rows)
{
	GArray *index = g_array_new(FALSE, FALSE, sizeof(uint32_t));
	const struct cfi_row *row = (const void *)rows->data;
	uint64_t at = row[0].offset;

	for (uint32_t i = 0; i < rows->len; at += CFI_INDEX_BYTES) {
		while (i + 1 < rows->len && row[i + 1].offset <= at)
			i++;
		g_array_append_val(index, i);
		if (i + 1 == rows->len)
			break;
	}
	return index;
}

static GBytes *table_new(struct maker *maker)
{
	g_autoptr(GArray) rows = rows_order(maker);
	g_autoptr(GArray) index = index_new(rows);
	GByteArray *block = g_byte_array_new();
	struct cfi_table_header header = {.n_rows = rows->len, .n_cells = maker->cells->len, .n_index = index->len};

	memcpy(header.magic, CFI_TABLE_MAGIC, sizeof(header.magic));
	for (guint i = 0; i < rows->len; i++)
		maker->statistics->unknown += g_array_index(rows, struct cfi_row, i).cells == CFI_UNKNOWN;
	maker->statistics->rows = rows->len;
	g_byte_array_append(block, (const uint8_t *)&header, sizeof(header));
	g_byte_array_append(block, (const uint8_t *)(void *)rows->data, rows->len * sizeof(struct cfi_row));
	g_byte_array_append(block, (const uint8_t *)(void *)maker->cells->data,
	                    maker->cells->len * sizeof(struct cfi_cell));
	g_byte_array_append(block, (const uint8_t *)(void *)index->data, index->len * sizeof(uint32_t));
	return g_byte_array_free_to_bytes(block);
}

GBytes *cfi_table_make(const struct cfi_source *source, struct cfi_statistics *statistics)
{
	GBytes *table = NULL;
	struct maker maker = {
		.source = source,
		.statistics = statistics,
		.functions = g_array_new(FALSE, FALSE, sizeof(struct function)),
		.rows = g_array_new(FALSE, FALSE, sizeof(struct cfi_row)),
		.cells = g_array_new(FALSE, FALSE, sizeof(struct cfi_cell)),
		.known = g_hash_table_new_full(g_bytes_hash, g_bytes_equal, (GDestroyNotify)g_bytes_unref, NULL),
	};

	*statistics = (struct cfi_statistics){0};
	if (source->partial) {
		partial_walk(&maker, source);
	} else {
		section_walk(&maker, &source->eh_frame, false);
		section_walk(&maker, &source->debug_frame, true);
	}
	if (!maker.full && maker.functions->len > 0)
		table = table_new(&maker);
	g_array_unref(maker.functions);
	g_array_unref(maker.rows);
	g_array_unref(maker.cells);
	g_hash_table_unref(maker.known);
	return table;
}

static struct cfi_section section_of(const struct image *image, const char *name)
{
	struct cfi_section section = {NULL, 0, 0};

	section.bytes = image_section(image, name, &section.n, &section.address);
	return section;
}

static const struct cfi_arch *arch_of(const struct image *image)
{
	static const struct cfi_arch *const archs[] = {
		[ARCH_UNKNOWN] = &cfi_x86_64, [ARCH_X86_64] = &cfi_x86_64, [ARCH_ARM64] = &cfi_arm64};

	return archs[image_arch(image)];
}

GBytes *cfi_table_make_of_image(const struct image *image, struct cfi_statistics *statistics)
{
	struct cfi_source source = {
		.arch = arch_of(image),
		.eh_frame = section_of(image, ".eh_frame"),
		.debug_frame = section_of(image, ".debug_frame"),
	};

	source.segments = image_segments(image, &source.n_segments);
	return cfi_table_make(&source, statistics);
}

/* The names of sections may not be known: the header says where .eh_frame is. It ends by an entry of 0 bytes. */
GBytes *cfi_table_make_of_partial(const struct image *image, struct cfi_statistics *statistics)
{
	struct cfi_source source = {
		.arch = arch_of(image), .partial = image, .eh_frame = section_of(image, ".eh_frame")};
	struct cfi_header header;

	source.segments = image_segments(image, &source.n_segments);
	source.header.bytes = image_frame_header(image, &source.header.n, &source.header.address);
	if (cfi_header_open(&source.header, &header)) {
		source.eh_frame.address = header.eh_frame;
		source.eh_frame.bytes = image_at(image, header.eh_frame, &source.eh_frame.n);
	}
	*statistics = (struct cfi_statistics){0};
	return source.eh_frame.bytes ? cfi_table_make(&source, statistics) : NULL;
}
