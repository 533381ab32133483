// SPDX-License-Identifier: BSD-2-Clause
/*
 * Instructions behind an INT3, compared with the processor: each is executed by both, with the same registers, flags
 * and memory, many times with others.
 */
#include <check.h>
#include <glib.h>
#include <string.h>
#include <sys/mman.h>

#include "kvm/vcpu/x86/patch_execute.h"
#include "lib/code/x86/instruction.h"
#include "run_suite.h"

#define ROUNDS 400
#define MEMORY_BYTES 4096u
#define STACK_AT 2048u
#define ARITHMETIC_FLAGS UINT64_C(0x8d5)
#define FLAG_AF UINT64_C(0x10)
#define FLAG_ALWAYS UINT64_C(0x2)
#define RSP 4

/* In the order of their numbers, then the flags: what native_run loads and leaves. */
struct native {
	uint64_t registers[16], flags;
};

/* Behind the instruction, the code jumps to native_back. */
void native_run(struct native *state, const void *code);
extern const char native_back[];

__asm__(".text\n"
        ".globl native_run, native_back\n"
        ".type native_run, @function\n"
        "native_run:\n"
        "	endbr64\n"
        "	push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
        "	mov %rsp, native_stack(%rip)\n"
        "	mov %rdi, native_state(%rip)\n"
        "	mov %rsi, native_code(%rip)\n"
        "	pushq 128(%rdi)\n"
        "	popfq\n"
        "	mov 0(%rdi), %rax; mov 8(%rdi), %rcx; mov 16(%rdi), %rdx; mov 24(%rdi), %rbx\n"
        "	mov 32(%rdi), %rsp; mov 40(%rdi), %rbp; mov 48(%rdi), %rsi\n"
        "	mov 64(%rdi), %r8; mov 72(%rdi), %r9; mov 80(%rdi), %r10; mov 88(%rdi), %r11\n"
        "	mov 96(%rdi), %r12; mov 104(%rdi), %r13; mov 112(%rdi), %r14; mov 120(%rdi), %r15\n"
        "	mov 56(%rdi), %rdi\n"
        "	jmp *native_code(%rip)\n"
        "native_back:\n"
        "	mov %rdi, native_rdi(%rip)\n"
        "	mov native_state(%rip), %rdi\n"
        "	mov %rax, 0(%rdi); mov %rcx, 8(%rdi); mov %rdx, 16(%rdi); mov %rbx, 24(%rdi)\n"
        "	mov %rsp, 32(%rdi); mov %rbp, 40(%rdi); mov %rsi, 48(%rdi)\n"
        "	mov %r8, 64(%rdi); mov %r9, 72(%rdi); mov %r10, 80(%rdi); mov %r11, 88(%rdi)\n"
        "	mov %r12, 96(%rdi); mov %r13, 104(%rdi); mov %r14, 112(%rdi); mov %r15, 120(%rdi)\n"
        "	mov native_rdi(%rip), %rax\n"
        "	mov %rax, 56(%rdi)\n"
        "	mov native_stack(%rip), %rsp\n"
        "	pushfq\n"
        "	popq 128(%rdi)\n"
        "	cld\n"
        "	pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
        "	ret\n"
        ".size native_run, . - native_run\n"
        ".local native_stack, native_state, native_code, native_rdi\n"
        ".comm native_stack, 8, 8\n"
        ".comm native_state, 8, 8\n"
        ".comm native_code, 8, 8\n"
        ".comm native_rdi, 8, 8\n"
        ".section .note.GNU-stack, \"\", @progbits\n"
        ".text\n");

#define CODE(bytes) (const uint8_t *)bytes, sizeof(bytes) - 1

