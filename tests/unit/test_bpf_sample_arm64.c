// SPDX-License-Identifier: BSD-2-Clause
/* What the route bpf makes of the BPF program's records on hosts of arm64. */
#include <check.h>
#include <string.h>

#include "attach/bpf/guest_sample.h"
#include "attach/bpf_sample.h"
#include "run_suite.h"

#define KERNEL_PC UINT64_C(0xffff800080f2b948)
#define KERNEL_FP UINT64_C(0xffff800082dabe00)
#define CALLER UINT64_C(0xffff80008011463c)
#define USER_PC UINT64_C(0x4b6f24)
#define USER_SP UINT64_C(0xfffff0001230)

/* The program's record in the making. */
static struct {
	struct guest_sample sample;
	uint8_t memory[256];
} raw;
static struct record_sample record;
static struct counter_sample sample;
static struct snapshot snapshot;

static void setup(void)
{
	memset(&raw, 0, sizeof(raw));
	raw.sample = (struct guest_sample){
		.period = 1000,
		.event = 1,
		.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_MMU,
		.ttbr0 = 0x41000000,
		.ttbr1 = 0x42000000,
		.tcr = 0x1234,
		.tpidr = 0xffff00000abc0000,
		.task = 0xffff000001230000,
	};
	record = (struct record_sample){.time_ns = 42, .raw = &raw};
	sample = (struct counter_sample){.vcpu = 1};
}

static void registers_put(uint64_t pc, uint64_t pstate)
{
	raw.sample.regs[GUEST_SAMPLE_PC] = pc;
	raw.sample.regs[GUEST_SAMPLE_PSTATE] = pstate;
	raw.sample.regs[GUEST_SAMPLE_SP_EL0] = USER_SP;
	raw.sample.regs[GUEST_SAMPLE_X29] = KERNEL_FP;
	raw.sample.regs[GUEST_SAMPLE_X30] = CALLER;
}

static bool decode(uint16_t misc, uint64_t ip)
{
	record.misc = misc;
	record.ip = ip;
	record.raw_bytes = (uint32_t)(sizeof(raw.sample) + raw.sample.memory_bytes);
	return bpf_sample_decode(&record, true, &sample, &snapshot);
}

/* There is no stack pointer of the kernel's, and SP_EL0 is its task's. */
START_TEST(a_kernel_has_its_frame_and_no_stack_pointer)
{
	registers_put(KERNEL_PC, 0x60400005);
	ck_assert(decode(PERF_RECORD_MISC_GUEST_KERNEL, KERNEL_PC));
	ck_assert(sample.in_guest && sample.regs.valid && sample.regs.processor == GUEST_ARM64);
	ck_assert_uint_eq(sample.regs.arm64.pc, KERNEL_PC);
	ck_assert_uint_eq(sample.regs.arm64.fp, KERNEL_FP);
	ck_assert_uint_eq(sample.regs.arm64.lr, CALLER);
	ck_assert_uint_eq(sample.regs.arm64.sp, 0);
	ck_assert_uint_eq(sample.regs.arm64.el, 1);
	ck_assert_uint_eq(sample.regs.arm64.tpidr, raw.sample.tpidr);
	ck_assert_uint_eq(sample.regs.arm64.tables.ttbr1, 0x42000000);
	ck_assert(sample.regs.arm64.tables.mmu);
	ck_assert_uint_eq(sample.task, raw.sample.task);
	ck_assert_uint_eq(sample.overflow.event, 1);
}
END_TEST

START_TEST(user_space_has_a_stack_pointer)
{
	registers_put(USER_PC, 0x20000000);
	raw.sample.flags |= GUEST_SAMPLE_USER_STACK;
	ck_assert(decode(PERF_RECORD_MISC_GUEST_USER, USER_PC));
	ck_assert_uint_eq(sample.regs.arm64.el, 0);
	ck_assert_uint_eq(sample.regs.arm64.sp, USER_SP);
	ck_assert_uint_eq(sample.regs.arm64.tables.ttbr0, 0x41000000);
	ck_assert(sample.user_stack);
}
END_TEST

/* It stands where it left. */
START_TEST(outside_the_guest_it_has_the_last_registers)
{
	registers_put(USER_PC, 0);
	ck_assert(decode(PERF_RECORD_MISC_KERNEL, 0xffff800080000000));
	ck_assert(!sample.in_guest && sample.regs.valid);
	ck_assert_uint_eq(sample.regs.arm64.pc, USER_PC);
	raw.sample = (struct guest_sample){.period = 1000};
	ck_assert(decode(PERF_RECORD_MISC_KERNEL, 0xffff800080000000));
	ck_assert(!sample.regs.valid);
}
END_TEST

START_TEST(spans_are_checked)
{
	struct guest_sample_span span = {KERNEL_FP, 16};
	const uint64_t frame[] = {0, CALLER};
	uint64_t word;

	registers_put(KERNEL_PC, 5);
	memcpy(raw.memory, &span, sizeof(span));
	memcpy(raw.memory + sizeof(span), frame, sizeof(frame));
	raw.sample.memory_bytes = sizeof(span) + sizeof(frame);
	ck_assert(decode(PERF_RECORD_MISC_GUEST_KERNEL, KERNEL_PC));
	ck_assert(snapshot_read(sample.snapshot, (gva_t){KERNEL_FP + 8}, &word, sizeof(word)));
	ck_assert_uint_eq(word, CALLER);
	span.bytes = 17;
	memcpy(raw.memory, &span, sizeof(span));
	ck_assert(!decode(PERF_RECORD_MISC_GUEST_KERNEL, KERNEL_PC));
	raw.sample.memory_bytes = sizeof(span) - 1;
	ck_assert(!decode(PERF_RECORD_MISC_GUEST_KERNEL, KERNEL_PC));
	record.raw_bytes = sizeof(raw.sample) - 1;
	ck_assert(!bpf_sample_decode(&record, true, &sample, &snapshot));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bpf_sample_arm64");
	TCase *tests = tcase_create("samples");

	tcase_add_checked_fixture(tests, setup, NULL);
	tcase_add_test(tests, a_kernel_has_its_frame_and_no_stack_pointer);
	tcase_add_test(tests, user_space_has_a_stack_pointer);
	tcase_add_test(tests, outside_the_guest_it_has_the_last_registers);
	tcase_add_test(tests, spans_are_checked);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
