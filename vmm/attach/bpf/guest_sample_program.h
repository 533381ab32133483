// SPDX-License-Identifier: BSD-2-Clause
/*
 * Runs where an event on QEMU's vCPU thread overflows, and hands out the guest's registers and what of its memory a
 * call chain is made of. The guest stands still meanwhile: its processor is here.
 *
 * The event's own sample could not carry that. So this writes one of its own, into the ring of a second event on the
 * thread (PERF_COUNT_SW_BPF_OUTPUT): perf puts the guest's instruction pointer and mode into it, as it does into any
 * sample, and asks KVM for them where KVM has not read them yet (perf_guest_cbs).
 *
 * The structs below are the parts of the kernel's that are used. Their offsets come from the BTF of the kernel that
 * runs, when this is loaded (CO-RE). What depends on the processor is in x86/guest_sample.bpf.c and
 * arm64/guest_sample.bpf.c, which include this behind their struct kvm_vcpu_arch and struct walk.
 */
#ifndef VPROF_ATTACH_BPF_GUEST_SAMPLE_PROGRAM_H
#define VPROF_ATTACH_BPF_GUEST_SAMPLE_PROGRAM_H

/* bpf_perf_event_output and bpf_probe_read_kernel are for programs under a licence that the kernel takes for GPL. */
char licence[] SEC("license") = "Dual BSD/GPL";

/* ---- the kernel's ---- */

struct rb_node {
	struct rb_node *rb_right, *rb_left;
} KERNEL;

struct rb_root {
	struct rb_node *rb_node;
} KERNEL;

struct mm_struct;

struct kvm_memory_slot {
	struct rb_node gfn_node[2];
	__u64 base_gfn;
	unsigned long npages;
	unsigned long userspace_addr;
} KERNEL;

struct kvm_memslots {
	struct rb_root gfn_tree; /* from 5.17 on */
	int node_idx;
} KERNEL;

struct kvm {
	struct mm_struct *mm;
	struct kvm_memslots *memslots[1];
} KERNEL;

struct kvm_vcpu {
	struct kvm *kvm;
	int vcpu_id;
	struct kvm_vcpu_arch arch;
} KERNEL;

struct file {
	void *private_data;
} KERNEL;

struct fdtable {
	unsigned int max_fds;
	struct file **fd;
} KERNEL;

struct files_struct {
	struct fdtable *fdt;
} KERNEL;

struct task_struct {
	struct mm_struct *mm;
	struct files_struct *files;
} KERNEL;

/* ---- ours ---- */

#define IOCTL_KVM_RUN 0xae80
#define MEMSLOT_TREE_DEPTH_MAX 24
#define PAGE_SHIFT 12 /* of pieces that are copied */
#define PAGE_BYTES (1ull << PAGE_SHIFT)
#define OUTPUT_BYTES_MAX (sizeof(struct guest_sample) + GUEST_SAMPLE_MEMORY_BYTES_MAX)
#define ERROR_NO_ROOM (-28) /* ENOSPC */

/* Written before an event is enabled, for all that it says. */
struct guest_sample_settings settings;

/* By vCPU: the event with the ring that its samples go into. */
struct {
	__uint(type, BPF_MAP_TYPE_PERF_EVENT_ARRAY);
	__uint(key_size, sizeof(__u32));
	__uint(value_size, sizeof(__u32));
	__uint(max_entries, GUEST_SAMPLE_VCPUS_MAX);
} output SEC(".maps");

/* One sample in the making; bigger than BPF's stack. */
struct scratch {
	struct guest_sample sample;
	__u8 memory[GUEST_SAMPLE_MEMORY_BYTES_MAX];
	/* The verifier does not know that a position and a length are checked together. */
	__u8 guard[PAGE_BYTES + sizeof(struct guest_sample_span)];
	struct kvm *kvm;
	__u64 tables;                  /* the page tables in use; not on arm64 */
	__u64 area;                    /* the vCPU's per-CPU area; 0: not known */
	__u64 cached_page, cached_hva; /* the last translation */
	struct walk walk;
};

