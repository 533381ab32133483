// SPDX-License-Identifier: BSD-2-Clause
/* The I/O ports: how a guest ends, marks a phase, and what an empty bus reads. */
#include <check.h>
#include <string.h>

#include "kvm/boot/x86/boot_ports.h"
#include "kvm/device/devices.h"
#include "kvm/vm.h"
#include "run_suite.h"

static struct {
	struct devices devices;
	enum guest_end_reason reason;
	uint32_t code;
	unsigned phase_vcpu, phase_value, phases;
	uint8_t sent[DEVICES_SERIALS];
	unsigned irqs;
} machine;

static void on_irq(void *data, unsigned irq, bool level)
{
	(void)data;
	if (level)
		machine.irqs |= 1u << irq;
	else
		machine.irqs &= ~(1u << irq);
}

static void on_ended(void *data, enum guest_end_reason reason, uint32_t code)
{
	(void)data;
	machine.reason = reason;
	machine.code = code;
}

static void on_phase(void *data, unsigned vcpu, uint8_t value)
{
	(void)data;
	machine.phase_vcpu = vcpu;
	machine.phase_value = value;
	machine.phases++;
}

static bool on_transmit(void *data, unsigned serial, uint8_t byte)
{
	(void)data;
	machine.sent[serial] = byte;
	return true;
}

static void setup(void)
{
	const struct devices_host host = {.irq = on_irq, .ended = on_ended, .phase = on_phase, .transmit = on_transmit};

	memset(&machine, 0, sizeof(machine));
	devices_init(&machine.devices, &host, &serial_16550, (const bool[DEVICES_SERIALS]){true, true});
}

static void teardown(void)
{
	devices_deinit(&machine.devices);
}

static uint32_t in(uint16_t port, size_t bytes)
{
	uint32_t value = 0;

	devices_read(&machine.devices, port, (uint8_t *)&value, bytes);
	return value;
}

static void out(uint16_t port, uint32_t value, size_t bytes)
{
	devices_write(&machine.devices, 3, port, (const uint8_t *)&value, bytes);
}

START_TEST(empty_bus_reads_all_ones)
{
	ck_assert_uint_eq(in(0x1234, 1), 0xff);
	ck_assert_uint_eq(in(0x1234, 4), 0xffffffff);
	ck_assert_uint_eq(in(0xcfc, 4), 0xffffffff); /* no PCI */
	ck_assert_uint_eq(in(0xffff, 2), 0xffff);
	out(0x1234, 1, 4);
	ck_assert_int_eq(machine.reason, GUEST_END_NONE);
}
END_TEST

START_TEST(exit_port_takes_the_whole_value)
{
	out(DEVICES_EXIT_PORT, 0x10203, 4);
	ck_assert_int_eq(machine.reason, GUEST_END_EXIT_PORT);
	ck_assert_uint_eq(machine.code, 0x10203);
	out(DEVICES_EXIT_PORT, 0x77, 1);
	ck_assert_uint_eq(machine.code, 0x77);
}
END_TEST

START_TEST(exit_statuses)
{
	static const struct {
		enum guest_end_reason reason;
		uint32_t code;
		int status;
	} ends[] = {
		{GUEST_END_POWER_OFF, 0, 0},     {GUEST_END_REBOOT, 0, 90},       {GUEST_END_EXIT_PORT, 0, 1},
		{GUEST_END_EXIT_PORT, 16, 33},   {GUEST_END_EXIT_PORT, 127, 255}, {GUEST_END_EXIT_PORT, 128, 1},
		{GUEST_END_TRIPLE_FAULT, 0, 92}, {GUEST_END_PANIC, 0, 94},        {GUEST_END_VMM_ERROR, 0, 96},
		{GUEST_END_DURATION, 0, 124},    {GUEST_END_STOPPED, 0, 130},
	};
	for (size_t i = 0; i < G_N_ELEMENTS(ends); i++) {
		const struct guest_end end = {.reason = ends[i].reason, .code = ends[i].code};

		ck_assert_int_eq(vm_exit_status(&end), ends[i].status);
	}
}
END_TEST

START_TEST(keyboard_controller_resets)
{
	ck_assert_uint_eq(in(0x64, 1) & 2, 0); /* ready for a command */
	out(0x64, 0xd1, 1);
	ck_assert_int_eq(machine.reason, GUEST_END_NONE);
	out(0x64, 0xfe, 1);
	ck_assert_int_eq(machine.reason, GUEST_END_REBOOT);
}
END_TEST

