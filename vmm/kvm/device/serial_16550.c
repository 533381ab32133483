// SPDX-License-Identifier: BSD-2-Clause
#include <linux/serial_reg.h>

#include "kvm/device/serial.h"

static void reset(struct serial *serial)
{
	serial->pc.dll = 1; /* 115200 baud */
}

static bool divisor_access(const struct serial *serial)
{
	return (serial->pc.lcr & UART_LCR_DLAB) != 0;
}

/* The highest pending interrupt (data sheet, table IV). */
static uint8_t interrupt_id(const struct serial *serial)
{
	if ((serial->pc.ier & UART_IER_RDI) && serial_has_input(serial))
		return UART_IIR_RDI;
	if ((serial->pc.ier & UART_IER_THRI) && serial->pc.thre_pending)
		return UART_IIR_THRI;
	return UART_IIR_NO_INT;
}

/* A PC connects the pin through OUT2. */
static bool interrupts(const struct serial *serial)
{
	return interrupt_id(serial) != UART_IIR_NO_INT && (serial->pc.mcr & UART_MCR_OUT2) != 0 && !serial->loops;
}

static void sent(struct serial *serial)
{
	serial->pc.thre_pending = true;
}

static void transmit(struct serial *serial, uint8_t byte)
{
	serial->pc.thre_pending = false;
	serial_send(serial, byte);
}

static uint8_t interrupt_id_read(struct serial *serial)
{
	uint8_t id = interrupt_id(serial);

	if (id == UART_IIR_THRI)
		serial->pc.thre_pending = false; /* reading the cause takes it away */
	return (serial->pc.fcr & UART_FCR_ENABLE_FIFO) ? id | 0xc0 : id;
}

/* In loopback the outputs come back as inputs: DTR to DSR, RTS to CTS, OUT1 to RI, OUT2 to DCD. */
static uint8_t modem_status(const struct serial *serial)
{
	const uint8_t mcr = serial->pc.mcr;

	if (!serial->loops)
		return serial->line.transmit ? UART_MSR_DCD | UART_MSR_DSR | UART_MSR_CTS : 0;
	uint8_t status = 0;
	status |= (mcr & UART_MCR_DTR) ? UART_MSR_DSR : 0;
	status |= (mcr & UART_MCR_RTS) ? UART_MSR_CTS : 0;
	status |= (mcr & UART_MCR_OUT1) ? UART_MSR_RI : 0;
	status |= (mcr & UART_MCR_OUT2) ? UART_MSR_DCD : 0;
	return status;
}

static uint16_t register_read(struct serial *serial, unsigned offset)
{
	switch (offset) {
	case UART_RX:
		return divisor_access(serial) ? serial->pc.dll : serial_take(serial);
	case UART_IER:
		return divisor_access(serial) ? serial->pc.dlm : serial->pc.ier;
	case UART_IIR:
		return interrupt_id_read(serial);
	case UART_LCR:
		return serial->pc.lcr;
	case UART_MCR:
		return serial->pc.mcr;
	case UART_LSR:
		return (serial->line_busy ? 0 : UART_LSR_THRE | UART_LSR_TEMT) |
		       (serial_has_input(serial) ? UART_LSR_DR : 0);
	case UART_MSR:
		return modem_status(serial);
	default:
		return serial->pc.scr;
	}
}

/* Enabling the THRE interrupt while the holding register is empty raises it at once; Linux tests for that. */
static void interrupt_enable_write(struct serial *serial, uint8_t value)
{
	if ((value & UART_IER_THRI) && !(serial->pc.ier & UART_IER_THRI))
		serial->pc.thre_pending = !serial->line_busy;
	serial->pc.ier = value & 0x0f;
}

/* Only a driver that sets the modem lines means something by RTS. */
static void modem_control_write(struct serial *serial, uint8_t value)
{
	serial->pc.mcr = value & 0x1f;
	serial->loops = (value & UART_MCR_LOOP) != 0;
	serial->holds_input = (value & UART_MCR_RTS) == 0;
}

static void register_write(struct serial *serial, unsigned offset, uint16_t wide)
{
	const uint8_t value = (uint8_t)wide;

	switch (offset) {
	case UART_TX:
		if (divisor_access(serial))
			serial->pc.dll = value;
		else
			transmit(serial, value);
		break;
	case UART_IER:
		if (divisor_access(serial))
			serial->pc.dlm = value;
		else
			interrupt_enable_write(serial, value);
		break;
	case UART_FCR:
		serial->pc.fcr = value & (UART_FCR_ENABLE_FIFO | UART_FCR_TRIGGER_MASK);
		if (value & UART_FCR_CLEAR_RCVR)
			serial->loopback_full = false;
		break;
	case UART_LCR:
		serial->pc.lcr = value;
		break;
	case UART_MCR:
		modem_control_write(serial, value);
		break;
	case UART_SCR:
		serial->pc.scr = value;
		break;
	default: /* line and modem status are read-only */
		break;
	}
}

const struct serial_model serial_16550 = {
	.bytes = SERIAL_16550_BYTES,
	.reset = reset,
	.read = register_read,
	.write = register_write,
	.sent = sent,
	.interrupts = interrupts,
};
