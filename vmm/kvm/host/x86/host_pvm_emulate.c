// SPDX-License-Identifier: BSD-2-Clause
#include "kvm/host/x86/host_pvm_emulate.h"

#include <errno.h>
#include <string.h>
#include <sys/ioctl.h>

#include "kvm/host/x86/kvm_vcpu.h"

#define VECTOR_UD 6
#define VECTOR_BP 3
#define PAGE_BYTES UINT64_C(0x1000)

struct instruction {
	uint8_t bytes[INSTRUCTION_BYTES_MAX];
	size_t n;      /* that are there */
	size_t opcode; /* where it begins, behind the prefixes */
	uint8_t rex;   /* 0: none */
	uint8_t segment;
};

static bool is_legacy_prefix(uint8_t byte)
{
	return memchr("\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3", byte, 11) != NULL;
}

static bool fetch(const struct host_vcpu *vcpu, struct instruction *insn)
{
	*insn = (struct instruction){0};
	insn->n = kvm_failed_instruction(vcpu->run, insn->bytes);
	size_t at = 0;
	for (; at < insn->n && is_legacy_prefix(insn->bytes[at]); at++) {
		if (insn->bytes[at] == 0x64 || insn->bytes[at] == 0x65)
			insn->segment = insn->bytes[at];
	}
	if (at < insn->n && (insn->bytes[at] & 0xf0) == 0x40)
		insn->rex = insn->bytes[at++];
	insn->opcode = at;
	return at < insn->n;
}

static void skip(const struct host_vcpu *vcpu, size_t bytes)
{
	vcpu->run->s.regs.regs.rip += bytes;
	vcpu->run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
}

/* A register by its number in ModRM, SIB and REX. */
static uint64_t gpr(const struct kvm_regs *regs, unsigned number)
{
	const uint64_t values[16] = {regs->rax, regs->rcx, regs->rdx, regs->rbx, regs->rsp, regs->rbp,
	                             regs->rsi, regs->rdi, regs->r8,  regs->r9,  regs->r10, regs->r11,
	                             regs->r12, regs->r13, regs->r14, regs->r15};

	return values[number];
}

/* The sign-extended displacement of 1 or 4 bytes at `at`; *at moves on. False behind the end. */
static bool displacement(const struct instruction *insn, size_t *at, size_t bytes, uint64_t *value)
{
	if (insn->n - *at < bytes)
		return false;
	if (bytes == 1) {
		*value = (uint64_t)(int64_t)(int8_t)insn->bytes[*at];
	} else if (bytes == 4) {
		int32_t wide;

		memcpy(&wide, &insn->bytes[*at], sizeof(wide));
		*value = (uint64_t)(int64_t)wide;
	}
	*at += bytes;
	return true;
}

/* The address of a memory operand in 64-bit mode (SDM vol. 2A, 2.1.5 and 2.2.1); *end: behind the operand. */
static bool operand_address(const struct instruction *insn, const struct kvm_sync_regs *sync, size_t modrm_at,
                            uint64_t *address, size_t *end)
{
	size_t at = modrm_at;

	if (at >= insn->n)
		return false;
	uint8_t modrm = insn->bytes[at++], mod = modrm >> 6, rm = modrm & 7;
	unsigned rex_b = (insn->rex & 1u) << 3, rex_x = (insn->rex & 2u) << 2;
	size_t displacement_bytes = mod == 1 ? 1 : mod == 2 ? 4 : 0;
	bool rip_relative = false;
	uint64_t sum = 0, offset = 0;
	if (mod == 3)
		return false;
	if (rm == 4) {
		if (at >= insn->n)
			return false;
		uint8_t sib = insn->bytes[at++];
		unsigned index = (sib >> 3 & 7u) | rex_x, base = (sib & 7u) | rex_b;
		if (index != 4)
			sum += gpr(&sync->regs, index) << (sib >> 6);
		if ((sib & 7) == 5 && mod == 0)
			displacement_bytes = 4;
		else
			sum += gpr(&sync->regs, base);
	} else if (rm == 5 && mod == 0) {
		displacement_bytes = 4;
		rip_relative = true;
	} else {
		sum = gpr(&sync->regs, rm | rex_b);
	}
	if (!displacement(insn, &at, displacement_bytes, &offset))
		return false;
	sum += offset + (rip_relative ? sync->regs.rip + at : 0);
	sum += insn->segment == 0x65 ? sync->sregs.gs.base : insn->segment == 0x64 ? sync->sregs.fs.base : 0;
	*address = sum;
	*end = at;
	return true;
}

