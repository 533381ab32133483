// SPDX-License-Identifier: BSD-2-Clause
/* Instructions on a copy of the registers: each piece of code has left on a processor what the table says. */
#include <check.h>
#include <glib.h>
#include <string.h>

#include "guest/x86/interpreter.h"
#include "lib/code/x86/instruction.h"
#include "run_suite.h"

#define CODE(bytes) (const uint8_t *)bytes, sizeof(bytes) - 1
#define CF_ZF_SF_OF UINT64_C(0x8c1)
#define MEMORY UINT64_C(0xffff888000001000)
#define GS_BASE UINT64_C(0xffff888000000000)
#define BUFFER 64u
#define STEPS_MAX 100u

/*
 * It begins with rax 0xaa..., rbx 0x1000, rcx 0xcc..., rdx 0xdd..., ZF, and rsi at byte 64 of memory in which each byte
 * has its number.
 */
static const struct {
	const char *what;
	const uint8_t *code;
	size_t n;
	uint64_t rax, rdx, rcx, flags;
} codes[] = {
	{"mov, in all sizes",
         CODE("\x48\x89\xd8\xb9\xfe\xff\xff\xff\x88\xce\x66\xba\x34\x12\xc7\x06\xff\xff\xff\xff\x48\x8b\x0e"), 0x1000,
         0xdddddddddddd1234, 0x47464544ffffffff, 0x40},
	{"high bytes", CODE("\xb8\x34\x12\x00\x00\x88\xe1\x88\xce\x0f\xb6\xd6"), 0x1234, 0x12, 0xcccccccccccccc12,
         0x40},
	{"add with carry",
         CODE("\x48\xc7\xc0\xff\xff\xff\xff\x48\x83\xc0\x01\x48\x83\xd0\x05\xba\x07\x00\x00\x00\x00\xd0"), 0xd, 0x7,
         0xcccccccccccccccc, 0x0},
	{"add overflows", CODE("\xb8\xff\xff\xff\x7f\x83\xc0\x01\x0f\x90\xc2\xb1\x80\x00\xc9"), 0x80000000,
         0xdddddddddddddd01, 0xcccccccccccccc00, 0x841},
	{"sub and sbb", CODE("\x31\xc0\x83\xe8\x01\x48\x83\xda\x00\x48\x39\xc2"), 0xffffffff, 0xdddddddddddddddc,
         0xcccccccccccccccc, 0x80},
	{"compare bytes", CODE("\xb0\x80\x3c\x01\x0f\x9c\xc2\x0f\x92\xc1\x3c\x7f"), 0xaaaaaaaaaaaaaa80,
         0xdddddddddddddd01, 0xcccccccccccccc00, 0x800},
	{"logic",
         CODE("\xb8\xf0\x0f\x00\x00\x24\x3c\x0d\x00\x00\x01\x00\x48\x83\xf0\xff\x48\xf7\xd2\x48\xf7\xd9\x48\x85\xc0"),
         0xfffffffffffef0cf, 0x2222222222222222, 0x3333333333333334, 0x80},
	{"inc keeps carry", CODE("\xb8\xff\xff\xff\xff\x83\xc0\x01\xff\xc2\x48\xff\xc9"), 0x0, 0xddddddde,
         0xcccccccccccccccb, 0x81},
	{"shifts",
         CODE("\xb8\x81\x00\x00\x00\xd0\xe0\x48\xc7\xc2\xf8\xff\xff\xff\x48\xd1\xfa\xb9\x09\x00\x00\x00\x48\xd3\xe0\x48\xc1\xe8\x03"),
         0x80, 0xfffffffffffffffc, 0x9, 0x0},
	{"shift of 16 bits", CODE("\x66\xb8\x01\x80\xba\xff\xff\xff\xff\x66\xd1\xea\x66\xd1\xe0"), 0xaaaaaaaaaaaa0002,
         0xffff7fff, 0xcccccccccccccccc, 0x801},
	{"sar of 32 bits", CODE("\xb8\x00\x00\x00\x80\xc1\xf8\x04\x89\xc2\xc1\xea\x1f"), 0xf8000000, 0x1,
         0xcccccccccccccccc, 0x1},
	{"extends", CODE("\xc6\x06\xfd\x0f\xb6\x06\x0f\xbe\x16\x48\x0f\xbe\x0e\x66\x0f\xbe\x06"), 0xfffd, 0xfffffffd,
         0xfffffffffffffffd, 0x40},
	{"extends words", CODE("\x66\xc7\x06\xfd\xff\x0f\xb7\x06\x48\x0f\xbf\x16\xb9\xfb\xff\xff\xff\x48\x63\xc9"),
         0xfffd, 0xfffffffffffffffd, 0xfffffffffffffffb, 0x40},
	{"cdqe and cqo", CODE("\xb8\x00\x00\x00\x80\x48\x98\x48\x99\xb0\x7f\x66\x98\x98"), 0x7f, 0xffffffffffffffff,
         0xcccccccccccccccc, 0x40},
	{"lea", CODE("\xb8\x03\x00\x00\x00\x48\x8d\x54\x98\x08\x8d\x0c\xc5\xff\xff\xff\xff\x66\x8d\x04\x00"), 0x6,
         0x400b, 0x17, 0x40},
	{"multiply",
         CODE("\x48\xc7\xc0\xfd\xff\xff\xff\x48\x6b\xd0\x64\x48\x0f\xaf\xc0\x69\xcb\x67\x45\x23\x01\x0f\xaf\xc9\x83\xf9\x01"),
         0x9, 0xfffffffffffffed4, 0x71000000, 0x0},
	{"conditional moves",
         CODE("\xb8\x05\x00\x00\x00\x83\xf8\x05\xba\x01\x00\x00\x00\x48\xc7\xc1\xff\xff\xff\xff\x0f\x44\xd0\x0f\x45\xc8"),
         0x5, 0x5, 0xffffffff, 0x40},
	{"all conditions",
         CODE("\xb8\x01\x00\x00\x00\x83\xf8\x02\x0f\x97\xc0\x0f\x96\xc2\x0f\x9d\xc1\x0f\x9f\xc3\x0f\x9e\xc4\x0f\x99\xc6\x0f\x98\xc5\x83\xf9\x01"),
         0x100, 0xdddddddddddd0001, 0xcccccccccccc0100, 0x80},
	{"bits",
         CODE("\xb8\x41\x00\x00\x00\x0f\xba\xe0\x06\xba\x46\x00\x00\x00\x48\x0f\xab\x16\x48\x8b\x4e\x08\x0f\xba\xf0\x00\x0f\xba\xf8\x03"),
         0x48, 0x46, 0x4f4e4d4c4b4a4948, 0x40},
	{"bit behind a negative number",
         CODE("\x48\xc7\xc2\xff\xff\xff\xff\x48\xc7\x46\xf8\x00\x00\x00\x00\x48\x0f\xab\x16\x48\x8b\x46\xf8\x48\x0f\xa3\x16"),
         0x8000000000000000, 0xffffffffffffffff, 0xcccccccccccccccc, 0x41},
	{"push and pop", CODE("\x53\x6a\xf9\x58\x5a\x48\x89\xe1\x54\x59\x48\x39\xe1\xb9\x00\x00\x00\x00"),
         0xfffffffffffffff9, 0x1000, 0x0, 0x40},
	{"exchange", CODE("\xb8\x01\x00\x00\x00\xba\x02\x00\x00\x00\x92\x48\x89\x1e\x48\x87\x0e\x66\x90"), 0x2, 0x1,
         0x1000, 0x40},
	{"read what was written",
         CODE("\x48\xc7\x06\x44\x33\x22\x11\xc6\x46\x01\x55\x48\x8b\x06\x66\xc7\x46\x03\xff\xff\x8b\x56\x02\xff\x06\x8b\x0e"),
         0x11225544, 0xffff22, 0xff225545, 0x80},
	{"jumps",
         CODE("\xb9\x03\x00\x00\x00\x31\xc0\x01\xc8\xff\xc9\x75\xfa\xeb\x05\xb8\x63\x00\x00\x00\x78\x05\xba\x04\x00\x00\x00\x83\xf8\x06"),
         0x6, 0x4, 0x0, 0x40},
	{"extended registers",
         CODE("\x41\xbc\x22\x11\x00\x00\x4d\x89\xe5\x45\x00\xec\x41\x0f\xb7\xc4\x4b\x8d\x54\x65\x01\x4d\x39\xe5"),
         0x1144, 0x33ab, 0xcccccccccccccccc, 0x81},
	{"immediates",
         CODE("\x48\xb8\xf0\xde\xbc\x9a\x78\x56\x34\x12\xba\x00\x00\x00\x80\x48\x83\xca\x80\xb1\x7f\x66\x83\xc1\xff\x3c\x7e"),
         0x123456789abcdef0, 0xffffffffffffff80, 0xcccccccccccccc7e, 0x800},
};