/* By vCPU, which is on one CPU at a time; the kernel runs one program of this kind there. Values by CPU are too small.
 */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__type(key, __u32);
	__type(value, struct scratch);
	__uint(max_entries, GUEST_SAMPLE_VCPUS_MAX);
} scratches SEC(".maps");

/* By vCPU: samples that could not go out for another reason than a full ring, which perf counts itself. */
__u64 unsent[GUEST_SAMPLE_VCPUS_MAX];

/*
 * Functions that are not static are verified once, not on each path that leads to them: without, the verifier would
 * take ten times as long.
 */

/* ---- what depends on the processor ---- */

/* By the guest's page tables: the address in QEMU of a piece of a page of guest virtual memory; 0: it is not there. */
__noinline __u64 hva_of_page(struct scratch *s, __u64 gva);
/* Follows s->walk to the caller, and copies what leads there; false at the end. */
__noinline bool walk_step(struct scratch *s);
/* The file descriptor of the ioctl KVM_RUN that the thread is in; false: it is in none. */
static bool call_of(struct task_struct *task, __u64 *fd);
/* Everything but the period and the event; by `number`, the vCPU. */
static void take(struct scratch *s, struct kvm_vcpu *vcpu, __u64 number);

/* ---- guest memory ---- */

static struct kvm_memory_slot *slot_of(struct rb_node *node, int index)
{
	unsigned long offset = bpf_core_field_offset(struct kvm_memory_slot, gfn_node) +
	                       (index & 1) * bpf_core_type_size(struct rb_node);

	return (void *)node - offset;
}

/* The address in QEMU of a guest physical one, by KVM's own tree of memory slots; 0: none. */
__noinline __u64 hva_of(struct scratch *s, __u64 gpa)
{
	if (!s)
		return 0;
	__u64 shift = settings.page_shift & 31, gfn = gpa >> shift;
	struct kvm *kvm = s->kvm;
	struct kvm_memslots *slots = BPF_CORE_READ(kvm, memslots[0]);
	struct rb_node *node = BPF_CORE_READ(slots, gfn_tree.rb_node);
	int index = BPF_CORE_READ(slots, node_idx);

	for (int i = 0; i < MEMSLOT_TREE_DEPTH_MAX && node; i++) {
		struct kvm_memory_slot *slot = slot_of(node, index);
		__u64 base = BPF_CORE_READ(slot, base_gfn), pages = BPF_CORE_READ(slot, npages);

		if (gfn < base)
			node = BPF_CORE_READ(node, rb_left);
		else if (gfn - base >= pages)
			node = BPF_CORE_READ(node, rb_right);
		else
			return BPF_CORE_READ(slot, userspace_addr) + (gpa - (base << shift));
	}
	return 0;
}

/* 0 when it cannot be read, which no word that is asked for may be. */
__noinline __u64 read_word(struct scratch *s, __u64 gva)
{
	__u64 word = 0;

	if (!s)
		return 0;
	__u64 hva = hva_of_page(s, gva & ~(PAGE_BYTES - 1));

	if (hva)
		bpf_probe_read_user(&word, sizeof(word), (void *)(hva + (gva & (PAGE_BYTES - 1))));
	return word;
}

/* A span of what lies in one page; false when it cannot be read or there is no room. */
__noinline bool copy_in_page(struct scratch *s, __u64 gva, __u64 bytes)
{
	if (!s)
		return false;
	__u64 hva = hva_of_page(s, gva & ~(PAGE_BYTES - 1));
	__u64 at = s->sample.memory_bytes;

	if (!hva || bytes > PAGE_BYTES || at >= GUEST_SAMPLE_MEMORY_BYTES_MAX ||
	    at + sizeof(struct guest_sample_span) + bytes > GUEST_SAMPLE_MEMORY_BYTES_MAX)
		return false;
	struct guest_sample_span *span = (void *)&s->memory[at];

	if (bpf_probe_read_user(&s->memory[at + sizeof(*span)], bytes, (void *)(hva + (gva & (PAGE_BYTES - 1)))))
		return false;
	span->gva = gva;
	span->bytes = bytes;
	s->sample.memory_bytes = at + sizeof(*span) + bytes;
	return true;
}

