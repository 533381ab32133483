// SPDX-License-Identifier: BSD-2-Clause
/* Where the devices are: the tables that a guest reads and the devices themselves must agree. */
#ifndef VPROF_KVM_BOOT_BOOT_DEVICES_H
#define VPROF_KVM_BOOT_BOOT_DEVICES_H

/* What the two serial ports are. */
enum boot_uart {
	BOOT_UART_AUTO, /* what the kernel has a driver for */
	BOOT_UART_16550,
	BOOT_UART_PL011, /* arm64 */
};

/* The registers of virtio devices, in the hole below 4 GiB. */
#define BOOT_VIRTIO_MAX 8u
#define BOOT_VIRTIO_BYTES 0x1000u
#define BOOT_VIRTIO_GPA(n) (0xd0010000u + (n)*BOOT_VIRTIO_BYTES)

/* Their interrupts, as devices_host.irq takes them; n: 0..BOOT_VIRTIO_MAX - 1. */
unsigned boot_virtio_irq(unsigned n);

#endif