/* `masks`: AF, where the processor's manual leaves it open. rbx, r12 and rsp are addresses of memory. */
struct instruction {
	const char *what;
	const uint8_t *code;
	size_t n;
	uint64_t masks;
};
static const struct instruction codes[] = {
	{"nop", CODE("\x90"), 0},
	{"nop of 5 bytes", CODE("\x0f\x1f\x44\x00\x00"), 0},
	{"nop of 9 bytes", CODE("\x66\x0f\x1f\x84\x00\x00\x00\x00\x00"), 0},
	{"endbr64", CODE("\xf3\x0f\x1e\xfa"), 0},
	{"push %rbp", CODE("\x55"), 0},
	{"push %rsp", CODE("\x54"), 0},
	{"push %r15", CODE("\x41\x57"), 0},
	{"mov %rsp, %rbp", CODE("\x48\x89\xe5"), 0},
	{"mov %rdi, %r14", CODE("\x49\x89\xfe"), 0},
	{"mov %edx, %r13d", CODE("\x41\x89\xd5"), 0},
	{"mov %cx, %ax", CODE("\x66\x89\xc8"), 0},
	{"mov %ch, %al", CODE("\x88\xe8"), 0},
	{"mov $-2, %rax", CODE("\x48\xc7\xc0\xfe\xff\xff\xff"), 0},
	{"mov $0x12345678, %r9d", CODE("\x41\xb9\x78\x56\x34\x12"), 0},
	{"movabs", CODE("\x48\xb8\x01\x02\x03\x04\x05\x06\x07\xf8"), 0},
	{"mov 8(%rsp), %rdi", CODE("\x48\x8b\x7c\x24\x08"), 0},
	{"mov (%rbx), %eax", CODE("\x8b\x03"), 0},
	{"mov 0x20(%r12), %r8", CODE("\x4d\x8b\x44\x24\x20"), 0},
	{"movzbl (%rbx), %ecx", CODE("\x0f\xb6\x0b"), 0},
	{"movslq %edx, %rdx", CODE("\x48\x63\xd2"), 0},
	{"lea 8(%rax,%rbp,4), %rdx", CODE("\x48\x8d\x54\xa8\x08"), 0},
	{"lea -0x30(%rsp), %rsp", CODE("\x48\x8d\x64\x24\xd0"), 0},
	{"lea 0x10(%rip), %rsi", CODE("\x48\x8d\x35\x10\x00\x00\x00"), 0},
	{"sub $0x28, %rsp", CODE("\x48\x83\xec\x28"), 0},
	{"sub $0x118, %rsp", CODE("\x48\x81\xec\x18\x01\x00\x00"), 0},
	{"add $0x28, %rsp", CODE("\x48\x83\xc4\x28"), 0},
	{"and $-16, %rsp", CODE("\x48\x83\xe4\xf0"), FLAG_AF},
	{"add %rcx, %rax", CODE("\x48\x01\xc8"), 0},
	{"add %dl, %al", CODE("\x00\xd0"), 0},
	{"adc $5, %ecx", CODE("\x83\xd1\x05"), 0},
	{"sbb %r9, %r10", CODE("\x4d\x19\xca"), 0},
	{"sub %esi, %edi", CODE("\x29\xf7"), 0},
	{"cmp %rdx, %rax", CODE("\x48\x39\xd0"), 0},
	{"cmp $0x7f, %al", CODE("\x3c\x7f"), 0},
	{"cmp $3, 8(%rbx)", CODE("\x83\x7b\x08\x03"), 0},
	{"cmp (%rbx), %cl", CODE("\x3a\x0b"), 0},
	{"xor %eax, %eax", CODE("\x31\xc0"), FLAG_AF},
	{"xor %r8, %rcx", CODE("\x4c\x31\xc1"), FLAG_AF},
	{"or %dx, %bp", CODE("\x66\x09\xd5"), FLAG_AF},
	{"test %rdi, %rdi", CODE("\x48\x85\xff"), FLAG_AF},
	{"test %sil, %al", CODE("\x40\x84\xf0"), FLAG_AF},
	{"test $0x80, %al", CODE("\xa8\x80"), FLAG_AF},
};

/* In programs alone. */
static const struct instruction program_codes[] = {
	{"pop %rax", CODE("\x58"), 0},
	{"pop %rsp", CODE("\x5c"), 0},
	{"pop %r13", CODE("\x41\x5d"), 0},
	{"jmp to the next", CODE("\xeb\x00"), 0},
	{"jmp to the next, with 32 bits", CODE("\xe9\x00\x00\x00\x00"), 0},
	{"call the next", CODE("\xe8\x00\x00\x00\x00"), 0},
	{"mov %rax, (%rbx)", CODE("\x48\x89\x03"), 0},
	{"mov %edx, 4(%rbx)", CODE("\x89\x53\x04"), 0},
	{"mov %dx, 1(%rbx)", CODE("\x66\x89\x53\x01"), 0},
	{"mov %ch, (%rbx)", CODE("\x88\x2b"), 0},
	{"movb $7, 3(%r12)", CODE("\x41\xc6\x44\x24\x03\x07"), 0},
	{"movq $-7, -8(%rsp)", CODE("\x48\xc7\x44\x24\xf8\xf9\xff\xff\xff"), 0},
};

static uint8_t *code, *memory, *before;

