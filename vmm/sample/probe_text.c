// SPDX-License-Identifier: BSD-2-Clause
#include "sample/probe_text.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "guest/guest_debug.h"
#include "guest/page_walk.h"
#include "sample/probe_spec.h"

#define ENDBR64_BYTES 4u
#define FTRACE_BYTES 5u
/* Bits 63..56 of a canonical address are equal, with five levels of page tables, too (SDM Vol. 1, 3.3.7.1). */
#define CANONICAL_TOP 56u
/* PTI_USER_PGTABLE_BIT of Linux: the tables that a process has in user mode lack most of the kernel. */
#define CR3_USER_HALF UINT64_C(0x1000)

/* The instructions that ftrace owns at a function's entry: from `entry` to `end`. */
struct ftrace_site {
	uint64_t entry, call, end;
};

struct probe_text {
	struct symtab *symtab; /* NULL: none, for the reason `why` */
	GError *why;
	struct image_segment *segments; /* [n_segments] */
	size_t n_segments;
	GArray *sites; /* of struct ftrace_site, by address */
};

/* ---- what is read in the image ---- */

static bool is_code(const struct symbol *symbol)
{
	return strchr("tTwW", symbol->type) != NULL;
}

/* The nop of arch/x86/include/asm/nops.h, or the call of __fentry__ that the kernel makes one at its start. */
static bool is_ftrace_call(const uint8_t bytes[FTRACE_BYTES], uint64_t address, const struct symbol *fentry)
{
	static const uint8_t nop[FTRACE_BYTES] = {0x0f, 0x1f, 0x44, 0x00, 0x00};
	int32_t distance;

	if (memcmp(bytes, nop, sizeof(nop)) == 0)
		return true;
	memcpy(&distance, bytes + 1, sizeof(distance));
	return bytes[0] == 0xe8 && fentry && address + FTRACE_BYTES + (uint64_t)(int64_t)distance == fentry->address;
}

static void add_site(struct probe_text *text, const struct image *image, uint64_t entry, const struct symbol *fentry)
{
	static const uint8_t endbr64[ENDBR64_BYTES] = {0xf3, 0x0f, 0x1e, 0xfa};
	size_t n;
	const uint8_t *bytes = image_at(image, entry, &n);
	size_t at = bytes && n >= sizeof(endbr64) && memcmp(bytes, endbr64, sizeof(endbr64)) == 0 ? sizeof(endbr64) : 0;

	if (!bytes || n < at + FTRACE_BYTES || !is_ftrace_call(bytes + at, entry + at, fentry))
		return;
	const struct ftrace_site site = {entry, entry + at, entry + at + FTRACE_BYTES};
	g_array_append_val(text->sites, site);
}

static void find_sites(struct probe_text *text, const struct image *image)
{
	const struct symbol *fentry = symtab_find_name(text->symtab, "__fentry__");
	size_t n;
	const struct symbol *symbols = symtab_symbols(text->symtab, &n);

	for (size_t i = 0; i < n; i++) {
		if (is_code(&symbols[i]) && (i == 0 || symbols[i].address != symbols[i - 1].address))
			add_site(text, image, symbols[i].address, fentry);
	}
}

struct probe_text *probe_text_load(const struct image *image)
{
	struct probe_text *text = g_new0(struct probe_text, 1);
	const struct image_segment *segments = image_segments(image, &text->n_segments);

	text->segments = g_memdup2(segments, text->n_segments * sizeof(*segments));
	text->sites = g_array_new(false, false, sizeof(struct ftrace_site));
	text->symtab = symtab_load(image, &text->why);
	if (text->symtab && image_is_linux(image))
		find_sites(text, image);
	return text;
}

void probe_text_free(struct probe_text *text)
{
	if (!text)
		return;
	symtab_free(text->symtab);
	g_clear_error(&text->why);
	g_free(text->segments);
	g_array_unref(text->sites);
	g_free(text);
}

const struct symtab *probe_text_symtab(const struct probe_text *text, GError **error)
{
	if (!text->symtab && error)
		*error = g_error_copy(text->why);
	return text->symtab;
}

static const struct image_segment *find_segment(const struct probe_text *text, uint64_t address)
{
	for (size_t i = 0; i < text->n_segments; i++) {
		if (address - text->segments[i].gva < text->segments[i].memory_bytes)
			return &text->segments[i];
	}
	return NULL;
}

