// SPDX-License-Identifier: BSD-2-Clause
/* Probes of programs: what their two kinds of placement share. */
#ifndef VPROF_PROBE_USER_PRIV_H
#define VPROF_PROBE_USER_PRIV_H

#include <stdatomic.h>

#include "guest/elf_note.h"
#include "guest/operand.h"
#include "guest/os.h"
#include "probe/placement_priv.h"

enum user_found {
	USER_ABSENT,
	USER_LATER,   /* it cannot be checked now */
	USER_REFUSED, /* for a reason */
	USER_HERE,
};

/* ---- what is looked for (probe_process.c) ---- */

#define USER_PLACES_MAX (1 + FUNCTION_RETURNS_MAX)
struct user_operands {
	struct guest_operand all[GUEST_OPERANDS_MAX];
	size_t n;
};
struct user_program {
	char *path;
	uint64_t function;                /* offset in the file of what the places are counted from */
	uint64_t places[USER_PLACES_MAX]; /* offsets in the file: of the entry, and of the returns */
	size_t n_places;
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	size_t build_id_bytes;          /* 0: not known */
	struct task_targets targets;    /* none: all processes */
	char *cgroup;                   /* NULL: any */
	struct user_operands *operands; /* [n_places] of static probes; NULL: none */
	size_t n_arguments;             /* of the place that has the most of them */
	struct probe_calls *calls;      /* of a probe of returns, with its own legend; NULL */
};

/* From the options of the probe, by its kind; `program` starts as zero. Errors: PROBE_ERROR_SYNTAX. */
bool user_program_of_function(struct user_program *program, const struct probe *probe, GError **error);
bool user_program_of_returns(struct user_program *program, const struct probe *probe, GError **error);
bool user_program_of_notes(struct user_program *program, const struct probe *probe, GError **error);
void user_program_clear(struct user_program *program);
/* Whether the task itself is chosen, as one of the process, or a thread of it. No lock, no allocation. */
bool user_program_has(const struct user_program *program, const struct os_kernel *kernel, struct page_walk *walk,
                      const struct task *task);
/* Whether the task stands for a process that is chosen. `walk`: with the kernel's part. */
bool user_program_wants(const struct user_program *program, const struct os_kernel *kernel, struct page_walk *walk,
                        const struct task *task);
struct user_place {
	uint64_t root, mm; /* root: of its page tables */
	uint64_t file;     /* address of its struct file */
	uint64_t base;     /* where byte 0 of the file would be, counted back from its code */
};
/*
 * *similar: NULL, or another file with the same name that was seen before; it becomes that, a new string. *why: of
 * USER_REFUSED, a new string.
 */
enum user_found user_program_find(const struct user_program *program, const struct os_kernel *kernel,
                                  struct page_walk *walk, const struct task *task, struct user_place *place,
                                  char **similar, char **why);

/* ---- the processes that have it (probe_user.c) ---- */

#define USER_PROCESSES_MAX 256u

/* [a] stored by the main thread, loaded by any. A slot that changes while a vCPU looks is of another process for it:
 * root and mm have to fit. */
struct user_process {
	_Atomic uint64_t root; /* [a] of its page tables; 0: a free slot */
	_Atomic uint64_t mm;   /* [a] */
	_Atomic uint64_t base; /* [a] where byte 0 of the file would be, counted back from its code */
};

/* What is known of the process with this mm. */
struct user_looked {
	struct os_mapping_state state;
	unsigned look;                /* the last that has seen it */
	enum user_found found;        /* USER_LATER: look again */
	struct user_process *process; /* NULL: the probe is not in it */
	bool is_counted;              /* in `unplaced` */
};

/* A look at all processes. */
struct user_look {
	const struct os_kernel *kernel;
	struct page_walk *walk; /* by the kernel's own tables */
	unsigned seen;
	char *why;      /* one that has the file mapped is left out */
	bool is_first;  /* all are placed or none */
	GError **error; /* of the first */
	bool failed;
};

/* [M] main thread only, [I] immutable. */
struct user {
	struct placement base;                             /* [I] */
	const struct user_means *means;                    /* [I] */
	struct user_program program;                       /* [I] */
	uint64_t areas[GUEST_VCPUS_MAX];                   /* [I] per-CPU area of each vCPU; 0: not known */
	struct user_process processes[USER_PROCESSES_MAX]; /* [a] */
	GHashTable *looked;                                /* [M] of struct user_looked, by mm */
	unsigned look;                                     /* [M] their number */
	char *similar;                                     /* [M] another file with its name that a process has */
	uint64_t unplaced;                                 /* [M] processes that began later, without breakpoint */
};

struct user_means {
	size_t breakpoints; /* of the processor, that each place of a process takes */
	/* Whether there can be any. NULL: always. */
	bool (*may_place)(const struct user *self, const struct os_kernel *kernel, GError **error);
	/* In a process that the probe is not in; sets looked->process, or what there is instead. */
	void (*enter)(struct user *self, struct user_look *look, struct user_looked *looked,
	              const struct user_place *place);
	/* Processes have left. NULL: nothing to do. */
	void (*prune)(struct user *self);
};

/* As `place`, once placement_new has made it. */
bool user_place(struct user *self, const struct user_means *means, GError **error);
/* Of `remove`, after the breakpoints. */
void user_free(struct user *self);
void user_describe(const struct placement *self, struct probe_info *info);
void user_count(const struct placement *self, struct probe_statistics *out);
void user_start(struct placement *self);

/* A free slot that the process has from now on; NULL: there is none. */
struct user_process *user_process_add(struct user *self, const struct user_place *place);
void user_process_leave(struct user_looked *looked);
void user_leave_all(struct user *self);
/* There was no room for it, or it was refused, when the probe has been there already. */
void user_count_unplaced(struct user *self, struct user_looked *looked);

/* Looks for processes that begin and end, now and from now on, until it is destroyed. NULL: no probe has programs. */
GSource *probe_user_watch(struct probe_set *set);

/* What the breakpoint is in the process that has hit it. */
struct user_hit {
	uint64_t mm;
	size_t place;
	bool enters, leaves; /* it is the first place of the program; it is one of the others */
};
/* On the vCPU's thread: the task that has hit a breakpoint in user space; its task_cpu has an area afterwards. */
bool user_task_read(const struct user *self, unsigned vcpu, const struct guest_regs *regs, struct page_walk *walk,
                    struct task *task);
uint64_t user_root(const struct guest_regs *regs);
void user_fire(const struct user *self, const struct user_hit *hit, unsigned vcpu, const struct guest_regs *regs,
               const struct guest_gprs *gprs);

#endif
