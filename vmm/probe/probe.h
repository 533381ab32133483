// SPDX-License-Identifier: BSD-2-Clause
/*
 * Probes: events in a guest that a client asks for. After OpenBSD's dt(4): a client has a set of probes, which it may
 * change while the set does not record. While it records, events go into rings of its own, one for each vCPU
 * (vprof/ring.h), or are dropped and counted.
 *
 * An event is a PERF_RECORD_SAMPLE with the fields of VPROF_PROBE_SAMPLE_TYPE (vprof/probe.h); tasks are named by
 * PERF_RECORD_COMM as in a session's rings. Main thread only; the events are written on the vCPU threads.
 */
#ifndef VPROF_PROBE_PROBE_H
#define VPROF_PROBE_PROBE_H

#include "guest/field_path.h"
#include "guest/guest_debug.h"
#include "guest/task_match.h"
#include "lib/code/function_returns.h"
#include "lib/probe_name/probe_spec.h"
#include "probe/program.h"
#include "sample/session.h"
#include "stream/ring.h"

/* What all sets of an engine share. The guest's tasks and unwind tables are the session's. */
struct probe_hub;
struct probe_hub *probe_hub_new(struct guest *guest, struct session *session);
void probe_hub_free(struct probe_hub *hub); /* after its sets */

/*
 * Symbols of the kernel, for function probes and their names; NULL and an error when there is no image, or no symbols.
 */
const struct symtab *probe_hub_symtab(struct probe_hub *hub, GError **error);

/*
 * The fields of a probe's events. `types`: as C writes them, with the names that a function has for them; fewer where
 * the others are numbers of 64 bits.
 */
struct probe_fields {
	char **names, **types; /* NULL-terminated */
};
void probe_fields_clear(struct probe_fields *fields);
/* Errors: those of probe_set_add about what there is. */
bool probe_hub_fields(struct probe_hub *hub, const struct probe_spec *spec, struct probe_fields *fields,
                      GError **error);

/* Calls `each` for every trace point that can be probed. Without any, it calls it for none. */
void probe_hub_list_tracepoints(struct probe_hub *hub, void (*each)(void *data, const char *name, bool arguments),
                                void *data);

/* The same for every function of the kernel's modules. */
void probe_hub_list_modules(struct probe_hub *hub, void (*each)(void *data, const char *module, const char *function),
                            void *data);

/*
 * A client has set a marker, the begin or the end of a phase: an event of vCPU 0 for each marker probe that matches
 * `name`. Returns the number of the marker, from 1 on, which is the value of the event.
 */
uint64_t probe_hub_add_marker(struct probe_hub *hub, const char *name, bool end);

/* The argument "by" of a marker's event. */
enum probe_marker { PROBE_MARKER_PORT, PROBE_MARKER_BEGIN, PROBE_MARKER_END };

struct probe_set;
struct probe_set *probe_set_new(struct probe_hub *hub);
/* Stops recording and removes the probes. */
void probe_set_free(struct probe_set *set);

/* A function of a program, or a static probe: where it is, and in which processes; all that the probe's path is mapped
 * in. */
struct probe_binary {
	uint64_t file_offset;    /* of the function's first byte */
	const uint64_t *returns; /* [n_returns] of a probe of returns: where it returns, in the same file */
	size_t n_returns;        /* up to FUNCTION_RETURNS_MAX */
	/*
	 * [n_notes] up to FUNCTION_RETURNS_MAX, of a static probe: each place of it in the file, and its operands
	 * (guest/operand.h), "0x1160 -4@%edi 8@-16(%rbp)" on x86-64. Then file_offset is not used.
	 */
	const char *const *notes;
	size_t n_notes;
	const uint8_t *build_id; /* [build_id_bytes] of the file; 0 bytes: not known */
	size_t build_id_bytes;
	const struct task_targets *targets; /* NULL: all processes. Without descendants */
	const char *cgroup;                 /* its path; NULL: any */
};

struct probe_options {
	uint64_t registers; /* bit n: each event has the n-th of guest_gpr_name */
	bool stack;         /* each event has a call chain */
	/*
	 * Paths (guest/field_path.h) up to NULL, of which those count that begin with an argument of the probe. Not
	 * used after probe_set_add. NULL: none.
	 */
	const char *const *fields;
	const struct probe_binary *binary;     /* not used after probe_set_add; NULL: not given */
	enum guest_breakpoint_kind breakpoint; /* for a probe that takes a breakpoint */
};

