// SPDX-License-Identifier: BSD-2-Clause
/*
 * Puts a kernel, its initramfs, its command line and the firmware tables it expects into guest memory, and says in
 * which state the boot processor starts there.
 *
 * x86-64: Linux's 64-bit boot protocol (Documentation/arch/x86/boot.rst, "64-bit BOOT PROTOCOL") and PVH
 * (xen/include/public/arch-x86/hvm/start_info.h). arm64: Documentation/arch/arm64/booting.rst.
 */
#ifndef VPROF_KVM_BOOT_BOOT_H
#define VPROF_KVM_BOOT_BOOT_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "kvm/boot/boot_devices.h"
#include "kvm/host/memory.h"
#include "lib/symbol/image.h"

enum boot_protocol {
	BOOT_AUTO,  /* Linux kernels: BOOT_LINUX; others: PVH if they have the note, else BOOT_LINUX's register state */
	BOOT_LINUX, /* the entry of Linux: long mode with boot_params; a device tree on arm64 */
	BOOT_PVH,   /* x86-64: 32-bit protected mode without paging, hvm_start_info */
};

/* Registers, as the architecture has them. */
struct boot_state;

struct boot_config {
	const struct image *image;
	const char *initrd_path;  /* NULL: none */
	const char *command_line; /* UTF-8, as the guest sees it */
	unsigned vcpus;
	unsigned n_virtio; /* 0..BOOT_VIRTIO_MAX; for the tables of devices */
	enum boot_protocol protocol;
	enum boot_uart uart; /* arm64: not BOOT_UART_AUTO; for the device tree */
	bool pmu;            /* arm64: the processors have one, for the device tree */
	/* A range that the guest must not use (the pages of a host quirk), page-aligned, below 640 KiB; bytes 0: none.
	 */
	gpa_t reserved;
	uint64_t reserved_bytes;
};

/* Which one a guest gets that this is asked for. *uart: not BOOT_UART_AUTO. Errors: BOOT_ERROR_PROTOCOL. */
bool boot_choose_uart(const struct image *image, enum boot_uart asked, enum boot_uart *uart, GError **error);

/*
 * Fills the memory, which is fresh from memory_new, and *state. A kernel segment that covers one of
 * our own places is refused. Errors: BOOT_ERROR.
 */
bool boot_load(const struct memory *memory, const struct boot_config *config, struct boot_state *state, GError **error);

#endif
