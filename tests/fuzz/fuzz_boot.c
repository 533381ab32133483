// SPDX-License-Identifier: BSD-2-Clause
/*
 * A kernel file on its way into guest memory. The first byte says by which protocol, with how many vCPUs and devices.
 * What is loaded lies in the memory, and the boot processor starts in what is loaded.
 */
#include <stdlib.h>

#include "fuzz_target.h"
#include "kvm/boot/boot_claims.h"
#include "kvm/boot/boot_devices.h"
#include "kvm/boot/x86/boot_registers.h"

static bool covers(const struct image *image, uint64_t address)
{
	size_t n;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++)
		if (address - segments[i].gpa < segments[i].memory_bytes)
			return true;
	return false;
}

static void load(const struct image *image, uint8_t how)
{
	struct memory *memory = memory_new(MEMORY_BYTES_MIN, NULL);
	const struct boot_config config = {
		.image = image,
		.command_line = "quiet",
		.vcpus = how >> 2 & 7u,
		.n_virtio = how >> 5 & 3u,
		.protocol = (enum boot_protocol)(how & 3u) > BOOT_PVH ? BOOT_AUTO : (enum boot_protocol)(how & 3u)};
	g_autoptr(GError) error = NULL;
	struct boot_state state = {0};

	if (!memory)
		abort();
	if (boot_load(memory, &config, &state, &error)) {
		if (error || !covers(image, state.rip) || config.vcpus == 0 ||
		    !memory_at(memory, (gpa_t){state.gdt_base}, state.gdt_limit + 1u))
			abort();
	} else if (!error || error->domain != BOOT_ERROR) {
		abort();
	}
	memory_free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size == 0)
		return 0;
	g_autoptr(GBytes) file = g_bytes_new_static(data + 1, size - 1);
	struct image *image = image_new("kernel", file, NULL);

	if (image)
		load(image, data[0]);
	image_free(image);
	return 0;
}
