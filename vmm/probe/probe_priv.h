// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the files of probes. */
#ifndef VPROF_PROBE_PROBE_PRIV_H
#define VPROF_PROBE_PROBE_PRIV_H

#include <stdatomic.h>
#include <vprof/probe.h>

#include "guest/elf_note.h"
#include "guest/field_path.h"
#include "guest/operand.h"
#include "linux/cgroup.h"
#include "linux/file_code.h"
#include "linux/module.h"
#include "linux/syscall_table.h"
#include "linux/tracepoint.h"
#include "probe/probe.h"
#include "probe/probe_text.h"
#include "stream/mapper.h"
#include "stream/namer.h"

/* What makes a probe fire. */
enum probe_trigger { PROBE_BY_TIMER, PROBE_BY_BREAKPOINT, PROBE_BY_ACCESS, PROBE_BY_RECORDING };

struct probe_source {
	enum probe_trigger trigger;
	bool every_vcpu; /* of a timer */
	unsigned needs;  /* of enum processor_probes: what the guest's processor has to have; 0: nothing */
	bool traces;     /* PROBE_BY_BREAKPOINT: a static trace point; its arguments depend on the kernel */
	bool programs;   /* PROBE_BY_BREAKPOINT: of user space, PATH:FUNCTION in `symbol` */
	bool notes;      /* of `programs`: static probes, PATH:PROVIDER:NAME in `symbol` */
	bool returns; /* PROBE_BY_BREAKPOINT: it fires where the function returns, with what it returns and the time */
	bool calls;   /* PROBE_BY_BREAKPOINT: behind the first, its arguments are those of the system call `symbol` */
	/*
	 * PROBE_BY_BREAKPOINT: kernel functions at the first instruction of which the probe is, best first, up to NULL;
	 * NULL: those of the spec.
	 */
	const char *const *entries;
	/* PROBE_BY_ACCESS: whether the exit matches the probe, and the arguments of the event. */
	bool (*access)(const struct probe_spec *spec, const struct guest_access *access, uint64_t *arguments);
	/* PROBE_BY_BREAKPOINT: whether the breakpoint matches, and the arguments of the event. The vCPU's thread. */
	bool (*hit)(const struct probe_spec *spec, struct guest *guest, const struct guest_regs *regs,
	            const struct guest_gprs *gprs, uint64_t *arguments);
};
extern const struct probe_source probe_sources[PROBE_KINDS];

/* [M] main thread only, [I] immutable while the probe is in its set, [a] atomic. */
struct probe {
	struct guest_breakpoint breakpoint; /* [I] first: the argument of `hit`; PROBE_BY_BREAKPOINT */
	struct probe_set *set;              /* [I] */
	unsigned id;                        /* [I] */
	struct probe_spec spec;             /* [I] */
	struct probe_options options;       /* [I] */
	GSource *timer;                     /* [M] PROBE_BY_TIMER while recording */
	struct probe_returns *returns;      /* [I] of a provider that returns; it has its own legend; NULL */
	struct probe_tracepoint *traced;    /* [I] of a trace point, which has breakpoints of its own; NULL */
	struct probe_user *user;            /* [I] of a function of a program, with breakpoints of its own; NULL */
	struct probe_module *module;        /* [I] that the function is in; NULL: the kernel itself */
	GArray *arguments;                  /* [I] of struct tracepoint_argument; NULL: those of the provider */
	struct probe_fields fields;         /* [I] the same by name and type */
	struct probe_values *values;        /* [I] of a probe with fields besides its arguments; NULL */
	struct vprof_instruction *program;  /* [I] that runs instead of an event; NULL */
	size_t n_program;                   /* [I] */
	_Atomic uint64_t events;            /* [a] by several vCPUs */
};

/* [I] all of it. */
struct probe_module {
	const struct module_layout *layout; /* the session's */
	struct module module;
};

/* [v] the vCPU's thread only; [a] stored by it, loaded by any. */
struct probe_vcpu {
	bool recording;             /* [v] */
	struct ring *ring;          /* [v] the set's */
	struct task_cpu cpu;        /* [v] */
	struct announcer announcer; /* [v] */
	struct namer namer;         /* [v] */
	struct mapper *mapper;      /* [v] its processes; NULL: no call chains, or no mappings */
	_Atomic uint64_t event, dropevt, quirk, no_task, no_arguments, fault, hit; /* [a] */
};

/*
 * [M]. probes, kernel and orc do not change while vCPUs record, since their threads read them; claims belongs to these
 * threads.
 */
