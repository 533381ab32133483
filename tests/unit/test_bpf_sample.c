// SPDX-License-Identifier: BSD-2-Clause
/* What the route bpf makes of the BPF program's records, on processors that this machine has not, too. */
#include <check.h>
#include <string.h>

#include "attach/bpf/guest_sample.h"
#include "attach/bpf_sample.h"
#include "lib/symbol/x86/cfi_x86.h"
#include "linux/os_linux.h"
#include "run_suite.h"

#define KERNEL_RIP UINT64_C(0xffffffff81000010)
#define KERNEL_STACK UINT64_C(0xffffc90000003f00)
#define USER_RIP UINT64_C(0x401000)
#define USER_STACK UINT64_C(0x7ffff000)
#define HOST_RIP UINT64_C(0xffffffff81abcdef)

/* The program's record in the making. */
static struct {
	struct guest_sample sample;
	uint8_t memory[16384];
} raw;
static struct record_sample record;
static struct counter_sample sample;
static struct snapshot snapshot;
static bool has_kernel;

/* The guest has gone on: its memory must not be read. */
static bool no_memory(struct guest *guest G_GNUC_UNUSED, gpa_t from G_GNUC_UNUSED, void *to G_GNUC_UNUSED,
                      size_t bytes G_GNUC_UNUSED)
{
	ck_abort_msg("guest memory was read after the sample");
	return false;
}

static void setup(void)
{
	memset(&raw, 0, sizeof(raw));
	raw.sample = (struct guest_sample){.period = 1001001, .event = 1};
	record = (struct record_sample){.time_ns = 42, .ip = HOST_RIP, .misc = PERF_RECORD_MISC_KERNEL, .raw = &raw};
	sample = (struct counter_sample){.vcpu = 1};
	has_kernel = true;
}

static void span_put(uint64_t gva, const void *data, size_t bytes)
{
	const struct guest_sample_span span = {gva, bytes};
	uint8_t *at = raw.memory + raw.sample.memory_bytes;

	memcpy(at, &span, sizeof(span));
	memcpy(at + sizeof(span), data, bytes);
	raw.sample.memory_bytes += (unsigned)(sizeof(span) + bytes);
}

static void frame_put(uint64_t at, uint64_t bp, uint64_t ip)
{
	const uint64_t frame[] = {bp, ip};

	span_put(at, frame, sizeof(frame));
}

static bool decode(void)
{
	record.raw_bytes = (uint32_t)(sizeof(raw.sample) + raw.sample.memory_bytes);
	return bpf_sample_decode(&record, has_kernel, &sample, &snapshot);
}

static void expect_chain_of(const struct user_code *code, const uint64_t *words, unsigned n, enum unwind_end why)
{
	static const struct guest_ops ops = {.memory_read = no_memory};
	const struct unwind_config config = {
		.system = &linux_unwinding, .depth = UNWIND_DEPTH_DEFAULT, .user = true, .code = code};
	struct guest guest = {.ops = &ops};
	uint64_t chain[UNWIND_CHAIN_MAX];
	enum unwind_end end;

	ck_assert_uint_eq(unwind(&config, &guest, &sample.regs, sample.snapshot, chain, &end), n);
	for (unsigned i = 0; i < n; i++)
		ck_assert_uint_eq(chain[i], words[i]);
	ck_assert_int_eq(end, why);
}

static void expect_chain(const uint64_t *words, unsigned n, enum unwind_end why)
{
	expect_chain_of(NULL, words, n, why);
}

START_TEST(user_code_with_its_frames)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER_RIP, USER_RIP + 1, USER_RIP + 2};

	record.ip = USER_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_USER;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_HAS_RSP | GUEST_SAMPLE_CR3 | GUEST_SAMPLE_LA57;
	raw.sample.regs[GUEST_SAMPLE_RBP] = USER_STACK;
	raw.sample.regs[GUEST_SAMPLE_RSP] = USER_STACK - 32;
	raw.sample.cr3 = 0x1000;
	raw.sample.task = KERNEL_STACK + 0x10000;
	frame_put(USER_STACK, USER_STACK + 64, USER_RIP + 1);
	frame_put(USER_STACK + 64, USER_STACK + 65, USER_RIP + 2);
	ck_assert(decode());
	ck_assert(sample.in_guest);
	ck_assert_uint_eq(sample.vcpu, 1);
	ck_assert_uint_eq(sample.time_ns, 42);
	ck_assert_uint_eq(sample.overflow.event, 1);
	ck_assert_uint_eq(sample.overflow.period, 1001001);
	ck_assert_uint_eq(sample.regs.cpl, 3);
	ck_assert_uint_eq(sample.regs.rsp, USER_STACK - 32);
	ck_assert_uint_eq(sample.regs.cr3, 0x1000);
	ck_assert_uint_eq(sample.task, KERNEL_STACK + 0x10000);
	ck_assert(sample.regs.la57 && !sample.regs.real_mode);
	expect_chain(want, G_N_ELEMENTS(want), UNWIND_BAD_FRAME);
	raw.sample.flags |= GUEST_SAMPLE_REAL_MODE;
	ck_assert(decode());
	ck_assert(sample.regs.real_mode);
	ck_assert_uint_eq(sample.regs.cpl, 0);
}
END_TEST

