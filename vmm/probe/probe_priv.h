// SPDX-License-Identifier: BSD-2-Clause
/* Shared by the files of probes. */
#ifndef VPROF_PROBE_PROBE_PRIV_H
#define VPROF_PROBE_PROBE_PRIV_H

#include <stdatomic.h>
#include <vprof/probe.h>

#include "guest/field_path.h"
#include "guest/os.h"
#include "guest/tracepoint.h"
#include "probe/probe.h"
#include "probe/probe_text.h"
#include "stream/sample_stream.h"

struct placement;
struct probe_module;
struct probe_occasion;

/* [M] main thread only, [I] immutable while the probe is in its set, [a] atomic. */
struct probe {
	struct probe_set *set;             /* [I] */
	unsigned id;                       /* [I] */
	struct probe_spec spec;            /* [I] */
	struct probe_options options;      /* [I] */
	struct placement *placement;       /* [I] with its own legend */
	GArray *arguments;                 /* [I] of struct tracepoint_argument; NULL: those of the provider */
	size_t n_arguments;                /* [I] */
	struct probe_fields fields;        /* [I] the same by name and type */
	struct probe_values *values;       /* [I] of a probe with fields besides its arguments; NULL */
	struct vprof_instruction *program; /* [I] that runs instead of an event; NULL */
	size_t n_program;                  /* [I] */
	_Atomic uint64_t events;           /* [a] by several vCPUs */
};

/* [v] the vCPU's thread only; [a] stored by it, loaded by any. */
struct probe_vcpu {
	bool recording;              /* [v] */
	struct task_cpu cpu;         /* [v] */
	struct sample_stream stream; /* [v] while it records, and the main thread's otherwise */
	_Atomic uint64_t event, dropevt, quirk, no_task, no_arguments, fault, hit; /* [a] */
};

/*
 * [M]. probes, kernel and unwind do not change while vCPUs record, since their threads read them; claims belongs to
 * these threads.
 */
struct probe_set {
	struct guest_observer observer; /* first: the argument of `exited` */
	struct probe_hub *hub;
	GPtrArray *probes; /* of struct probe */
	GSource *watch;    /* of processes that begin, while it records; NULL */
	unsigned last_id;
	bool recording;
	struct ring **rings;            /* one for each vCPU once recorded; NULL */
	struct probe_vcpu *vcpus;       /* one for each vCPU */
	const struct os_kernel *kernel; /* NULL: tasks are not told apart */
	struct task_claims *claims;
	struct unwind_config unwind; /* of the kernel, where chains are wanted */
	uint64_t skiptick;
	struct program_map *maps[VPROF_MAPS_MAX]; /* of its programs, as probes */
	unsigned n_maps;
	_Atomic bool exited; /* [a] by a program: no other runs any more */
};

struct probe_hub {
	struct guest *guest;
	struct session *session;
	GPtrArray *sets;                 /* borrowed */
	const struct guest_os *os;       /* of the image, with `text` */
	struct probe_text *text;         /* NULL: not needed yet, or the image is not known */
	bool has_types;                  /* what follows has been looked for */
	struct tracepoints *tracepoints; /* NULL: none, for the reason tracepoints_why */
	GError *tracepoints_why;
	struct syscall_table *calls; /* NULL: without symbols */
	struct btf *btf;             /* NULL: the kernel has none */
	GBytes *btf_bytes;
	uint64_t markers; /* by clients, so far */
};

/* ---- probe.c: what the hub knows of the kernel ---- */

/* Loads what is known of the kernel's code. False after an error; without an image, hub->text stays NULL. */
bool probe_hub_load_text(struct probe_hub *hub, GError **error);
const struct tracepoints *probe_hub_tracepoints(struct probe_hub *hub, GError **error);
const struct btf *probe_hub_btf(struct probe_hub *hub); /* NULL: the kernel has none */
bool probe_hub_has_calls(struct probe_hub *hub);        /* hub->calls is there */

/* Not while it records. */
bool probe_set_may_change(const struct probe_set *set, GError **error);
struct probe *probe_set_find(const struct probe_set *set, unsigned id, GError **error);

/* ---- probe_event.c: from a probe that fires to a record, on the vCPU's thread ---- */

/* A probe that fires. */
struct firing {
	struct probe *probe;
	unsigned vcpu;
	const struct guest_regs *regs;
	const struct guest_gprs *gprs;
	uint64_t values[VPROF_PROBE_VALUES_MAX];
	size_t n_values;
	bool bare;                    /* the arguments are not known, and so no value has its place */
	bool at_entry;                /* the function has no frame of its own, yet or any more */
	bool is_edge;                 /* the recording begins or ends */
	uint64_t task;                /* task_struct, once looked for; 0: not known */
	const struct user_code *code; /* of the task's process; NULL: not known */
};

/* With all its arguments. */
struct firing probe_firing(struct probe *probe, unsigned vcpu, const struct guest_regs *regs,
                           const struct guest_gprs *gprs);
bool probe_records(const struct probe *probe, unsigned vcpu);
void probe_count(_Atomic uint64_t *statistic);
/* The registers that a function gets its first arguments in. */
void probe_read_arguments(const struct guest_gprs *gprs, uint64_t *arguments);
/* The vCPU is in the guest: its task may be found by that. Before each probe_event_fire of a breakpoint. */
void probe_event_note(const struct firing *firing);
/* Records the event with these arguments, or runs the probe's program. */
void probe_event_fire(struct firing *firing);

void probe_event_exited(struct guest_observer *observer, unsigned vcpu, const struct guest_access *access,
                        const struct guest_regs *regs, const struct guest_gprs *gprs);
bool probe_fires(const struct probe *probe, const struct probe_occasion *occasion, uint64_t *arguments);
/* `wants_code`: only when the vCPU is in the guest's own code. */
void probe_event_tick(struct probe *probe, unsigned vcpu, bool wants_code);
void probe_event_marker(struct probe *probe, unsigned vcpu, const uint64_t *arguments);
/* Recording begins or ends. `knows` false: the vCPU has no registers any more. */
void probe_event_edge(struct probe *probe, unsigned vcpu, bool knows);
/* Writes what was dropped into the ring, and wakes its reader. */
void probe_event_finish(struct probe_vcpu *cpu, unsigned vcpu);

#define PROBE_CHAIN_MAX (UNWIND_CHAIN_MAX + 1u)

/* Any number of times: the values stay as they are. */
void probe_event_record(const struct firing *firing);
void probe_event_fill_task(struct firing *firing, struct probe_vcpu *cpu, struct record_id *id);
unsigned probe_event_fill_chain(const struct firing *firing, uint64_t chain[PROBE_CHAIN_MAX]);

/* ---- probe_program.c: runs the probe's program ---- */

void probe_program_run(struct firing *firing);
void probe_program_free_maps(struct probe_set *set);

/* ---- probe_arguments.c, probe_values.c ---- */

void probe_fields_fill(const GArray *arguments, struct probe_fields *fields);
/* With the bits that their types have, of a probe with such arguments. */
void probe_arguments_extend(const struct probe *probe, uint64_t *arguments);

/* Those of `fields` that begin with an argument of the probe; NULL: none. In probe->values. */
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

#endif