static uint8_t memory[256];

static bool read_memory(void *data G_GNUC_UNUSED, uint64_t from, void *to, size_t bytes)
{
	if (from - MEMORY >= sizeof(memory) || bytes > sizeof(memory) - (from - MEMORY))
		return false;
	memcpy(to, memory + (from - MEMORY), bytes);
	return true;
}

static void begin(struct interpreter *interpreter)
{
	for (unsigned i = 0; i < sizeof(memory); i++)
		memory[i] = (uint8_t)i;
	*interpreter = (struct interpreter){
		.registers = {UINT64_C(0xaaaaaaaaaaaaaaaa), UINT64_C(0xcccccccccccccccc), UINT64_C(0xdddddddddddddddd),
	                      0x1000, MEMORY + 192, 0, MEMORY + BUFFER},
		.gs_base = GS_BASE,
		.flags = 0x40,
		.read = read_memory,
	};
}

/* From rip 0 on. */
static enum interpreter_step run(struct interpreter *interpreter, const uint8_t *code, size_t n)
{
	enum interpreter_step step = INTERPRETER_NEXT;

	for (unsigned i = 0; i < STEPS_MAX && interpreter->rip < n && step == INTERPRETER_NEXT; i++)
		step = interpreter_step(interpreter, code + interpreter->rip, n - interpreter->rip);
	return step;
}

