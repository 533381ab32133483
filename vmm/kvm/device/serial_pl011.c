// SPDX-License-Identifier: BSD-2-Clause
/*
 * The technical reference manual's chapter 3: table 3-1 has the registers. There is no break, no error and no DMA, and
 * a character is never late: what waits for a driver raises the receive and the timeout interrupt until it is read.
 */
#include "kvm/device/serial.h"

#define REGISTER_BYTES 0x1000u

enum {
	DR = 0x00,
	FR = 0x18,
	ILPR = 0x20,
	IBRD = 0x24,
	FBRD = 0x28,
	LCR_H = 0x2c,
	CR = 0x30,
	IFLS = 0x34,
	IMSC = 0x38,
	RIS = 0x3c,
	MIS = 0x40,
	ICR = 0x44,
	DMACR = 0x48,
	IDENTIFICATION = 0xfe0, /* eight registers of a byte, to the end */
};

enum {
	FR_CTS = 1,
	FR_DSR = 2,
	FR_DCD = 4,
	FR_BUSY = 8,
	FR_RXFE = 0x10,
	FR_TXFF = 0x20,
	FR_RXFF = 0x40,
	FR_TXFE = 0x80
};
enum { CR_UARTEN = 1, CR_LBE = 0x80, CR_TXE = 0x100, CR_RXE = 0x200, CR_RTS = 0x800, CR_RTSEN = 0x4000 };
enum { INTERRUPT_RX = 0x10, INTERRUPT_TX = 0x20, INTERRUPT_TIMEOUT = 0x40, INTERRUPTS = 0x7ff };
enum { LCR_H_BITS = 0xff, IFLS_BITS = 0x3f, IFLS_RESET = 0x12, FBRD_BITS = 0x3f, DMACR_BITS = 7 };

/* Peripheral 0x011 of Arm (0x41), revision r1p5; a PrimeCell. */
static const uint8_t identification[] = {0x11, 0x10, 0x34, 0x00, 0x0d, 0xf0, 0x05, 0xb1};

static void reset(struct serial *serial)
{
	serial->arm.cr = CR_TXE | CR_RXE;
	serial->arm.ifls = IFLS_RESET;
}

static uint16_t raised(const struct serial *serial)
{
	return (serial->arm.sent ? INTERRUPT_TX : 0) |
	       (serial_has_input(serial) ? INTERRUPT_RX | INTERRUPT_TIMEOUT : 0);
}

static bool interrupts(const struct serial *serial)
{
	return (raised(serial) & serial->arm.imsc) != 0;
}

static void sent(struct serial *serial)
{
	serial->arm.sent = true;
}

/* Modem lines that the other end raises read as ones. */
static uint16_t flags(const struct serial *serial)
{
	return (serial->line.transmit ? FR_CTS | FR_DSR | FR_DCD : 0) |
	       (serial->line_busy ? FR_BUSY | FR_TXFF : FR_TXFE) | (serial_has_input(serial) ? 0 : FR_RXFE) |
	       (serial->input_n == SERIAL_INPUT_BYTES ? FR_RXFF : 0);
}

static uint16_t register_read(struct serial *serial, unsigned offset)
{
	switch (offset) {
	case DR:
		return serial_take(serial);
	case FR:
		return flags(serial);
	case ILPR:
		return serial->arm.ilpr;
	case IBRD:
		return serial->arm.ibrd;
	case FBRD:
		return serial->arm.fbrd;
	case LCR_H:
		return serial->arm.lcr_h;
	case CR:
		return serial->arm.cr;
	case IFLS:
		return serial->arm.ifls;
	case IMSC:
		return serial->arm.imsc;
	case RIS:
		return raised(serial);
	case MIS:
		return raised(serial) & serial->arm.imsc;
	case DMACR:
		return serial->arm.dmacr;
	default:
		return offset >= IDENTIFICATION && offset % 4 == 0 ? identification[(offset - IDENTIFICATION) / 4] : 0;
	}
}

static void transmit(struct serial *serial, uint16_t value)
{
	serial->arm.sent = false;
	serial_send(serial, (uint8_t)value);
}

/* RTS is what the driver says or, with RTSEN, what the room in the FIFO says. */
static void control_write(struct serial *serial, uint16_t value)
{
	serial->arm.cr = value;
	serial->loops = (value & CR_LBE) != 0;
	serial->holds_input = (value & (CR_RTS | CR_RTSEN)) == 0 || (value & CR_UARTEN) == 0 || (value & CR_RXE) == 0;
}

static void register_write(struct serial *serial, unsigned offset, uint16_t value)
{
	switch (offset) {
	case DR:
		transmit(serial, value);
		break;
	case ILPR:
		serial->arm.ilpr = value & 0xff;
		break;
	case IBRD:
		serial->arm.ibrd = value;
		break;
	case FBRD:
		serial->arm.fbrd = value & FBRD_BITS;
		break;
	case LCR_H:
		serial->arm.lcr_h = value & LCR_H_BITS;
		break;
	case CR:
		control_write(serial, value);
		break;
	case IFLS:
		serial->arm.ifls = value & IFLS_BITS;
		break;
	case IMSC:
		serial->arm.imsc = value & INTERRUPTS;
		break;
	case ICR:
		if (value & INTERRUPT_TX)
			serial->arm.sent = false;
		break;
	case DMACR:
		serial->arm.dmacr = value & DMACR_BITS;
		break;
	default: /* there are no errors to clear, and the rest is read-only */
		break;
	}
}

const struct serial_model serial_pl011 = {
	.bytes = REGISTER_BYTES,
	.reset = reset,
	.read = register_read,
	.write = register_write,
	.sent = sent,
	.interrupts = interrupts,
};