struct probe_set {
	struct guest_observer observer; /* first: the argument of `exited` */
	struct probe_hub *hub;
	GPtrArray *probes; /* of struct probe */
	GSource *watch;    /* of processes that begin, while it records; NULL */
	unsigned last_id;
	bool recording;
	struct ring **rings;                /* one for each vCPU once recorded; NULL */
	struct probe_vcpu *vcpus;           /* one for each vCPU */
	const struct kernel_layout *kernel; /* NULL: tasks are not told apart */
	struct task_claims *claims;
	const struct orc *orc; /* NULL: chains by frame pointers */
	uint64_t skiptick;
	struct program_map *maps[VPROF_MAPS_MAX]; /* of its programs, as probes */
	unsigned n_maps;
	_Atomic bool exited; /* [a] by a program: no other runs any more */
};

struct probe_hub {
	struct guest *guest;
	struct session *session;
	GPtrArray *sets;                 /* borrowed */
	struct probe_text *text;         /* NULL: not needed yet, or the image is not known */
	bool has_types;                  /* what follows has been looked for */
	struct tracepoints *tracepoints; /* NULL: none, for the reason tracepoints_why */
	GError *tracepoints_why;
	struct syscall_table *calls; /* NULL: without symbols */
	struct btf *btf;             /* NULL: the kernel has none */
	GBytes *btf_bytes;
	uint64_t markers; /* by clients, so far */
};

/* probe_event.c, on the vCPU's thread. */
void probe_event_hit(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                     const struct guest_gprs *gprs);
void probe_event_exited(struct guest_observer *observer, unsigned vcpu, const struct guest_access *access,
                        const struct guest_regs *regs, const struct guest_gprs *gprs);
void probe_event_tick(struct probe *probe, unsigned vcpu);
/* With the arguments of its provider. */
void probe_event_marker(struct probe *probe, unsigned vcpu, const uint64_t *arguments);
/* Recording begins or ends. `knows` false: the vCPU has no registers any more. */
void probe_event_edge(struct probe *probe, unsigned vcpu, bool knows);
/* Writes what was dropped into the ring, and wakes its reader. */
void probe_event_finish(struct probe_vcpu *cpu, unsigned vcpu);

/* A probe that fires, on the vCPU's thread. */
struct firing {
	struct probe *probe;
	unsigned vcpu;
	const struct guest_regs *regs;
	const struct guest_gprs *gprs;
	uint64_t values[VPROF_PROBE_VALUES_MAX];
	size_t n_values;
	bool bare;                    /* the arguments are not known, and so no value has its place */
	uint64_t task;                /* task_struct, once looked for; 0: not known */
	const struct user_code *code; /* of the task's process; NULL: not known */
};

#define PROBE_CHAIN_MAX (UNWIND_CHAIN_MAX + 1u)

/* Any number of times: the values stay as they are. */
void probe_event_record(const struct firing *firing);
void probe_event_fill_task(struct firing *firing, struct probe_vcpu *cpu, struct record_id *id);
unsigned probe_event_fill_chain(const struct firing *firing, uint64_t chain[PROBE_CHAIN_MAX]);

/* probe.c: not while it records. */
bool probe_set_may_change(const struct probe_set *set, GError **error);
struct probe *probe_set_find(const struct probe_set *set, unsigned id, GError **error);

/* probe_program.c: runs the probe's program. */
void probe_program_run(struct firing *firing);
void probe_program_free_maps(struct probe_set *set);

/* At one of the breakpoints of probe_returns. */
void probe_event_returned(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                          const struct guest_gprs *gprs);

/* probe_return.c: free with g_free; the breakpoints are the probe's to add and remove. */
struct probe_returns *probe_returns_new(struct probe *probe, const struct function_returns *returns);
/* NULL behind the last. */
struct guest_breakpoint *probe_returns_breakpoint(struct probe_returns *self, size_t i);
/* Leaves out all but the first `n`. */
void probe_returns_keep(struct probe_returns *self, size_t n);
struct probe *probe_returns_probe(const struct guest_breakpoint *breakpoint);
/* Forgets all calls; while no vCPU records. */
void probe_returns_reset(struct probe_returns *self);
uint64_t probe_returns_forgotten(const struct probe_returns *self);
/*
 * On the vCPU's thread: with the stack pointer at the first instruction of a call, and where it returns. `space`: the
 * address space that it is in; 0: the kernel's.
 */
void probe_returns_enter(struct probe_returns *self, uint64_t space, uint64_t stack);
/* False when the entry was not seen. */
bool probe_returns_leave(struct probe_returns *self, uint64_t space, uint64_t stack, uint64_t *ns);

