// SPDX-License-Identifier: BSD-2-Clause
/* The UART as Linux's 8250 driver sees it (drivers/tty/serial/8250/8250_port.c). */
#include <check.h>
#include <linux/serial_reg.h>

#include "run_suite.h"
#include "uart.h"

static void setup(void)
{
	uart_init(&serial_16550);
}

START_TEST(looks_like_a_16550a)
{
	/* autoconfig(): the interrupt enable register has four bits, */
	out(UART_IER, 0xff);
	ck_assert_uint_eq(in(UART_IER), 0x0f);
	out(UART_IER, 0);
	/* loopback brings RTS and OUT2 back as CTS and DCD, */
	out(UART_MCR, UART_MCR_LOOP | UART_MCR_OUT2 | UART_MCR_RTS);
	ck_assert_uint_eq(in(UART_MSR)&0xf0, UART_MSR_DCD | UART_MSR_CTS);
	out(UART_MCR, 0);
	/* and enabled FIFOs show in IIR; autoconfig_16550a() wants no EFR behind 0xbf. */
	out(UART_FCR, UART_FCR_ENABLE_FIFO);
	ck_assert_uint_eq(in(UART_IIR) >> 6, 3);
	out(UART_LCR, UART_LCR_CONF_MODE_B);
	ck_assert_uint_ne(in(UART_EFR), 0);
	out(UART_LCR, 0);
	out(UART_SCR, 0xa5);
	ck_assert_uint_eq(in(UART_SCR), 0xa5);
}
END_TEST

START_TEST(divisor_hides_behind_dlab)
{
	out(UART_IER, UART_IER_RDI);
	out(UART_LCR, UART_LCR_DLAB);
	out(UART_DLL, 0x0c);
	out(UART_DLM, 0x01);
	ck_assert_uint_eq(in(UART_DLL), 0x0c);
	ck_assert_uint_eq(in(UART_DLM), 0x01);
	out(UART_LCR, 0);
	ck_assert_uint_eq(in(UART_IER), UART_IER_RDI);
	ck_assert_uint_eq(uart.n_sent, 0);
}
END_TEST

START_TEST(sends_at_once)
{
	out(UART_TX, 'h');
	out(UART_TX, 'i');
	ck_assert_uint_eq(in(UART_LSR), UART_LSR_THRE | UART_LSR_TEMT);
	ck_assert_mem_eq(uart.sent, "hi", 2);
	ck_assert_uint_eq(uart.n_sent, 2);
}
END_TEST

START_TEST(thre_interrupt_goes_with_reading_iir)
{
	out(UART_MCR, UART_MCR_OUT2);
	out(UART_IER, UART_IER_THRI); /* empty already: serial8250_do_startup() tests for this one */
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(UART_IIR), UART_IIR_THRI);
	ck_assert(!uart.irq);
	ck_assert_uint_eq(in(UART_IIR), UART_IIR_NO_INT);

	out(UART_TX, 'x');
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(UART_IIR), UART_IIR_THRI);
	ck_assert_uint_eq(uart.edges, 2);

	/* Switching it off and on again raises it again. */
	out(UART_IER, 0);
	out(UART_IER, UART_IER_THRI);
	ck_assert(uart.irq);
	ck_assert_uint_eq(uart.edges, 3);
}
END_TEST

/* serial8250_handle_irq() sends when LSR says THRE, and wait_for_xmitr() waits for it. */
START_TEST(waits_for_a_slow_line)
{
	out(UART_MCR, UART_MCR_OUT2);
	out(UART_IER, UART_IER_THRI);
	in(UART_IIR);
	uart.slow = true;
	out(UART_TX, 'x');
	ck_assert(!uart.irq);
	ck_assert_uint_eq(in(UART_LSR), 0);
	/* Asking for the interrupt again does not help. */
	out(UART_IER, 0);
	out(UART_IER, UART_IER_THRI);
	ck_assert(!uart.irq);
	/* The rest of a full FIFO is taken all the same. */
	out(UART_TX, 'y');
	ck_assert_mem_eq(uart.sent, "xy", 2);

	uart.slow = false;
	serial_line_ready(&uart.serial);
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(UART_LSR), UART_LSR_THRE | UART_LSR_TEMT);
	ck_assert_uint_eq(in(UART_IIR), UART_IIR_THRI);
	/* A line that was ready all the time is no news. */
	serial_line_ready(&uart.serial);
	ck_assert(!uart.irq);
}
END_TEST