static void setup(void)
{
	code = mmap(NULL, 3 * MEMORY_BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(code, MAP_FAILED);
	memory = code + MEMORY_BYTES;
	before = memory + MEMORY_BYTES;
}

static void teardown(void)
{
	munmap(code, 3 * MEMORY_BYTES);
}

static bool read_memory(void *data, uint64_t from, void *to, size_t bytes)
{
	(void)data;
	if (from - (uintptr_t)memory > MEMORY_BYTES - bytes)
		return false;
	memcpy(to, memory + (from - (uintptr_t)memory), bytes);
	return true;
}

/* `jmp *0(%rip)` behind the instruction, and the address. */
static void write_code(const uint8_t *bytes, size_t n)
{
	const uint64_t back = (uintptr_t)native_back;

	memcpy(code, bytes, n);
	memcpy(code + n, "\xff\x25\x00\x00\x00\x00", 6);
	memcpy(code + n + 6, &back, sizeof(back));
}

/* Numbers next to those where carries and signs change, and any. */
static uint64_t any_number(GRand *numbers)
{
	static const uint64_t edges[] = {0, 1, 0x7f, 0x80, 0xff, 0x7fffffff, 0x80000000, 0xffffffff, INT64_MAX};
	const uint64_t number = (uint64_t)g_rand_int(numbers) << 32 | g_rand_int(numbers);

	switch (g_rand_int_range(numbers, 0, 3)) {
	case 0:
		return edges[g_rand_int_range(numbers, 0, G_N_ELEMENTS(edges))];
	case 1:
		return -edges[g_rand_int_range(numbers, 0, G_N_ELEMENTS(edges))];
	default:
		return number;
	}
}

static void any_state(GRand *numbers, struct native *state)
{
	for (unsigned i = 0; i < MEMORY_BYTES; i++)
		memory[i] = (uint8_t)g_rand_int(numbers);
	memcpy(before, memory, MEMORY_BYTES);
	for (unsigned i = 0; i < G_N_ELEMENTS(state->registers); i++)
		state->registers[i] = any_number(numbers);
	state->registers[RSP] = (uintptr_t)memory + STACK_AT + 8 * g_rand_int(numbers) % 64;
	state->registers[3] = (uintptr_t)memory + g_rand_int(numbers) % 1024;
	state->registers[12] = (uintptr_t)memory + g_rand_int(numbers) % 1024;
	state->flags = (g_rand_int(numbers) & ARITHMETIC_FLAGS) | FLAG_ALWAYS;
}

#define REGISTERS(X) \
	X(rax) X(rcx) X(rdx) X(rbx) X(rsp) X(rbp) X(rsi) X(rdi) X(r8) X(r9) X(r10) X(r11) X(r12) X(r13) X(r14) X(r15)

static void to_regs(const struct native *state, struct kvm_regs *regs)
{
	unsigned i = 0;

#define X(name) regs->name = state->registers[i++];
	REGISTERS(X)
#undef X
	regs->rflags = state->flags;
	regs->rip = (uintptr_t)code;
}

static void compare(const char *what, const struct native *state, const struct patch_execution *execution, size_t n,
                    uint64_t flags)
{
	const struct kvm_regs *regs = &execution->regs;
	unsigned i = 0;

#define X(name)                                                                                    \
	ck_assert_msg(regs->name == state->registers[i], "%s: " #name " 0x%llx, not 0x%llx", what, \
	              (unsigned long long)regs->name, (unsigned long long)state->registers[i]);    \
	i++;
	REGISTERS(X)
#undef X
	ck_assert_msg((regs->rflags & flags) == (state->flags & flags), "%s: flags 0x%llx, not 0x%llx", what,
	              (unsigned long long)(regs->rflags & flags), (unsigned long long)(state->flags & flags));
	ck_assert_msg(regs->rip == (uintptr_t)code + n, "%s: rip", what);
	if (execution->write.bytes > 0)
		memcpy(before + (execution->write.address - (uintptr_t)memory), &execution->write.value,
		       execution->write.bytes);
	ck_assert_msg(memcmp(before, memory, MEMORY_BYTES) == 0, "%s: memory", what);
}

static void execute_by_both(const struct instruction *instruction, bool user, guint32 seed)
{
	GRand *numbers = g_rand_new_with_seed(seed);

	write_code(instruction->code, instruction->n);
	for (unsigned i = 0; i < ROUNDS; i++) {
		struct patch_execution execution = {.read = read_memory, .user = user};
		struct native state;

		any_state(numbers, &state);
		to_regs(&state, &execution.regs);
		ck_assert_msg(patch_execute(&execution, instruction->code, instruction->n), "%s", instruction->what);
		native_run(&state, code);
		compare(instruction->what, &state, &execution, instruction->n, ARITHMETIC_FLAGS & ~instruction->masks);
	}
	g_rand_free(numbers);
}

START_TEST(as_the_processor)
{
	execute_by_both(&codes[_i], false, (guint32)_i);
	execute_by_both(&codes[_i], true, (guint32)_i);
}
END_TEST

START_TEST(in_programs_as_the_processor)
{
	execute_by_both(&program_codes[_i], true, (guint32)_i);
}
END_TEST

START_TEST(returns_of_programs)
{
	static const struct {
		const uint8_t *code;
		size_t n;
		unsigned bytes; /* that leave the stack */
	} returns[] = {
		{CODE("\xc3"), 8}, {CODE("\xf3\xc3"), 8}, {CODE("\xf2\xc3"), 8}, {CODE("\xc2\x10\x01"), 8 + 0x110}};

	for (size_t i = 0; i < G_N_ELEMENTS(returns); i++) {
		struct patch_execution execution = {.read = read_memory, .user = true};
		uint64_t to = 0x401234;

		memcpy(memory + STACK_AT, &to, sizeof(to));
		execution.regs.rsp = (uintptr_t)memory + STACK_AT;
		ck_assert(patch_execute(&execution, returns[i].code, returns[i].n));
		ck_assert_uint_eq(execution.regs.rip, to);
		ck_assert_uint_eq(execution.regs.rsp, (uintptr_t)memory + STACK_AT + returns[i].bytes);
		ck_assert_uint_eq(execution.write.bytes, 0);
		/* To where the processor does not go. */
		to = UINT64_C(1) << 47;
		memcpy(memory + STACK_AT, &to, sizeof(to));
		execution.regs.rsp = (uintptr_t)memory + STACK_AT;
		ck_assert(!patch_execute(&execution, returns[i].code, returns[i].n));
		execution.regs.rsp = 0;
		ck_assert(!patch_execute(&execution, returns[i].code, returns[i].n));
	}
}
END_TEST

START_TEST(others_of_programs)
{
	static const struct {
		const uint8_t *code;
		size_t n;
	} others[] = {{CODE("\x74\x00")},
	              {CODE("\x48\x01\x03")},
	              {CODE("\xff\xe0")},
	              {CODE("\x0f\x05")},
	              {CODE("\xf0\x48\x89\x03")},
	              {CODE("\xc9")},
	              {CODE("\x64\x48\x8b\x03")},
	              {CODE("\x0f\x57\xc0")},
	              {CODE("\xc2\x10")},
	              {CODE("\xe8\x00\x00")},
	              {CODE("\xf3")}};

	for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
		ck_assert_msg(!patch_executes(others[i].code, others[i].n, true), "%zu", i);
	ck_assert(patch_executes(CODE("\xe8\x00\x00\x00\x00"), true));
	ck_assert(!patch_executes(CODE("\xe8\x00\x00\x00\x00"), false));
}
END_TEST

START_TEST(others_need_a_step)
{
	static const struct {
		const char *what;
		const uint8_t *code;
		size_t n;
	} others[] = {
		{"ret", CODE("\xc3")},
		{"call", CODE("\xe8\x00\x00\x00\x00")},
		{"jmp", CODE("\xeb\x00")},
		{"je", CODE("\x74\x00")},
		{"pop %rax", CODE("\x58")},
		{"mov %rax, (%rbx)", CODE("\x48\x89\x03")},
		{"add %rax, (%rbx)", CODE("\x48\x01\x03")},
		{"add $1, (%rbx)", CODE("\x83\x03\x01")},
		{"lock nop", CODE("\xf0\x90")},
		{"lock mov", CODE("\xf0\x48\x89\xe5")},
		{"shl", CODE("\x48\xc1\xe0\x03")},
		{"imul", CODE("\x48\x0f\xaf\xc1")},
		{"xchg", CODE("\x48\x87\xd8")},
		{"mov %cr3, %rax", CODE("\x0f\x20\xd8")},
		{"hlt", CODE("\xf4")},
		{"sti", CODE("\xfb")},
		{"int3", CODE("\xcc")},
		{"mov %fs:0, %rax", CODE("\x64\x48\x8b\x04\x25\x00\x00\x00\x00")},
		{"a part of one", CODE("\x48\x89")},
		/* Memory that is not there. */
		{"mov (%rax), %rax", CODE("\x48\x8b\x00")},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		struct patch_execution execution = {.regs = {.rbx = (uintptr_t)memory, .rflags = 2},
		                                    .read = read_memory};
		const struct kvm_regs regs = execution.regs;

		ck_assert_msg(!patch_execute(&execution, others[i].code, others[i].n), "%s", others[i].what);
		ck_assert_msg(memcmp(&regs, &execution.regs, sizeof(regs)) == 0, "%s", others[i].what);
	}
	/* The guest's own single step has to see it. */
	struct patch_execution stepped = {.regs = {.rflags = 0x102}, .read = read_memory};
	ck_assert(!patch_execute(&stepped, CODE("\x90")));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("patch_execute");
	TCase *all = tcase_create("all");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_loop_test(all, as_the_processor, 0, (int)G_N_ELEMENTS(codes));
	tcase_add_loop_test(all, in_programs_as_the_processor, 0, G_N_ELEMENTS(program_codes));
	tcase_add_test(all, returns_of_programs);
	tcase_add_test(all, others_of_programs);
	tcase_add_test(all, others_need_a_step);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