/* Frames of 32 bytes without frame pointers; the last function has no caller. rbx tells where the second one's is. */
START_TEST(user_code_with_its_stack)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_USER, USER_RIP, USER_RIP + 0x11, USER_RIP + 0x21};
	static const struct {
		char magic[4];
		uint32_t n_rows, n_cells, n_index;
		struct cfi_row rows[3];
		struct cfi_cell cells[6];
	} block = {{'C', 'F', 'I', '1'},
	           3,
	           6,
	           0,
	           {{0, 0}, {0x10, 2}, {0x20, 4}},
	           {{CFI_CFA, CFI_VALUE, CFI_RSP, 2, 32, 0},
	            {CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0},
	            {CFI_CFA, CFI_VALUE, CFI_RBX, 2, 64, 0},
	            {CFI_RIP, CFI_MEMORY, CFI_CFA, 0, -8, 0},
	            {CFI_CFA, CFI_VALUE, CFI_RSP, 2, 8, 0},
	            {CFI_RIP, CFI_UNDEFINED, CFI_CFA, 0, 0, 0}}};
	struct cfi_table table;
	struct user_code code = {.n = 1, .ranges = {{USER_RIP, USER_RIP + 0x1000, 0, &table}}};
	const uint64_t stack[8] = {[3] = USER_RIP + 0x11, [7] = USER_RIP + 0x21};

	ck_assert(cfi_table_open(&block, sizeof(block), &table));
	record.ip = USER_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_USER;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_HAS_RSP | GUEST_SAMPLE_CR3 | GUEST_SAMPLE_USER_STACK;
	raw.sample.regs[GUEST_SAMPLE_RSP] = USER_STACK;
	raw.sample.regs[GUEST_SAMPLE_RBX] = USER_STACK;
	span_put(USER_STACK, stack, sizeof(stack));
	ck_assert(decode());
	ck_assert(sample.user_stack);
	expect_chain_of(&code, want, G_N_ELEMENTS(want), UNWIND_END_OF_STACK);
	raw.sample.memory_bytes = 0;
	span_put(USER_STACK, stack, 32);
	ck_assert(decode());
	expect_chain_of(&code, want, 3, UNWIND_UNREADABLE);
}
END_TEST

/* A saved pt_regs leads on into user space; what it lies in is cut in two by a page's end. */
START_TEST(kernel_code_that_user_space_called)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL_RIP, KERNEL_RIP + 1,
	                                (uint64_t)PERF_CONTEXT_USER,   USER_RIP,   USER_RIP + 1};
	uint64_t pt_regs[21] = {[4] = USER_STACK, [16] = USER_RIP, [17] = 0x33, [19] = USER_STACK - 16};

	record.ip = KERNEL_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_KERNEL;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM;
	raw.sample.regs[GUEST_SAMPLE_RBP] = KERNEL_STACK;
	frame_put(KERNEL_STACK, (KERNEL_STACK + 0xc0) | 1, KERNEL_RIP + 1);
	span_put(KERNEL_STACK + 0xc0, pt_regs, 64);
	span_put(KERNEL_STACK + 0x100, pt_regs + 8, sizeof(pt_regs) - 64);
	frame_put(USER_STACK, USER_STACK + 1, USER_RIP + 1);
	ck_assert(decode());
	expect_chain(want, G_N_ELEMENTS(want), UNWIND_BAD_FRAME);
}
END_TEST

