// SPDX-License-Identifier: BSD-2-Clause
/*
 * Where the devices of an arm64 machine are, in the hole below 4 GiB, and their interrupts: shared peripheral
 * interrupts, counted from 0. The device tree tells the guest. Virtio: boot_devices.h.
 */
#ifndef VPROF_KVM_BOOT_ARM64_MACHINE_MAP_H
#define VPROF_KVM_BOOT_ARM64_MACHINE_MAP_H

#define MACHINE_UART_BYTES 0x1000u
#define MACHINE_UART_GPA(n) (0xd0000000u + (n)*MACHINE_UART_BYTES) /* of either kind */
#define MACHINE_UART_IRQ(n) (n)
#define MACHINE_EXIT_GPA 0xd0002000u  /* a 32-bit register: a write ends the guest with this code */
#define MACHINE_PHASE_GPA 0xd0003000u /* a byte: marks a phase */
#define MACHINE_REGISTER_BYTES 0x1000u
#define MACHINE_GIC_DISTRIBUTOR_GPA 0xd0100000u
#define MACHINE_GIC_DISTRIBUTOR_BYTES 0x10000u
#define MACHINE_GIC_REDISTRIBUTORS_GPA 0xd0200000u
#define MACHINE_GIC_REDISTRIBUTOR_BYTES 0x20000u /* of each vCPU */
#define MACHINE_PPI_BASE 16u                     /* of the private interrupts, which are counted from 0, too */
#define MACHINE_PMU_PPI 7u                       /* as Arm's Base System Architecture recommends */
#define MACHINE_VIRTIO_IRQ(n) (16 + (n))
#define MACHINE_SPIS 32u

#endif
