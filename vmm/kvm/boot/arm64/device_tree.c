// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/boot/arm64/device_tree.h"

#include <libfdt.h>
#include <sys/random.h>

#include "kvm/boot/arm64/machine_map.h"
#include "kvm/boot/boot_devices.h"

#define PHANDLE_GIC 1u
#define PHANDLE_CLOCK 2u

/* Documentation/devicetree/bindings/interrupt-controller/arm,gic-v3.yaml: kind, number, flags. */
enum { GIC_SPI, GIC_PPI };
enum { IRQ_LEVEL_HIGH = 4 };

#define UART_CLOCK_HZ 1843200u
#define PL011_CLOCK_HZ 24000000u
#define RANDOM_SEED_BYTES 64u

/* libfdt's sequential writer; the first error stays (fdt_* of the tree give -FDT_ERR_*). */
struct writer {
	void *tree;
	int failed;
};

static void note(struct writer *writer, int result)
{
	if (writer->failed == 0)
		writer->failed = result;
}

static void G_GNUC_PRINTF(2, 3) begin(struct writer *writer, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *name = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	note(writer, fdt_begin_node(writer->tree, name));
}

static void end(struct writer *writer)
{
	note(writer, fdt_end_node(writer->tree));
}

static void put(struct writer *writer, const char *name, const void *value, size_t bytes)
{
	note(writer, fdt_property(writer->tree, name, value, (int)bytes));
}

static void put_text(struct writer *writer, const char *name, const char *text)
{
	put(writer, name, text, strlen(text) + 1);
}

static void put_u32(struct writer *writer, const char *name, uint32_t value)
{
	note(writer, fdt_property_u32(writer->tree, name, value));
}

static void put_u64(struct writer *writer, const char *name, uint64_t value)
{
	note(writer, fdt_property_u64(writer->tree, name, value));
}

/* Pairs of address and size, 64 bits each. */
static void put_ranges(struct writer *writer, const struct boot_range *ranges, size_t n)
{
	fdt64_t cells[4];

	g_assert(2 * n <= G_N_ELEMENTS(cells));
	for (size_t i = 0; i < n; i++) {
		cells[2 * i] = cpu_to_fdt64(ranges[i].start);
		cells[2 * i + 1] = cpu_to_fdt64(ranges[i].bytes);
	}
	put(writer, "reg", cells, 2 * n * sizeof(cells[0]));
}

static void put_range(struct writer *writer, uint64_t start, uint64_t bytes)
{
	put_ranges(writer, &(struct boot_range){start, bytes}, 1);
}

static void put_interrupt(struct writer *writer, uint32_t kind, uint32_t number)
{
	const fdt32_t cells[] = {cpu_to_fdt32(kind), cpu_to_fdt32(number), cpu_to_fdt32(IRQ_LEVEL_HIGH)};

	put(writer, "interrupts", cells, sizeof(cells));
}

/* Documentation/devicetree/bindings: what Linux' random numbers begin with. Without, its tasks may wait for them. */
static void write_seed(struct writer *writer)
{
	uint8_t seed[RANDOM_SEED_BYTES];

	if (getrandom(seed, sizeof(seed), 0) == (ssize_t)sizeof(seed))
		put(writer, "rng-seed", seed, sizeof(seed));
}

static void write_chosen(struct writer *writer, const struct boot_config *config, const struct boot_range *initrd)
{
	begin(writer, "chosen");
	put_text(writer, "bootargs", config->command_line);
	g_autofree char *console = g_strdup_printf("/serial@%x", MACHINE_UART_GPA(0));
	put_text(writer, "stdout-path", console);
	write_seed(writer);
	if (initrd->bytes > 0) {
		put_u64(writer, "linux,initrd-start", initrd->start);
		put_u64(writer, "linux,initrd-end", initrd->start + initrd->bytes);
	}
	end(writer);
}

