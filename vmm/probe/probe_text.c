// SPDX-License-Identifier: BSD-2-Clause
#include "probe/probe_text.h"

#include <elf.h>
#include <inttypes.h>
#include <string.h>

#include "guest/guest_debug.h"
#include "guest/os.h"
#include "guest/page_walk.h"
#include "guest/processor.h"
#include "lib/probe_name/probe_spec.h"

#define FUNCTION_BYTES_MAX (64u << 10) /* Debian's longest have 40 KiB */
#define PADDING "__pfx_"               /* objtool's names, from Linux 6.2 on */
/* Bits 63..56 of a canonical address are equal, with five levels of page tables, too (SDM Vol. 1, 3.3.7.1). */
#define CANONICAL_TOP 56u

/* The instructions that ftrace owns at a function's entry: from `entry` to `end`. */
struct ftrace_site {
	uint64_t entry, call, end;
};

struct probe_text {
	struct symtab *symtab; /* NULL: none, for the reason `why` */
	GError *why;
	struct image_segment *segments; /* [n_segments] */
	size_t n_segments;
	GArray *sites;                /* of struct ftrace_site, by address */
	const struct os_texts *texts; /* NULL: what follows is, too */
	struct text_sites *changed;   /* NULL: not known, or without symbols */
};

/* ---- what is read in the image ---- */

static bool is_code(const struct symbol *symbol)
{
	return strchr("tTwW", symbol->type) != NULL;
}

static void add_site(struct probe_text *text, const struct image *image, uint64_t entry, const struct symbol *fentry)
{
	size_t n, at, bytes;
	const uint8_t *code = image_at(image, entry, &n);

	if (!code ||
	    !processor_of_image(image)->code->ftrace_find(code, n, entry, fentry ? fentry->address : 0, &at, &bytes))
		return;
	const struct ftrace_site site = {entry, entry + at, entry + at + bytes};
	g_array_append_val(text->sites, site);
}

static void find_sites(struct probe_text *text, const struct image *image)
{
	const struct symbol *fentry = symtab_find_name(text->symtab, "__fentry__");
	size_t n;
	const struct symbol *symbols = symtab_symbols(text->symtab, &n);

	for (size_t i = 0; i < n; i++) {
		if (!is_code(&symbols[i]) || (i > 0 && symbols[i].address == symbols[i - 1].address))
			continue;
		add_site(text, image, symbols[i].address, fentry);
	}
}

struct probe_text *probe_text_load(const struct guest_os *os, const struct image *image)
{
	struct probe_text *text = g_new0(struct probe_text, 1);
	const struct image_segment *segments = image_segments(image, &text->n_segments);

	text->segments = g_memdup2(segments, text->n_segments * sizeof(*segments));
	text->sites = g_array_new(false, false, sizeof(struct ftrace_site));
	text->symtab = symtab_load(image, &text->why);
	text->texts = text->symtab && os->recognises(image) ? os->texts : NULL;
	if (text->texts) {
		find_sites(text, image);
		text->changed = text->texts->load(image, text->symtab);
	}
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
	if (text->texts)
		text->texts->free(text->changed);
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
	/* Where `n` bytes from `from` on go. */
	uint8_t *code;
	uint64_t from;
	size_t n;
	bool read;
};

/* True when what is asked for is mapped by these tables. */
static bool look_up_by(struct lookup *lookup, const struct guest_regs *regs)
{
	struct page_walk walk;
	struct page_leaf leaf;

	page_walk_init_regs(&walk, lookup->guest, regs);
	if (!page_walk_leaf(&walk, lookup->at, &leaf))
		return false;
	lookup->mapped = leaf.executable ? MAPPED_CODE : MAPPED_DATA;
	lookup->read = page_walk_read(&walk, (gva_t){lookup->from}, lookup->code, lookup->n);
	return true;
}

static void look_up(void *data)
{
	struct lookup *lookup = data;
	struct guest_regs regs;
	struct guest_gprs gprs;

	if (!lookup->guest->debug->registers_read(lookup->guest, lookup->vcpu, &regs, &gprs) ||
	    look_up_by(lookup, &regs))
		return;
	if (processor_of(regs.processor)->memory->kernels(lookup->guest, 0, &regs))
		look_up_by(lookup, &regs);
}

static void look_up_by_any_vcpu(struct lookup *lookup)
{
	struct guest *guest = lookup->guest;

	for (; lookup->vcpu < guest->vcpus && lookup->mapped == MAPPED_NOT; lookup->vcpu++)
		guest->ops->run_on_vcpu(guest, lookup->vcpu, look_up, lookup);
}

/* The guest's own code, without patches of ours. A kernel that has not mapped itself yet lies where it was loaded. */
static bool read_code(const struct probe_text *text, struct lookup *lookup)
{
	const struct image_segment *segment = find_segment(text, lookup->from);
	struct guest *guest = lookup->guest;

	if (lookup->mapped == MAPPED_NOT && segment)
		lookup->read = guest->ops->memory_read(guest, (gpa_t){segment->gpa + (lookup->from - segment->gva)},
		                                       lookup->code, lookup->n);
	if (lookup->read)
		guest->debug->unpatch(guest, (gva_t){lookup->from}, lookup->code, lookup->n);
	return lookup->read;
}

