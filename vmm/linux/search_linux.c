// SPDX-License-Identifier: BSD-2-Clause
#include "linux/search_linux.h"

#include "linux/kernel_memory.h"
#include "linux/os_linux.h"
#include "linux/search_linux_priv.h"

bool search_none(const char *what, GError **error)
{
	g_set_error(error, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_NONE, "no Linux kernel found in the guest: %s", what);
	return false;
}

static bool early(const struct seen_vcpu *registers, GError **error)
{
	return search_processor_of(registers->regs.processor)->early(registers, error);
}

static bool find(struct look *look, const struct seen_vcpu *registers, struct kernel_found *found, GError **error)
{
	return search_processor_of(registers->regs.processor)->find(look, registers, found, error);
}

static bool slide(struct guest *guest, const struct seen_vcpu *registers, struct kernel_found *found, GError **error)
{
	return search_processor_of(registers->regs.processor)->slide(guest, registers, found, error);
}

static uint64_t mark(struct guest *guest, const struct seen_vcpu *registers)
{
	return search_processor_of(registers->regs.processor)->mark(guest, registers);
}

static bool scan(struct os_scan *scan, struct look *look, os_scan_next next, void *data, bool five_levels,
                 struct seen_vcpu *registers)
{
	const struct search_processor *search = search_processor_of(look->guest.processor);

	return search->scan && search->scan(scan, look, next, data, five_levels, registers);
}

const struct os_search search_linux = {
	.os = &os_linux,
	.early = early,
	.find = find,
	.slide = slide,
	.copy = kernel_memory_image,
	.mark = mark,
	.scan = scan,
};