/* Segments have data beside code; only symbols tell these apart. */
static bool is_text(const struct probe_text *text, const struct image_segment *segment, uint64_t address)
{
	if (!text->symtab)
		return segment->flags & PF_X;
	const struct symbol *symbol = symtab_find(text->symtab, address);
	return symbol && is_code(symbol);
}

/* Whether the code of the kernel is in the upper half of the address space, so that the lower one is user space's. */
static bool is_high(const struct probe_text *text)
{
	for (size_t i = 0; i < text->n_segments; i++) {
		if (text->segments[i].flags & PF_X)
			return text->segments[i].gva >> 63;
	}
	return false;
}

static const struct ftrace_site *find_site(const struct probe_text *text, uint64_t address)
{
	guint low = 0, high = text ? text->sites->len : 0;

	while (low < high) {
		guint middle = low + (high - low) / 2;
		const struct ftrace_site *site = &g_array_index(text->sites, struct ftrace_site, middle);

		if (address >= site->entry && address < site->end)
			return site;
		if (address < site->entry)
			high = middle;
		else
			low = middle + 1;
	}
	return NULL;
}

uint64_t probe_text_patch(const struct probe_text *text, uint64_t address)
{
	const struct ftrace_site *site = find_site(text, address);

	return site ? site->end : address;
}

/* ---- what the guest maps ---- */

enum mapped { MAPPED_NOT, MAPPED_DATA, MAPPED_CODE };

struct lookup {
	struct guest *guest;
	unsigned vcpu;
	gva_t at;
	enum mapped mapped;
};

static void look_up(void *data)
{
	struct lookup *lookup = data;
	struct guest_regs regs;
	struct guest_gprs gprs;
	struct page_walk walk;
	struct page_leaf leaf;

	if (!lookup->guest->debug->registers_read(lookup->guest, lookup->vcpu, &regs, &gprs))
		return;
	page_walk_init(&walk, lookup->guest, regs.cr3, regs.la57);
	bool found = page_walk_leaf(&walk, lookup->at, &leaf);
	if (!found) {
		page_walk_init(&walk, lookup->guest, regs.cr3 & ~CR3_USER_HALF, regs.la57);
		found = page_walk_leaf(&walk, lookup->at, &leaf);
	}
	if (found)
		lookup->mapped = leaf.executable ? MAPPED_CODE : MAPPED_DATA;
}

static enum mapped find_mapped(struct guest *guest, uint64_t address)
{
	struct lookup lookup = {.guest = guest, .at = {address}};

	for (; lookup.vcpu < guest->vcpus && lookup.mapped == MAPPED_NOT; lookup.vcpu++)
		guest->ops->run_on_vcpu(guest, lookup.vcpu, look_up, &lookup);
	return lookup.mapped;
}

/* ---- the check ---- */

/* Why there is no instruction; NULL: there may be one. */
static const char *why_not(const struct probe_text *text, struct guest *guest, uint64_t address)
{
	uint64_t top = address >> CANONICAL_TOP;

	if (top != 0 && top != UINT64_MAX >> CANONICAL_TOP)
		return "is no canonical address, which no instruction can have";
	if (!text)
		return NULL;
	if (!(address >> 63) && is_high(text))
		return "is in user space, where each process has its own code; only the kernel can be probed";
	const struct image_segment *segment = find_segment(text, address);
	if (segment && !is_text(text, segment, address))
		return "is in the guest's kernel, but not in its code";
	const struct ftrace_site *site = find_site(text, address);
	if (site && address != site->entry && address != site->call)
		return "is in the middle of an instruction";
	switch (find_mapped(guest, address)) {
	case MAPPED_CODE:
		return NULL;
	case MAPPED_DATA:
		return "is mapped as data by the guest";
	default:
		return segment ? NULL : "is not in the guest's kernel, and the guest has no code mapped there now";
	}
}

bool probe_text_check(const struct probe_text *text, struct guest *guest, const char *what, uint64_t address,
                      GError **error)
{
	const char *why = why_not(text, guest, address);

	if (why)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNKNOWN, "cannot place %s: 0x%" PRIx64 " %s", what, address,
		            why);
	return !why;
}
