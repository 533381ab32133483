// SPDX-License-Identifier: BSD-2-Clause
/*
 * An iterator over the open files of a process: of those that are KVM's vCPUs it writes which thread runs the vCPU,
 * where its page tables are, and which memory of the process the guest has for RAM. All of that is in KVM's structs;
 * the process is not asked, stopped or touched, and what it calls its threads does not matter.
 *
 * The structs below are the parts of the kernel's that are used. Their offsets come from the BTF of the kernel that
 * runs, when this is loaded (CO-RE). What depends on the processor is in x86/kvm_view.bpf.c and arm64/kvm_view.bpf.c,
 * which include this behind their struct kvm_arch and struct kvm_vcpu_arch.
 */
#ifndef VPROF_ATTACH_BPF_KVM_VIEW_PROGRAM_H
#define VPROF_ATTACH_BPF_KVM_VIEW_PROGRAM_H

/* bpf_seq_write and bpf_probe_read_kernel are for programs under a licence that the kernel takes for GPL. */
char licence[] SEC("license") = "Dual BSD/GPL";

/* ---- the kernel's ---- */

struct seq_file;
struct mm_struct;

struct upid {
	int nr;
} KERNEL;

struct pid {
	unsigned int level;
	struct upid numbers[1];
} KERNEL;

struct task_struct {
	struct mm_struct *mm;
	struct pid *thread_pid;
} KERNEL;

struct qstr {
	const unsigned char *name;
} KERNEL;

struct dentry {
	struct qstr d_name;
} KERNEL;

struct path {
	struct dentry *dentry;
} KERNEL;

struct file {
	struct path f_path;
	void *private_data;
} KERNEL;

struct hlist_node {
	struct hlist_node *next;
} KERNEL;

struct hlist_head {
	struct hlist_node *first;
} KERNEL;

struct kvm_memory_slot {
	struct hlist_node id_node[2];
	__u64 base_gfn;
	unsigned long npages;
	unsigned long userspace_addr;
	__u32 flags;
} KERNEL;

struct kvm_memslots {
	__u64 generation;
	struct hlist_head id_hash[128]; /* from 5.17 on */
	int node_idx;
} KERNEL;

struct kvm {
	struct mm_struct *mm;
	struct kvm_memslots *memslots[1];
	struct kvm_arch arch;
} KERNEL;

struct atomic_long {
	long counter;
} KERNEL;

struct mutex {
	struct atomic_long owner;
} KERNEL;

struct kvm_vcpu_stat {
	__u64 exits;
} KERNEL;

struct kvm_vcpu {
	struct kvm *kvm;
	int vcpu_id;
	struct mutex mutex;
	struct pid *pid;
	struct kvm_vcpu_arch arch;
	struct kvm_vcpu_stat stat;
} KERNEL;

struct bpf_iter_meta {
	struct seq_file *seq;
} KERNEL;

struct bpf_iter__task_file {
	struct bpf_iter_meta *meta;
	struct task_struct *task;
	__u32 fd;
	struct file *file;
} KERNEL;

/* ---- ours ---- */

#define HASH_BUCKETS 128
#define SLOT_INVALID (1u << 16) /* KVM_MEMSLOT_INVALID: about to be deleted or moved */

/* Of the host's pages, in which slots are counted; written before a pass. */
unsigned int page_shift;
/* The machine-specific part of KVM (enum guest_sample_vendor); written before a pass. */
unsigned int vendor;
/* The machines that a pass has written; emptied before it. */
__u64 written[KVM_VIEW_VMS_MAX];
/* Whether statistics are wanted; and one record of them, too big for BPF's stack. A pass is made by one thread. */
bool wants_statistics;
struct kvm_view_statistics statistics;

/* ---- what depends on the processor ---- */

/* KVM_VIEW_SEV and the like. */
static unsigned int protection(struct kvm_vcpu *vcpu);
/* ids_max, KVM_VIEW_HALTS */
static void vm_fill(struct kvm_view_vm *record, struct kvm *kvm);
/* What leads to the guest's kernel. */
static void registers_fill(struct kvm_view_vcpu *record, struct kvm_vcpu *vcpu);

