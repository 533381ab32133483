// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kvm/boot/acpi.h"
#include "kvm/boot/boot_layout.h"
#include "kvm/boot/boot_protocol.h"
#include "kvm/boot/mptable.h"

/* initrd_addr_max of every x86 kernel since protocol 2.03. */
#define INITRD_END_MAX UINT64_C(0x80000000)

static bool config_check(const struct boot_config *config, GError **error)
{
	if (config->vcpus < 1 || config->vcpus > GUEST_VCPUS_MAX) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_RANGE, "cannot give a guest %u vCPUs: 1 to %u are possible",
		            config->vcpus, GUEST_VCPUS_MAX);
		return false;
	}
	size_t length = strlen(config->command_line);
	if (length >= BOOT_COMMAND_LINE_BYTES_MAX) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_RANGE,
		            "cannot pass a kernel command line of %zu bytes: a kernel takes at most %u", length,
		            BOOT_COMMAND_LINE_BYTES_MAX - 1);
		return false;
	}
	return true;
}

static bool structures_claim(struct boot_claims *claims, const struct boot_config *config, GError **error)
{
	if (!boot_claim(claims, "the boot loader's own range", BOOT_STRUCTURES_GPA,
	                BOOT_STRUCTURES_END - BOOT_STRUCTURES_GPA, error))
		return false;
	if (!boot_claim(claims, "the BIOS range", BOOT_BIOS_GPA, BOOT_BIOS_END - BOOT_BIOS_GPA, error))
		return false;
	return config->reserved_bytes == 0 || boot_claim(claims, "the host quirk's range", config->reserved.value,
	                                                 config->reserved_bytes, error) != NULL;
}

/* All pages of a mapped file at once, rather than by a fault for every few; advice: without it, the faults do it. */
static void read_in(const uint8_t *from, uint64_t bytes)
{
	uint8_t *page = (uint8_t *)((uintptr_t)from & -(uintptr_t)BOOT_PAGE_BYTES);

	(void)madvise(page, (size_t)(from + bytes - page), MADV_POPULATE_READ);
}

/*
 * The part of a segment that is not in the file needs no clearing: the memory is fresh, so it is zero, and claims do
 * not overlap.
 */
static bool segments_load(struct boot_claims *claims, const struct image *image, GError **error)
{
	size_t n;
	const struct image_segment *segment = image_segments(image, &n);
	size_t file_bytes;
	const uint8_t *file = image_bytes(image, &file_bytes);

	for (size_t i = 0; i < n; i++) {
		void *to = boot_claim(claims, "a kernel segment", segment[i].gpa, segment[i].memory_bytes, error);
		if (!to) {
			g_prefix_error(error, "cannot load %s: ", image_path(image));
			return false;
		}
		read_in(file + segment[i].file_offset, segment[i].file_bytes);
		memcpy(to, file + segment[i].file_offset, segment[i].file_bytes);
	}
	return true;
}

static bool initrd_open(const char *path, int *fd, uint64_t *bytes, GError **error)
{
	struct stat status;
	int opened = open(path, O_RDONLY | O_CLOEXEC);

	if (opened < 0 || fstat(opened, &status) != 0) {
		int saved = errno;

		g_set_error(error, BOOT_ERROR, BOOT_ERROR_IO, "cannot open initramfs %s: %s", path, g_strerror(saved));
		if (opened >= 0)
			close(opened);
		return false;
	}
	if (!S_ISREG(status.st_mode) || status.st_size == 0) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_IO, "cannot load initramfs %s: it is %s", path,
		            S_ISREG(status.st_mode) ? "empty" : "not a regular file");
		close(opened);
		return false;
	}
	*fd = opened;
	*bytes = (uint64_t)status.st_size;
	return true;
}

static bool initrd_read(int fd, const char *path, uint8_t *to, uint64_t bytes, GError **error)
{
	for (uint64_t done = 0; done < bytes;) {
		ssize_t n = pread(fd, to + done, bytes - done, (off_t)done);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			int saved = errno;

			g_set_error(error, BOOT_ERROR, BOOT_ERROR_IO,
			            "cannot read initramfs %s at byte %" PRIu64 " of %" PRIu64 ": %s", path, done,
			            bytes, n == 0 ? "the file became shorter" : g_strerror(saved));
			return false;
		}
		done += (uint64_t)n;
	}
	return true;
}

