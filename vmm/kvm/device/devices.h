// SPDX-License-Identifier: BSD-2-Clause
/*
 * The machine's I/O ports: two UARTs, the keyboard controller's reset line, ACPI's power management block, the clock,
 * phase marks and the exit port. Everything else reads as an empty bus does: all ones.
 */
#ifndef VPROF_KVM_DEVICES_H
#define VPROF_KVM_DEVICES_H

#include <glib.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/control.h>

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

struct devices_uart {
	struct devices *devices;
	unsigned number;
	struct serial serial;
};

/* lock: [D] guards what carries the letter; [I] immutable after devices_init. */
struct devices {
	pthread_mutex_t lock;
	struct devices_host host;                   /* [I] */
	struct devices_uart uarts[DEVICES_SERIALS]; /* [D] */
	uint8_t cmos_index;                         /* [D] */
	uint8_t pm1_enable[2];                      /* [D] */
	uint8_t pm1_control[2];                     /* [D] */
};

/* connected: whether anybody is at the other end of a UART. */
void devices_init(struct devices *devices, const struct devices_host *host, const bool connected[DEVICES_SERIALS]);
void devices_deinit(struct devices *devices);

/* One access of 1, 2 or 4 bytes by a vCPU. Any thread. */
void devices_read(struct devices *devices, uint16_t port, uint8_t *data, size_t bytes);
void devices_write(struct devices *devices, unsigned vcpu, uint16_t port, const uint8_t *data, size_t bytes);

/* Characters for a UART; returns how many found room. Any thread. */
size_t devices_input(struct devices *devices, unsigned serial, const uint8_t *bytes, size_t n);

/* UART `serial` may send again. Any thread. */
void devices_line_ready(struct devices *devices, unsigned serial);

#endif