/* ---- where instructions begin ---- */

/* What the guest maps at the address, and whether an instruction of its function begins there. */
static const char *why_not_mapped(const struct probe_text *text, struct guest *guest, uint64_t address)
{
	const struct symbol *function = text->symtab ? symtab_find(text->symtab, address) : NULL;
	const struct processor_code *of = processor_of(guest->processor)->code;
	const uint64_t distance = function ? address - function->address : 0;
	const bool is_near = distance <= FUNCTION_BYTES_MAX;
	/* What is behind the address decides nothing: an instruction that reaches there has begun before. */
	const size_t n = is_near ? distance : 0, bytes = n + of->length_max;
	g_autofree uint8_t *code = g_malloc0(bytes);
	struct lookup lookup = {.guest = guest, .at = {address}, .code = code, .from = address - distance, .n = n};

	look_up_by_any_vcpu(&lookup);
	if (lookup.mapped == MAPPED_DATA)
		return "is mapped as data by the guest";
	if (lookup.mapped == MAPPED_NOT && !find_segment(text, address))
		return "is not in the guest's kernel, and the guest has no code mapped there now";
	if (!is_near)
		return "is too far behind the last symbol to know where instructions begin";
	return of->alignment == 1 && n > 0 && read_code(text, &lookup) ? of->why_no_boundary(code, bytes, distance)
	                                                               : NULL;
}

/* ---- where functions return ---- */

struct code_source {
	const struct probe_text *text;
	struct session_modules *modules;
	struct guest *guest;
};

static const struct symbol *find_symbol(void *data, uint64_t address)
{
	const struct code_source *source = data;

	if (find_segment(source->text, address))
		return source->text->symtab ? symtab_find(source->text->symtab, address) : NULL;
	return source->modules ? session_modules_symbol(source->modules, address) : NULL;
}

static bool read_function(void *data, uint64_t from, uint8_t *code, size_t n)
{
	const struct code_source *source = data;
	struct lookup lookup = {.guest = source->guest, .at = {from}, .code = code, .from = from, .n = n};

	look_up_by_any_vcpu(&lookup);
	return lookup.mapped != MAPPED_DATA && read_code(source->text, &lookup);
}

bool probe_text_returns(const struct probe_text *text, struct session_modules *modules, struct guest *guest,
                        const char *what, uint64_t address, struct function_returns *returns, GError **error)
{
	struct code_source source = {text, modules, guest};
	const struct function_code code = {.find = find_symbol, .read = read_function, .data = &source};
	g_autofree char *why = function_returns_find(processor_of(guest->processor)->code, address, &code, returns);

	if (why)
		g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
		            "cannot place %s: the function %s; probe function:NAME of what is called by it or after it",
		            what, why);
	return !why;
}

/* ---- the check ---- */

/* Why there is no instruction; NULL: there may be one. */
static const char *why_not(const struct probe_text *text, struct guest *guest, uint64_t address)
{
	const unsigned alignment = processor_of(guest->processor)->code->alignment;
	uint64_t top = address >> CANONICAL_TOP;

	if (top != 0 && top != UINT64_MAX >> CANONICAL_TOP)
		return "is no canonical address, which no instruction can have";
	if (address % alignment != 0)
		return "is in the middle of an instruction";
	if (!text)
		return NULL;
	if (!(address >> 63) && is_high(text))
		return "is in user space, where each process has its own code; only the kernel can be probed";
	const struct image_segment *segment = find_segment(text, address);
	if (segment && !is_text(text, segment, address))
		return "is in the guest's kernel, but not in its code";
	const struct symbol *function = text->symtab ? symtab_find(text->symtab, address) : NULL;
	if (function && g_str_has_prefix(function->name, PADDING))
		return "is padding in front of a function, which never runs";
	const struct ftrace_site *site = find_site(text, address);
	if (site && alignment == 1 && address != site->entry && address != site->call)
		return "is in the middle of an instruction";
	return why_not_mapped(text, guest, address);
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

bool probe_text_check_patch(const struct probe_text *text, const char *what, uint64_t address, GError **error)
{
	const char *changes = text && text->changed ? text->texts->change(text->changed, address) : NULL;
	const bool in_function = !text || !text->symtab || symtab_find(text->symtab, address);

	if (!changes && in_function)
		return true;
	g_autofree char *why =
		changes ? g_strdup_printf("is %s, which the guest's kernel changes itself", changes)
			: g_strdup("is no function of the kernel's image, so where instructions begin is not known");

	g_set_error(error, PROBE_ERROR, PROBE_ERROR_UNSUPPORTED,
	            "cannot place %s by patching: at 0x%" PRIx64
	            " %s; use a breakpoint of the processor (\"--breakpoints processor\")",
	            what, address, why);
	return false;
}
