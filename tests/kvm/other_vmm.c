// SPDX-License-Identifier: BSD-2-Clause
/*
 * other_vmm [--hugepages | --slow] KERNEL [FOLDER]: a VMM that shares nothing with ours or with QEMU but KVM. With
 * FOLDER it runs there as its root, as nobody, in a PID namespace of its own; with --hugepages, its guest's memory is
 * in those; with --slow, it takes four milliseconds for each exit.
 *
 * Its guest has two slots of memory with a hole between them, in one memfd, the upper half of which comes first, and
 * two vCPUs, 0 and 5; the second waits for its start. A third one, 3, is plugged in later, and computes in real mode.
 * Every vCPU file is held three times. No thread's name tells what it does: one that only sleeps is called "CPU 0/KVM",
 * as QEMU's vCPUs are.
 *
 * It prints the process id of the VMM, and obeys words on its standard input: "move" puts the guest's memory elsewhere
 * in the process, "go" starts the vCPUs and "hold" those that are paused from the start, "pause" keeps them out of the
 * guest and "continue" lets them in again, "plug" makes one more and starts it, and "close", while they are out, ends
 * the virtual machine but not the process, which ends with its input.
 */
#include <elf.h>
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/kvm.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SLOT_BYTES (UINT64_C(32) << 20)
#define UPPER_GPA (UINT64_C(4) << 30)
#define NOBODY 65534
#define XEN_ELFNOTE_PHYS32_ENTRY 18
#define CPUID_ENTRIES_MAX 256
#define CODE_TYPE 11 /* execute, read, accessed (SDM Vol. 3A, table 3-1) */
#define DATA_TYPE 3  /* read, write, accessed */
#define CR0_PE 1u

static const unsigned vcpu_ids[] = {0, 5, 3};
#define VCPUS (sizeof(vcpu_ids) / sizeof(vcpu_ids[0]))
#define VCPUS_AT_START 2
#define REAL_MODE_GPA 0x1000u
#define COPIES 2
#define SLOW_NS 4000000

static bool slow;
static int kvm, vm, memory, vcpus[VCPUS], copies[VCPUS][COPIES];
static size_t n_vcpus; /* the first of them, which are made */
static pthread_t threads[VCPUS];
static struct kvm_run *runs[VCPUS];
static size_t run_bytes;
static pthread_mutex_t pause_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t pause_changed = PTHREAD_COND_INITIALIZER;
static bool paused;       /* under the lock */
static unsigned n_paused; /* vCPUs that are; the same */
static uint8_t *ram;      /* all of the memfd */

static int checked(int result, const char *what)
{
	if (result < 0)
		err(1, "%s", what);
	return result;
}

/* ---- memory ---- */

static void slot_set(unsigned slot, uint64_t gpa, uint64_t bytes, uint8_t *at)
{
	struct kvm_userspace_memory_region region = {
		.slot = slot,
		.guest_phys_addr = gpa,
		.memory_size = bytes,
		.userspace_addr = (uintptr_t)at,
	};

	checked(ioctl(vm, KVM_SET_USER_MEMORY_REGION, &region), "KVM_SET_USER_MEMORY_REGION");
}

static void slots_set(uint64_t bytes)
{
	slot_set(7, 0, bytes, ram + SLOT_BYTES);
	slot_set(3, UPPER_GPA, bytes, ram);
}

