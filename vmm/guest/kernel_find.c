// SPDX-License-Identifier: BSD-2-Clause
#include "guest/kernel_find.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "guest/os.h"
#include "guest/processor.h"
#include "lib/profile/hash.h"
#include "lib/record/arch.h"

G_DEFINE_QUARK(vprof_kernel_find_error, kernel_find_error)

#define SLIDE_ALIGNMENT (UINT64_C(1) << 12)

/* ---- an image that was given ---- */

static bool build_id_check(struct page_walk *walk, const struct image *image, uint64_t slide, GError **error)
{
	uint8_t there[IMAGE_BUILD_ID_BYTES_MAX];
	size_t n;
	const uint8_t *id = image_build_id(image, &n);
	gva_t address;

	if (!image_build_id_address(image, &address.value)) {
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

bool kernel_find_slide(struct kernel_found *found, struct page_walk *walk, uint64_t slide, GError **error)
{
	GError **first = error && !*error ? error : NULL;

	if (slide % SLIDE_ALIGNMENT == 0 && build_id_check(walk, found->image, slide, first)) {
		image_set_slide(found->image, slide);
		return true;
	}
	if (first && !*first)
		g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_OTHER,
		            "the guest does not run %s: no kernel slides by the 0x%" PRIx64
		            " bytes between its vectors and the guest's",
		            image_path(found->image), slide);
	return false;
}

/* NULL: the image is of none of the guest's systems. */
static const struct os_search *search_of(const struct guest *guest, const struct image *image)
{
	for (const struct os_search *const *search = guest->searches; *search; search++)
		if ((*search)->os->recognises(image))
			return *search;
	return NULL;
}

static bool check_image(struct guest *guest, const struct seen_vcpu *registers, struct kernel_found *found,
                        GError **error)
{
	const struct os_search *search = search_of(guest, found->image);
	struct page_walk walk;

	if (search)
		return search->slide(guest, registers, found, error);
	page_walk_init_regs(&walk, guest, &registers->regs);
	return build_id_check(&walk, found->image, 0, error);
}

/* ---- any ---- */

/* By each system; the first error is that of the likeliest. */
static bool is_early(const struct guest *guest, const struct seen_vcpu *registers, GError **error)
{
	g_autoptr(GError) why = NULL;

	for (const struct os_search *const *search = guest->searches; *search; search++)
		if (!(*search)->early(registers, why ? NULL : &why))
			return false;
	g_propagate_error(error, g_steal_pointer(&why));
	return true;
}

static bool find_in_memory(struct look *look, const struct seen_vcpu *registers, struct kernel_found *found,
                           GError **error)
{
	g_autoptr(GError) why = NULL;

	for (const struct os_search *const *search = look->guest.searches; *search; search++) {
		if ((*search)->find(look, registers, found, why ? NULL : &why))
			return true;
		kernel_found_clear(found);
	}
	g_propagate_error(error, g_steal_pointer(&why));
	return false;
}

bool kernel_find(struct look *look, const struct seen_vcpu *registers, const char *path, int file,
                 struct kernel_found *found, GError **error)
{
	g_autoptr(GError) why = NULL;
	struct kernel_found kernel = {0};

	if (is_early(&look->guest, registers, error))
		return false;
	bool done = path ? open_image(path, file, &kernel, &why) && check_image(&look->guest, registers, &kernel, &why)
	                 : find_in_memory(look, registers, &kernel, &why);

	if (done)
		*found = kernel;
	else
		kernel_found_clear(&kernel);
	if (!done)
		g_propagate_error(error, g_steal_pointer(&why));
	return done;
}

bool kernel_find_again(struct guest *guest, const struct seen_vcpu *registers, const struct kernel_found *found)
{
	struct guest_regs regs = registers->regs;
	struct page_walk walk;

	if (!registers->long_mode)
		return false;
	page_walk_init_regs(&walk, guest, &regs);
	if (build_id_check(&walk, found->image, 0, NULL))
		return true;
	if (!processor_of(regs.processor)->memory->kernels(guest, 0, &regs))
		return false;
	page_walk_init_regs(&walk, guest, &regs);
	return build_id_check(&walk, found->image, 0, NULL);
}

struct image *kernel_find_running(struct look *look, const struct seen_vcpu *registers,
                                  const struct kernel_found *found)
{
	const struct os_search *search = search_of(&look->guest, found->image);
	struct image *image = NULL;
	struct page_walk walk;
	int fd;

	page_walk_init_regs(&walk, &look->guest, &registers->regs);
	if (search)
		image = search->copy(look, &walk, kernel_find_address(found->image), &fd, NULL);
	if (image)
		close(fd);
	return image;
}

uint64_t kernel_find_address(const struct image *image)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	return n > 0 ? segments[0].gva : 0;
}

uint64_t kernel_find_mark(struct guest *guest, const struct seen_vcpu *registers)
{
	uint64_t mark = registers->long_mode;

	for (const struct os_search *const *search = guest->searches; *search; search++)
		mark = hash_mix(mark + (*search)->mark(guest, registers));
	return mark != 0 ? mark : 1;
}

void kernel_found_clear(struct kernel_found *found)
{
	if (found->image && found->fd >= 0)
		close(found->fd);
	image_free(found->image);
	*found = (struct kernel_found){0};
}
