// SPDX-License-Identifier: BSD-2-Clause
#include "demo/machine.h"

#include "processor.h"

/* The VMM's device tree has them at /exit and /phase. */
#define EXIT_GPA 0xd0002000
#define PHASE_GPA 0xd0003000

/* PSCI (Arm DEN 0022), called by HVC. */
#define PSCI_CPU_ON 0xc4000003
#define PSCI_SYSTEM_OFF 0x84000008

/* The flattened device tree (Devicetree Specification 0.4, chapter 5); its numbers are big-endian. */
#define FDT_MAGIC 0xd00dfeedu
enum fdt_token { FDT_BEGIN_NODE = 1, FDT_END_NODE, FDT_PROP, FDT_NOP, FDT_END = 9 };
struct fdt_header {
	uint32_t magic, total_bytes, structure_offset, strings_offset;
};

extern uint64_t device_tree_gpa; /* start.S */
extern const uint8_t secondary_start[];

/* A property, as tree_walk finds it. */
struct property {
	const char *node, *name; /* the node's own name: "cpu@1" */
	const void *value;
	uint32_t bytes;
};

static uint32_t big_endian(const uint32_t *at)
{
	return __builtin_bswap32(*at);
}

static uint32_t text_bytes(const char *text)
{
	uint32_t n = 0;

	while (text[n])
		n++;
	return n + 1;
}

static const uint32_t *words_after(const void *from, uint32_t bytes)
{
	return (const uint32_t *)((const uint8_t *)from + ((bytes + 3) & ~3u));
}

/* Calls fn for all properties. */
static void tree_walk(void (*fn)(const struct property *property, void *data), void *data)
{
	const struct fdt_header *header = device_tree_gpa ? physical(device_tree_gpa) : 0;
	struct property property = {.node = ""};

	if (!header || big_endian(&header->magic) != FDT_MAGIC)
		return;
	const char *strings = (const char *)header + big_endian(&header->strings_offset);
	const uint32_t *at = (const uint32_t *)((const uint8_t *)header + big_endian(&header->structure_offset));
	while (big_endian(at) != FDT_END) {
		switch (big_endian(at++)) {
		case FDT_BEGIN_NODE:
			property.node = (const char *)at;
			at = words_after(at, text_bytes(property.node));
			break;
		case FDT_PROP:
			property.bytes = big_endian(at);
			property.name = strings + big_endian(at + 1);
			property.value = at + 2;
			fn(&property, data);
			at = words_after(property.value, property.bytes);
			break;
		default:
			break;
		}
	}
}

static void note_command_line(const struct property *property, void *data)
{
	const char **line = data;

	if (text_starts_with(property->node, "chosen") && text_starts_with(property->name, "bootargs"))
		*line = property->value;
}

const char *machine_command_line(void)
{
	const char *line = 0;

	tree_walk(note_command_line, &line);
	return line;
}

static void note_vcpu(const struct property *property, void *data)
{
	struct machine_vcpus *found = data;

	if (text_starts_with(property->node, "cpu@") && text_starts_with(property->name, "reg") && found->n < VCPUS_MAX)
		found->ids[found->n++] = big_endian(property->value);
}

void machine_vcpus_find(struct machine_vcpus *found)
{
	found->n = 0;
	tree_walk(note_vcpu, found);
	if (found->n == 0)
		found->ids[found->n++] = 0;
}

static void psci(uint64_t function, uint64_t processor, uint64_t entry, uint64_t argument)
{
	register uint64_t x0 __asm__("x0") = function;
	register uint64_t x1 __asm__("x1") = processor;
	register uint64_t x2 __asm__("x2") = entry;
	register uint64_t x3 __asm__("x3") = argument;

	/* SMC Calling Convention (Arm DEN 0028), 2.6: what a call may change. */
	__asm__ volatile("hvc #0"
	                 : "+r"(x0), "+r"(x1), "+r"(x2), "+r"(x3)
	                 :
	                 : "x4", "x5", "x6", "x7", "x8", "x9", "x10", "x11", "x12", "x13", "x14", "x15", "x16", "x17",
	                   "memory");
}

/* The first in the tree is the calling one. */
void machine_vcpus_start(const struct machine_vcpus *found)
{
	for (unsigned i = 1; i < found->n; i++)
		psci(PSCI_CPU_ON, found->ids[i], (uint64_t)secondary_start - KERNEL_BASE, i);
}

uint64_t machine_clock_hz(void)
{
	uint64_t hz;
	__asm__("mrs %0, cntfrq_el0" : "=r"(hz));
	return hz;
}

/* All are masked since the start. */
void machine_interrupts_mask(void)
{
}

void machine_phase(uint8_t phase)
{
	*(volatile uint8_t *)physical(PHASE_GPA) = phase;
}

void machine_power_off(void)
{
	psci(PSCI_SYSTEM_OFF, 0, 0, 0);
	halt();
}

void machine_fail(void)
{
	*(volatile uint32_t *)physical(EXIT_GPA) = 1;
	halt();
}