START_TEST(acpi_s5_powers_off)
{
	ck_assert_uint_eq(in(BOOT_ACPI_PM1A_EVENT_PORT, 2), 0);
	out(BOOT_ACPI_PM1A_EVENT_PORT + 2, 0x0120, 2);
	ck_assert_uint_eq(in(BOOT_ACPI_PM1A_EVENT_PORT, 4), 0x01200000);
	ck_assert_uint_eq(in(BOOT_ACPI_PM1A_CONTROL_PORT, 2) & 1, 1); /* SCI_EN: in ACPI mode */

	/* Linux writes the sleep type first, then the same with SLP_EN (acpi_hw_legacy_sleep). */
	out(BOOT_ACPI_PM1A_CONTROL_PORT, BOOT_ACPI_S5_SLEEP_TYPE << 10 | 1, 2);
	ck_assert_int_eq(machine.reason, GUEST_END_NONE);
	out(BOOT_ACPI_PM1A_CONTROL_PORT, 1u << 13 | 1u << 10, 2); /* S1 is none of ours */
	ck_assert_int_eq(machine.reason, GUEST_END_NONE);
	ck_assert_uint_eq(in(BOOT_ACPI_PM1A_CONTROL_PORT, 2) & 1u << 13, 0);
	out(BOOT_ACPI_PM1A_CONTROL_PORT, 1u << 13 | BOOT_ACPI_S5_SLEEP_TYPE << 10 | 1, 2);
	ck_assert_int_eq(machine.reason, GUEST_END_POWER_OFF);
}
END_TEST

START_TEST(port_80_marks_a_phase)
{
	out(DEVICES_PHASE_PORT, 0x40, 1);
	ck_assert_uint_eq(machine.phases, 1);
	ck_assert_uint_eq(machine.phase_vcpu, 3);
	ck_assert_uint_eq(machine.phase_value, 0x40);
}
END_TEST

START_TEST(clock_is_bcd_of_now)
{
	out(0x70, 0x0d, 1);
	ck_assert_uint_eq(in(0x71, 1), 0x80);
	out(0x70, 0x32, 1);
	ck_assert_uint_eq(in(0x71, 1), 0x20); /* until 2099 */
	out(0x70, 0x80 | 0x08, 1);            /* bit 7 masks NMIs */
	uint32_t month = in(0x71, 1);
	ck_assert_uint_ge((month >> 4) * 10 + (month & 15), 1);
	ck_assert_uint_le((month >> 4) * 10 + (month & 15), 12);
	ck_assert_uint_eq(in(0x70, 1), 0xff);
}
END_TEST

START_TEST(two_uarts_with_lines_of_their_own)
{
	out(0x3f8, 'a', 1);
	out(0x2f8, 'b', 1);
	ck_assert_mem_eq(machine.sent, "ab", 2);
	out(0x3fc, 0x0a, 1); /* OUT2, RTS */
	out(0x3f9, 0x01, 1);
	out(0x2fc, 0x0a, 1);
	out(0x2f9, 0x01, 1);
	ck_assert_uint_eq(devices_input(&machine.devices, 0, (const uint8_t *)"x", 1), 1);
	ck_assert_uint_eq(machine.irqs, 1u << 4);
	ck_assert_uint_eq(devices_input(&machine.devices, 1, (const uint8_t *)"y", 1), 1);
	ck_assert_uint_eq(machine.irqs, 1u << 4 | 1u << 3);
	ck_assert_uint_eq(in(0x3f8, 1), 'x');
	ck_assert_uint_eq(in(0x2f8, 1), 'y');
	ck_assert_uint_eq(machine.irqs, 0);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("devices");
	TCase *test = tcase_create("devices");
	tcase_add_checked_fixture(test, setup, teardown);
	tcase_add_test(test, empty_bus_reads_all_ones);
	tcase_add_test(test, exit_port_takes_the_whole_value);
	tcase_add_test(test, exit_statuses);
	tcase_add_test(test, keyboard_controller_resets);
	tcase_add_test(test, acpi_s5_powers_off);
	tcase_add_test(test, port_80_marks_a_phase);
	tcase_add_test(test, clock_is_bcd_of_now);
	tcase_add_test(test, two_uarts_with_lines_of_their_own);
	suite_add_tcase(suite, test);
	return run_suite(suite);
}
