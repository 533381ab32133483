// SPDX-License-Identifier: BSD-2-Clause
/*
 * The door to an operating system: what a session, probes and the control server ask of the system that a guest runs.
 * Each system has a folder of its own (linux/, demo_os/), which nothing but the engines' main.c names.
 *
 * A system is a struct guest_os. Its capabilities are small tables; a system that lacks one has NULL there, and a
 * sentence says why. Of the kernel of a guest, a system makes a struct os_kernel, which has the tables of what can be
 * done with that kernel: one that does not say where it has its modules has no table of them.
 *
 * Unless a call says otherwise, it takes no lock and allocates nothing, for vCPU threads; `walk` is in any address
 * space with the kernel's part. Guest memory is not trusted: what cannot be right is not found.
 */
#ifndef VPROF_GUEST_OS_H
#define VPROF_GUEST_OS_H

#include <vprof/recording.h>

#include "guest/btf.h"
#include "guest/file_code.h"
#include "guest/gprs.h"
#include "guest/module.h"
#include "guest/page_walk.h"
#include "guest/task.h"
#include "guest/tracepoint.h"
#include "guest/unwind.h"
#include "lib/symbol/symtab.h"

struct kernel_found;
struct look;
struct os_kernel;

/* ---- tasks ---- */

/* The task that a vCPU runs, and others of which the address is known. */
struct os_tasks {
	/*
	 * The task that the vCPU with these registers runs. False when it cannot be known: before the kernel is set up,
	 * or when its memory is inconsistent. `walk` ends in the address space of the task, with the kernel's part.
	 */
	bool (*read)(const struct os_kernel *kernel, const struct task_cpu *cpu, struct guest *guest,
	             const struct guest_regs *regs, struct page_walk *walk, struct task *task);
	/* The same for the task with its record at `address`. */
	bool (*read_at)(const struct os_kernel *kernel, const struct task_cpu *cpu, struct guest *guest,
	                const struct guest_regs *regs, uint64_t address, struct page_walk *walk, struct task *task);
	/* The parent of a task: the task that the kernel notifies of its end. NULL: tasks have none. */
	bool (*parent)(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task,
	               struct task *parent);
	/* The same, what it is called only. False: it is not known. */
	bool (*parent_ids)(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task,
	                   struct task_parent *parent);
	/* A number that changes when the task executes another program; 0: not known. */
	uint32_t (*execs)(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task);
	/* True when the task has exited, or its record belongs to another task. */
	bool (*has_ended)(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task);
	/*
	 * *walk becomes the address space of a task's process, with the kernel's part. False for a kernel thread, and
	 * where the process's page tables are not known: then it is that of `from`.
	 */
	bool (*space)(const struct os_kernel *kernel, const struct page_walk *from, const struct task *task,
	              struct page_walk *walk);
	/* The area of some processor, for reading tasks by that run on none; 0: not known, or not needed. */
	uint64_t (*any_area)(const struct os_kernel *kernel, struct page_walk *walk);
};

/* All tasks, and what each does. */
struct os_list {
	/* Whether the kernel is where `walk` leads: one word is read. */
	bool (*is_there)(const struct os_kernel *kernel, struct page_walk *walk);
	/* Without the idle ones of the processors. Allocates; free with task_list_clear. */
	void (*read)(const struct os_kernel *kernel, struct page_walk *walk, struct task_list *list);
	/* The task with its record at `address`; false when there is none. */
	bool (*read_at)(const struct os_kernel *kernel, struct page_walk *walk, uint64_t address,
	                struct listed_task *task);
	/* The frame in which a task that is not on a processor will go on. False: its stack cannot be read. */
	bool (*frame)(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task,
	              struct frame *frame);
	/* Whether a task that was not on a processor has not been on one since, and its stack is what it was. */
	bool (*sleeps_on)(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task);
	/* Where a task with this call chain waits: the first frame outside the scheduler and locks; 0: none. */
	uint64_t (*wait_channel)(const struct os_kernel *kernel, const uint64_t *chain, size_t n);
	/* Whether the code at `ip` is the scheduler's, which says nothing of what is waited for. */
	bool (*only_schedules)(const struct os_kernel *kernel, uint64_t ip);
};