#define PROBE_PATHS_MAX 8u

struct probe_path {
	char *name;   /* as it was asked for */
	bool of_task; /* it begins with `curtask`, the task_struct of the task that runs, and not with an argument */
	struct field_path path;
};

struct probe_info {
	unsigned id; /* PERF_SAMPLE_IDENTIFIER of its events, from 1 on; not used again */
	const struct probe_spec *spec;
	struct probe_options options;
	struct probe_fields fields;     /* borrowed */
	const struct probe_path *paths; /* [n_paths]; borrowed */
	size_t n_paths;
	uint64_t events;                       /* since recording began last, dropped ones included */
	enum guest_breakpoint_kind breakpoint; /* the kind of breakpoint it took; GUEST_BREAKPOINT_ANY: none */
	bool is_of_program;                    /* in processes, of which there are `processes` */
	size_t processes;                      /* 0: it waits for one */
	const char *similar;                   /* another file with its name that a process has; NULL; borrowed */
	bool intact; /* false: the guest has overwritten the breakpoint or its page, or unloaded its module: it fires no
	                more */
};

/* Errors: PROBE_ERROR, FIELD_ERROR, GUEST_ERROR (it cannot be placed), those of images and symbol tables. */
bool probe_set_add(struct probe_set *set, const char *text, const struct probe_options *options,
                   struct probe_info *info, GError **error);
/* Errors: PROBE_ERROR_UNKNOWN, PROBE_ERROR_STATE. */
bool probe_set_remove(struct probe_set *set, unsigned id, GError **error);
size_t probe_set_count(const struct probe_set *set);
void probe_set_info(const struct probe_set *set, size_t index, struct probe_info *info);

/*
 * A map for programs; *number counts from 0 on. Errors: PROBE_ERROR_STATE, PROGRAM_ERROR.
 */
bool probe_set_add_map(struct probe_set *set, const struct program_map_spec *spec, unsigned *number, GError **error);
struct program_map *probe_set_map(const struct probe_set *set, unsigned number); /* NULL: there is none */
/*
 * The probe runs this program instead of recording an event. Errors: PROBE_ERROR_UNKNOWN, PROBE_ERROR_STATE,
 * PROGRAM_ERROR.
 */
bool probe_set_program(struct probe_set *set, unsigned id, const struct vprof_instruction *program, size_t n,
                       GError **error);

/* Empties the maps, too. ring_bytes: as session_config.ring_data_bytes. Errors: PROBE_ERROR_STATE, GUEST_ERROR. */
bool probe_set_record(struct probe_set *set, size_t ring_bytes, GError **error);
/* The rings keep their records until the next probe_set_record. Does nothing when the set does not record. */
void probe_set_pause(struct probe_set *set);
bool probe_set_recording(const struct probe_set *set);
/* Whether events have the pid of the guest's task; known once recorded. */
bool probe_set_has_tasks(const struct probe_set *set);
/* NULL before the first probe_set_record. */
struct ring *probe_set_ring(const struct probe_set *set, unsigned vcpu);

/* With dt's names. */
#define PROBE_STATISTICS(X)                                                                                          \
	X(event, "events of the probes, those that were dropped too")                                                \
	X(readevt, "events that a reader has taken out of the rings")                                                \
	X(dropevt, "events dropped because a ring was full")                                                         \
	X(skiptick, "ticks of profile and interval probes that were skipped, being late")                            \
	X(quirk, "ticks of those probes that found a vCPU in a host quirk's page, not in guest code")                \
	X(no_task, "events without a task that could be read, with pid -1")                                          \
	X(fault, "arguments of static probes of programs, and fields, that could not be read in the guest's memory") \
	X(hit, "hits of probes that ran a program")                                                                  \
	X(map_full, "changes by programs of maps that had no room for the key")                                      \
	X(no_arguments, "events of trace points without arguments, because these could not be read")                 \
	X(forgotten, "calls with return probes that were forgotten, because too many had not returned")              \
	X(unplaced, "processes that began later and got no probe of a program, since no breakpoint was free")

struct probe_statistics {
#define X(name, help) uint64_t name;
	PROBE_STATISTICS(X)
#undef X
};
/* Since recording began last, or of the last recording. */
void probe_set_statistics(const struct probe_set *set, struct probe_statistics *out);

#endif
