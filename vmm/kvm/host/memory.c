// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/memory.h"

#include <errno.h>
#include <linux/kvm.h>
#include <sys/ioctl.h>
#include <sys/mman.h>

/*
 * The mapping starts on a 2 MiB boundary: the host can back the guest with huge pages only where guest physical and
 * host virtual addresses agree modulo 2 MiB.
 */
#define HUGE_PAGE_BYTES (UINT64_C(2) << 20)

/* [I] all. */
struct memory {
	uint8_t *base;
	uint64_t low_bytes;
	uint64_t high_bytes;
};

static uint8_t *map_aligned(uint64_t bytes)
{
	uint8_t *mapping = mmap(NULL, bytes + HUGE_PAGE_BYTES, PROT_READ | PROT_WRITE,
	                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (mapping == MAP_FAILED)
		return NULL;
	uint64_t head = -(uintptr_t)mapping % HUGE_PAGE_BYTES;
	if (head > 0)
		munmap(mapping, head);
	munmap(mapping + head + bytes, HUGE_PAGE_BYTES - head);
	return mapping + head;
}

struct memory *memory_new(uint64_t bytes, GError **error)
{
	if (bytes < MEMORY_BYTES_MIN || bytes > MEMORY_BYTES_MAX || bytes % HUGE_PAGE_BYTES != 0) {
		g_set_error(error, G_FILE_ERROR, G_FILE_ERROR_INVAL,
		            "cannot give a guest %" G_GUINT64_FORMAT
		            " bytes of memory: the size is a multiple of 2 MiB from %u MiB to %u GiB",
		            bytes, (unsigned)(MEMORY_BYTES_MIN >> 20), (unsigned)(MEMORY_BYTES_MAX >> 30));
		return NULL;
	}
	uint8_t *base = map_aligned(bytes);
	if (!base) {
		int saved = errno;

		g_set_error(
			error, G_FILE_ERROR, (int)g_file_error_from_errno(saved),
			"cannot map %" G_GUINT64_FORMAT
			" MiB of guest memory: %s; choose a smaller size, or raise the address space limit (ulimit -v) or vm.overcommit_memory",
			bytes >> 20, g_strerror(saved));
		return NULL;
	}
	/* Advice: a host without transparent huge pages refuses it, and the guest runs on small ones. */
	(void)madvise(base, bytes, MADV_HUGEPAGE);

	struct memory *memory = g_new(struct memory, 1);
	memory->base = base;
	memory->low_bytes = MIN(bytes, MEMORY_LOW_MAX);
	memory->high_bytes = bytes - memory->low_bytes;
	return memory;
}

void memory_free(struct memory *memory)
{
	if (!memory)
		return;
	munmap(memory->base, memory_bytes(memory));
	g_free(memory);
}

uint64_t memory_bytes(const struct memory *memory)
{
	return memory->low_bytes + memory->high_bytes;
}

uint64_t memory_low_bytes(const struct memory *memory)
{
	return memory->low_bytes;
}

uint64_t memory_high_bytes(const struct memory *memory)
{
	return memory->high_bytes;
}

static bool register_slot(int vm_fd, uint32_t slot, uint64_t gpa, const uint8_t *base, uint64_t bytes, GError **error)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.guest_phys_addr = gpa,
		.memory_size = bytes,
		.userspace_addr = (uintptr_t)base,
	};

	if (ioctl(vm_fd, KVM_SET_USER_MEMORY_REGION, &region) == 0)
		return true;
	int saved = errno;
	g_set_error(error, G_FILE_ERROR, (int)g_file_error_from_errno(saved),
	            "cannot give KVM %" G_GUINT64_FORMAT " MiB of memory for guest address 0x%" G_GINT64_MODIFIER
	            "x (KVM_SET_USER_MEMORY_REGION): %s",
	            bytes >> 20, gpa, g_strerror(saved));
	return false;
}

bool memory_register(const struct memory *memory, int vm_fd, GError **error)
{
	if (!register_slot(vm_fd, 0, 0, memory->base, memory->low_bytes, error))
		return false;
	return memory->high_bytes == 0 ||
	       register_slot(vm_fd, 1, MEMORY_HIGH_BASE, memory->base + memory->low_bytes, memory->high_bytes, error);
}

static bool range_within(uint64_t from, uint64_t bytes, uint64_t start, uint64_t size)
{
	return from >= start && from - start < size && bytes <= size - (from - start);
}

void *memory_at(const struct memory *memory, gpa_t from, uint64_t bytes)
{
	if (range_within(from.value, bytes, 0, memory->low_bytes))
		return memory->base + from.value;
	if (range_within(from.value, bytes, MEMORY_HIGH_BASE, memory->high_bytes))
		return memory->base + memory->low_bytes + (from.value - MEMORY_HIGH_BASE);
	return NULL;
}