/* Where tasks take turns. All of it at the first instruction of a function of the kernel. */
struct os_switches {
	/* Every switch goes through here; 0: not found. */
	gva_t (*at)(const struct os_kernel *kernel);
	/* There: the addresses of the task that is left, and of the next one. */
	void (*tasks)(const struct guest_gprs *gprs, uint64_t *previous, uint64_t *next);
	/* Every change of a task's name goes through here; 0: not found. */
	gva_t (*rename_at)(const struct os_kernel *kernel);
	/* There: the address of the task, and the name that it is given. False: that cannot be read. */
	bool (*renamed)(struct page_walk *walk, const struct guest_gprs *gprs, uint64_t *task,
	                char comm[TASK_COMM_BYTES]);
	/* What ends waits; 0: not found. */
	gva_t (*wake_at)(const struct os_kernel *kernel);
	/* There: the address of the task to be woken, */
	uint64_t (*woken)(const struct guest_gprs *gprs);
	/* and whether it waits for this, and does not run. */
	bool (*wakes)(const struct os_kernel *kernel, struct page_walk *walk, const struct guest_gprs *gprs);
	/* Whether the vCPU, which runs this task, is in an interrupt. */
	bool (*in_interrupt)(const struct os_kernel *kernel, struct page_walk *walk, const struct task_cpu *cpu,
	                     const struct task *task);
};

struct os_lock {
	enum vprof_lock kind;
	uint64_t lock;
	uint64_t owner; /* address of the task that holds it; 0: not known, such as of readers */
};

/* Why tasks wait. */
struct os_waits {
	/* The lock that a task waits for which is on no processor. False: it waits for none, or it cannot be told. */
	bool (*lock)(const struct os_kernel *kernel, struct page_walk *walk, const struct listed_task *task,
	             struct os_lock *lock);
};

#define OS_GROUP_PATH_BYTES 1024u /* longer ones are not read */

/* A group of tasks, as a cgroup of Linux. */
struct os_group {
	uint64_t id;   /* a later group normally has another */
	uint64_t node; /* address of the system's own record of it */
};

struct os_groups {
	/* The group of a task; false when it cannot be read, or is not set up yet. */
	bool (*read)(const struct os_kernel *kernel, struct page_walk *walk, const struct task *task,
	             struct os_group *group);
	/* "/" or "/a/b", with control characters replaced. Points into `buffer`; NULL when it cannot be read. */
	const char *(*path)(const struct os_kernel *kernel, struct page_walk *walk, const struct os_group *group,
	                    char buffer[OS_GROUP_PATH_BYTES]);
};

/* ---- code ---- */

#define OS_FILE_NAME_BYTES 512u /* longer ones are not read */

/* A mapping of a process. */
struct os_mapping {
	uint64_t start, end;
	uint64_t file_offset; /* bytes */
	uint64_t file;        /* address of the system's record of the open file; 0: none */
	bool executable;
};

/* Changes when the process executes another program or changes its executable mappings. */
struct os_mapping_state {
	uint64_t exec_pages, start_code, start_stack;
};

struct os_mappings {
	/*
	 * Calls `each` for the mappings of this address space (struct task), by address, until it returns false.
	 * Returns true when all were visited. Inconsistent mappings are left out.
	 */
	bool (*each)(const struct os_kernel *kernel, struct page_walk *walk, uint64_t mm,
	             bool (*each)(const struct os_mapping *mapping, void *data), void *data);
	bool (*state)(const struct os_kernel *kernel, struct page_walk *walk, uint64_t mm,
	              struct os_mapping_state *state);
	/* The path of a mapping's file, as a process in the first mount namespace would name it. Into `buffer`; NULL.
	 */
	const char *(*file_name)(const struct os_kernel *kernel, struct page_walk *walk, uint64_t file,
	                         char buffer[OS_FILE_NAME_BYTES]);
	/* What names the pages of a mapping's file (struct os_files). False: they cannot be found. */
	bool (*file_pages)(const struct os_kernel *kernel, struct page_walk *walk, uint64_t file, uint64_t *pages);
};

