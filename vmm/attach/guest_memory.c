// SPDX-License-Identifier: BSD-2-Clause
#include "attach/guest_memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

G_DEFINE_QUARK(vprof_guest_memory_error, guest_memory_error)

struct guest_memory {
	int fd;                        /* [I] /proc/PID/mem */
	int pagemap;                   /* [I] /proc/PID/pagemap; -1: may not be read */
	GRWLock lock;                  /* of the map */
	struct kvm_machine_range *map; /* sorted by gpa */
	size_t n;
};

struct guest_memory *guest_memory_open(pid_t pid, GError **error)
{
	g_autofree char *path = g_strdup_printf("/proc/%d/mem", (int)pid);
	g_autofree char *pages = g_strdup_printf("/proc/%d/pagemap", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0) {
		g_set_error(error, GUEST_MEMORY_ERROR, GUEST_MEMORY_ERROR_DENIED,
		            "cannot read the memory of the VMM (process %d): %s; %s", (int)pid, g_strerror(errno),
		            errno == EACCES || errno == EPERM ? "run vprof as its user or root, with CAP_SYS_PTRACE"
		                                              : "is it still there?");
		return NULL;
	}
	struct guest_memory *memory = g_new0(struct guest_memory, 1);

	memory->fd = fd;
	memory->pagemap = open(pages, O_RDONLY | O_CLOEXEC);
	g_rw_lock_init(&memory->lock);
	return memory;
}

void guest_memory_free(struct guest_memory *memory)
{
	if (!memory)
		return;
	close(memory->fd);
	if (memory->pagemap >= 0)
		close(memory->pagemap);
	g_rw_lock_clear(&memory->lock);
	g_free(memory->map);
	g_free(memory);
}

static bool ask_hva(struct monitor *monitor, uint64_t gpa, uint64_t *hva, GError **error)
{
	const struct monitor_request request = {.command = MONITOR_ADDRESS, .address = gpa};
	g_autofree char *answer = monitor_human(monitor, &request, error);

	if (!answer)
		return false;
	if (hmp_parse_gpa2hva(answer, hva))
		return true;
	g_set_error(error, GUEST_MEMORY_ERROR, GUEST_MEMORY_ERROR_MAP,
	            "QEMU does not say where guest RAM at 0x%" PRIx64 " is, but: %.80s", gpa, answer);
	return false;
}

/* Ranges of one block lie next to each other: it is asked for once. */
static const struct hmp_ram_range *same_block(const struct hmp_ram_range *ranges, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(ranges[k].block, ranges[i].block) == 0)
			return &ranges[k];
	return NULL;
}

static bool map_build(struct monitor *monitor, const struct hmp_ram_range *ranges, size_t n,
                      struct kvm_machine_range *map, GError **error)
{
	for (size_t i = 0; i < n; i++) {
		const struct hmp_ram_range *known = same_block(ranges, i);

		map[i] = (struct kvm_machine_range){.gpa = ranges[i].gpa, .bytes = ranges[i].bytes};
		if (known)
			map[i].hva = map[known - ranges].hva + (ranges[i].offset - known->offset);
		else if (!ask_hva(monitor, ranges[i].gpa, &map[i].hva, error))
			return false;
	}
	return true;
}

static void map_replace(struct guest_memory *memory, struct kvm_machine_range *map, size_t n)
{
	g_rw_lock_writer_lock(&memory->lock);
	g_free(memory->map);
	memory->map = map;
	memory->n = n;
	g_rw_lock_writer_unlock(&memory->lock);
}

bool guest_memory_map(struct guest_memory *memory, struct monitor *monitor, GError **error)
{
	const struct monitor_request request = {.command = MONITOR_MEMORY_MAP};
	g_autofree char *text = monitor_human(monitor, &request, error);

	if (!text)
		return false;
	g_autofree struct hmp_ram_range *ranges = g_new(struct hmp_ram_range, HMP_RAM_RANGES_MAX);
	size_t n = hmp_parse_mtree(text, ranges);
	g_autofree struct kvm_machine_range *map = g_new(struct kvm_machine_range, n + 1);

	if (n == 0) {
		g_set_error(error, GUEST_MEMORY_ERROR, GUEST_MEMORY_ERROR_MAP,
		            "QEMU's `info mtree -f` shows no guest RAM");
		return false;
	}
	if (!map_build(monitor, ranges, n, map, error))
		return false;
	map_replace(memory, g_steal_pointer(&map), n);
	return true;
}