START_TEST(code_does_what_a_processor_does)
{
	struct interpreter interpreter;

	begin(&interpreter);
	ck_assert_msg(run(&interpreter, codes[_i].code, codes[_i].n) == INTERPRETER_NEXT &&
	                      interpreter.rip == codes[_i].n,
	              "%s: stops at %u", codes[_i].what, (unsigned)interpreter.rip);
	ck_assert_msg(interpreter.registers[INTERPRETER_RAX] == codes[_i].rax, "%s: rax", codes[_i].what);
	ck_assert_msg(interpreter.registers[INTERPRETER_RDX] == codes[_i].rdx, "%s: rdx", codes[_i].what);
	ck_assert_msg(interpreter.registers[INTERPRETER_RCX] == codes[_i].rcx, "%s: rcx", codes[_i].what);
	ck_assert_msg((interpreter.flags & CF_ZF_SF_OF) == codes[_i].flags, "%s: flags 0x%x", codes[_i].what,
	              (unsigned)interpreter.flags);
	/* Nothing is written there. */
	for (unsigned i = 0; i < sizeof(memory); i++)
		ck_assert_uint_eq(memory[i], i);
}
END_TEST

START_TEST(per_cpu_variables_are_behind_gs)
{
	struct interpreter interpreter;

	begin(&interpreter);
	/* mov %gs:0x1010, %eax; incl %gs:0x1011(%rip); mov %gs:0x1010, %ecx */
	ck_assert_int_eq(run(&interpreter, CODE("\x65\x8b\x04\x25\x10\x10\x00\x00\x65\xff\x05\x01\x10\x00\x00"
	                                        "\x65\x8b\x0c\x25\x10\x10\x00\x00")),
	                 INTERPRETER_NEXT);
	ck_assert_uint_eq(interpreter.registers[INTERPRETER_RAX], 0x13121110);
	ck_assert_uint_eq(interpreter.n_writes, 1);
	ck_assert_uint_eq(interpreter.writes[0].address, MEMORY + 0x10);
	ck_assert_uint_eq(interpreter.registers[INTERPRETER_RCX], 0x13121111);
}
END_TEST

START_TEST(what_is_not_interpreted)
{
	static const struct {
		const uint8_t *code;
		size_t n;
	} others[] = {
		{CODE("")},
		{CODE("\x48")},                             /* half */
		{CODE("\x06")},                             /* none */
		{CODE("\xe8\0\0\0\0")},                     /* call */
		{CODE("\xc3")},                             /* ret */
		{CODE("\xff\xd0")},                         /* call *%rax */
		{CODE("\xff\xe0")},                         /* jmp *%rax */
		{CODE("\x0f\x0b")},                         /* ud2 */
		{CODE("\x0f\x05")},                         /* syscall */
		{CODE("\xf3\x48\xa5")},                     /* rep movsq */
		{CODE("\x64\x48\x8b\x04\x25\0\0\0\0")},     /* mov %fs:0, %rax */
		{CODE("\x67\x8b\x00")},                     /* mov (%eax), %eax */
		{CODE("\x48\xf7\xf1")},                     /* div %rcx */
		{CODE("\x0f\x30")},                         /* wrmsr */
		{CODE("\x66\x0f\x38\x00\x04\x25\0\0\0\0")}, /* pshufb */
		{CODE("\xc5\xf8\x77")},                     /* vzeroupper */
		{CODE("\x66\x50")},                         /* push %ax */
		{CODE("\x7a\x00")},                         /* jp: parity is not kept */
	};
	struct interpreter interpreter;

	for (size_t i = 0; i < G_N_ELEMENTS(others); i++) {
		begin(&interpreter);
		ck_assert_msg(interpreter_step(&interpreter, others[i].code, others[i].n) == INTERPRETER_UNKNOWN, "%zu",
		              i);
		ck_assert_uint_eq(interpreter.rip, 0);
	}
	/* Memory that is not there, and more writes than there is room for. */
	ck_assert_int_eq(run(&interpreter, CODE("\x8b\x04\x25\0\0\0\0")), INTERPRETER_FAULT);
	begin(&interpreter);
	ck_assert_int_eq(run(&interpreter, CODE("\x50\xeb\xfd")), INTERPRETER_UNKNOWN);
	ck_assert_uint_eq(interpreter.n_writes, INTERPRETER_WRITES_MAX);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("interpreter");
	TCase *all = tcase_create("interpreter");

	tcase_add_loop_test(all, code_does_what_a_processor_does, 0, (int)G_N_ELEMENTS(codes));
	tcase_add_test(all, per_cpu_variables_are_behind_gs);
	tcase_add_test(all, what_is_not_interpreted);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