/* Loadable modules, and other code that comes later. */
struct os_modules {
	/*
	 * Reads the list again if it has changed or was incomplete, and the wait is over; takes one read when nothing
	 * has changed. True when it was read.
	 */
	bool (*update)(const struct os_kernel *kernel, struct module_table *table, struct page_walk *walk,
	               uint64_t now_ns);
	/* Whether `update` would read it now. One read. */
	bool (*is_due)(const struct os_kernel *kernel, const struct module_table *table, struct page_walk *walk,
	               uint64_t now_ns);
	/* Whether it is still loaded where it was; it may have been loaded again there. */
	bool (*is_there)(const struct os_kernel *kernel, struct page_walk *walk, const struct module *module);
	/*
	 * Symbols of the module's code, by address in the guest, that take up to `room` bytes. NULL when the kernel
	 * keeps none, or they cannot be read. Allocates.
	 */
	struct symtab *(*symbols)(const struct os_kernel *kernel, struct page_walk *walk, const struct module *module,
	                          uint64_t room);
};

struct os_file;

/* The pages of files that the guest has in memory. Main thread; allocates. */
struct os_files {
	/*
	 * The pages of the first file with this last component of its path; 0, with *why: there is none, or it was not
	 * found in the time that the search may take. `name`: 63 bytes at most. NULL: the kernel does not say.
	 */
	uint64_t (*find)(const struct os_kernel *kernel, struct page_walk *walk, const char *name, const char **why);
	/* NULL when it cannot be read, or the kernel does not have a file there. *bytes: the size of the file. */
	struct os_file *(*open)(const struct os_kernel *kernel, struct page_walk *walk, uint64_t pages,
	                        uint64_t *bytes);
	/* False when page `number`, of 4096 bytes, is not in memory, or has gone meanwhile. */
	bool (*read)(struct os_file *file, uint64_t number, uint8_t page[PAGE_WALK_AHEAD_BYTES]);
	void (*close)(struct os_file *file); /* NULL is fine */
};

/* Instructions of files, in all processes that execute them (guest/file_code.h). */
struct os_file_code {
	/* Of the file with its record at `file`. The code is not read yet. False when that is not readable. */
	bool (*open)(struct file_code *code, const struct os_kernel *kernel, struct page_walk *walk, uint64_t file,
	             uint64_t offset);
	/*
	 * Reads the instruction, without patches of ours. False: it is not in memory. `n` becomes 0 where there is
	 * none, or where a page's end divides it.
	 */
	bool (*read)(struct file_code *code, struct page_walk *walk);
	/* Where its first byte is now. A page that is never written to a disk is clean. */
	enum page_state (*find)(const struct file_code *code, struct page_walk *walk, gpa_t *at);
	/* Whether the task that the vCPU runs has it mapped at this address, in the file's page or in a copy of its
	 * own. */
	bool (*is_mapped)(const struct file_code *code, struct guest *guest, unsigned vcpu,
	                  const struct guest_regs *regs, uint64_t address);
};

/* ---- the kernel itself ---- */

/* A processor's per-CPU area. */
struct os_area {
	uint64_t area;
	uint32_t apic_id;
};

/* Where the kernel keeps what a sample needs whose registers do not tell; addresses in the image, and offsets. */
struct os_places {
	uint64_t current_task;    /* per-CPU: the address of the task that runs; 0: not known */
	uint64_t interrupt_stack; /* per-CPU: the address of the last word of the interrupt stack; 0: not known */
	uint32_t interrupt_stack_behind; /* how far behind the last word that address is */
	uint32_t stack_padding;          /* bytes behind user space's registers at the end of a task's stack */
	uint64_t interrupt_in_use;       /* per-CPU, a byte: whether that is in use; 0: not known */
	uint64_t entry_stack;            /* per-CPU: the stack pointer in entries from user space; 0: not known */
	uint32_t task_stack;             /* in a task: the address of its stack */
	uint32_t task_mm;                /* in a task: the address of its process's memory; */
	uint32_t mm_root;                /* in that: the address of its top-level page table */
};

