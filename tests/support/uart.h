// SPDX-License-Identifier: BSD-2-Clause
/* A UART of either kind, the line that it sends to, and its interrupt. */
#ifndef VPROF_TEST_SUPPORT_UART_H
#define VPROF_TEST_SUPPORT_UART_H

#include <check.h>
#include <string.h>

#include "kvm/device/serial.h"

static struct {
	struct serial serial;
	char sent[64];
	size_t n_sent;
	bool irq;
	bool slow; /* the line takes one character, then needs a pause */
	unsigned edges;
} uart;

static void irq(void *data, bool level)
{
	(void)data;
	ck_assert(level != uart.irq);
	uart.edges += level;
	uart.irq = level;
}

static bool transmit(void *data, uint8_t byte)
{
	(void)data;
	ck_assert_uint_lt(uart.n_sent, sizeof(uart.sent));
	uart.sent[uart.n_sent++] = (char)byte;
	return !uart.slow;
}

static void uart_init(const struct serial_model *model)
{
	memset(&uart, 0, sizeof(uart));
	serial_init(&uart.serial, model, &(struct serial_line){.irq = irq, .transmit = transmit});
}

static uint16_t in(unsigned offset)
{
	return serial_read(&uart.serial, offset);
}

static void out(unsigned offset, uint16_t value)
{
	serial_write(&uart.serial, offset, value);
}

static void receive(const char *text)
{
	ck_assert_uint_eq(serial_receive(&uart.serial, (const uint8_t *)text, strlen(text)), strlen(text));
}

#endif