static void write_memory(struct writer *writer, const struct memory *memory)
{
	const struct boot_range ranges[] = {{0, memory_low_bytes(memory)},
	                                    {MEMORY_HIGH_BASE, memory_high_bytes(memory)}};

	begin(writer, "memory@0");
	put_text(writer, "device_type", "memory");
	put_ranges(writer, ranges, memory_high_bytes(memory) > 0 ? 2 : 1);
	end(writer);
}

/* MPIDR_EL1's affinity as KVM gives it (reset_mpidr in arch/arm64/kvm/sys_regs.c): 16 vCPUs in each cluster. */
static uint32_t affinity(unsigned vcpu)
{
	return (vcpu >> 4) << 8 | (vcpu & 15);
}

static void write_cpus(struct writer *writer, unsigned n)
{
	begin(writer, "cpus");
	put_u32(writer, "#address-cells", 1);
	put_u32(writer, "#size-cells", 0);
	for (unsigned i = 0; i < n; i++) {
		begin(writer, "cpu@%x", affinity(i));
		put_text(writer, "device_type", "cpu");
		put_text(writer, "compatible", "arm,armv8");
		put_text(writer, "enable-method", "psci");
		put_u32(writer, "reg", affinity(i));
		end(writer);
	}
	end(writer);
	begin(writer, "psci");
	static const char compatible[] = "arm,psci-1.0\0arm,psci-0.2";
	put(writer, "compatible", compatible, sizeof(compatible));
	put_text(writer, "method", "hvc");
	end(writer);
}

static void write_gic(struct writer *writer, unsigned vcpus)
{
	const struct boot_range ranges[] = {
		{MACHINE_GIC_DISTRIBUTOR_GPA, MACHINE_GIC_DISTRIBUTOR_BYTES},
		{MACHINE_GIC_REDISTRIBUTORS_GPA, (uint64_t)vcpus * MACHINE_GIC_REDISTRIBUTOR_BYTES}};

	begin(writer, "interrupt-controller@%x", MACHINE_GIC_DISTRIBUTOR_GPA);
	put_text(writer, "compatible", "arm,gic-v3");
	put(writer, "interrupt-controller", NULL, 0);
	put_u32(writer, "#interrupt-cells", 3);
	put_ranges(writer, ranges, G_N_ELEMENTS(ranges));
	put_u32(writer, "phandle", PHANDLE_GIC);
	end(writer);
}

/* arm,arch_timer.yaml: the private interrupts of the secure, the physical, the virtual and the hypervisor's timer. */
static void write_timer(struct writer *writer)
{
	static const uint32_t private[] = {13, 14, 11, 10};
	fdt32_t cells[3 * G_N_ELEMENTS(private)];

	for (size_t i = 0; i < G_N_ELEMENTS(private); i++) {
		cells[3 * i] = cpu_to_fdt32(GIC_PPI);
		cells[3 * i + 1] = cpu_to_fdt32(private[i]);
		cells[3 * i + 2] = cpu_to_fdt32(IRQ_LEVEL_HIGH);
	}
	begin(writer, "timer");
	put_text(writer, "compatible", "arm,armv8-timer");
	put(writer, "interrupts", cells, sizeof(cells));
	put(writer, "always-on", NULL, 0);
	end(writer);
}

/* Documentation/devicetree/bindings/arm/pmu.yaml */
static void write_pmu(struct writer *writer)
{
	begin(writer, "pmu");
	put_text(writer, "compatible", "arm,armv8-pmuv3");
	put_interrupt(writer, GIC_PPI, MACHINE_PMU_PPI);
	end(writer);
}

/* serial/8250.yaml */
static void write_16550(struct writer *writer)
{
	put_text(writer, "compatible", "ns16550a");
	put_u32(writer, "clock-frequency", UART_CLOCK_HZ);
}

