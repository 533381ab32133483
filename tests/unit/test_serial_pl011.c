// SPDX-License-Identifier: BSD-2-Clause
/* The UART as Linux's driver sees it (drivers/tty/serial/amba-pl011.c, drivers/amba/bus.c). */
#include <check.h>
#include <string.h>

#include "run_suite.h"
#include "uart.h"

enum { DR = 0x00, FR = 0x18, IBRD = 0x24, FBRD = 0x28, LCR_H = 0x2c, CR = 0x30, IFLS = 0x34 };
enum { IMSC = 0x38, RIS = 0x3c, MIS = 0x40, ICR = 0x44, DMACR = 0x48, IDENTIFICATION = 0xfe0 };
enum { FR_MODEM = 7, FR_BUSY = 8, FR_RXFE = 0x10, FR_TXFF = 0x20, FR_RXFF = 0x40, FR_TXFE = 0x80 };
enum { RX = 0x10, TX = 0x20, TIMEOUT = 0x40 };
enum { UARTEN = 1, LBE = 0x80, TXE = 0x100, RXE = 0x200, RTS = 0x800, RTSEN = 0x4000 };
enum { UP = UARTEN | TXE | RXE };

static void setup(void)
{
	uart_init(&serial_pl011);
}

/* Of a range of `bytes`, the last eight registers, a byte in each. */
static uint32_t amba_id(unsigned at)
{
	uint32_t id = 0;

	for (unsigned i = 0; i < 4; i++)
		id |= (uint32_t)in(serial_pl011.bytes - 0x20 + at + 4 * i) << 8 * i;
	return id;
}

START_TEST(looks_like_a_pl011)
{
	/* amba_read_periphid(): a PrimeCell; pl011_ids[]: this one; get_fifosize_arm(): with 32 characters. */
	ck_assert_uint_eq(amba_id(0x10), 0xb105f00d);
	ck_assert_uint_eq(amba_id(0) & 0x000fffff, 0x00041011);
	ck_assert_uint_ge(amba_id(0) >> 20 & 15, 3);
	ck_assert_uint_eq(in(IDENTIFICATION + 1), 0);
	/* As a reset leaves it. */
	ck_assert_uint_eq(in(CR), TXE | RXE);
	ck_assert_uint_eq(in(IFLS), 0x12);
	ck_assert_uint_eq(in(FR), FR_MODEM | FR_TXFE | FR_RXFE);
	ck_assert_uint_eq(in(RIS) | in(IMSC), 0);
	/* What is written is there again, as far as there are bits. */
	static const struct {
		unsigned offset;
		uint16_t bits;
	} registers[] = {{IBRD, 0xffff}, {FBRD, 0x3f}, {LCR_H, 0xff}, {IFLS, 0x3f}, {IMSC, 0x7ff}, {DMACR, 7}};
	for (size_t i = 0; i < sizeof(registers) / sizeof(*registers); i++) {
		out(registers[i].offset, 0xffff);
		ck_assert_uint_eq(in(registers[i].offset), registers[i].bits);
	}
	ck_assert_uint_eq(in(0x800), 0);
}
END_TEST

START_TEST(sends_at_once)
{
	out(CR, UP);
	out(DR, 'h');
	out(DR, 'i');
	ck_assert_uint_eq(in(FR) & (FR_BUSY | FR_TXFF | FR_TXFE), FR_TXFE);
	ck_assert_mem_eq(uart.sent, "hi", 2);
	ck_assert_uint_eq(uart.n_sent, 2);
}
END_TEST

/* pl011_start_tx_pio() sends before it asks for the interrupt, and pl011_int() sends more. */
START_TEST(interrupts_once_it_has_sent)
{
	out(CR, UP);
	out(IMSC, TX);
	ck_assert(!uart.irq);
	out(DR, 'x');
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(MIS), TX);
	out(ICR, TX);
	ck_assert(!uart.irq);
	ck_assert_uint_eq(in(RIS), 0);
	out(IMSC, 0);
	out(DR, 'y');
	ck_assert(!uart.irq);
	ck_assert_uint_eq(in(RIS), TX);
	ck_assert_uint_eq(in(MIS), 0);
	out(IMSC, TX);
	ck_assert(uart.irq);
}
END_TEST

