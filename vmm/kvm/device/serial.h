// SPDX-License-Identifier: BSD-2-Clause
/*
 * A 16550A UART (National Semiconductor PC16550D data sheet) with an infinitely fast line: a character leaves as soon
 * as it is written, unless the other end does not keep up. Then the transmitter stays full, as with a slow line. What
 * comes in waits while a driver that sets the modem lines keeps RTS low, as a peer with hardware flow control would, so
 * that nothing typed before the driver is up gets lost.
 */
#ifndef VPROF_KVM_DEVICE_SERIAL_H
#define VPROF_KVM_DEVICE_SERIAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SERIAL_PORTS 8u
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

/* The caller serialises all calls on one UART. */
struct serial {
	struct serial_line line;
	uint8_t ier, fcr, lcr, mcr, scr, dll, dlm;
	bool thre_pending; /* THRE interrupt raised and not yet seen in IIR */
	bool line_busy;    /* the transmitter waits for the line */
	bool irq_level;
	bool mcr_written; /* a driver sets the modem lines; without one, RTS means nothing */
	bool loopback_full;
	uint8_t loopback;
	uint8_t input[SERIAL_INPUT_BYTES];
	size_t input_at, input_n;
};

void serial_init(struct serial *serial, const struct serial_line *line);

/* offset: 0..SERIAL_PORTS-1. */
uint8_t serial_read(struct serial *serial, unsigned offset);
void serial_write(struct serial *serial, unsigned offset, uint8_t value);

/* Takes characters from the line; returns how many found room. */
size_t serial_receive(struct serial *serial, const uint8_t *bytes, size_t n);

/* The line takes characters again. */
void serial_line_ready(struct serial *serial);

#endif
