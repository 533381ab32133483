// SPDX-License-Identifier: BSD-2-Clause
/* An attached guest, as the files of this folder have it: what is known of it, what it can be asked, what it is made
 * of. */
#ifndef VPROF_ATTACH_QEMU_H
#define VPROF_ATTACH_QEMU_H

#include <stdatomic.h>
#include <sys/types.h>

#include "attach/hmp.h"
#include "attach/kernel_search.h"
#include "attach/kvm_view.h"
#include "attach/look_pace.h"
#include "attach/monitor.h"
#include "attach/vcpu_account.h"
#include "counter/route.h"
#include "guest/guest.h"
#include "guest/kernel_find.h"
#include "guest/page_walk.h"

#define QEMU_GUEST_ERROR qemu_guest_error_quark()
GQuark qemu_guest_error_quark(void);
enum qemu_guest_error {
	QEMU_GUEST_ERROR_PROCESS,      /* no such process, or not a VMM */
	QEMU_GUEST_ERROR_CONFIDENTIAL, /* its memory and registers are encrypted */
	QEMU_GUEST_ERROR_VCPUS,        /* too many, or not to be told apart */
};

/* [I] immutable after qemu_guest_new, [M] main thread only. */
struct qemu_guest {
	struct guest guest;                     /* first */
	struct asker *asker;                    /* [I] NULL: neither libvirt nor a monitor is asked */
	const struct asker_description *domain; /* [I] the asker's; NULL: by pid */
	struct kvm_view *view;                  /* [I] NULL: see view_why, and ask the monitor */
	char *view_why;                         /* [I] */
	struct kvm_machine machine;             /* [M] what it showed last */
	struct monitor *monitor;                /* [I] NULL: none; see monitor_why, and qemu_guest_monitor */
	char *monitor_why;                      /* [I] */
	struct guest_memory *memory;            /* [I] NULL: may not be read; see memory_why */
	char *memory_why;                       /* [I] */
	char *accelerator;                      /* [I] "kvm", "tcg" */
	pid_t pid;                              /* [I] of the VMM */
	int pidfd;                              /* [I] */
	pid_t threads[GUEST_VCPUS_MAX];         /* [M] of the vCPUs; 0: unplugged */
	char *paths[GUEST_VCPUS_MAX]; /* [M] of the vCPUs in QEMU's object tree; NULL: unplugged, or not known */
	struct vcpu_account *accounts[GUEST_VCPUS_MAX]; /* [M] NULL: not asked for yet */
	struct exit_trace *exits;                       /* [M] NULL: not read, because: */
	char *exits_why;                                /* [M] */
	nlink_t n_threads;                              /* [M] of the process, as its folder in /proc has links */
	unsigned threads_ticks;                 /* [M] for which they are looked at, since that number has changed */
	struct kernel_found kernel;             /* [M] */
	bool kernel_sought;                     /* [M] it is not there yet, or may be another since a reset */
	bool kernel_early;                      /* [M] there was none yet when the guest was first looked at */
	struct kernel_search *kernel_search;    /* [M] that goes on; NULL */
	uint64_t kernel_marks[GUEST_VCPUS_MAX]; /* [M] of the vCPUs by which it goes on, and how many */
	size_t n_kernel_marks;
	bool kernel_again;            /* [M] the guest was reset while it goes on */
	bool kernel_given_up;         /* [M] as was said */
	struct os_scan kernel_scan;   /* [M] where the next search goes on */
	struct look_pace kernel_pace; /* [M] */
	void (*looked)(void *data);   /* [M] told of the end of the first search; NULL: it has ended */
	void *looked_data;
	guint looked_source;
	unsigned kernel_uses; /* [M] of the image, those of enum guest_kernel_use */
	bool lean;            /* [I] the image is of no use after them */
	bool scanned;         /* [M] only a scan has found the page tables of the kernel, which these registers have */
	struct guest_regs scanned_regs;
	char *kernel_path; /* [I] given by the user; NULL */
	int kernel_file;   /* [I] that file; -1 */
	double duration_s; /* [I] */
	guint duration_source, exit_source, end_source, tick_source;
	_Atomic bool runs;                   /* not paused, as far as we were told */
	_Atomic bool was_reset;              /* as the monitor's events have it; taken by the tick */
	uint64_t last_exits;                 /* [M] of all vCPUs, when none was in KVM last; 0: one was */
	unsigned gone_ticks;                 /* [M] for which its process has no vCPU */
	struct guest_program *program;       /* [M] once the route bpf was looked at; NULL: not loaded */
	struct bpf_route *bpf_route;         /* [M] while it samples; route_bpf.c */
	struct perf_route *perf_route;       /* [M] while it samples; route_perf.c */
	struct monitor_route *monitor_route; /* [M] while it samples; route_monitor.c */
};

/*
 * The monitor as long as it is needed: NULL where KVM's own view tells the same. libvirt warns of domains that were
 * sent commands, so that then only the route "monitor" does.
 */
