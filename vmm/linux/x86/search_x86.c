// SPDX-License-Identifier: BSD-2-Clause
#include <inttypes.h>

#include "guest/x86/page_tables_x86.h"
#include "lib/profile/hash.h"
#include "linux/kernel_memory.h"
#include "linux/kernel_scan.h"
#include "linux/search_linux_priv.h"
#include "linux/task.h"

#define EXTENT_MIN (UINT64_C(4) << 20) /* user tables map less of the kernel: its entry code */
#define KERNEL_ADDRESS_MIN UINT64_C(0xffffffff80000000)
#define KERNEL_SPACE_BYTES (UINT64_C(1) << 30) /* KERNEL_IMAGE_SIZE (arch/x86/include/asm/page_64_types.h) */
#define KERNEL_ALIGNMENT (UINT64_C(2) << 20)   /* of the mapping, and so of its start */
/* The kernel's mapping is made of these (level2_kernel_pgt of arch/x86/kernel/head_64.S), and so is its alignment. */
#define STEP_BYTES (UINT64_C(2) << 20)

/* A gate descriptor in long mode (SDM Vol. 3A, 6.14.1). */
struct gate {
	uint16_t offset_low, selector;
	uint16_t flags, offset_middle;
	uint32_t offset_high, reserved;
};
_Static_assert(sizeof(struct gate) == 16, "SDM Vol. 3A, figure 6-8");

#define GATE_PRESENT 0x8000u
#define LAST_ENTRIES UINT64_C(4080) /* where a table has its last two */

static bool is_mapped(const struct page_walk *walk, uint64_t gva)
{
	struct page_leaf leaf;

	return page_walk_leaf(walk, (gva_t){gva}, &leaf);
}

static struct gva_range extent_find(const struct page_walk *walk, uint64_t code)
{
	struct gva_range extent = {code & ~(STEP_BYTES - 1), 0};

	while (extent.bytes < KERNEL_MEMORY_BYTES_MAX && extent.first >= STEP_BYTES &&
	       is_mapped(walk, extent.first - STEP_BYTES)) {
		extent.first -= STEP_BYTES;
		extent.bytes += STEP_BYTES;
	}
	while (extent.bytes < KERNEL_MEMORY_BYTES_MAX && extent.bytes < gva_room(extent.first) &&
	       is_mapped(walk, extent.first + extent.bytes))
		extent.bytes += STEP_BYTES;
	return extent;
}

static bool gate_read(struct page_walk *walk, uint64_t idt, uint64_t *handler)
{
	struct gate gate;

	if (!page_walk_read(walk, (gva_t){idt}, &gate, sizeof(gate)) || !(gate.flags & GATE_PRESENT))
		return false;
	*handler = (uint64_t)gate.offset_high << 32 | (uint64_t)gate.offset_middle << 16 | gate.offset_low;
	return true;
}

/* The kernel's tables, and in them the address of its handler of vector 0. */
static bool handler_find(struct guest *guest, const struct seen_vcpu *registers, struct page_walk *walk,
                         uint64_t *handler, GError **error)
{
	const struct guest_regs *regs = &registers->regs;

	page_walk_init(walk, guest, regs->cr3, regs->la57);
	if (!gate_read(walk, registers->vectors, handler))
		return search_none("its interrupt descriptor table cannot be read", error);
	if (*handler < KERNEL_ADDRESS_MIN)
		return search_none("its handlers are not where Linux is", error);
	if ((regs->cr3 & CR3_USER_TABLES) && extent_find(walk, *handler).bytes < EXTENT_MIN)
		page_walk_init(walk, guest, regs->cr3 & ~CR3_USER_TABLES, regs->la57);
	return true;
}

/*
 * What gate 0 may lead to: asm_exc_divide_error since 5.8, divide_error before, and while the kernel boots the early
 * handlers of arch/x86/kernel/head_64.S.
 */
static const char *const handler_names[] = {"asm_exc_divide_error", "divide_error", "early_idt_handler_array"};

/* Where the image has them: the first *n. False, with an error, when it has none. */
static bool handlers_linked(struct image *image, uint64_t addresses[G_N_ELEMENTS(handler_names)], size_t *n,
                            GError **error)
{
	struct symtab *symtab = symtab_load_keeping(image, error);

	*n = 0;
	if (!symtab)
		return false;
	for (size_t i = 0; i < G_N_ELEMENTS(handler_names); i++) {
		const struct symbol *symbol = symtab_find_name(symtab, handler_names[i]);

		if (symbol)
			addresses[(*n)++] = symbol->address;
	}
	symtab_free(symtab);
	return *n > 0 || search_none("its symbols lack asm_exc_divide_error", error);
}

/*
 * The last resort, when the descriptor table leads nowhere: the first code that the tables map where kernels are. A
 * kernel has all of its mapping in one piece, which starts with its image.
 */
