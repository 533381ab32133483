// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/device/serial.h"

static void update_irq(struct serial *serial)
{
	bool level = serial->model->interrupts(serial);

	if (level == serial->irq_level)
		return;
	serial->irq_level = level;
	serial->line.irq(serial->line.data, level);
}

void serial_init(struct serial *serial, const struct serial_model *model, const struct serial_line *line)
{
	*serial = (struct serial){.model = model, .line = *line};
	model->reset(serial);
}

uint16_t serial_read(struct serial *serial, unsigned offset)
{
	uint16_t value = serial->model->read(serial, offset);

	update_irq(serial);
	return value;
}

void serial_write(struct serial *serial, unsigned offset, uint16_t value)
{
	serial->model->write(serial, offset, value);
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
	serial->model->sent(serial);
	update_irq(serial);
}

bool serial_has_input(const struct serial *serial)
{
	return serial->loops ? serial->loopback_full : serial->input_n > 0 && !serial->holds_input;
}

uint8_t serial_take(struct serial *serial)
{
	if (!serial_has_input(serial))
		return 0;
	if (serial->loops) {
		serial->loopback_full = false;
		return serial->loopback;
	}
	uint8_t byte = serial->input[serial->input_at];
	serial->input_at = (serial->input_at + 1) % SERIAL_INPUT_BYTES;
	serial->input_n--;
	return byte;
}

void serial_send(struct serial *serial, uint8_t byte)
{
	if (serial->loops) {
		serial->loopback = byte;
		serial->loopback_full = true;
	} else if (serial->line.transmit) {
		serial->line_busy = !serial->line.transmit(serial->line.data, byte);
	}
	if (!serial->line_busy)
		serial->model->sent(serial);
}
