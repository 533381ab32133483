// SPDX-License-Identifier: BSD-2-Clause
/*
 * A UART with an infinitely fast line: a character leaves as soon as it is written, unless the other end does not keep
 * up. Then the transmitter stays full, as with a slow line. What comes in waits while a driver that sets the modem
 * lines keeps RTS low, as a peer with hardware flow control would, so that nothing typed before the driver is up gets
 * lost.
 */
#ifndef VPROF_KVM_DEVICE_SERIAL_H
#define VPROF_KVM_DEVICE_SERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIAL_16550_BYTES 8u    /* of registers, which are ports on a PC */
#define SERIAL_INPUT_BYTES 4096u /* waiting in front of the UART's FIFO */

struct serial_line {
	/* The interrupt pin changed. */
	void (*irq)(void *data, bool level);
	/*
	 * A character left; NULL when the other end is closed. False: enough for now, until serial_line_ready. A
	 * driver that fills its FIFO before it looks again may send that much more.
	 */
	bool (*transmit)(void *data, uint8_t byte);
	void *data;
};

struct serial;

/* A kind of UART: its registers. */
struct serial_model {
	unsigned bytes; /* of registers */
	void (*reset)(struct serial *serial);
	/* offset: 0..bytes-1. */
	uint16_t (*read)(struct serial *serial, unsigned offset);
	void (*write)(struct serial *serial, unsigned offset, uint16_t value);
	/* The transmitter is empty again. */
	void (*sent)(struct serial *serial);
	/* Whether the interrupt pin is up. */
	bool (*interrupts)(const struct serial *serial);
};

/* A 16550A (National Semiconductor PC16550D data sheet): SERIAL_16550_BYTES. */
extern const struct serial_model serial_16550;
/* A PL011 (Arm PrimeCell UART, DDI 0183, r1p5), registers of 16 bits on 32; the SBSA's generic UART is a part of it. */
extern const struct serial_model serial_pl011;

/* The caller serialises all calls on one UART. */
struct serial {
	const struct serial_model *model;
	struct serial_line line;
	bool line_busy; /* the transmitter waits for the line */
	bool irq_level;
	bool holds_input; /* a driver has RTS low */
	bool loops;       /* what is sent comes back, and goes nowhere else */
	bool loopback_full;
	uint8_t loopback;
	uint8_t input[SERIAL_INPUT_BYTES];
	size_t input_at, input_n;
	union {
		struct {
			uint8_t ier, fcr, lcr, mcr, scr, dll, dlm;
			bool thre_pending; /* THRE interrupt raised and not yet seen in IIR */
		} pc;
		struct {
			uint16_t ilpr, ibrd, fbrd, lcr_h, cr, ifls, imsc, dmacr;
			bool sent; /* the transmit interrupt raised and not cleared */
		} arm;
	};
};

void serial_init(struct serial *serial, const struct serial_model *model, const struct serial_line *line);

/* offset: 0..model->bytes-1. */
uint16_t serial_read(struct serial *serial, unsigned offset);
void serial_write(struct serial *serial, unsigned offset, uint16_t value);

/* Takes characters from the line; returns how many found room. */
size_t serial_receive(struct serial *serial, const uint8_t *bytes, size_t n);

/* The line takes characters again. */
void serial_line_ready(struct serial *serial);

/* ---- for models ---- */

/* Whether there is a character to read. */
bool serial_has_input(const struct serial *serial);
/* The next one; 0: none. */
uint8_t serial_take(struct serial *serial);
/* Sends one; line_busy says if there may be another. */
void serial_send(struct serial *serial, uint8_t byte);

#endif