/* VMX: KVM has read neither rip nor rsp of the processor yet; perf had it read rip for its own sample. */
START_TEST(registers_that_kvm_has_not_read)
{
	static const uint64_t want[] = {(uint64_t)PERF_CONTEXT_KERNEL, KERNEL_RIP};

	record.ip = KERNEL_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_KERNEL;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM;
	raw.sample.regs[GUEST_SAMPLE_RIP] = 0xdead;
	raw.sample.regs[GUEST_SAMPLE_RSP] = 0xdead;
	raw.sample.regs[GUEST_SAMPLE_RBP] = KERNEL_STACK;
	ck_assert(decode());
	ck_assert(sample.in_guest);
	ck_assert(sample.regs.valid);
	ck_assert_uint_eq(sample.regs.rip, KERNEL_RIP);
	ck_assert_uint_eq(sample.regs.rsp, 0);
	ck_assert_uint_eq(sample.regs.cpl, 0);
	expect_chain(want, G_N_ELEMENTS(want), UNWIND_UNREADABLE);
}
END_TEST

/* A host that emulates the guest's kernel: the host's kernel is what runs, and the guest is in KVM's registers. */
START_TEST(emulated_kernel_code)
{
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_EMULATED | GUEST_SAMPLE_HAS_RIP;
	raw.sample.regs[GUEST_SAMPLE_RIP] = KERNEL_RIP;
	ck_assert(decode());
	ck_assert(sample.in_guest);
	ck_assert_uint_eq(sample.regs.rip, KERNEL_RIP);
	ck_assert_uint_eq(sample.regs.cpl, 0);
}
END_TEST

/* The same vCPU, of which QEMU handles an exit; and a thread that is not in KVM_RUN at all. */
START_TEST(work_of_the_host)
{
	record.ip = USER_RIP;
	record.misc = PERF_RECORD_MISC_USER;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_EMULATED | GUEST_SAMPLE_HAS_RIP;
	ck_assert(decode());
	ck_assert(!sample.in_guest);
	ck_assert(sample.regs.valid);
	record.misc = PERF_RECORD_MISC_KERNEL;
	raw.sample.flags = 0;
	ck_assert(decode());
	ck_assert(!sample.in_guest);
	ck_assert(!sample.regs.valid);
}
END_TEST

/* Before Linux 6.9, perf's mode is that of an earlier moment. SVM: the VMCB has the mode. */
START_TEST(the_mode_is_the_vmcbs)
{
	record.ip = KERNEL_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_USER;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_HAS_CPL;
	ck_assert(decode());
	ck_assert(sample.in_guest);
	ck_assert_uint_eq(sample.regs.cpl, 0);
	record.ip = USER_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_KERNEL;
	raw.sample.cpl = 3;
	ck_assert(decode());
	ck_assert_uint_eq(sample.regs.cpl, 3);
}
END_TEST

/* VMX and the route perf: the address has it, of a guest of 64 bits. */
START_TEST(the_mode_is_the_addresses)
{
	static const struct {
		uint64_t ip;
		bool has_kernel;
		uint16_t misc;
		uint8_t cpl;
	} cases[] = {
		{KERNEL_RIP, true, PERF_RECORD_MISC_GUEST_USER, 0},
		{KERNEL_RIP, false, PERF_RECORD_MISC_GUEST_USER, 0},
		{USER_RIP, true, PERF_RECORD_MISC_GUEST_KERNEL, 3},
		{USER_RIP, false, PERF_RECORD_MISC_GUEST_KERNEL, 0}, /* firmware, or a guest of 32 bits */
		{USER_RIP, false, PERF_RECORD_MISC_GUEST_USER, 3},
		{UINT64_C(0x7ff612340000), false, PERF_RECORD_MISC_GUEST_KERNEL, 3},
	};

	raw.sample.flags = GUEST_SAMPLE_IN_KVM;
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		record.ip = cases[i].ip;
		record.misc = cases[i].misc;
		has_kernel = cases[i].has_kernel;
		ck_assert(decode());
		ck_assert(sample.in_guest);
		ck_assert_uint_eq(sample.regs.cpl, cases[i].cpl);
	}
}
END_TEST

/* The vCPU's registers are those of another guest, and perf takes them for this one's. */
START_TEST(a_guest_of_the_guests)
{
	record.ip = USER_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_USER;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_NESTED;
	raw.sample.cr3 = 0x1000;
	raw.sample.task = KERNEL_STACK;
	ck_assert(decode());
	ck_assert(sample.nested);
	ck_assert(!sample.in_guest);
	ck_assert(!sample.regs.valid);
	ck_assert_uint_eq(sample.regs.rip, 0);
	ck_assert_uint_eq(sample.regs.cr3, 0x1000);
	ck_assert_uint_eq(sample.task, KERNEL_STACK);
	/* KVM handles an exit of it. */
	record.ip = HOST_RIP;
	record.misc = PERF_RECORD_MISC_KERNEL;
	sample.nested = false;
	ck_assert(decode());
	ck_assert(!sample.nested);
	ck_assert(!sample.in_guest);
	ck_assert(!sample.regs.valid);
}
END_TEST

