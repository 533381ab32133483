// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/vcpu/kvm_statistics.h"

#include <linux/kvm.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

int kvm_statistics_open(int vcpu_fd)
{
	return ioctl(vcpu_fd, KVM_GET_STATS_FD, NULL);
}

static bool read_at(int fd, size_t offset, void *to, size_t bytes)
{
	return pread(fd, to, bytes, (off_t)offset) == (ssize_t)bytes;
}

/* False for what is no running total: present values, peaks, histograms. */
static bool read_counter(int fd, const struct kvm_stats_header *header, size_t index, struct guest_counter *counter)
{
	union {
		struct kvm_stats_desc desc;
		uint8_t bytes[sizeof(struct kvm_stats_desc) + GUEST_COUNTER_NAME_BYTES];
	} buffer;
	size_t bytes = sizeof(buffer.desc) + header->name_size;
	uint64_t value;

	if (!read_at(fd, header->desc_offset + index * bytes, &buffer, bytes))
		return false;
	if ((buffer.desc.flags & KVM_STATS_TYPE_MASK) != KVM_STATS_TYPE_CUMULATIVE || buffer.desc.size != 1 ||
	    !read_at(fd, (size_t)header->data_offset + buffer.desc.offset, &value, sizeof(value)))
		return false;
	*counter = (struct guest_counter){.value = value};
	g_strlcpy(counter->name, (const char *)buffer.bytes + sizeof(buffer.desc),
	          MIN(sizeof(counter->name), header->name_size));
	return true;
}

size_t kvm_statistics_read(int fd, struct guest_counter counters[GUEST_COUNTERS_MAX])
{
	struct kvm_stats_header header;
	size_t n = 0;

	if (fd < 0 || !read_at(fd, 0, &header, sizeof(header)) || header.name_size > GUEST_COUNTER_NAME_BYTES)
		return 0;
	for (size_t i = 0; i < header.num_desc && n < GUEST_COUNTERS_MAX; i++)
		n += read_counter(fd, &header, i, &counters[n]);
	return n;
}

uint64_t kvm_statistic(const struct guest_counter *counters, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(counters[i].name, name) == 0)
			return counters[i].value;
	return 0;
}
