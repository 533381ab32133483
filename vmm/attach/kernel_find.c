// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kernel_find.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "attach/kernel_memory.h"

G_DEFINE_QUARK(vprof_kernel_find_error, kernel_find_error)

#define CR3_USER_TABLES (UINT64_C(1) << 12) /* page table isolation: the user's tables, behind the kernel's */
#define EXTENT_MIN (UINT64_C(4) << 20)      /* user tables map less of the kernel: its entry code */
#define KERNEL_ADDRESS_MIN UINT64_C(0xffffffff80000000)
#define KERNEL_SPACE_BYTES (UINT64_C(1) << 30) /* KERNEL_IMAGE_SIZE (arch/x86/include/asm/page_64_types.h) */
#define KERNEL_ALIGNMENT (UINT64_C(2) << 20)   /* of the mapping, and so of its start */
#define SLIDE_ALIGNMENT (UINT64_C(1) << 12)

/* A gate descriptor in long mode (SDM Vol. 3A, 6.14.1). */
struct gate {
	uint16_t offset_low, selector;
	uint16_t flags, offset_middle;
	uint32_t offset_high, reserved;
};
_Static_assert(sizeof(struct gate) == 16, "SDM Vol. 3A, figure 6-8");

#define GATE_PRESENT 0x8000u

static bool none(const char *what, GError **error)
{
	g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_NONE, "no Linux kernel found in the guest: %s", what);
	return false;
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
static bool handler_find(struct guest *guest, const struct hmp_registers *registers, struct page_walk *walk,
                         uint64_t *handler, GError **error)
{
	const struct guest_regs *regs = &registers->regs;

	page_walk_init(walk, guest, regs->cr3, regs->la57);
	if (!gate_read(walk, registers->idt, handler))
		return none("its interrupt descriptor table cannot be read", error);
	if (*handler < KERNEL_ADDRESS_MIN)
		return none("its handlers are not where Linux is", error);
	if ((regs->cr3 & CR3_USER_TABLES) && kernel_memory_extent(walk, *handler) < EXTENT_MIN)
		page_walk_init(walk, guest, regs->cr3 & ~CR3_USER_TABLES, regs->la57);
	return true;
}

/*
 * What gate 0 may lead to: asm_exc_divide_error since 5.8, divide_error before, and while the kernel boots the early
 * handlers of arch/x86/kernel/head_64.S.
 */
static const char *const handler_names[] = {"asm_exc_divide_error", "divide_error", "early_idt_handler_array"};

/* Where the image has them: the first *n. False, with an error, when it has none. */
static bool handlers_linked(const struct image *image, uint64_t addresses[G_N_ELEMENTS(handler_names)], size_t *n,
                            GError **error)
{
	struct symtab *symtab = symtab_load(image, error);

	*n = 0;
	if (!symtab)
		return false;
	for (size_t i = 0; i < G_N_ELEMENTS(handler_names); i++) {
		const struct symbol *symbol = symtab_find_name(symtab, handler_names[i]);

		if (symbol)
			addresses[(*n)++] = symbol->address;
	}
	symtab_free(symtab);
	return *n > 0 || none("its symbols lack asm_exc_divide_error", error);
}

/*
 * The last resort, when the descriptor table leads nowhere: the first code that the tables map where kernels are. A
 * kernel has all of its mapping in one piece, which starts with its image.
 */
static bool code_scan(struct guest *guest, const struct hmp_registers *registers, struct page_walk *walk,
                      uint64_t *code)
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
static bool find_in_memory(const struct page_walk *walk, uint64_t code, uint64_t handler, struct kernel_found *found,
                           GError **error)
{
	uint64_t addresses[G_N_ELEMENTS(handler_names)];
	bool agrees = handler == 0;
	size_t n;

	found->image = kernel_memory_image(walk, code, "[guest memory]", &found->fd, error);
	if (!found->image || !handlers_linked(found->image, addresses, &n, error))
		return false;
	for (size_t i = 0; i < n; i++)
		agrees |= addresses[i] == handler;
	if (agrees)
		return image_is_linux(found->image) || none("its memory has no Linux banner", error);
	g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_NONE,
	            "the kernel in the guest's memory contradicts itself: asm_exc_divide_error is at 0x%" PRIx64
	            " in kallsyms and at 0x%" PRIx64 " in the IDT",
	            addresses[0], handler);
	return false;
}

static bool find_by_memory(struct guest *guest, const struct hmp_registers *registers, struct kernel_found *found,
                           GError **error)
{
	struct page_walk walk;
	uint64_t code;

	if (handler_find(guest, registers, &walk, &code, error) && find_in_memory(&walk, code, code, found, error))
		return true;
	kernel_found_clear(found);
	return code_scan(guest, registers, &walk, &code) && find_in_memory(&walk, code, 0, found, NULL);
}

/* ---- an image that was given ---- */