START_TEST(records_that_are_not_the_programs)
{
	ck_assert(decode());
	record.raw_bytes--;
	ck_assert(!bpf_sample_decode(&record, has_kernel, &sample, &snapshot));
	frame_put(KERNEL_STACK, 0, KERNEL_RIP);
	ck_assert(decode());
	record.raw_bytes--;
	ck_assert(!bpf_sample_decode(&record, has_kernel, &sample, &snapshot));
	raw.sample.memory_bytes -= 8;
	ck_assert(!decode());
	raw.sample.memory_bytes = sizeof(struct guest_sample_span) - 1;
	ck_assert(!decode());
	raw.sample.memory_bytes = 0;
	for (unsigned i = 0; i < SNAPSHOT_SPANS_MAX; i++)
		frame_put(KERNEL_STACK + i, 0, KERNEL_RIP);
	ck_assert(decode());
	frame_put(KERNEL_STACK, 0, KERNEL_RIP);
	ck_assert(!decode());
	record.raw = NULL;
	ck_assert(!decode());
}
END_TEST

START_TEST(a_snapshot_has_what_it_has)
{
	static const uint8_t bytes[] = {1, 2, 3, 4, 5, 6, 7, 8};
	struct snapshot two = {0};
	uint8_t out[8];

	ck_assert(snapshot_add(&two, (gva_t){0x1004}, bytes + 4, 4));
	ck_assert(snapshot_add(&two, (gva_t){0x1000}, bytes, 4));
	ck_assert(snapshot_read(&two, (gva_t){0x1000}, out, 8));
	ck_assert_mem_eq(out, bytes, 8);
	ck_assert(snapshot_read(&two, (gva_t){0x1003}, out, 2));
	ck_assert_mem_eq(out, bytes + 3, 2);
	ck_assert(!snapshot_read(&two, (gva_t){0x1001}, out, 8));
	ck_assert(!snapshot_read(&two, (gva_t){0xfff}, out, 2));
	ck_assert(snapshot_add(&two, (gva_t){UINT64_MAX - 3}, bytes, 4));
	ck_assert(!snapshot_read(&two, (gva_t){UINT64_MAX - 3}, out, 8));
}
END_TEST

/* VMX: page tables, the per-CPU area and the stacks come from the guest's memory; the stack pointer is to be found. */
START_TEST(registers_from_memory)
{
	struct unwind_stacks stacks;

	record.ip = KERNEL_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_KERNEL;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM;
	raw.sample.regs[GUEST_SAMPLE_RSP] = 0xdead;
	raw.sample.cr3 = 0xdead000;
	raw.sample.memory_cr3 = 0x1000;
	raw.sample.memory_area = KERNEL_STACK + 0x20000;
	raw.sample.task = KERNEL_STACK + 0x10000;
	raw.sample.task_stack_end = KERNEL_STACK + 0x100;
	raw.sample.interrupt_stack_end = KERNEL_STACK + 0x8100;
	raw.sample.entry_stack_end = KERNEL_STACK + 0x9000;
	ck_assert(decode());
	bpf_sample_by_memory(&record, &sample, &stacks);
	ck_assert_uint_eq(sample.regs.rip, KERNEL_RIP);
	ck_assert_uint_eq(sample.regs.rsp, 0);
	ck_assert_uint_eq(sample.regs.cr3, 0x1000);
	ck_assert_uint_eq(sample.area, KERNEL_STACK + 0x20000);
	ck_assert_uint_eq(sample.task, KERNEL_STACK + 0x10000);
	ck_assert_ptr_eq(sample.stacks, &stacks);
	ck_assert_uint_eq(stacks.task, KERNEL_STACK + 0x100);
	ck_assert_uint_eq(stacks.interrupt, KERNEL_STACK + 0x8100);
	ck_assert_uint_eq(stacks.entry, KERNEL_STACK + 0x9000);
	bpf_sample_by_memory(&record, &sample, NULL);
	ck_assert_ptr_null(sample.stacks);
}
END_TEST

static bool comes_from_kernel(unsigned flags, enum guest_sample_reg number, uint64_t value)
{
	struct unwind_stacks stacks;

	record.ip = KERNEL_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_KERNEL;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | flags;
	memset(raw.sample.regs, 0, sizeof(raw.sample.regs));
	raw.sample.regs[number] = value;
	ck_assert(decode());
	bpf_sample_by_memory(&record, &sample, &stacks);
	return stacks.in_kernel;
}