/* ---- a machine ---- */

static struct kvm_memory_slot *slot_of(struct hlist_node *node, int index)
{
	unsigned long offset = bpf_core_field_offset(struct kvm_memory_slot, id_node) +
	                       (index & 1) * bpf_core_type_size(struct hlist_node);

	return (void *)node - offset;
}

/* 1: written, 0: left out, below 0: no room. */
static int slot_write(struct seq_file *seq, struct kvm *kvm, struct kvm_memory_slot *slot)
{
	struct kvm_view_slot record = {
		.header = {.kind = KVM_VIEW_SLOT, .bytes = sizeof(record), .vm = (__u64)kvm},
		.gpa = BPF_CORE_READ(slot, base_gfn) << page_shift,
		.bytes = (__u64)BPF_CORE_READ(slot, npages) << page_shift,
		.hva = BPF_CORE_READ(slot, userspace_addr),
		.flags = BPF_CORE_READ(slot, flags),
	};

	if (record.bytes == 0 || (record.flags & SLOT_INVALID))
		return 0;
	return bpf_seq_write(seq, &record, sizeof(record)) == 0 ? 1 : -1;
}

/*
 * On the way through the chains of KVM's table by slot number. It is no variable on the stack: before Linux 6.7 the
 * verifier follows a callback once, with what the stack has at first, and takes out what is not reached then.
 */
static struct {
	struct kvm_memslots *slots;
	struct hlist_node *node;
	__u32 bucket; /* the next one */
	__u32 written;
	int index;
	bool no_room;
} walk;

struct slots_target {
	struct seq_file *seq;
	struct kvm *kvm;
};

/* One step: a slot, or the beginning of a chain. 1: no more of them, or enough. */
static long slots_step(__u32 i, void *data)
{
	const struct slots_target *target = data;
	struct hlist_node *node = walk.node;

	(void)i;
	if (node && walk.written == KVM_VIEW_SLOTS_MAX)
		return 1;
	if (node) {
		int result = slot_write(target->seq, target->kvm, slot_of(node, walk.index));

		if (result < 0) {
			walk.no_room = true;
			return 1;
		}
		walk.written += result;
		walk.node = BPF_CORE_READ(node, next);
		return 0;
	}
	if (walk.bucket == HASH_BUCKETS)
		return 1;
	bpf_probe_read_kernel(&walk.node, sizeof(walk.node),
	                      (void *)walk.slots + bpf_core_field_offset(struct kvm_memslots, id_hash) +
	                              walk.bucket * bpf_core_type_size(struct hlist_head));
	walk.bucket++;
	return 0;
}

/* KVM changes another copy of its table, and exchanges the two. */
static bool slots_write(struct seq_file *seq, struct kvm *kvm, struct kvm_view_vm *vm)
{
	struct slots_target target = {.seq = seq, .kvm = kvm};
	struct kvm_memslots *slots = BPF_CORE_READ(kvm, memslots[0]);
	__u64 generation = BPF_CORE_READ(slots, generation);

	walk.slots = slots;
	walk.node = NULL;
	walk.bucket = 0;
	walk.written = 0;
	walk.index = BPF_CORE_READ(slots, node_idx);
	walk.no_room = false;
	bpf_loop(HASH_BUCKETS + KVM_VIEW_SLOTS_MAX, slots_step, &target, 0);
	vm->slots = walk.written;
	if (walk.node || walk.bucket < HASH_BUCKETS)
		vm->flags |= KVM_VIEW_SLOTS_MORE;
	if (BPF_CORE_READ(kvm, memslots[0]) != slots || BPF_CORE_READ(slots, generation) != generation)
		vm->flags |= KVM_VIEW_SLOTS_CHANGED;
	return !walk.no_room;
}

