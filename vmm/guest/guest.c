// SPDX-License-Identifier: BSD-2-Clause
#include "guest/guest.h"

#include <fcntl.h>
#include <stdlib.h>
#include <vprof/recording.h>

#include "guest/guest_debug.h"

G_DEFINE_QUARK(vprof_guest_error, guest_error)

uint64_t guest_linked_address(const struct guest *guest, uint64_t ip)
{
	const struct image_start *start = &guest->start;

	return ip - start->gpa < start->bytes ? ip - start->gpa + start->gva : ip;
}

uint64_t guest_regs_sample_ip(const struct guest_regs *regs)
{
	return guest_regs_real_mode(regs) ? VPROF_REAL_MODE | guest_regs_real_ip(regs) : guest_regs_ip(regs);
}

int guest_kernel_file(const struct guest *guest)
{
	return guest->kernel_file > 0 ? fcntl(guest->kernel_file, F_DUPFD_CLOEXEC, 0)
	                              : open(guest->kernel_path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

struct image *guest_image_open(const struct guest *guest, GError **error)
{
	const int file = guest->kernel_unpacked > 0 ? guest->kernel_unpacked : guest->kernel_file;

	return file > 0 ? image_open_fd(guest->kernel_path, IMAGE_KERNEL, file, error)
	                : image_open(guest->kernel_path, error);
}

static int by_time(const void *a, const void *b)
{
	const struct guest_exit *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

void guest_exits_sort(struct guest_vcpu_time *time)
{
	qsort(time->exits, time->n_exits, sizeof(*time->exits), by_time);
}

const char *guest_end_name(enum guest_end_reason reason)
{
#define X(id, name, status) [id] = name,
	static const char *const names[] = {VPROF_GUEST_ENDS(X)};
#undef X
	return (unsigned)reason < G_N_ELEMENTS(names) ? names[reason] : "unknown";
}