struct monitor *qemu_guest_monitor(const struct qemu_guest *qemu);

/*
 * qemu_machine.c: the process's machine by KVM's view. qemu_machine_open looks at it for the first time; errors:
 * GUEST_PROGRAM_ERROR, KVM_MACHINE_ERROR. qemu_machine_follow looks again, once a second. The others say what was seen:
 * the threads of the vCPUs, of which the highest number and one is returned, KVM's id of one, of their registers those
 * that lead to a kernel, and whether KVM logs what is written to all of the guest's memory, as for a migration.
 */
bool qemu_machine_open(struct qemu_guest *qemu, GError **error);
void qemu_machine_follow(struct qemu_guest *qemu);
bool qemu_machine_logged(const struct qemu_guest *qemu);
unsigned qemu_machine_threads(const struct qemu_guest *qemu, pid_t threads[GUEST_VCPUS_MAX]);
unsigned qemu_machine_id(const struct qemu_guest *qemu, unsigned vcpu);
size_t qemu_machine_registers(const struct qemu_guest *qemu, struct seen_vcpu registers[GUEST_VCPUS_MAX]);

/* All vCPUs' registers by the monitor; returns how many, 0 on error. Any thread. */
size_t qemu_guest_registers(struct qemu_guest *guest, struct seen_vcpu registers[GUEST_VCPUS_MAX], GError **error);

/* Whether the answer to a command has this member, and it is true. With a monitor. */
bool qemu_guest_says(struct qemu_guest *guest, enum monitor_command command, const char *member);

/* Whether the guest runs, or is paused. Any thread. */
bool qemu_guest_runs(const struct qemu_guest *guest);

/*
 * qemu_kernel.c: the guest's kernel, found when we come and again after a reset. Main thread only. qemu_kernel_look
 * fills in guest->kernel_image and its like, or kernel_why; one that is not there yet is sought on. qemu_kernel_begin
 * does the same on a thread, and calls `looked` then. qemu_kernel_follow begins another search when one is due; a
 * kernel that is where the last one was is the last one. qemu_kernel_seek: it may be another from now on.
 * qemu_kernel_end ends a search that goes on.
 */
void qemu_kernel_look(struct qemu_guest *qemu);
void qemu_kernel_begin(struct qemu_guest *qemu, void (*looked)(void *data), void *data);
void qemu_kernel_follow(struct qemu_guest *qemu);
void qemu_kernel_seek(struct qemu_guest *qemu);
void qemu_kernel_end(struct qemu_guest *qemu);
void qemu_kernel_used(struct guest *guest, enum guest_kernel_use use);
/*
 * The registers of all vCPUs, and last the page tables that a scan has found; returns how many. Without a view, by the
 * monitor, which has all of them. Main thread.
 */
size_t qemu_kernel_registers(struct qemu_guest *qemu, struct seen_vcpu registers[GUEST_VCPUS_MAX + 1]);
/* Walks by the kernel's own page tables, which are at `top`; false where no vCPU's lead there. */
bool qemu_kernel_tables(struct qemu_guest *qemu, gva_t top, struct page_walk *walk);

/*
 * qemu_clocks.c: the accounts of its vCPUs (vcpu_account.h). Main thread only. qemu_clocks_read is the guest's
 * vcpu_time. Nothing is counted before it is asked for: events of the PMU are few, and sampling wants them. What a
 * guest has counted goes when it ends, so qemu_clocks_update reads it now and then.
 */
void qemu_clocks_read(struct guest *guest, unsigned vcpu, bool reset, struct guest_vcpu_time *out);
void qemu_clocks_update(struct qemu_guest *qemu);
/* Takes what reading KVM's trace points needs the privileges for that are dropped later. */
void qemu_clocks_prepare(struct qemu_guest *qemu);
void qemu_clocks_clear(struct qemu_guest *qemu);

/*
 * qemu_life.c: what becomes of it: libvirt's events, the end of its process, threads that come and go with its vCPUs,
 * and the kernel that it runs after a reset. Main thread only.
 */
/* A domain_event; `data`: the guest. */
void qemu_life_event(const char *what, void *data);
/* Once the guest's process and threads are known. */
bool qemu_life_watch(struct qemu_guest *qemu, GError **error);
/* From now on, once a second: before it, clients could not be told what is seen then. */
void qemu_life_follow(struct qemu_guest *qemu);
void qemu_life_unwatch(struct qemu_guest *qemu);
/* Ends the profile at this time, if one was asked for. */
void qemu_life_start(struct qemu_guest *qemu);
/* Ends our part in it; the first reason counts. */
void qemu_life_end(struct qemu_guest *qemu, enum guest_end_reason reason, const char *message);

/* The routes to it (counter/route.h), one file each. */
extern const struct counter_route route_bpf;
extern const struct counter_route route_perf;
extern const struct counter_route route_monitor;

#endif
