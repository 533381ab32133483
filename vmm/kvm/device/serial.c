// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/serial.h"

#include <linux/serial_reg.h>
#include <string.h>

void serial_init(struct serial *serial, const struct serial_line *line)
{
	*serial = (struct serial){.line = *line, .dll = 1}; /* 115200 baud */
}

static bool loopback(const struct serial *serial)
{
	return (serial->mcr & UART_MCR_LOOP) != 0;
}

static bool divisor_access(const struct serial *serial)
{
	return (serial->lcr & UART_LCR_DLAB) != 0;
}

static bool data_ready(const struct serial *serial)
{
	if (loopback(serial))
		return serial->loopback_full;
	return serial->input_n > 0 && (!serial->mcr_written || (serial->mcr & UART_MCR_RTS) != 0);
}

/* The highest pending interrupt (data sheet, table IV). */
static uint8_t interrupt_id(const struct serial *serial)
{
	if ((serial->ier & UART_IER_RDI) && data_ready(serial))
		return UART_IIR_RDI;
	if ((serial->ier & UART_IER_THRI) && serial->thre_pending)
		return UART_IIR_THRI;
	return UART_IIR_NO_INT;
}

/* A PC connects the pin through OUT2. */
static void update_irq(struct serial *serial)
{
	bool level = interrupt_id(serial) != UART_IIR_NO_INT && (serial->mcr & UART_MCR_OUT2) != 0 && !loopback(serial);

	if (level == serial->irq_level)
		return;
	serial->irq_level = level;
	serial->line.irq(serial->line.data, level);
}

static void transmit(struct serial *serial, uint8_t byte)
{
	if (loopback(serial)) {
		serial->loopback = byte;
		serial->loopback_full = true;
	} else if (serial->line.transmit) {
		serial->line_busy = !serial->line.transmit(serial->line.data, byte);
	}
	serial->thre_pending = !serial->line_busy;
}

static uint8_t receive(struct serial *serial)
{
	if (!data_ready(serial))
		return 0;
	if (loopback(serial)) {
		serial->loopback_full = false;
		return serial->loopback;
	}
	uint8_t byte = serial->input[serial->input_at];
	serial->input_at = (serial->input_at + 1) % SERIAL_INPUT_BYTES;
	serial->input_n--;
	return byte;
}

static uint8_t interrupt_id_read(struct serial *serial)
{
	uint8_t id = interrupt_id(serial);

	if (id == UART_IIR_THRI)
		serial->thre_pending = false; /* reading the cause takes it away */
	return (serial->fcr & UART_FCR_ENABLE_FIFO) ? id | 0xc0 : id;
}

/* In loopback the outputs come back as inputs: DTR to DSR, RTS to CTS, OUT1 to RI, OUT2 to DCD. */
static uint8_t modem_status(const struct serial *serial)
{
	if (!loopback(serial))
		return serial->line.transmit ? UART_MSR_DCD | UART_MSR_DSR | UART_MSR_CTS : 0;
	uint8_t status = 0;
	status |= (serial->mcr & UART_MCR_DTR) ? UART_MSR_DSR : 0;
	status |= (serial->mcr & UART_MCR_RTS) ? UART_MSR_CTS : 0;
	status |= (serial->mcr & UART_MCR_OUT1) ? UART_MSR_RI : 0;
	status |= (serial->mcr & UART_MCR_OUT2) ? UART_MSR_DCD : 0;
	return status;
}

static uint8_t register_read(struct serial *serial, unsigned offset)
{
	switch (offset) {
	case UART_RX:
		return divisor_access(serial) ? serial->dll : receive(serial);
	case UART_IER:
		return divisor_access(serial) ? serial->dlm : serial->ier;
	case UART_IIR:
		return interrupt_id_read(serial);
	case UART_LCR:
		return serial->lcr;
	case UART_MCR:
		return serial->mcr;
	case UART_LSR:
		return (serial->line_busy ? 0 : UART_LSR_THRE | UART_LSR_TEMT) | (data_ready(serial) ? UART_LSR_DR : 0);
	case UART_MSR:
		return modem_status(serial);
	default:
		return serial->scr;
	}
}

uint8_t serial_read(struct serial *serial, unsigned offset)
{
	uint8_t value = register_read(serial, offset);

	update_irq(serial);
	return value;
}

/* Enabling the THRE interrupt while the holding register is empty raises it at once; Linux tests for that. */
static void interrupt_enable_write(struct serial *serial, uint8_t value)
{
	if ((value & UART_IER_THRI) && !(serial->ier & UART_IER_THRI))
		serial->thre_pending = !serial->line_busy;
	serial->ier = value & 0x0f;
}

static void register_write(struct serial *serial, unsigned offset, uint8_t value)
{
	switch (offset) {
	case UART_TX:
		if (divisor_access(serial))
			serial->dll = value;
		else
			transmit(serial, value);
		break;
	case UART_IER:
		if (divisor_access(serial))
			serial->dlm = value;
		else
			interrupt_enable_write(serial, value);
		break;
	case UART_FCR:
		serial->fcr = value & (UART_FCR_ENABLE_FIFO | UART_FCR_TRIGGER_MASK);
		if (value & UART_FCR_CLEAR_RCVR)
			serial->loopback_full = false;
		break;
	case UART_LCR:
		serial->lcr = value;
		break;
	case UART_MCR:
		serial->mcr = value & 0x1f;
		serial->mcr_written = true;
		break;
	case UART_SCR:
		serial->scr = value;
		break;
	default: /* line and modem status are read-only */
		break;
	}
}

void serial_write(struct serial *serial, unsigned offset, uint8_t value)
{
	register_write(serial, offset, value);
	update_irq(serial);
}

size_t serial_receive(struct serial *serial, const uint8_t *bytes, size_t n)
{
	size_t taken = 0;

	while (taken < n && serial->input_n < SERIAL_INPUT_BYTES) {
		serial->input[(serial->input_at + serial->input_n) % SERIAL_INPUT_BYTES] = bytes[taken++];
		serial->input_n++;
	}
	update_irq(serial);
	return taken;
}

void serial_line_ready(struct serial *serial)
{
	if (!serial->line_busy)
		return;
	serial->line_busy = false;
	serial->thre_pending = true;
	update_irq(serial);
}