static bool code_scan(struct guest *guest, const struct seen_vcpu *registers, struct page_walk *walk, uint64_t *code)
{
	struct page_leaf leaf;

	page_walk_init(walk, guest, registers->regs.cr3, registers->regs.la57);
	for (uint64_t at = 0; at < KERNEL_SPACE_BYTES; at += KERNEL_ALIGNMENT) {
		*code = KERNEL_ADDRESS_MIN + at;
		if (page_walk_leaf(walk, (gva_t){*code}, &leaf) && leaf.executable)
			return true;
	}
	return false;
}

/* ---- from memory ---- */

/* `handler`: where gate 0 leads, which the kernel's own symbols must agree with; 0: not known. */
static bool find_in_memory(struct look *look, const struct page_walk *walk, uint64_t code, uint64_t handler,
                           struct kernel_found *found, GError **error)
{
	uint64_t addresses[G_N_ELEMENTS(handler_names)];
	bool agrees = handler == 0;
	size_t n;

	found->image = kernel_memory_image(look, walk, code, &found->fd, error);
	if (!found->image || !handlers_linked(found->image, addresses, &n, error))
		return false;
	for (size_t i = 0; i < n; i++)
		agrees |= addresses[i] == handler;
	if (agrees)
		return image_is_linux(found->image) || search_none("its memory has no Linux banner", error);
	g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_NONE,
	            "the kernel in the guest's memory contradicts itself: asm_exc_divide_error is at 0x%" PRIx64
	            " in kallsyms and at 0x%" PRIx64 " in the IDT",
	            addresses[0], handler);
	return false;
}

static bool find(struct look *look, const struct seen_vcpu *registers, struct kernel_found *found, GError **error)
{
	struct page_walk walk;
	uint64_t code;

	if (handler_find(&look->guest, registers, &walk, &code, error) &&
	    find_in_memory(look, &walk, code, code, found, error))
		return true;
	kernel_found_clear(found);
	return code_scan(&look->guest, registers, &walk, &code) && find_in_memory(look, &walk, code, 0, found, NULL);
}

/* The kernel's half of an ELF file's address space begins with its image. */
static uint64_t image_start(const struct image *image)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);
	uint64_t start = UINT64_MAX;

	for (size_t i = 0; i < n; i++)
		if (segments[i].gva >= KERNEL_ADDRESS_MIN)
			start = MIN(start, segments[i].gva);
	return start & ~(KERNEL_ALIGNMENT - 1);
}

static bool slide(struct guest *guest, const struct seen_vcpu *registers, struct kernel_found *found, GError **error)
{
	uint64_t linked[G_N_ELEMENTS(handler_names)], code;
	struct page_walk walk;
	size_t n;

	if (!handlers_linked(found->image, linked, &n, error))
		return false;
	bool by_handler = handler_find(guest, registers, &walk, &code, error);

	for (size_t i = 0; by_handler && i < n; i++)
		if (kernel_find_slide(found, &walk, code - linked[i], error))
			return true;
	if (!code_scan(guest, registers, &walk, &code) ||
	    !kernel_find_slide(found, &walk, code - image_start(found->image), NULL))
		return false;
	g_clear_error(error);
	return true;
}

/* Where the tables lead in the last 2 GiB, and gate 0 to a handler; not what the processor notes in the tables. */
static uint64_t mark_make(struct guest *guest, const struct seen_vcpu *registers)
{
	const uint64_t kept = ENTRY_PRESENT | ENTRY_PAGE_SIZE | ENTRY_ADDRESS;
	const struct guest_regs *regs = &registers->regs;
	uint64_t entries[2] = {0}, gate[2] = {0}, table = regs->cr3 & ENTRY_ADDRESS;
	struct page_walk walk;

	page_walk_init(&walk, guest, regs->cr3, regs->la57);
	if (!page_walk_read(&walk, (gva_t){registers->vectors}, gate, sizeof(gate)))
		gate[0] = gate[1] = 0;
	uint64_t mark = hash_mix(registers->vectors ^ hash_mix(gate[0] ^ hash_mix(gate[1])));

	for (unsigned level = regs->la57 ? 5 : 4; level >= 3; level--) {
		if (!guest->ops->memory_read(guest, (gpa_t){table + LAST_ENTRIES}, entries, sizeof(entries)))
			break;
		table = entries[1] & ENTRY_ADDRESS;
		mark = hash_mix(mark ^ (entries[1] & kept));
	}
	return hash_mix(mark ^ (entries[0] & kept));
}

static bool early(const struct seen_vcpu *registers, GError **error)
{
	if (!registers->long_mode)
		g_set_error(
			error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_EARLY,
			"the guest is still in its firmware or boot loader, or runs 32-bit code: vCPU %u is not in long mode",
			registers->vcpu);
	return !registers->long_mode;
}

static bool scan_tables(struct os_scan *scan, struct look *look, os_scan_next next, void *data, bool five_levels,
                        struct seen_vcpu *registers)
{
	const uint64_t top = kernel_tables_scan(scan, look, next, data, five_levels);

	*registers = (struct seen_vcpu){.regs = {.cr3 = top, .la57 = five_levels}, .long_mode = top != 0};
	return top != 0;
}

const struct search_processor search_x86 = {
	.early = early,
	.find = find,
	.slide = slide,
	.mark = mark_make,
	.scan = scan_tables,
	.extent = extent_find,
};