void guest_memory_set(struct guest_memory *memory, const struct kvm_machine_range *ranges, size_t n)
{
	/* The only thread that changes it is this one. */
	if (n != memory->n || memcmp(ranges, memory->map, n * sizeof(*ranges)) != 0)
		map_replace(memory, g_memdup2(ranges, n * sizeof(*ranges)), n);
}

/* The last range that starts at or before `gpa`, if it has it. */
static const struct kvm_machine_range *range_at(const struct guest_memory *memory, uint64_t gpa)
{
	size_t low = 0, high = memory->n;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (memory->map[middle].gpa <= gpa)
			low = middle + 1;
		else
			high = middle;
	}
	return low > 0 && gpa - memory->map[low - 1].gpa < memory->map[low - 1].bytes ? &memory->map[low - 1] : NULL;
}

static bool read_ranges(const struct guest_memory *memory, uint64_t gpa, uint8_t *to, size_t bytes)
{
	while (bytes > 0) {
		const struct kvm_machine_range *range = range_at(memory, gpa);

		if (!range)
			return false;
		uint64_t offset = gpa - range->gpa;
		size_t n = MIN(bytes, range->bytes - offset);

		if (pread(memory->fd, to, n, (off_t)(range->hva + offset)) != (ssize_t)n)
			return false;
		gpa += n;
		to += n;
		bytes -= n;
	}
	return true;
}

int guest_memory_file(const struct guest_memory *memory)
{
	return memory ? memory->fd : -1;
}

bool guest_memory_read(struct guest_memory *memory, gpa_t from, void *to, size_t bytes)
{
	g_rw_lock_reader_lock(&memory->lock);
	bool done = read_ranges(memory, from.value, to, bytes);
	g_rw_lock_reader_unlock(&memory->lock);
	return done;
}

/* ---- what the guest uses ---- */

#define PAGE_BYTES 4096u
#define PAGES_AT_ONCE 512u
#define PAGE_THERE (UINT64_C(3) << 62) /* present, or swapped out (Documentation/admin-guide/mm/pagemap.rst) */

/* The first range that ends above `from`; NULL: there is none. */
static const struct kvm_machine_range *range_above(const struct guest_memory *memory, uint64_t from)
{
	for (size_t i = 0; i < memory->n; i++)
		if (memory->map[i].gpa + memory->map[i].bytes > from)
			return &memory->map[i];
	return NULL;
}

/* Of so many pages of the process, those in a row from the first one that is there; false: none is. */
static bool pages_there(const struct guest_memory *memory, uint64_t hva, size_t pages, size_t *first, size_t *n)
{
	uint64_t entries[PAGES_AT_ONCE];
	size_t bytes = pages * sizeof(entries[0]);

	if (pread(memory->pagemap, entries, bytes, (off_t)(hva / PAGE_BYTES * sizeof(entries[0]))) != (ssize_t)bytes)
		return false;
	for (*first = 0; *first < pages && !(entries[*first] & PAGE_THERE);)
		(*first)++;
	for (*n = 0; *first + *n < pages && (entries[*first + *n] & PAGE_THERE);)
		(*n)++;
	return *n > 0;
}

/* One read of the list of pages. */
static void next_run(const struct guest_memory *memory, const struct kvm_machine_range *range, uint64_t from,
                     struct os_scan_run *run)
{
	const uint64_t at = MAX(from, range->gpa), left = (range->gpa + range->bytes - at) / PAGE_BYTES;
	const size_t pages = MIN(left, PAGES_AT_ONCE);
	size_t first, n;

	if (pages > 0 && pages_there(memory, range->hva + (at - range->gpa), pages, &first, &n))
		*run = (struct os_scan_run){at + first * PAGE_BYTES, n * PAGE_BYTES};
	else
		*run = (struct os_scan_run){.gpa = at + MAX(pages, 1) * PAGE_BYTES};
}

bool guest_memory_next(void *data, uint64_t from, struct os_scan_run *run)
{
	struct guest_memory *memory = data;

	g_rw_lock_reader_lock(&memory->lock);
	const struct kvm_machine_range *range = memory->pagemap >= 0 ? range_above(memory, from) : NULL;

	if (range)
		next_run(memory, range, from, run);
	g_rw_lock_reader_unlock(&memory->lock);
	return range != NULL;
}