/* Where an entry to the kernel that has just begun comes from. */
START_TEST(addresses_of_the_kernel_in_registers)
{
	ck_assert(!comes_from_kernel(0, GUEST_SAMPLE_RDI, 0x7fff12345678));
	ck_assert(!comes_from_kernel(0, GUEST_SAMPLE_RDI, UINT64_MAX));
	ck_assert(!comes_from_kernel(0, GUEST_SAMPLE_RDI, (uint64_t)-4096));
	ck_assert(!comes_from_kernel(0, GUEST_SAMPLE_RDI, UINT64_C(0xff10000000000000)));
	ck_assert(comes_from_kernel(0, GUEST_SAMPLE_RDI, UINT64_C(0xffff888000001000)));
	ck_assert(comes_from_kernel(0, GUEST_SAMPLE_R13, UINT64_C(0xffffc90000001000)));
	ck_assert(comes_from_kernel(GUEST_SAMPLE_LA57, GUEST_SAMPLE_RDI, UINT64_C(0xff11000000001000)));
	/* KVM has an old one of RSP. */
	ck_assert(!comes_from_kernel(0, GUEST_SAMPLE_RSP, UINT64_C(0xffff888000001000)));
	ck_assert(comes_from_kernel(GUEST_SAMPLE_KERNEL_TASK, GUEST_SAMPLE_RDI, 0));
}
END_TEST

START_TEST(user_space_without_its_stack)
{
	struct unwind_stacks stacks;

	raw.sample.flags = GUEST_SAMPLE_IN_KVM;
	raw.sample.memory_area = KERNEL_STACK + 0x20000;
	record.ip = USER_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_USER;
	ck_assert(decode());
	bpf_sample_by_memory(&record, &sample, &stacks);
	ck_assert_ptr_null(sample.stacks);
	ck_assert_uint_eq(sample.area, KERNEL_STACK + 0x20000);
}
END_TEST

/* VMX: user space's stack pointer is searched for near where it was when the kernel was entered last. */
START_TEST(user_code_without_its_stack_pointer)
{
	struct unwind_stacks stacks;

	record.ip = USER_RIP;
	record.misc = PERF_RECORD_MISC_GUEST_USER;
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_USER_STACK;
	raw.sample.regs[GUEST_SAMPLE_RBX] = 7;
	raw.sample.user_sp = USER_STACK;
	ck_assert(decode());
	bpf_sample_by_memory(&record, &sample, &stacks);
	ck_assert_ptr_eq(sample.stacks, &stacks);
	ck_assert_uint_eq(stacks.user, USER_STACK);
	ck_assert_uint_eq(stacks.task, 0);
	ck_assert(sample.regs.all);
	ck_assert_uint_eq(sample.regs.rbx, 7);
	ck_assert_uint_eq(sample.regs.rsp, 0);
	/* Without a copy of its stack, there is nothing to search in. */
	raw.sample.flags = GUEST_SAMPLE_IN_KVM;
	ck_assert(decode());
	bpf_sample_by_memory(&record, &sample, &stacks);
	ck_assert_ptr_null(sample.stacks);
	raw.sample.flags = GUEST_SAMPLE_IN_KVM | GUEST_SAMPLE_USER_STACK;
	raw.sample.user_sp = 0;
	ck_assert(decode());
	bpf_sample_by_memory(&record, &sample, &stacks);
	ck_assert_ptr_null(sample.stacks);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("bpf_sample");
	TCase *tc = tcase_create("sample");

	tcase_add_checked_fixture(tc, setup, NULL);
	tcase_add_test(tc, user_code_with_its_frames);
	tcase_add_test(tc, user_code_with_its_stack);
	tcase_add_test(tc, kernel_code_that_user_space_called);
	tcase_add_test(tc, registers_that_kvm_has_not_read);
	tcase_add_test(tc, registers_from_memory);
	tcase_add_test(tc, addresses_of_the_kernel_in_registers);
	tcase_add_test(tc, user_space_without_its_stack);
	tcase_add_test(tc, emulated_kernel_code);
	tcase_add_test(tc, work_of_the_host);
	tcase_add_test(tc, the_mode_is_the_vmcbs);
	tcase_add_test(tc, the_mode_is_the_addresses);
	tcase_add_test(tc, a_guest_of_the_guests);
	tcase_add_test(tc, records_that_are_not_the_programs);
	tcase_add_test(tc, a_snapshot_has_what_it_has);
	tcase_add_test(tc, user_code_without_its_stack_pointer);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