/* serial/pl011.yaml: the clock of its line and that of its registers. */
static void write_pl011(struct writer *writer)
{
	static const char compatible[] = "arm,pl011\0arm,primecell", names[] = "uartclk\0apb_pclk";
	const fdt32_t clocks[] = {cpu_to_fdt32(PHANDLE_CLOCK), cpu_to_fdt32(PHANDLE_CLOCK)};

	put(writer, "compatible", compatible, sizeof(compatible));
	put(writer, "clocks", clocks, sizeof(clocks));
	put(writer, "clock-names", names, sizeof(names));
}

/* clock/fixed-clock.yaml */
static void write_clock(struct writer *writer)
{
	begin(writer, "apb-pclk");
	put_text(writer, "compatible", "fixed-clock");
	put_u32(writer, "#clock-cells", 0);
	put_u32(writer, "clock-frequency", PL011_CLOCK_HZ);
	put_text(writer, "clock-output-names", "clk24mhz");
	put_u32(writer, "phandle", PHANDLE_CLOCK);
	end(writer);
}

static void write_uarts(struct writer *writer, enum boot_uart uart)
{
	if (uart == BOOT_UART_PL011)
		write_clock(writer);
	for (unsigned i = 0; i < 2; i++) {
		begin(writer, "serial@%x", MACHINE_UART_GPA(i));
		if (uart == BOOT_UART_PL011)
			write_pl011(writer);
		else
			write_16550(writer);
		put_range(writer, MACHINE_UART_GPA(i), MACHINE_UART_BYTES);
		put_interrupt(writer, GIC_SPI, MACHINE_UART_IRQ(i));
		end(writer);
	}
}

static void write_devices(struct writer *writer, unsigned n_virtio)
{
	begin(writer, "exit@%x", MACHINE_EXIT_GPA);
	put_text(writer, "compatible", "vprof,exit");
	put_range(writer, MACHINE_EXIT_GPA, MACHINE_REGISTER_BYTES);
	end(writer);
	begin(writer, "phase@%x", MACHINE_PHASE_GPA);
	put_text(writer, "compatible", "vprof,phase");
	put_range(writer, MACHINE_PHASE_GPA, MACHINE_REGISTER_BYTES);
	end(writer);
	for (unsigned i = 0; i < n_virtio; i++) {
		begin(writer, "virtio_mmio@%x", BOOT_VIRTIO_GPA(i));
		put_text(writer, "compatible", "virtio,mmio");
		put_range(writer, BOOT_VIRTIO_GPA(i), BOOT_VIRTIO_BYTES);
		put_interrupt(writer, GIC_SPI, boot_virtio_irq(i));
		put(writer, "dma-coherent", NULL, 0);
		end(writer);
	}
}

bool device_tree_write(void *to, const struct memory *memory, const struct boot_config *config,
                       const struct boot_range *initrd, GError **error)
{
	struct writer writer = {.tree = to};

	note(&writer, fdt_create(to, DEVICE_TREE_BYTES_MAX));
	note(&writer, fdt_finish_reservemap(to));
	begin(&writer, "%s", "");
	put_text(&writer, "compatible", "linux,dummy-virt");
	put_text(&writer, "model", "vprof");
	put_u32(&writer, "#address-cells", 2);
	put_u32(&writer, "#size-cells", 2);
	put_u32(&writer, "interrupt-parent", PHANDLE_GIC);
	write_chosen(&writer, config, initrd);
	write_memory(&writer, memory);
	write_cpus(&writer, config->vcpus);
	write_gic(&writer, config->vcpus);
	write_timer(&writer);
	if (config->pmu)
		write_pmu(&writer);
	write_uarts(&writer, config->uart);
	write_devices(&writer, config->n_virtio);
	end(&writer);
	note(&writer, fdt_finish(to));
	if (writer.failed != 0)
		g_set_error(error, BOOT_ERROR, BOOT_ERROR_RANGE, "cannot describe the machine in a device tree: %s",
		            fdt_strerror(writer.failed));
	return writer.failed == 0;
}