static void memory_map(void)
{
	ram = mmap(NULL, 2 * SLOT_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
	if (ram == MAP_FAILED)
		err(1, "mmap");
}

static void memory_move(void)
{
	uint8_t *before = ram;

	memory_map();
	slots_set(0);
	slots_set(SLOT_BYTES);
	/* Nothing may be found where it was. */
	if (mmap(before, 2 * SLOT_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		err(1, "mmap");
}

/* ---- the kernel ---- */

static uint32_t note_entry(const uint8_t *notes, size_t bytes)
{
	for (size_t at = 0; at + sizeof(Elf64_Nhdr) <= bytes;) {
		const Elf64_Nhdr *note = (const void *)(notes + at);
		size_t desc = at + sizeof(*note) + ((note->n_namesz + 3u) & ~3u);
		uint32_t entry;

		if (note->n_type == XEN_ELFNOTE_PHYS32_ENTRY && desc + sizeof(entry) <= bytes) {
			memcpy(&entry, notes + desc, sizeof(entry));
			return entry;
		}
		at = desc + ((note->n_descsz + 3u) & ~3u);
	}
	errx(1, "the kernel has no PVH entry");
}

/* Into the lower slot; returns its entry. */
static uint32_t kernel_load(const char *path)
{
	static uint8_t file[1 << 20];
	int fd = checked(open(path, O_RDONLY), path);
	ssize_t bytes = read(fd, file, sizeof(file));
	const Elf64_Ehdr *header = (const void *)file;
	const Elf64_Phdr *segments = (const void *)(file + header->e_phoff);
	uint32_t entry = 0;

	if (bytes < (ssize_t)sizeof(*header) || memcmp(file, ELFMAG, SELFMAG) != 0)
		errx(1, "%s is no ELF file", path);
	for (unsigned i = 0; i < header->e_phnum; i++) {
		if (segments[i].p_type == PT_LOAD)
			memcpy(ram + SLOT_BYTES + segments[i].p_paddr, file + segments[i].p_offset,
			       segments[i].p_filesz);
		else if (segments[i].p_type == PT_NOTE)
			entry = note_entry(file + segments[i].p_offset, segments[i].p_filesz);
	}
	close(fd);
	return entry;
}

/* ---- vCPUs ---- */

static void segment_set(struct kvm_segment *segment, uint8_t type, uint16_t selector)
{
	*segment = (struct kvm_segment){
		.limit = UINT32_MAX, .selector = selector, .type = type, .present = 1, .db = 1, .s = 1, .g = 1};
}

/* PVH: 32-bit protected mode, flat segments, no paging. */
static void boot_state_set(int vcpu, uint32_t entry)
{
	struct kvm_regs regs = {.rip = entry, .rflags = 2};
	struct kvm_sregs sregs;

	checked(ioctl(vcpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	segment_set(&sregs.cs, CODE_TYPE, 8);
	segment_set(&sregs.ds, DATA_TYPE, 16);
	sregs.es = sregs.fs = sregs.gs = sregs.ss = sregs.ds;
	sregs.cr0 |= CR0_PE;
	checked(ioctl(vcpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	checked(ioctl(vcpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");
}

/* Reset left its registers in real mode. */
static void real_mode_state_set(int vcpu)
{
	static const uint8_t code[] = {0xeb, 0xfe}; /* jmp to itself */
	struct kvm_mp_state state = {.mp_state = KVM_MP_STATE_RUNNABLE};
	struct kvm_regs regs = {.rip = REAL_MODE_GPA, .rflags = 2};
	struct kvm_sregs sregs;

	memcpy(ram + SLOT_BYTES + REAL_MODE_GPA, code, sizeof(code));
	checked(ioctl(vcpu, KVM_GET_SREGS, &sregs), "KVM_GET_SREGS");
	sregs.cs.selector = 0;
	sregs.cs.base = 0;
	checked(ioctl(vcpu, KVM_SET_SREGS, &sregs), "KVM_SET_SREGS");
	checked(ioctl(vcpu, KVM_SET_REGS, &regs), "KVM_SET_REGS");
	checked(ioctl(vcpu, KVM_SET_MP_STATE, &state), "KVM_SET_MP_STATE");
}

static void vcpu_create(void)
{
	struct kvm_cpuid2 *cpuid = calloc(1, sizeof(*cpuid) + CPUID_ENTRIES_MAX * sizeof(cpuid->entries[0]));
	const size_t i = n_vcpus++;

	cpuid->nent = CPUID_ENTRIES_MAX;
	checked(ioctl(kvm, KVM_GET_SUPPORTED_CPUID, cpuid), "KVM_GET_SUPPORTED_CPUID");
	vcpus[i] = checked(ioctl(vm, KVM_CREATE_VCPU, vcpu_ids[i]), "KVM_CREATE_VCPU");
	checked(ioctl(vcpus[i], KVM_SET_CPUID2, cpuid), "KVM_SET_CPUID2");
	for (size_t copy = 0; copy < COPIES; copy++)
		copies[i][copy] = checked(dup(vcpus[i]), "dup");
	runs[i] = mmap(NULL, run_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, vcpus[i], 0);
	if (runs[i] == MAP_FAILED)
		err(1, "mmap");
	free(cpuid);
}

/* No device is there, so every bit that is read is 1: a serial port is then ready to take what is written. */
static void port_answer(struct kvm_run *run)
{
	if (run->exit_reason == KVM_EXIT_IO && run->io.direction == KVM_EXIT_IO_IN)
		memset((uint8_t *)run + run->io.data_offset, 0xff, (size_t)run->io.size * run->io.count);
}

/* Until the guest may go on. */
static void wait_while_paused(void)
{
	pthread_mutex_lock(&pause_lock);
	n_paused++;
	pthread_cond_broadcast(&pause_changed);
	while (paused)
		pthread_cond_wait(&pause_changed, &pause_lock);
	n_paused--;
	pthread_mutex_unlock(&pause_lock);
}

static void *vcpu_thread(void *data)
{
	size_t number = (size_t)((const int *)data - vcpus);
	struct kvm_run *run = runs[number];

	prctl(PR_SET_NAME, "worker) R 1 (");
	for (;;) {
		if (ioctl(vcpus[number], KVM_RUN, 0) != 0) {
			if (errno != EINTR)
				err(1, "KVM_RUN");
			run->immediate_exit = 0;
			wait_while_paused();
			continue;
		}
		port_answer(run);
		if (slow)
			nanosleep(&(struct timespec){.tv_nsec = SLOW_NS}, NULL);
		if (run->exit_reason == KVM_EXIT_SHUTDOWN || run->exit_reason == KVM_EXIT_INTERNAL_ERROR ||
		    run->exit_reason == KVM_EXIT_FAIL_ENTRY)
			errx(1, "the guest has ended: exit reason %u", run->exit_reason);
	}
}

static void on_signal(int number)
{
	(void)number;
}

static void vcpus_pause(void)
{
	pthread_mutex_lock(&pause_lock);
	paused = true;
	for (size_t i = 0; i < n_vcpus; i++) {
		runs[i]->immediate_exit = 1;
		pthread_kill(threads[i], SIGUSR1);
	}
	while (n_paused < n_vcpus)
		pthread_cond_wait(&pause_changed, &pause_lock);
	pthread_mutex_unlock(&pause_lock);
}

static void vcpus_continue(void)
{
	pthread_mutex_lock(&pause_lock);
	paused = false;
	pthread_cond_broadcast(&pause_changed);
	pthread_mutex_unlock(&pause_lock);
}

static pthread_t thread_start(void *(*function)(void *data), void *data)
{
	pthread_t thread;

	if (pthread_create(&thread, NULL, function, data) != 0)
		errx(1, "pthread_create");
	return thread;
}

/* Once. */
static void vcpu_plug(void)
{
	const size_t i = n_vcpus;

	if (i == VCPUS)
		errx(1, "there is no other vCPU to plug in");
	vcpu_create();
	real_mode_state_set(vcpus[i]);
	threads[i] = thread_start(vcpu_thread, &vcpus[i]);
}

/* The machine is gone with its last file. */
static void machine_close(void)
{
	for (size_t i = 0; i < n_vcpus; i++) {
		munmap(runs[i], run_bytes);
		close(vcpus[i]);
		for (size_t copy = 0; copy < COPIES; copy++)
			close(copies[i][copy]);
	}
	close(vm);
}

static void *sleeping_thread(void *data)
{
	prctl(PR_SET_NAME, "CPU 0/KVM");
	pause();
	return data;
}

static void vcpus_start(void)
{
	const struct sigaction action = {.sa_handler = on_signal};

	checked(sigaction(SIGUSR1, &action, NULL), "sigaction");
	for (size_t i = 0; i < n_vcpus; i++)
		threads[i] = thread_start(vcpu_thread, &vcpus[i]);
}

/* Each vCPU has a thread then, as KVM sees it, and has executed nothing. */
static void vcpus_hold(void)
{
	paused = true;
	for (size_t i = 0; i < n_vcpus; i++)
		runs[i]->immediate_exit = 1;
	vcpus_start();
	vcpus_pause();
}

/* ---- the process ---- */

static void machine_create(const char *kernel, bool hugepages)
{
	kvm = checked(open("/dev/kvm", O_RDWR | O_CLOEXEC), "/dev/kvm");
	vm = checked(ioctl(kvm, KVM_CREATE_VM, 0), "KVM_CREATE_VM");
	ioctl(vm, KVM_SET_TSS_ADDR, 0xfffbd000); /* Intel's want one */
	checked(ioctl(vm, KVM_CREATE_IRQCHIP, 0), "KVM_CREATE_IRQCHIP");
	run_bytes = (size_t)checked(ioctl(kvm, KVM_GET_VCPU_MMAP_SIZE, 0), "KVM_GET_VCPU_MMAP_SIZE");
	memory = checked(memfd_create("ram", MFD_CLOEXEC | (hugepages ? MFD_HUGETLB : 0)), "memfd_create");
	checked(ftruncate(memory, 2 * SLOT_BYTES), "ftruncate");
	memory_map();
	slots_set(SLOT_BYTES);
	while (n_vcpus < VCPUS_AT_START)
		vcpu_create();
	boot_state_set(vcpus[0], kernel_load(kernel));
}

static void obey(void)
{
	char word[16];

	while (scanf("%15s", word) == 1) {
		if (strcmp(word, "move") == 0)
			memory_move();
		else if (strcmp(word, "go") == 0)
			vcpus_start();
		else if (strcmp(word, "hold") == 0)
			vcpus_hold();
		else if (strcmp(word, "pause") == 0)
			vcpus_pause();
		else if (strcmp(word, "continue") == 0)
			vcpus_continue();
		else if (strcmp(word, "plug") == 0)
			vcpu_plug();
		else if (strcmp(word, "close") == 0)
			machine_close();
		printf("%s: done\n", word);
		fflush(stdout);
	}
}

/* KVM belongs to the process that has made the machine: this comes first. */
static void enter(void)
{
	int status;

	checked(unshare(CLONE_NEWPID), "unshare");
	pid_t child = checked(fork(), "fork");

	if (child > 0) {
		printf("%d\n", (int)child);
		fflush(stdout);
		close(STDIN_FILENO);
		waitpid(child, &status, 0);
		exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
	}
}

static void lock_up(const char *folder)
{
	checked(chroot(folder), folder);
	checked(chdir("/"), "chdir");
	checked(setgid(NOBODY), "setgid");
	checked(setuid(NOBODY), "setuid");
	/* Which a new user id takes away. */
	checked(prctl(PR_SET_PDEATHSIG, SIGKILL), "prctl");
}

int main(int argc, char **argv)
{
	bool hugepages = argc > 1 && strcmp(argv[1], "--hugepages") == 0;

	slow = argc > 1 && strcmp(argv[1], "--slow") == 0;
	char **arguments = argv + 1 + (hugepages || slow);

	if (!arguments[0] || (arguments[1] && arguments[2]))
		errx(2, "usage: other_vmm [--hugepages | --slow] KERNEL [FOLDER]");
	if (arguments[1])
		enter();
	else
		printf("%d\n", (int)getpid());
	machine_create(arguments[0], hugepages);
	if (arguments[1])
		lock_up(arguments[1]);
	thread_start(sleeping_thread, NULL);
	puts("ready");
	fflush(stdout);
	obey();
	return 0;
}
