// SPDX-License-Identifier: BSD-2-Clause
#include "lib/record/mapped_file.h"

#include <errno.h>
#include <glib.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#define FILES_MAX 256u /* at once; a comparison reads its recordings one after the other */

/* Read by the signal handler, on the thread that reads the file. */
struct mapped_file {
	_Atomic uintptr_t start; /* 0: free */
	uintptr_t bytes;         /* written before `start`, with release order */
	atomic_bool is_cut;
	uint8_t *at;
};

static struct mapped_file files[FILES_MAX];
static GMutex lock; /* who takes a free one */
static uintptr_t page_bytes;

static struct mapped_file *file_at(uintptr_t address)
{
	for (size_t i = 0; i < FILES_MAX; i++) {
		uintptr_t start = atomic_load_explicit(&files[i].start, memory_order_acquire);

		if (start != 0 && address >= start && address - start < files[i].bytes)
			return &files[i];
	}
	return NULL;
}

/* Only what is safe in a signal handler: mmap(2) is a system call and nothing else. */
static void on_bus_error(int signal, siginfo_t *info, void *context)
{
	const uintptr_t address = (uintptr_t)info->si_addr;
	struct mapped_file *file = info->si_code == BUS_ADRERR ? file_at(address) : NULL;
	void *page = (void *)(address & ~(page_bytes - 1));
	const int reason = errno;

	(void)context;
	if (file && mmap(page, page_bytes, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == page)
		atomic_store_explicit(&file->is_cut, true, memory_order_relaxed);
	else
		(void)sigaction(signal, &(struct sigaction){.sa_handler = SIG_DFL}, NULL);
	errno = reason;
}

/* A free one, with the lock held; the handler is there before the first. */
static struct mapped_file *file_take(void)
{
	if (page_bytes == 0) {
		const struct sigaction action = {.sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO};

		page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
		sigaction(SIGBUS, &action, NULL);
	}
	for (size_t i = 0; i < FILES_MAX; i++)
		if (atomic_load_explicit(&files[i].start, memory_order_relaxed) == 0)
			return &files[i];
	errno = EMFILE;
	return NULL;
}

struct mapped_file *mapped_file_new(int fd, size_t bytes)
{
	g_autoptr(GMutexLocker) locker = g_mutex_locker_new(&lock);
	struct mapped_file *file = file_take();
	void *at = file && bytes > 0 ? mmap(NULL, bytes, PROT_READ, MAP_PRIVATE, fd, 0) : NULL;

	(void)locker;
	if (!file || at == MAP_FAILED)
		return NULL;
	file->at = at;
	file->bytes = bytes;
	atomic_store_explicit(&file->is_cut, false, memory_order_relaxed);
	/* An empty file is taken, too, at an address that nothing has. */
	atomic_store_explicit(&file->start, at ? (uintptr_t)at : UINTPTR_MAX, memory_order_release);
	return file;
}

void mapped_file_free(struct mapped_file *file)
{
	if (!file)
		return;
	if (file->at)
		munmap(file->at, file->bytes);
	atomic_store_explicit(&file->start, 0, memory_order_release);
}

const uint8_t *mapped_file_bytes(const struct mapped_file *file)
{
	return file->at;
}

bool mapped_file_is_cut(const struct mapped_file *file)
{
	return atomic_load_explicit(&file->is_cut, memory_order_relaxed);
}