START_TEST(no_interrupt_without_out2)
{
	out(UART_IER, UART_IER_THRI | UART_IER_RDI);
	out(UART_TX, 'x');
	ck_assert(!uart.irq);
	out(UART_MCR, UART_MCR_OUT2);
	ck_assert(uart.irq);
}
END_TEST

START_TEST(receives_with_interrupt)
{
	out(UART_MCR, UART_MCR_OUT2 | UART_MCR_RTS);
	out(UART_IER, UART_IER_RDI);
	receive("ab");
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(UART_IIR), UART_IIR_RDI);
	ck_assert_uint_eq(in(UART_LSR)&UART_LSR_DR, UART_LSR_DR);
	ck_assert_uint_eq(in(UART_RX), 'a');
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(UART_RX), 'b');
	ck_assert(!uart.irq);
	ck_assert_uint_eq(in(UART_LSR)&UART_LSR_DR, 0);
}
END_TEST

/* serial8250_do_startup() clears the FIFOs and reads RX before it raises RTS: nothing typed so far may get lost. */
START_TEST(input_waits_for_rts)
{
	receive("login");
	ck_assert_uint_eq(in(UART_LSR)&UART_LSR_DR, UART_LSR_DR); /* no driver yet: a guest that polls gets it */
	out(UART_MCR, 0);
	out(UART_FCR, UART_FCR_ENABLE_FIFO | UART_FCR_CLEAR_RCVR | UART_FCR_CLEAR_XMIT);
	ck_assert_uint_eq(in(UART_LSR)&UART_LSR_DR, 0);
	ck_assert_uint_eq(in(UART_RX), 0);
	out(UART_MCR, UART_MCR_OUT2 | UART_MCR_DTR | UART_MCR_RTS);
	for (const char *c = "login"; *c; c++)
		ck_assert_uint_eq(in(UART_RX), (uint8_t)*c);
}
END_TEST

START_TEST(takes_no_more_input_than_it_has_room_for)
{
	static uint8_t bytes[SERIAL_INPUT_BYTES + 10];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i % 251);
	ck_assert_uint_eq(serial_receive(&uart.serial, bytes, sizeof(bytes)), SERIAL_INPUT_BYTES);
	ck_assert_uint_eq(serial_receive(&uart.serial, bytes, 1), 0);
	for (size_t i = 0; i < 10; i++)
		ck_assert_uint_eq(in(UART_RX), i % 251);
	ck_assert_uint_eq(serial_receive(&uart.serial, bytes, sizeof(bytes)), 10);
	for (size_t i = 10; i < SERIAL_INPUT_BYTES; i++)
		ck_assert_uint_eq(in(UART_RX), i % 251);
	for (size_t i = 0; i < 10; i++)
		ck_assert_uint_eq(in(UART_RX), i % 251);
}
END_TEST

START_TEST(loopback_keeps_characters)
{
	out(UART_MCR, UART_MCR_LOOP);
	out(UART_TX, 'l');
	ck_assert_uint_eq(uart.n_sent, 0);
	ck_assert_uint_eq(in(UART_LSR)&UART_LSR_DR, UART_LSR_DR);
	ck_assert_uint_eq(in(UART_RX), 'l');
	ck_assert_uint_eq(in(UART_LSR)&UART_LSR_DR, 0);
}
END_TEST

START_TEST(unplugged_line_has_no_carrier)
{
	ck_assert_uint_eq(in(UART_MSR), UART_MSR_DCD | UART_MSR_DSR | UART_MSR_CTS);
	serial_init(&uart.serial, &serial_16550, &(struct serial_line){.irq = irq});
	ck_assert_uint_eq(in(UART_MSR), 0);
	out(UART_TX, 'x');
	ck_assert_uint_eq(in(UART_LSR), UART_LSR_THRE | UART_LSR_TEMT);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("serial");
	TCase *test = tcase_create("serial");
	tcase_add_checked_fixture(test, setup, NULL);
	tcase_add_test(test, looks_like_a_16550a);
	tcase_add_test(test, divisor_hides_behind_dlab);
	tcase_add_test(test, sends_at_once);
	tcase_add_test(test, thre_interrupt_goes_with_reading_iir);
	tcase_add_test(test, waits_for_a_slow_line);
	tcase_add_test(test, no_interrupt_without_out2);
	tcase_add_test(test, receives_with_interrupt);
	tcase_add_test(test, input_waits_for_rts);
	tcase_add_test(test, takes_no_more_input_than_it_has_room_for);
	tcase_add_test(test, loopback_keeps_characters);
	tcase_add_test(test, unplugged_line_has_no_carrier);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