/*
 * Loads what is known of the kernel's code. False after an error; without an image, hub->text stays NULL.
 */
bool probe_hub_load_text(struct probe_hub *hub, GError **error);

/*
 * probe_arguments.c: those of a probe that depend on the kernel, of struct tracepoint_argument, for the caller to
 * unref. NULL: those of the provider, or after an error, which only trace points have.
 */
GArray *probe_hub_arguments(struct probe_hub *hub, const struct probe_spec *spec, GError **error);
void probe_fields_fill(const GArray *arguments, struct probe_fields *fields);
size_t probe_count_arguments(const struct probe *probe);
/* With the bits that their types have. */
void probe_arguments_extend(const struct probe *probe, uint64_t *arguments);

/* probe_place.c: all breakpoints of a probe by breakpoint, or none. */
bool probe_place(struct probe *probe, GError **error);
void probe_unplace(struct probe *probe);

/*
 * probe_module.c: where the probe's function of a module, MODULE:NAME, begins; sets probe->module. Errors:
 * PROBE_ERROR_UNKNOWN, those of session_modules_read.
 */
bool probe_module_find(struct probe *probe, uint64_t *address, GError **error);
/* Whether the probe is in no module, or in one that is still loaded. Of a hit, on the vCPU's thread: */
bool probe_module_runs(const struct probe *probe, const struct guest_regs *regs);
/* On the main thread: */
bool probe_module_is_there(const struct probe *probe);

/*
 * probe_user.c: breakpoints in the processes that have the program and that the options choose; sets probe->user, and
 * probe->returns of a probe of returns, without breakpoints. Errors: PROBE_ERROR, GUEST_ERROR.
 */
bool probe_user_place(struct probe *probe, GError **error);
void probe_user_remove(struct probe *probe);
size_t probe_user_processes(const struct probe_user *self); /* that it is in */
/* A file with the program's name that a process has, under another path; NULL. Borrowed. */
const char *probe_user_similar(const struct probe_user *self);
/* Which kind its breakpoints have, and whether all of them are there. */
enum guest_breakpoint_kind probe_user_kind(const struct probe_user *self);
bool probe_user_intact(struct probe *probe);
const struct user_program *probe_user_program(const struct probe_user *self);
/* Those that began later, and that found no breakpoint free; since probe_user_reset. */
uint64_t probe_user_unplaced(const struct probe_user *self);
void probe_user_reset(struct probe_user *self);
/* Looks for processes that begin and end, now and from now on, until it is destroyed. NULL: no probe has programs. */
GSource *probe_user_watch(struct probe_set *set);
struct probe *probe_user_probe(const struct guest_breakpoint *breakpoint);
enum user_found {
	USER_ABSENT,
	USER_LATER,   /* it cannot be checked now */
	USER_REFUSED, /* for a reason */
	USER_HERE,
};
/* [M] main thread only, [I] immutable while it is used. */
struct user_site {
	struct guest_breakpoint breakpoint; /* [I] first: the argument of `hit` */
	struct probe *probe;                /* [I] */
	struct file_code code;              /* [I] of a patch */
	size_t place;                       /* [I] of a patch: which of the program's places */
	bool is_used;                       /* [M] of a breakpoint of the processor */
};
/* probe_file.c: whether there can be patches in files. Errors: PROBE_ERROR_UNSUPPORTED. */
bool probe_file_may_place(const struct probe *probe, const struct kernel_layout *kernel, GError **error);
/*
 * Patches in the file, of which a process has the struct file at `file`, unless it has them; behind the
 * others in `sites`, of struct user_site. USER_LATER: its pages are not in memory. USER_REFUSED: an error.
 */
enum user_found probe_file_place(struct probe *probe, GPtrArray *sites, const struct kernel_layout *kernel,
                                 struct page_walk *walk, uint64_t file, GError **error);
void probe_file_remove(struct probe *probe, GPtrArray *sites);
bool probe_file_intact(struct probe *probe, const GPtrArray *sites);
/* What the breakpoint is in the process that has hit it. */
struct user_hit {
	uint64_t mm;
	size_t place;
	bool enters, leaves; /* it is the first place of the program; it is one of the others */
};
/* Of static probes, with their names; NULL: the provider's. For the caller to unref. */
GArray *probe_user_arguments(const struct probe *probe);
/* On the vCPU's thread, of static probes: the arguments at this place. Returns how many of them could not be read. */
unsigned probe_user_read(const struct probe *probe, const struct user_hit *hit, const struct guest_regs *regs,
                         const struct guest_gprs *gprs, uint64_t *arguments);