/* Where the image's build-id is in the guest; false when it is in no segment. */
static bool build_id_address(const struct image *image, gva_t *address)
{
	size_t n, id_bytes, file_bytes;
	const struct image_segment *segments = image_segments(image, &n);
	const uint8_t *id = image_build_id(image, &id_bytes);

	for (size_t i = 0; id && i < n; i++) {
		uint64_t offset = (uint64_t)(id - image_bytes(image, &file_bytes));

		if (offset < segments[i].file_offset || offset - segments[i].file_offset >= segments[i].file_bytes)
			continue;
		*address = (gva_t){segments[i].gva + (offset - segments[i].file_offset)};
		return true;
	}
	return false;
}

static bool build_id_check(struct page_walk *walk, const struct image *image, uint64_t slide, GError **error)
{
	uint8_t there[IMAGE_BUILD_ID_BYTES_MAX];
	size_t n;
	const uint8_t *id = image_build_id(image, &n);
	gva_t address;

	if (!build_id_address(image, &address)) {
		g_set_error(
			error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER,
			"cannot tell whether the guest runs %s: it has no build-id in memory; link it with --build-id",
			image_path(image));
		return false;
	}
	address.value += slide;
	if (page_walk_read(walk, address, there, n) && memcmp(there, id, n) == 0)
		return true;
	g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER,
	            "the guest does not run %s: its build-id is not in the guest's memory at 0x%" PRIx64
	            "; give the kernel that it runs, or leave --kernel away",
	            image_path(image), address.value);
	return false;
}

static bool open_image(const char *path, int file, struct kernel_found *found, GError **error)
{
	found->fd = fcntl(file, F_DUPFD_CLOEXEC, 0);
	if (found->fd < 0) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot read kernel %s: %s", path, g_strerror(errno));
		return false;
	}
	found->image = image_open_fd(path, IMAGE_KERNEL, found->fd, error);
	if (found->image && image_check_arch(found->image, arch_here(), "the guest", error))
		return true;
	g_clear_pointer(&found->image, image_free);
	close(found->fd);
	return false;
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

/* Sets the slide if it is one and the build-id is where it says then. Of several tries, the first error stays. */
static bool try_slide(struct kernel_found *found, struct page_walk *walk, uint64_t slide, GError **error)
{
	GError **first = error && !*error ? error : NULL;

	if (slide % SLIDE_ALIGNMENT == 0 && build_id_check(walk, found->image, slide, first)) {
		image_set_slide(found->image, slide);
		return true;
	}
	if (first && !*first)
		g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER,
		            "the guest does not run %s: no kernel slides by the 0x%" PRIx64
		            " bytes between its handler of divide errors and the guest's",
		            image_path(found->image), slide);
	return false;
}

static bool check_linux(struct guest *guest, const struct hmp_registers *registers, struct kernel_found *found,
                        GError **error)
{
	uint64_t linked[G_N_ELEMENTS(handler_names)], code;
	struct page_walk walk;
	size_t n;

	if (!handlers_linked(found->image, linked, &n, error))
		return false;
	bool by_handler = handler_find(guest, registers, &walk, &code, error);

	for (size_t i = 0; by_handler && i < n; i++)
		if (try_slide(found, &walk, code - linked[i], error))
			return true;
	if (!code_scan(guest, registers, &walk, &code) ||
	    !try_slide(found, &walk, code - image_start(found->image), NULL))
		return false;
	g_clear_error(error);
	return true;
}

static bool check_image(struct guest *guest, const struct hmp_registers *registers, struct kernel_found *found,
                        GError **error)
{
	struct page_walk walk;

	if (image_is_linux(found->image))
		return check_linux(guest, registers, found, error);
	page_walk_init(&walk, guest, registers->regs.cr3, registers->regs.la57);
	return build_id_check(&walk, found->image, 0, error);
}

bool kernel_find(struct guest *guest, const struct hmp_registers *registers, const char *path, int file,
                 struct kernel_found *found, GError **error)
{
	g_autoptr(GError) why = NULL;
	struct kernel_found kernel = {0};

	if (!registers->long_mode) {
		g_set_error(
			error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_EARLY,
			"the guest is still in its firmware or boot loader, or runs 32-bit code: vCPU %u is not in long mode",
			registers->vcpu);
		return false;
	}
	bool done = path ? open_image(path, file, &kernel, &why) && check_image(guest, registers, &kernel, &why)
	                 : find_by_memory(guest, registers, &kernel, &why);

	if (done)
		*found = kernel;
	else
		kernel_found_clear(&kernel);
	if (!done)
		g_propagate_error(error, g_steal_pointer(&why));
	return done;
}

bool kernel_find_again(struct guest *guest, const struct hmp_registers *registers, const struct kernel_found *found)
{
	const uint64_t roots[] = {registers->regs.cr3, registers->regs.cr3 & ~CR3_USER_TABLES};
	struct page_walk walk;

	for (size_t i = 0; registers->long_mode && i < G_N_ELEMENTS(roots); i++) {
		page_walk_init(&walk, guest, roots[i], registers->regs.la57);
		if (build_id_check(&walk, found->image, image_slide(found->image), NULL))
			return true;
	}
	return false;
}

void kernel_found_clear(struct kernel_found *found)
{
	if (found->image) {
		image_free(found->image);
		close(found->fd);
	}
	*found = (struct kernel_found){0};
}
