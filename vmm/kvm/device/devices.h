// SPDX-License-Identifier: BSD-2-Clause
/* The machine's devices: two UARTs, virtio, and what ends the guest and marks its phases. x86 and arm64 have where. */
#ifndef VPROF_KVM_DEVICE_DEVICES_H
#define VPROF_KVM_DEVICE_DEVICES_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/control.h>

#include "kvm/boot/boot_devices.h"
#include "kvm/device/serial.h"

#define DEVICES_SERIALS 2u
#define DEVICES_EXIT_PORT 0xf4u
#define DEVICES_PHASE_PORT 0x80u

/* What the devices ask of the VM. Called with the devices' lock held. */
struct devices_host {
	void (*irq)(void *data, unsigned irq, bool level);
	/* The guest asked to end. code: the value written to the exit port. */
	void (*ended)(void *data, enum guest_end_reason reason, uint32_t code);
	void (*phase)(void *data, unsigned vcpu, uint8_t value);
	/* A character left UART `serial`. False: no more until devices_line_ready. */
	bool (*transmit)(void *data, unsigned serial, uint8_t byte);
	void *data;
};

struct virtio_device;

struct devices_uart {
	struct devices *devices;
	unsigned number;
	struct serial serial;
};

/* lock: [D] guards what carries the letter; [I] immutable once a vCPU runs. */
struct devices {
	pthread_mutex_t lock;
	struct devices_host host;                      /* [I] */
	struct devices_uart uarts[DEVICES_SERIALS];    /* [D] */
	struct virtio_device *virtio[BOOT_VIRTIO_MAX]; /* [I] by their place in memory; the creator's */
	unsigned n_virtio;                             /* [I] */
	struct {
		uint8_t cmos_index;
		uint8_t pm1_enable[2], pm1_control[2];
	} ports; /* [D] a PC's */
};

/* `uarts`: what both are. connected: whether the line of one leads anywhere. */
void devices_init(struct devices *devices, const struct devices_host *host, const struct serial_model *uarts,
                  const bool connected[DEVICES_SERIALS]);
void devices_deinit(struct devices *devices);

/* The interrupt of each UART, as devices_host.irq takes it. */
extern const unsigned devices_serial_irqs[DEVICES_SERIALS];

/* A PC: one access of 1, 2 or 4 bytes to ports, by a vCPU. Any thread. */
void devices_read(struct devices *devices, uint16_t port, uint8_t *data, size_t bytes);
void devices_write(struct devices *devices, unsigned vcpu, uint16_t port, const uint8_t *data, size_t bytes);

/* The next place in memory, BOOT_VIRTIO_GPA and boot_virtio_irq of n_virtio, is this device's. At most BOOT_VIRTIO_MAX.
 */
void devices_add_virtio(struct devices *devices, struct virtio_device *device);
/* An access of 1 to 8 bytes that is not RAM. Any thread. */
void devices_mmio_read(struct devices *devices, uint64_t gpa, uint8_t *data, size_t bytes);
void devices_mmio_write(struct devices *devices, unsigned vcpu, uint64_t gpa, const uint8_t *data, size_t bytes);
/* The same for virtio devices. False: there is none at that address. */
bool devices_virtio_read(const struct devices *devices, uint64_t gpa, uint8_t *data, size_t bytes);
bool devices_virtio_write(const struct devices *devices, uint64_t gpa, const uint8_t *data, size_t bytes);

/* Characters for a UART; returns how many found room. Any thread. */
size_t devices_input(struct devices *devices, unsigned serial, const uint8_t *bytes, size_t n);

/* UART `serial` may send again. Any thread. */
void devices_line_ready(struct devices *devices, unsigned serial);

#endif
