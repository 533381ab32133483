// SPDX-License-Identifier: BSD-2-Clause
/*
 * The instruction behind a patch in a program, executed on the registers of the vCPU, in user mode. It is never
 * stepped: a fault would lead into the kernel and to other tasks meanwhile. Where the processor would fault, the guest
 * gets that fault, and comes to the INT3 again.
 */
#include <errno.h>
#include <string.h>

#include "guest/file_code.h"
#include "guest/page_walk.h"
#include "kvm/host/memory.h"
#include "kvm/host/x86/kvm_vcpu.h"
#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vcpu/x86/patch_execute.h"
#include "kvm/vcpu/x86/vcpu_x86.h"

#define PAGE_BYTES UINT64_C(4096)
#define USER_END (UINT64_C(1) << 47) /* of addresses; beyond, faults are others, or there are five levels */
#define VECTOR_PF 14u
/* Its error code (SDM vol. 3A, 4.7), and bits of a page table's entry (table 4-20). */
enum { FAULT_PRESENT = 1, FAULT_WRITE = 2, FAULT_USER = 4 };
#define ENTRY_ACCESSED_DIRTY UINT64_C(0x60)
#define ENTRY_KEY(entry) ((entry) >> 59 & 15)
/* With shadow stacks, calls and returns do more (SDM vol. 1, 17.2). */
#define CR4_CET (UINT64_C(1) << 23)

struct memory_access {
	struct vcpu *vcpu;
	struct page_walk walk;
	bool changes; /* the guest has changed its page tables meanwhile */
	bool faults;  /* the processor would, with this: */
	uint64_t address;
	uint32_t code;
};

static uint8_t *fault(struct memory_access *access, uint64_t address, uint32_t code)
{
	access->faults = true;
	access->address = address;
	access->code = FAULT_USER | code;
	return NULL;
}

/* What a processor does before it writes. The guest may change the entry meanwhile. */
static bool entry_note(struct memory_access *access, const struct page_leaf *leaf)
{
	uint64_t *entry = memory_at(access->vcpu->machine->memory, leaf->entry_at, sizeof(*entry)),
		 before = leaf->entry;

	return (before & ENTRY_ACCESSED_DIRTY) == ENTRY_ACCESSED_DIRTY ||
	       (entry && __atomic_compare_exchange_n(entry, &before, before | ENTRY_ACCESSED_DIRTY, false,
	                                             __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
}

/* Bytes within one page; NULL: it cannot be done, or the processor would fault. */
static uint8_t *piece(struct memory_access *access, uint64_t address, size_t bytes, bool write)
{
	struct page_leaf leaf;

	if (address >= USER_END)
		return NULL;
	if (!page_walk_leaf(&access->walk, (gva_t){address}, &leaf))
		return fault(access, address, write ? FAULT_WRITE : 0);
	if (!leaf.user || (write && !leaf.writable))
		return fault(access, address, FAULT_PRESENT | (write ? FAULT_WRITE : 0));
	access->changes = write && !entry_note(access, &leaf);
	if (ENTRY_KEY(leaf.entry) != 0 || access->changes)
		return NULL;
	return memory_at(access->vcpu->machine->memory, page_leaf_gpa(&leaf, address), bytes);
}

/* The bytes of an access, which may be in two pages. */
struct pieces {
	uint8_t *first, *second; /* NULL: all are in the first */
	size_t first_bytes;
};

static bool pieces_find(struct memory_access *access, uint64_t address, size_t bytes, bool write, struct pieces *found)
{
	const size_t left = (size_t)(PAGE_BYTES - address % PAGE_BYTES);

	*found = (struct pieces){.first_bytes = MIN(bytes, left)};
	found->first = piece(access, address, found->first_bytes, write);
	if (!found->first || bytes <= left)
		return found->first;
	found->second = piece(access, address + left, bytes - left, write);
	return found->second;
}

static bool read_user(void *data, uint64_t from, void *to, size_t bytes)
{
	struct pieces pieces;

	if (!pieces_find(data, from, bytes, false, &pieces))
		return false;
	memcpy(to, pieces.first, pieces.first_bytes);
	if (pieces.second)
		memcpy((uint8_t *)to + pieces.first_bytes, pieces.second, bytes - pieces.first_bytes);
	return true;
}

/* Others see an aligned write at once, as a processor's. */
static void write_user(const struct pieces *pieces, const struct interpreter_write *write)
{
	const uint8_t *bytes = (const uint8_t *)&write->value;

	if (write->bytes == sizeof(uint64_t) && write->address % sizeof(uint64_t) == 0)
		__atomic_store_n((uint64_t *)(void *)pieces->first, write->value, __ATOMIC_RELEASE);
	else if (write->bytes == sizeof(uint32_t) && write->address % sizeof(uint32_t) == 0)
		__atomic_store_n((uint32_t *)(void *)pieces->first, (uint32_t)write->value, __ATOMIC_RELEASE);
	else
		memcpy(pieces->first, bytes, pieces->first_bytes);
	if (pieces->second)
		memcpy(pieces->second, bytes + pieces->first_bytes, write->bytes - pieces->first_bytes);
}

/* The guest handles it and comes back. */
static bool give_fault(struct vcpu *vcpu, const struct memory_access *access)
{
	vcpu->run->s.regs.sregs.cr2 = access->address;
	vcpu->run->kvm_dirty_regs |= KVM_SYNC_X86_SREGS;
	return kvm_exception_inject(vcpu->fd, VECTOR_PF, &access->code);
}

static bool check(struct vcpu *vcpu, bool done, const char *what)
{
	if (!done)
		vcpu_crash(vcpu, GUEST_END_VMM_ERROR,
		           g_strdup_printf("cannot %s vCPU %u: %s", what, vcpu->index, g_strerror(errno)));
	return true;
}

bool vcpu_arch_execute_in_program(struct vcpu *vcpu, const struct file_code *code)
{
	struct kvm_run *run = vcpu->run;
	struct memory_access access = {.vcpu = vcpu};
	struct patch_execution execution = {.regs = run->s.regs.regs,
	                                    .user = true,
	                                    .gs_base = run->s.regs.sregs.gs.base,
	                                    .read = read_user,
	                                    .data = &access};
	struct pieces pieces;
	bool done;

	if (!run->s.regs.sregs.cs.l || (run->s.regs.sregs.cr4 & CR4_CET))
		return false;
	page_walk_init_regs(&access.walk, vcpu->machine->guest, &vcpu->regs);
	done = patch_execute(&execution, code->code, code->n) &&
	       (execution.write.bytes == 0 ||
	        pieces_find(&access, execution.write.address, execution.write.bytes, true, &pieces));
	if (access.faults)
		return check(vcpu, give_fault(vcpu, &access), "give a page fault to");
	if (!done)
		return access.changes; /* and the guest comes here again */
	vcpu_debug_hit_in_file(vcpu, code);
	if (execution.write.bytes != 0)
		write_user(&pieces, &execution.write);
	run->s.regs.regs = execution.regs;
	run->kvm_dirty_regs |= KVM_SYNC_X86_REGS;
	return check(vcpu, vcpu_end_step(vcpu), "step");
}
