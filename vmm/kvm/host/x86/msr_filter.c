// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/x86/msr_filter.h"

#include <errno.h>
#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>

#define RANGE_MSRS_MAX (KVM_MSR_FILTER_MAX_BITMAP_SIZE * 8u)

/* A clear bit is an exit, and KVM only reads it. */
static uint8_t all_exit[KVM_MSR_FILTER_MAX_BITMAP_SIZE];

static bool fail(GError **error, const char *what)
{
	g_set_error(error, GUEST_ERROR, GUEST_ERROR_SYSTEM, "cannot %s: %s", what, g_strerror(errno));
	return false;
}

static bool enable(struct msr_filter *filter, GError **error)
{
	struct kvm_enable_cap exits = {.cap = KVM_CAP_X86_USER_SPACE_MSR, .args = {KVM_MSR_EXIT_REASON_FILTER}};

	if (filter->enabled)
		return true;
	if (ioctl(filter->vm_fd, KVM_CHECK_EXTENSION, KVM_CAP_X86_MSR_FILTER) <= 0) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED,
		            "cannot see accesses to MSRs: this host's KVM lacks KVM_CAP_X86_MSR_FILTER (Linux 5.10)");
		return false;
	}
	if (ioctl(filter->vm_fd, KVM_ENABLE_CAP, &exits) < 0)
		return fail(error, "have MSR exits");
	filter->enabled = true;
	return true;
}

static bool add_range(struct kvm_msr_filter *filter, size_t *n, const struct guest_msr_range *range, GError **error)
{
	uint64_t msrs = (uint64_t)range->last - range->first + 1;

	if (range->last < range->first || msrs > RANGE_MSRS_MAX) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_UNSUPPORTED,
		            "cannot watch MSRs 0x%x to 0x%x: KVM takes 1 to %u in one range", range->first, range->last,
		            RANGE_MSRS_MAX);
		return false;
	}
	if (*n == KVM_MSR_FILTER_MAX_RANGES) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN,
		            "cannot watch MSRs 0x%x to 0x%x: all %u ranges of KVM's filter are in use", range->first,
		            range->last, KVM_MSR_FILTER_MAX_RANGES);
		return false;
	}
	filter->ranges[(*n)++] = (struct kvm_msr_filter_range){.flags = (range->read ? KVM_MSR_FILTER_READ : 0u) |
	                                                                (range->write ? KVM_MSR_FILTER_WRITE : 0u),
	                                                       .base = range->first,
	                                                       .nmsrs = (uint32_t)msrs,
	                                                       .bitmap = all_exit};
	return true;
}

static bool apply(struct msr_filter *filter, GError **error)
{
	struct kvm_msr_filter wanted = {.flags = KVM_MSR_FILTER_DEFAULT_ALLOW};
	size_t n = 0;

	for (unsigned owner = 0; owner < MSR_OWNERS; owner++) {
		for (size_t i = 0; i < filter->owners[owner].n; i++) {
			if (!add_range(&wanted, &n, &filter->owners[owner].ranges[i], error))
				return false;
		}
	}
	return (n == 0 && !filter->enabled) ||
	       (enable(filter, error) &&
	        (ioctl(filter->vm_fd, KVM_X86_SET_MSR_FILTER, &wanted) == 0 || fail(error, "filter MSRs")));
}

bool msr_filter_set(struct msr_filter *filter, enum msr_owner owner, const struct guest_msr_range *ranges, size_t n,
                    GError **error)
{
	const struct msr_filter before = *filter;

	if (n > GUEST_MSR_RANGES_MAX) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN, "cannot watch %zu ranges of MSRs; the limit is %u",
		            n, GUEST_MSR_RANGES_MAX);
		return false;
	}
	filter->owners[owner].n = n;
	if (n > 0)
		memcpy(filter->owners[owner].ranges, ranges, n * sizeof(*ranges));
	if (apply(filter, error))
		return true;
	memcpy(filter->owners, before.owners, sizeof(filter->owners));
	return false;
}