struct os_areas {
	/* The areas of the processors that the kernel knows, at most `n_max`; returns how many. NULL: not known. */
	size_t (*read)(const struct os_kernel *kernel, struct page_walk *walk, struct os_area *areas, size_t n_max);
	/* What is to be subtracted from mm_root for a physical address. NULL: not known. */
	uint64_t (*direct_map)(const struct os_kernel *kernel, struct page_walk *walk);
};

/* A system call of the guest. */
struct os_call {
	uint64_t number, result, arguments[GUEST_GPR_ARGUMENTS];
};

struct syscall_table;

struct os_calls {
	/*
	 * At the first instruction of a kernel's function that has what user space had in its registers: the call, of
	 * which `result` is valid once it is over. False: it cannot be read.
	 */
	bool (*read)(struct guest *guest, const struct guest_regs *regs, const struct guest_gprs *gprs,
	             struct os_call *call);
	/* Everything that is used of the image is copied. A kernel without such tables has no system calls here. */
	struct syscall_table *(*load)(const struct image *image, const struct symtab *symtab);
	void (*free)(struct syscall_table *table); /* NULL is fine */
	/* Their names in the kernel's source, "openat" and "newstat", in alphabetic order, up to NULL. Borrowed. */
	const char *const *(*names)(const struct syscall_table *table);
	/*
	 * Parameter number `i`, from 0 on, of a system call by the name above; types are found in `btf`, without which
	 * numbers have 64 bits. The caller frees both. False: it has fewer, or there is no such call.
	 */
	bool (*parameter)(const struct syscall_table *table, const struct btf *btf, const char *call, unsigned i,
	                  char **name, struct btf_value *value);
};

struct text_sites;

/* Where a kernel changes its own code. */
struct os_texts {
	/* Of the image that `symtab` is of. */
	struct text_sites *(*load)(const struct image *image, const struct symtab *symtab);
	void (*free)(struct text_sites *text); /* NULL is fine */
	/* What changes the byte at `address`: "a jump label", ...; NULL: nothing does. */
	const char *(*change)(const struct text_sites *text, uint64_t address);
};

/* ---- where a kernel is ---- */

/* A piece of guest memory. */
struct os_scan_run {
	uint64_t gpa, bytes; /* multiples of a page; 0 bytes: nothing is to be read up to there */
};

/* The next piece at or above `from` that may be read without filling it; false: there is none. */
typedef bool (*os_scan_next)(void *data, uint64_t from, struct os_scan_run *run);

/* How far a scan is that takes several looks; all zero at the start. */
struct os_scan {
	uint64_t from;
	unsigned tried; /* what looked like the kernel's tables */
};

/*
 * How a kernel of a system is found in a guest that another VMM runs (guest/kernel_find.h). A table of its own: engines
 * that boot their guests do without the parsers that it needs. Any thread; all but `mark` may allocate.
 */
struct os_search {
	const struct guest_os *os;
	/* Whether this vCPU runs no kernel of the system yet, with an error that says so: KERNEL_FIND_ERROR_EARLY. */
	bool (*early)(const struct seen_vcpu *registers, GError **error);
	/*
	 * Opens the kernel that memory has, where it lies there. On error, what is found of it is the caller's all the
	 * same. Errors: KERNEL_FIND_ERROR, and those of what reads it.
	 */
	bool (*find)(struct look *look, const struct seen_vcpu *registers, struct kernel_found *found, GError **error);
	/* Slides the kernel that was given to where the guest has it. Errors: KERNEL_FIND_ERROR, SYMTAB_ERROR. */
	bool (*slide)(struct guest *guest, const struct seen_vcpu *registers, struct kernel_found *found,
	              GError **error);
	/* The kernel around `code` as memory has it, an image of its own in *fd, which the caller closes. */
	struct image *(*copy)(struct look *look, const struct page_walk *walk, uint64_t code, int *fd, GError **error);
	/* A number that is the same as long as `find` would begin with the same. Ten reads at most. */
	uint64_t (*mark)(struct guest *guest, const struct seen_vcpu *registers);
	/*
	 * Registers with the kernel's own page tables, found in memory alone. False: none were found, and *scan begins
	 * anew, or goes on with the next look where this one has read all that it may. What is found must be checked.
	 */
	bool (*scan)(struct os_scan *scan, struct look *look, os_scan_next next, void *data, bool five_levels,
	             struct seen_vcpu *registers);
};