/* At the top of the memory that Linux looks for an initramfs in, page-aligned. */
static uint8_t *initrd_claim(struct boot_claims *claims, const char *path, struct boot_loaded *loaded, uint64_t bytes,
                             GError **error)
{
	uint64_t limit = MIN(memory_low_bytes(claims->memory), INITRD_END_MAX);

	if (bytes > limit - BOOT_BIOS_END) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_MEMORY,
		            "cannot load initramfs %s: it has %" PRIu64 " bytes, and %" PRIu64
		            " are usable for it in the guest's %" PRIu64 " MiB of memory",
		            path, bytes, limit - BOOT_BIOS_END, memory_bytes(claims->memory) >> 20);
		return NULL;
	}
	uint64_t start = (limit - bytes) & ~(uint64_t)(BOOT_PAGE_BYTES - 1);
	uint8_t *to = boot_claim(claims, "the initramfs", start, bytes, error);
	if (!to) {
		g_prefix_error(error, "cannot load initramfs %s into %" PRIu64 " MiB of guest memory: ", path,
		               memory_bytes(claims->memory) >> 20);
		return NULL;
	}
	loaded->initrd_gpa = (uint32_t)start;
	loaded->initrd_bytes = (uint32_t)bytes;
	return to;
}

static bool initrd_load(struct boot_claims *claims, const char *path, struct boot_loaded *loaded, GError **error)
{
	int fd;
	uint64_t bytes;

	if (!path)
		return true;
	if (!initrd_open(path, &fd, &bytes, error))
		return false;
	uint8_t *to = initrd_claim(claims, path, loaded, bytes, error);
	bool read = to && initrd_read(fd, path, to, bytes, error);
	close(fd);
	return read;
}

static bool entry_is_loaded(const struct image *image, uint64_t entry)
{
	size_t n;
	const struct image_segment *segment = image_segments(image, &n);

	for (size_t i = 0; i < n; i++)
		if (entry >= segment[i].gpa && entry - segment[i].gpa < segment[i].memory_bytes)
			return true;
	return false;
}

/* Which protocol, and with it the entry point. */
static bool protocol_choose(const struct boot_config *config, struct boot_state *state, GError **error)
{
	const struct image *image = config->image;
	uint32_t pvh_entry;
	bool has_pvh = image_pvh_entry(image, &pvh_entry);
	bool wants_pvh =
		config->protocol == BOOT_PVH || (config->protocol == BOOT_AUTO && has_pvh && !image_is_linux(image));

	if (wants_pvh && !has_pvh) {
		g_set_error(
			error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
			"cannot boot %s by PVH: it has no XEN_ELFNOTE_PHYS32_ENTRY note; leave the choice to --boot auto",
			image_path(image));
		return false;
	}
	state->protocol = wants_pvh ? BOOT_PVH : BOOT_LINUX;
	state->rip = wants_pvh ? pvh_entry : image_entry(image);
	if (state->rip >= MEMORY_HIGH_BASE || !entry_is_loaded(image, state->rip)) {
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_PROTOCOL,
		            "cannot boot %s: its entry point 0x%" PRIx64
		            " is not a physical address inside one of its segments below 4 GiB",
		            image_path(image), state->rip);
		return false;
	}
	return true;
}

static void tables_write(const struct memory *memory, const struct boot_config *config)
{
	acpi_write(boot_structure(memory, BOOT_ACPI_GPA, ACPI_BYTES_MAX), (gpa_t){BOOT_ACPI_GPA}, config->vcpus,
	           config->n_virtio);
	mptable_write(boot_structure(memory, BOOT_MPTABLE_GPA, MPTABLE_BYTES_MAX), (gpa_t){BOOT_MPTABLE_GPA},
	              config->vcpus);
}

bool boot_load(const struct memory *memory, const struct boot_config *config, struct boot_state *state, GError **error)
{
	struct boot_claims claims = {.memory = memory};
	struct boot_loaded loaded = {.memory = memory};
	struct boot_state result = {.rsp = BOOT_STACK_GPA + BOOT_PAGE_BYTES};

	if (!config_check(config, error) || !protocol_choose(config, &result, error) ||
	    !structures_claim(&claims, config, error) || !segments_load(&claims, config->image, error) ||
	    !initrd_load(&claims, config->initrd_path, &loaded, error))
		return false;

	loaded.map_entries = boot_memory_map(memory, config->reserved.value, config->reserved_bytes, loaded.map);
	memcpy(boot_structure(memory, BOOT_COMMAND_LINE_GPA, BOOT_COMMAND_LINE_BYTES_MAX), config->command_line,
	       strlen(config->command_line) + 1);
	tables_write(memory, config);
	boot_gdt_write(memory, &result);
	if (result.protocol == BOOT_PVH) {
		boot_pvh_write(&loaded, &result);
	} else {
		size_t bytes;
		const uint8_t *header = image_setup_header(config->image, &bytes);

		boot_linux_write(&loaded, header, bytes, &result);
	}
	*state = result;
	return true;
}