/* `bytes`: a page's at most. */
static bool copy(struct scratch *s, __u64 gva, __u32 bytes)
{
	__u32 in_page = PAGE_BYTES - (gva & (PAGE_BYTES - 1));

	if (bytes <= in_page)
		return copy_in_page(s, gva, bytes);
	return copy_in_page(s, gva, in_page) && copy_in_page(s, gva + in_page, bytes - in_page);
}

/* ---- what a call chain is made of ---- */

/* From s->walk on; how many. */
__noinline __u32 copy_frames(struct scratch *s)
{
	__u32 n = 0;

	while (n < GUEST_SAMPLE_FRAMES_MAX && n < settings.depth && walk_step(s))
		n++;
	return n;
}

/* A per-CPU variable of the guest's, which is no 0; 0: not known. */
static __u64 read_per_cpu(struct scratch *s, __u64 variable)
{
	return s->area && variable ? read_word(s, s->area + variable) : 0;
}

/* The top of user space's stack, or all of it; how many pages. */
__noinline __u32 copy_user_stack(struct scratch *s)
{
	__u32 n = 0;

	if (!s || !settings.user_stack || !settings.user || !s->walk.user_sp)
		return 0;
	__u64 at = s->walk.user_sp & ~7ull;

	for (; n < GUEST_SAMPLE_USER_PAGES; n++) {
		__u64 bytes = PAGE_BYTES - (at & (PAGE_BYTES - 1));

		if (!copy_in_page(s, at, bytes))
			break;
		s->sample.flags |= GUEST_SAMPLE_USER_STACK;
		at += bytes;
	}
	return n;
}

/* ---- the vCPU ---- */

/* The vCPU that this thread runs, by the system call that it is in: ioctl(vcpu, KVM_RUN). NULL: it is not in one. */
static struct kvm_vcpu *vcpu_running(void)
{
	struct task_struct *task = (void *)bpf_get_current_task_btf();
	struct fdtable *table = BPF_CORE_READ(task, files, fdt);
	struct kvm_vcpu *vcpu;
	struct file *file = NULL;
	__u64 fd;

	if (!call_of(task, &fd) || fd >= BPF_CORE_READ(table, max_fds))
		return NULL;
	bpf_probe_read_kernel(&file, sizeof(file), BPF_CORE_READ(table, fd) + fd);
	vcpu = BPF_CORE_READ(file, private_data);
	/* QEMU may name another file than a vCPU; KVM_RUN asks for the same (kvm_vcpu_ioctl). */
	return BPF_CORE_READ(vcpu, kvm, mm) == BPF_CORE_READ(task, mm) ? vcpu : NULL;
}

SEC("perf_event")
int overflow(struct bpf_perf_event_data *context)
{
	__u64 cookie = bpf_get_attach_cookie(context);
	__u64 number = GUEST_SAMPLE_COOKIE_VCPU(cookie) % GUEST_SAMPLE_VCPUS_MAX; /* as the verifier wants it */
	__u32 key = number;
	struct scratch *s = bpf_map_lookup_elem(&scratches, &key);
	struct kvm_vcpu *vcpu = vcpu_running();

	if (!s)
		return 0;
	__builtin_memset(&s->sample, 0, sizeof(s->sample));
	s->sample.period = context->sample_period;
	s->sample.event = GUEST_SAMPLE_COOKIE_EVENT(cookie);
	if (vcpu) {
		s->kvm = BPF_CORE_READ(vcpu, kvm);
		s->sample.flags = GUEST_SAMPLE_IN_KVM;
		take(s, vcpu, number);
	}
	__u64 bytes = sizeof(s->sample) + s->sample.memory_bytes;
	long error =
		bpf_perf_event_output(context, &output, number, s, bytes < OUTPUT_BYTES_MAX ? bytes : OUTPUT_BYTES_MAX);

	if (error && error != ERROR_NO_ROOM)
		__sync_fetch_and_add(&unsent[number], 1);
	return 0;
}

#endif