/* ---- a system, and a kernel of it ---- */

enum os_part {
	OS_TASKS,
	OS_LIST,
	OS_MAPPINGS,
	OS_GROUPS,
	OS_MODULES,
	OS_FILE_CODE,
	OS_SWITCHES,
	OS_WAITS,
	OS_FILES,
	OS_FILE_NAMES,
	OS_AREAS,
	OS_PARTS,
};

/* A capability that needs something of a kernel. */
struct os_need {
	const char *name; /* "cgroups" */
	const char *how;  /* what tells: "types" */
	/* A sentence: what is missing; NULL: nothing. */
	const char *(*why)(const struct os_kernel *kernel);
};

/* The kernel of a guest: what is known of it. Begins what its system keeps of it. Immutable. */
struct os_kernel {
	const struct guest_os *os;
	/* NULL: this kernel lacks it. */
	const struct os_tasks *tasks;
	const struct os_list *list; /* not without tasks, as all that follow */
	const struct os_switches *switches;
	const struct os_waits *waits;
	const struct os_groups *groups;
	const struct os_mappings *mappings;
	const struct os_modules *modules;
	const struct os_files *files;
	const struct os_file_code *file_code;
	const struct os_areas *areas;
	struct os_places places;
	gva_t page_tables;         /* the top-level page table of the kernel itself, which never goes; 0: not found */
	uint32_t entry_record;     /* struct unwind_config */
	const char *why[OS_PARTS]; /* sentences about what is missing; NULL: nothing to be said */
};

struct guest_os {
	const char *name; /* "Linux" */
	/* Whether an image is a kernel of this system. */
	bool (*recognises)(const struct image *image);
	/* What is known of a kernel by its image, which may be freed. Main thread; may take some 100 ms. */
	struct os_kernel *(*load)(const struct image *image);
	/* That of a guest where nothing can be read, for the reason `why`. */
	struct os_kernel *(*none)(const char *why);
	void (*free)(struct os_kernel *kernel);
	/* What the system's kernels can lack, up to one without a name. */
	const struct os_need *needs;
	/* Capabilities that need no kernel's layout; NULL: the system lacks it, */
	const struct os_unwinding *unwinding;
	const struct os_tracepoints *tracepoints;
	const struct os_calls *calls;
	const struct os_texts *texts;
	const char *why_no_tracepoints, *why_no_calls; /* for this reason, a sentence */
};

/* The system of an image: the first of `systems` (struct guest) that recognises it; the first of all: none does. */
const struct guest_os *os_of_image(const struct guest_os *const *systems, const struct image *image);

void os_kernel_free(struct os_kernel *kernel); /* NULL is fine */

/* All that sampling needs of a kernel and that takes long to make of its image. */
struct os_parts {
	const struct guest_os *os;
	struct os_kernel *kernel;     /* NULL: it was taken, as the others may be */
	struct unwind_tables *tables; /* NULL: see tables_why; or there are none for its processor */
	GError *tables_why;           /* NULL; UNWIND_ERROR */
	struct call_sites *sites;     /* NULL: not asked for, or not to be had */
};

/*
 * `running`: the kernel as the guest's memory has it, with the calls that it has patched at boot, to find call sites
 * in; NULL: they are not needed. Any thread.
 */
struct os_parts *os_parts_load(const struct guest_os *const *systems, const struct image *image,
                               const struct image *running);
void os_parts_free(struct os_parts *parts); /* NULL is fine */

#endif
