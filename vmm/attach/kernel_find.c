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

	if (!registers->long_mode)
		return none("the vCPU is not in long mode; is it still in its firmware or boot loader?", error);
	page_walk_init(walk, guest, regs->cr3, regs->la57);
	if (!gate_read(walk, registers->idt, handler))
		return none("its interrupt descriptor table cannot be read", error);
	if (*handler < KERNEL_ADDRESS_MIN)
		return none("its handlers are not where Linux is", error);
	if ((regs->cr3 & CR3_USER_TABLES) && kernel_memory_extent(walk, *handler) < EXTENT_MIN)
		page_walk_init(walk, guest, regs->cr3 & ~CR3_USER_TABLES, regs->la57);
	return true;
}

/* asm_exc_divide_error since 5.8, divide_error before. */
static bool handler_is_symbol(const struct image *image, uint64_t *address, GError **error)
{
	static const char *const names[] = {"asm_exc_divide_error", "divide_error"};
	struct symtab *symtab = symtab_load(image, error);
	const struct symbol *symbol = NULL;

	for (size_t i = 0; symtab && !symbol && i < G_N_ELEMENTS(names); i++)
		symbol = symtab_find_name(symtab, names[i]);
	if (symbol)
		*address = symbol->address;
	else if (symtab)
		none("its symbols lack asm_exc_divide_error", error);
	symtab_free(symtab);
	return symbol != NULL;
}

/* ---- from memory ---- */

static bool find_in_memory(const struct page_walk *walk, uint64_t handler, struct kernel_found *found, GError **error)
{
	uint64_t address;

	found->image = kernel_memory_image(walk, handler, "[guest memory]", &found->fd, error);
	if (!found->image || !handler_is_symbol(found->image, &address, error))
		return false;
	if (address != handler) {
		g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_NONE,
		            "the kernel in the guest's memory contradicts itself: asm_exc_divide_error is at 0x%" PRIx64
		            " in kallsyms and at 0x%" PRIx64 " in the IDT",
		            address, handler);
		return false;
	}
	return image_is_linux(found->image) || none("its memory has no Linux banner", error);
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

static bool build_id_check(struct page_walk *walk, const struct image *image, GError **error)
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
	if (page_walk_read(walk, address, there, n) && memcmp(there, id, n) == 0)
		return true;
	g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER,
	            "the guest does not run %s: its build-id is not in the guest's memory at 0x%" PRIx64
	            "; give the kernel that it runs, or leave --kernel away",
	            image_path(image), address.value);
	return false;
}

static bool open_image(const char *path, struct kernel_found *found, GError **error)
{
	found->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (found->fd < 0) {
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_IO, "cannot open kernel %s: %s", path, g_strerror(errno));
		return false;
	}
	found->image = image_open_fd(path, found->fd, error);
	if (!found->image)
		close(found->fd);
	return found->image != NULL;
}

static bool find_slide(const struct image *image, uint64_t handler, uint64_t *slide, GError **error)
{
	uint64_t linked;

	if (!handler_is_symbol(image, &linked, error))
		return false;
	*slide = handler - linked;
	if (*slide % SLIDE_ALIGNMENT == 0)
		return true;
	g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER,
	            "the guest does not run %s: the handler of divide errors is at 0x%" PRIx64 " there, at 0x%" PRIx64
	            " in the guest, and no kernel slides by the difference",
	            image_path(image), linked, handler);
	return false;
}

static bool check_image(struct guest *guest, const struct hmp_registers *registers, struct kernel_found *found,
                        GError **error)
{
	struct page_walk walk;
	uint64_t slide;

	if (!image_is_linux(found->image)) {
		page_walk_init(&walk, guest, registers->regs.cr3, registers->regs.la57);
		return build_id_check(&walk, found->image, error);
	}
	if (!handler_find(guest, registers, &walk, &found->code, error) ||
	    !find_slide(found->image, found->code, &slide, error))
		return false;
	image_set_slide(found->image, slide);
	return build_id_check(&walk, found->image, error);
}

bool kernel_find(struct guest *guest, const struct hmp_registers *registers, const char *path,
                 struct kernel_found *found, GError **error)
{
	struct kernel_found kernel = {0};
	struct page_walk walk;
	bool done;

	if (path)
		done = open_image(path, &kernel, error) && check_image(guest, registers, &kernel, error);
	else
		done = handler_find(guest, registers, &walk, &kernel.code, error) &&
		       find_in_memory(&walk, kernel.code, &kernel, error);
	if (done)
		*found = kernel;
	else
		kernel_found_clear(&kernel);
	return done;
}

void kernel_found_clear(struct kernel_found *found)
{
	if (found->image) {
		image_free(found->image);
		close(found->fd);
	}
	*found = (struct kernel_found){0};
}

char *kernel_build_id(const struct image *image)
{
	size_t n;
	const uint8_t *id = image_build_id(image, &n);
	GString *text = id ? g_string_sized_new(2 * n) : NULL;

	for (size_t i = 0; text && i < n; i++)
		g_string_append_printf(text, "%02x", id[i]);
	return text ? g_string_free(text, false) : NULL;
}