START_TEST(waits_for_a_slow_line)
{
	out(CR, UP);
	out(IMSC, TX);
	uart.slow = true;
	out(DR, 'x');
	ck_assert(!uart.irq);
	ck_assert_uint_eq(in(FR) & (FR_BUSY | FR_TXFF | FR_TXFE), FR_BUSY | FR_TXFF);
	/* The rest of a full FIFO is taken all the same. */
	out(DR, 'y');
	ck_assert_mem_eq(uart.sent, "xy", 2);

	uart.slow = false;
	serial_line_ready(&uart.serial);
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(FR) & (FR_BUSY | FR_TXFF | FR_TXFE), FR_TXFE);
	/* A line that was ready all the time is no news. */
	out(ICR, TX);
	serial_line_ready(&uart.serial);
	ck_assert(!uart.irq);
}
END_TEST

START_TEST(receives_with_interrupt)
{
	out(CR, UP | RTS);
	out(IMSC, RX | TIMEOUT);
	receive("ab");
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(MIS), RX | TIMEOUT);
	ck_assert_uint_eq(in(FR)&FR_RXFE, 0);
	/* There is no error in the upper bits. */
	ck_assert_uint_eq(in(DR), 'a');
	ck_assert(uart.irq);
	ck_assert_uint_eq(in(DR), 'b');
	ck_assert(!uart.irq);
	ck_assert_uint_eq(in(FR)&FR_RXFE, FR_RXFE);
	ck_assert_uint_eq(in(DR), 0);
}
END_TEST

/* pl011_enable_interrupts() drains the FIFO before RTS is raised: nothing typed so far may get lost. */
START_TEST(input_waits_for_rts)
{
	receive("login");
	ck_assert_uint_eq(in(FR)&FR_RXFE, 0); /* no driver yet: a guest that polls gets it */
	out(CR, UP);
	ck_assert_uint_eq(in(FR)&FR_RXFE, FR_RXFE);
	ck_assert_uint_eq(in(DR), 0);
	out(CR, RXE | RTS);
	ck_assert_uint_eq(in(FR)&FR_RXFE, FR_RXFE);
	/* By the driver, or by the UART itself. */
	out(CR, UP | RTSEN);
	ck_assert_uint_eq(in(DR), 'l');
	out(CR, UP | RTS);
	for (const char *c = "ogin"; *c; c++)
		ck_assert_uint_eq(in(DR), (uint8_t)*c);
}
END_TEST

START_TEST(takes_no_more_input_than_it_has_room_for)
{
	static const uint8_t bytes[SERIAL_INPUT_BYTES + 1] = {7};

	ck_assert_uint_eq(serial_receive(&uart.serial, bytes, sizeof(bytes)), SERIAL_INPUT_BYTES);
	ck_assert_uint_eq(in(FR)&FR_RXFF, FR_RXFF);
	ck_assert_uint_eq(in(DR), 7);
	ck_assert_uint_eq(in(FR)&FR_RXFF, 0);
	ck_assert_uint_eq(serial_receive(&uart.serial, bytes, sizeof(bytes)), 1);
}
END_TEST

START_TEST(loopback_keeps_characters)
{
	out(CR, UP | RTS | LBE);
	out(DR, 'l');
	ck_assert_uint_eq(uart.n_sent, 0);
	ck_assert_uint_eq(in(DR), 'l');
	ck_assert_uint_eq(in(FR)&FR_RXFE, FR_RXFE);
}
END_TEST

START_TEST(unplugged_line_has_no_carrier)
{
	serial_init(&uart.serial, &serial_pl011, &(struct serial_line){.irq = irq});
	out(CR, UP);
	out(DR, 'x');
	ck_assert_uint_eq(in(FR), FR_TXFE | FR_RXFE);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("serial_pl011");
	TCase *test = tcase_create("serial_pl011");
	tcase_add_checked_fixture(test, setup, NULL);
	tcase_add_test(test, looks_like_a_pl011);
	tcase_add_test(test, sends_at_once);
	tcase_add_test(test, interrupts_once_it_has_sent);
	tcase_add_test(test, waits_for_a_slow_line);
	tcase_add_test(test, receives_with_interrupt);
	tcase_add_test(test, input_waits_for_rts);
	tcase_add_test(test, takes_no_more_input_than_it_has_room_for);
	tcase_add_test(test, loopback_keeps_characters);
	tcase_add_test(test, unplugged_line_has_no_carrier);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