/* Once in a pass, whatever the number of its vCPUs and of their files. */
static void vm_write(struct seq_file *seq, struct kvm_vcpu *vcpu)
{
	struct kvm *kvm = BPF_CORE_READ(vcpu, kvm);
	struct kvm_view_vm record = {
		.header = {.kind = KVM_VIEW_VM, .bytes = sizeof(record), .vm = (__u64)kvm},
		.flags = protection(vcpu),
	};
	int i = 0;

	vm_fill(&record, kvm);
	while (i < KVM_VIEW_VMS_MAX && written[i] && written[i] != record.header.vm)
		i++;
	if (i == KVM_VIEW_VMS_MAX || written[i] || !slots_write(seq, kvm, &record))
		return;
	/* Without room, the kernel calls this again for the same file. */
	if (bpf_seq_write(seq, &record, sizeof(record)) == 0)
		written[i] = record.header.vm;
}

/* ---- a vCPU ---- */

/* A thread's number for those who read; 0: it is in a PID namespace that is not theirs. */
static unsigned int thread_number(struct pid *pid)
{
	struct task_struct *reader = (void *)bpf_get_current_task_btf();
	unsigned int level = BPF_CORE_READ(reader, thread_pid, level);
	int number = 0;

	if (!pid || level > BPF_CORE_READ(pid, level))
		return 0;
	bpf_probe_read_kernel(&number, sizeof(number),
	                      (void *)pid + bpf_core_field_offset(struct pid, numbers) +
	                              level * bpf_core_type_size(struct upid));
	return number;
}

static void vcpu_write(struct seq_file *seq, struct kvm_vcpu *vcpu)
{
	struct kvm_view_vcpu record = {
		.header = {.kind = KVM_VIEW_VCPU, .bytes = sizeof(record), .vm = (__u64)BPF_CORE_READ(vcpu, kvm)},
		.id = BPF_CORE_READ(vcpu, vcpu_id),
		.thread = thread_number(BPF_CORE_READ(vcpu, pid)),
	};

	/* A kernel for real-time has another lock there. */
	if (!bpf_core_field_exists(vcpu->mutex.owner) || BPF_CORE_READ(vcpu, mutex.owner.counter))
		record.flags |= KVM_VIEW_IN_KVM;
	registers_fill(&record, vcpu);
	bpf_seq_write(seq, &record, sizeof(record));
}

static void statistics_write(struct seq_file *seq, struct kvm_vcpu *vcpu)
{
	const __u32 bytes = bpf_core_field_size(vcpu->stat);

	if (bytes > sizeof(statistics.raw))
		return;
	statistics.header.kind = KVM_VIEW_STATISTICS;
	statistics.header.bytes = __builtin_offsetof(struct kvm_view_statistics, raw) + bytes;
	statistics.header.vm = (__u64)BPF_CORE_READ(vcpu, kvm);
	statistics.id = BPF_CORE_READ(vcpu, vcpu_id);
	bpf_probe_read_kernel(statistics.raw, bytes, &vcpu->stat);
	bpf_seq_write(seq, &statistics, __builtin_offsetof(struct kvm_view_statistics, raw) + bytes);
}

/* By its name, as /proc shows it; a file on disk may have the same one, so its contents are checked as well. */
static bool is_vcpu(struct file *file, struct task_struct *task)
{
	static const char wanted[] = "kvm-vcpu:";
	char name[sizeof(wanted)] = {0};
	struct kvm_vcpu *vcpu = BPF_CORE_READ(file, private_data);

	bpf_probe_read_kernel_str(name, sizeof(name), BPF_CORE_READ(file, f_path.dentry, d_name.name));
	for (unsigned int i = 0; i < sizeof(wanted) - 1; i++)
		if (name[i] != wanted[i])
			return false;
	/* A child inherits files, but not the machine: KVM_RUN asks for the same (kvm_vcpu_ioctl). */
	return BPF_CORE_READ(vcpu, kvm, mm) == BPF_CORE_READ(task, mm);
}

SEC("iter/task_file")
int view(struct bpf_iter__task_file *context)
{
	struct task_struct *task = context->task;
	struct file *file = context->file;

	if (!task || !file || !is_vcpu(file, task))
		return 0;
	struct kvm_vcpu *vcpu = BPF_CORE_READ(file, private_data);

	vm_write(context->meta->seq, vcpu);
	vcpu_write(context->meta->seq, vcpu);
	if (wants_statistics)
		statistics_write(context->meta->seq, vcpu);
	return 0;
}

#endif
