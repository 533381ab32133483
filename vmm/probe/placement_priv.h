// SPDX-License-Identifier: BSD-2-Clause
/*
 * How probes get into a guest, and what makes them fire: a placement for each probe. Each kind of placement is a struct
 * that begins with struct placement, in the file that is named after the kind.
 */
#ifndef VPROF_PROBE_PLACEMENT_PRIV_H
#define VPROF_PROBE_PLACEMENT_PRIV_H

#include "probe/probe_priv.h"

struct user_program;

/* What happens without a breakpoint of the probe's; one of the members is set. */
struct probe_occasion {
	const struct guest_access *access; /* a vCPU has left the guest; NULL */
	const char *marker;                /* of a client; NULL */
	uint64_t marker_number;
	bool marker_ends;
	bool starts, ends; /* the recording */
};

/* Main thread, except `fires`. */
struct placement_ops {
	/* Sets probe->placement. False: nothing of the probe is left in the guest, and it has no placement. */
	bool (*place)(struct probe *probe, GError **error);
	/* Takes it out of the guest, clears probe->placement and frees it. */
	void (*remove)(struct placement *self);
	/* NULL, of each that follows: nothing to do, and never. */
	void (*describe)(const struct placement *self, struct probe_info *info);
	void (*count)(const struct placement *self, struct probe_statistics *out); /* adds to it */
	void (*start)(struct placement *self);                                     /* a recording has begun */
	void (*stop)(struct placement *self);
	/* Whether the occasion is an event of the probe, and its arguments. On any thread. */
	bool (*fires)(const struct placement *self, const struct probe_occasion *occasion, uint64_t *arguments);
};

struct placement {
	const struct placement_ops *ops;
	struct probe *probe;
};

extern const struct placement_ops placement_profile, placement_interval;                      /* probe_timer.c */
extern const struct placement_ops placement_exit, placement_io, placement_mmio;               /* probe_access.c */
extern const struct placement_ops placement_msr, placement_marker, placement_recording;       /* probe_access.c */
extern const struct placement_ops placement_function, placement_return, placement_tracepoint; /* probe_KIND.c */
extern const struct placement_ops placement_program; /* probe_site.c: breakpoints of the processor in processes */
extern const struct placement_ops placement_page;    /* probe_file.c: patches in the pages of the program's file */

/* Of each kind of probe. NULL: it does not have that. */
struct probe_source {
	const struct placement_ops *placement;
	const struct placement_ops *patched; /* instead, where patches are asked for */
	unsigned needs;                      /* of enum processor_probes: what the guest's processor has to have */
	/* Of the kernel: functions at the first instruction of which the probe is, best first; NULL: that of the spec.
	 */
	const char *const *entries;
	/* Of the kernel's function: whether its entry counts, and the arguments of the event. On the vCPU's thread. */
	bool (*read)(const struct probe_spec *spec, const struct guest_os *os, struct guest *guest,
	             const struct guest_regs *regs, const struct guest_gprs *gprs, uint64_t *arguments);
	/* Arguments that depend on the kernel, of struct tracepoint_argument. NULL without an error: the provider's. */
	GArray *(*arguments)(struct probe_hub *hub, const struct probe_spec *spec, GError **error);
	/* Of a program: its places, from probe->options.binary. Errors: PROBE_ERROR_SYNTAX. */
	bool (*find_places)(struct user_program *program, const struct probe *probe, GError **error);
};
extern const struct probe_source probe_sources[PROBE_KINDS]; /* probe_kind.c */

/* By its kind, and by whether patches are asked for. */
const struct placement_ops *probe_placement_ops(const struct probe *probe);

/* Sets probe->placement: of `bytes`, with zeros behind the base. */
struct placement *placement_new(struct probe *probe, size_t bytes);
/* As `place`: nothing has to be in the guest. */
bool placement_place(struct probe *probe, GError **error);
/* Clears probe->placement, too. */
void placement_free(struct placement *self);

/* One of a placement's breakpoints. */
struct probe_site {
	struct guest_breakpoint breakpoint; /* first: the argument of `hit` */
	struct placement *placement;
};

void probe_sites_remove(const struct probe *probe, struct probe_site *sites, size_t n);
/* Whether they are intact, and whether one is a patch. */
void probe_sites_describe(const struct probe *probe, const struct probe_site *sites, size_t n, struct probe_info *info);

/* ---- breakpoints in the kernel (probe_place.c) ---- */

/* Where the probe's function begins, or the place that it names; *module: it is in one, to be freed; NULL. */
bool probe_find_function(struct probe *probe, uint64_t *address, struct probe_module **module, GError **error);
/* Where the site's address is. By options.breakpoint, or the processor's if one is free. */
bool probe_site_place(struct probe *probe, struct probe_site *site, GError **error);
/* By this means; GUEST_BREAKPOINT_ANY: a patch, for want of another. Patches go where the kernel changes nothing
 * itself. */
bool probe_site_add(struct probe *probe, struct probe_site *site, enum guest_breakpoint_kind kind, GError **error);
/*
 * probe_module.c: where the probe's function of a module, MODULE:NAME, begins; NULL with an error: PROBE_ERROR_UNKNOWN,
 * those of session_modules_read. Freed by g_free.
 */
struct probe_module *probe_module_find(struct probe *probe, uint64_t *address, GError **error);
/* Whether there is no module, or it is still loaded. Of a hit, on the vCPU's thread: */
bool probe_module_runs(const struct probe_module *module, struct guest *guest, const struct guest_regs *regs);
/* On the main thread: */
bool probe_module_is_there(const struct probe_module *module, struct session *session);

/* ---- calls that have not returned (probe_calls.c) ---- */

struct probe_calls *probe_calls_new(void);
void probe_calls_free(struct probe_calls *self); /* NULL is fine */
/* Forgets all calls; while no vCPU records. */
void probe_calls_reset(struct probe_calls *self);
uint64_t probe_calls_forgotten(const struct probe_calls *self);
/*
 * On the vCPU's thread: with the stack pointer at the first instruction of a call, and where it returns. `space`: the
 * address space that it is in; 0: the kernel's.
 */
void probe_calls_enter(struct probe_calls *self, uint64_t space, uint64_t stack);
/* False when the entry was not seen: it was before the recording, or another function has jumped to this one's end. */
bool probe_calls_leave(struct probe_calls *self, uint64_t space, uint64_t stack, uint64_t *ns);

/* ---- arguments that depend on the kernel ---- */

GArray *probe_call_arguments(struct probe_hub *hub, const struct probe_spec *spec, GError **error);
GArray *probe_tracepoint_arguments(struct probe_hub *hub, const struct probe_spec *spec, GError **error);

#endif