/* Whether it is one of the probe's. On the vCPU's thread; its task_cpu has an area afterwards. */
bool probe_user_hits(const struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                     struct user_hit *hit);

/* probe_process.c: what is looked for. */
#define USER_PLACES_MAX (1 + FUNCTION_RETURNS_MAX)
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
};
struct user_operands {
	struct guest_operand all[GUEST_OPERANDS_MAX];
	size_t n;
};
/* Whether the task itself is chosen, as one of the process, or a thread of it. No lock, no allocation. */
bool user_program_has(const struct user_program *program, const struct kernel_layout *kernel, struct page_walk *walk,
                      const struct task *task);
/* From the options of the probe; starts as zero. Errors: PROBE_ERROR_SYNTAX. */
bool user_program_init(struct user_program *program, const struct probe *probe, GError **error);
void user_program_clear(struct user_program *program);
/* Whether the task stands for a process that is chosen. `walk`: with the kernel's part. */
bool user_program_wants(const struct user_program *program, const struct kernel_layout *kernel, struct page_walk *walk,
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
enum user_found user_program_find(const struct user_program *program, const struct kernel_layout *kernel,
                                  struct page_walk *walk, const struct task *task, struct user_place *place,
                                  char **similar, char **why);
/* probe_event.c: at one of these breakpoints. */
void probe_event_in_program(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                            const struct guest_gprs *gprs);

/* At one of the breakpoints of probe_tracepoint. */
void probe_event_traced(struct guest_breakpoint *breakpoint, unsigned vcpu, const struct guest_regs *regs,
                        const struct guest_gprs *gprs);

/* probe_tracepoint.c; the breakpoints are the probe's to add and remove. */
const struct tracepoints *probe_hub_tracepoints(struct probe_hub *hub, GError **error);
const struct btf *probe_hub_btf(struct probe_hub *hub); /* NULL: the kernel has none */
bool probe_hub_has_calls(struct probe_hub *hub);        /* hub->calls is there */
struct probe_tracepoint *probe_tracepoint_new(struct probe *probe, GError **error);
void probe_tracepoint_free(struct probe_tracepoint *self); /* NULL is fine */
const struct tracepoint *probe_tracepoint_find(struct probe_hub *hub, const struct probe_spec *spec, GError **error);
const GArray *probe_tracepoint_sites(const struct probe_tracepoint *self); /* of struct tracepoint_site */
/* NULL behind the last. */
struct guest_breakpoint *probe_tracepoint_breakpoint(struct probe_tracepoint *self, size_t i);
/* One more, for this site; given back, the last one is none any more. */
struct guest_breakpoint *probe_tracepoint_take(struct probe_tracepoint *self, struct probe *probe,
                                               const struct tracepoint_site *site, uint64_t address);
void probe_tracepoint_give_back(struct probe_tracepoint *self);
/* On the vCPU's thread. */
struct probe *probe_tracepoint_probe(const struct guest_breakpoint *breakpoint);
uint64_t probe_tracepoint_nop(const struct guest_breakpoint *breakpoint);
enum tracepoint_outcome probe_tracepoint_run(const struct guest_breakpoint *breakpoint, const struct guest_regs *regs,
                                             const struct guest_gprs *gprs, uint64_t *arguments);

/* probe_values.c: those of `fields` that begin with an argument of the probe; NULL: none. In probe->values. */
bool probe_values_new(struct probe *probe, const char *const *fields, GError **error);
/* "struct file *file", for parameters of a function that are in a register each; freed by g_strfreev. */
char **probe_parameter_types(struct probe_hub *hub, const struct probe_spec *spec);
void probe_values_free(struct probe_values *self); /* NULL is fine */
const struct probe_path *probe_values_paths(const struct probe_values *self, size_t *n);
/*
 * On the vCPU's thread: behind the *n values that there are, of which the first are the arguments. `task`: that runs,
 * 0: not known. Returns how many of
 * them could not be read. NULL: does nothing.
 */
unsigned probe_values_read(const struct probe_values *self, struct guest *guest, const struct guest_regs *regs,
                           uint64_t task, uint64_t *values, size_t *n);

/* One of them, on the vCPU's thread; false, and the words unchanged, when it could not be read. */
bool probe_values_read_one(const struct probe_values *self, struct page_walk *walk, unsigned field,
                           const uint64_t *arguments, uint64_t task, uint64_t *words);

/* probe_timer.c; a timer runs on the main context. */
GSource *probe_timer_start(struct probe *probe);
void probe_timer_stop(GSource *timer);

#endif