/* Host memory behind `bytes` at a guest virtual address, within one page. */
static void *translate(const struct memory *memory, const struct host_vcpu *vcpu, uint64_t address, size_t bytes)
{
	struct kvm_translation translation = {.linear_address = address};

	if ((address & (PAGE_BYTES - 1)) + bytes > PAGE_BYTES || ioctl(vcpu->fd, KVM_TRANSLATE, &translation) < 0 ||
	    !translation.valid)
		return NULL;
	return memory_at(memory, (gpa_t){translation.physical_address}, bytes);
}

/* LDMXCSR (0f ae /2) and STMXCSR (0f ae /3). */
static bool mxcsr(const struct memory *memory, const struct host_vcpu *vcpu, const struct instruction *insn)
{
	uint64_t address;
	size_t end;
	struct kvm_fpu fpu;

	if (!operand_address(insn, &vcpu->run->s.regs, insn->opcode + 2, &address, &end))
		return false;
	void *operand = translate(memory, vcpu, address, sizeof(fpu.mxcsr));
	if (!operand || ioctl(vcpu->fd, KVM_GET_FPU, &fpu) < 0)
		return false;
	if ((insn->bytes[insn->opcode + 2] >> 3 & 7) == 2) {
		memcpy(&fpu.mxcsr, operand, sizeof(fpu.mxcsr));
		if (ioctl(vcpu->fd, KVM_SET_FPU, &fpu) < 0)
			return false;
	} else {
		memcpy(operand, &fpu.mxcsr, sizeof(fpu.mxcsr));
	}
	skip(vcpu, end);
	return true;
}

/* FNCLEX (db e2) and FNINIT (db e3). */
static bool x87_control(const struct host_vcpu *vcpu, const struct instruction *insn)
{
	struct kvm_fpu fpu;

	if (ioctl(vcpu->fd, KVM_GET_FPU, &fpu) < 0)
		return false;
	if (insn->bytes[insn->opcode + 1] == 0xe2) {
		fpu.fsw &= 0x7f00;
	} else {
		fpu.fcw = 0x37f;
		fpu.fsw = 0;
		fpu.ftwx = 0;
	}
	if (ioctl(vcpu->fd, KVM_SET_FPU, &fpu) < 0)
		return false;
	skip(vcpu, insn->opcode + 2);
	return true;
}

static bool two_byte(const struct memory *memory, const struct host_vcpu *vcpu, const struct instruction *insn)
{
	const uint8_t *op = &insn->bytes[insn->opcode];
	size_t n = insn->n - insn->opcode;

	if (n < 2)
		return false;
	switch (op[1]) {
	case 0x01: /* CLAC, STAC: SMAP is off */
		if (n < 3 || (op[2] != 0xca && op[2] != 0xcb))
			return false;
		skip(vcpu, insn->opcode + 3);
		return true;
	case 0x0b: /* UD2 */
		return kvm_exception_inject(vcpu->fd, VECTOR_UD, NULL);
	case 0xae:
		return n >= 3 && ((op[2] >> 3 & 7) == 2 || (op[2] >> 3 & 7) == 3) && mxcsr(memory, vcpu, insn);
	default:
		return false;
	}
}

bool host_pvm_emulate(const struct memory *memory, const struct host_vcpu *vcpu)
{
	struct instruction insn;

	if (!fetch(vcpu, &insn))
		return false;
	const uint8_t *op = &insn.bytes[insn.opcode];
	size_t n = insn.n - insn.opcode;
	switch (op[0]) {
	case 0x0f:
		return two_byte(memory, vcpu, &insn);
	case 0x9b: /* FWAIT: no unmasked x87 exception is ever pending at CPL 0 */
		skip(vcpu, insn.opcode + 1);
		return true;
	case 0xcc: /* INT3 */
		skip(vcpu, insn.opcode + 1);
		return kvm_exception_inject(vcpu->fd, VECTOR_BP, NULL);
	case 0xdb:
		return n >= 2 && (op[1] == 0xe2 || op[1] == 0xe3) && x87_control(vcpu, &insn);
	default:
		return false;
	}
}
