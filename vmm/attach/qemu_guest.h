// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest that another process runs: QEMU, under libvirt or not. It is looked at from outside, is never paused, and
 * does not notice when we come or go.
 */
#ifndef VPROF_ATTACH_QEMU_GUEST_H
#define VPROF_ATTACH_QEMU_GUEST_H

#include <stdatomic.h>
#include <sys/types.h>

#include "attach/hmp.h"
#include "attach/kernel_find.h"
#include "attach/monitor.h"
#include "attach/vcpu_account.h"
#include "guest/guest.h"

#define QEMU_GUEST_ERROR qemu_guest_error_quark()
GQuark qemu_guest_error_quark(void);
enum qemu_guest_error {
	QEMU_GUEST_ERROR_PROCESS,      /* no such process, or not QEMU */
	QEMU_GUEST_ERROR_CONFIDENTIAL, /* its memory and registers are encrypted */
	QEMU_GUEST_ERROR_VCPUS,        /* too many, or not to be told apart */
};

struct qemu_guest_config {
	const char *domain;      /* name, UUID or id; NULL: by pid */
	const char *connect_uri; /* of libvirt; NULL: its default */
	pid_t pid;               /* without a domain */
	const char *qmp_path;    /* QMP socket of that process; NULL: none */
	bool no_monitor;         /* the domain's is left alone */
	const char *kernel_path; /* NULL: what the guest's memory holds */
	double duration_s;       /* ends the profile after this time; 0: never */
};

/* [I] immutable after qemu_guest_new, [M] main thread only. */
struct qemu_guest {
	struct guest guest;             /* first */
	struct domain *domain;          /* [I] NULL: by pid */
	struct monitor *monitor;        /* [I] NULL: none; see monitor_why */
	char *monitor_why;              /* [I] */
	struct guest_memory *memory;    /* [I] NULL: may not be read; see memory_why */
	char *memory_why;               /* [I] */
	char *accelerator;              /* [I] "kvm", "tcg" */
	pid_t pid;                      /* [I] of QEMU */
	int pidfd;                      /* [I] */
	pid_t threads[GUEST_VCPUS_MAX]; /* [M] of the vCPUs; 0: unplugged */
	char *paths[GUEST_VCPUS_MAX];   /* [M] of the vCPUs in QEMU's object tree; NULL: unplugged, or not known */
	struct vcpu_account *accounts[GUEST_VCPUS_MAX]; /* [M] NULL: nobody has asked yet */
	nlink_t n_threads;                              /* [M] of the process, as its folder in /proc has links */
	unsigned threads_ticks;     /* [M] for which they are looked at, since that number has changed */
	struct kernel_found kernel; /* [M] */
	bool kernel_sought;         /* [M] it is not there yet, or may be another since a reset */
	bool kernel_early;          /* [M] there was none yet when the guest was first looked at */
	unsigned kernel_tries;      /* [M] of the search */
	char *kernel_path;          /* [I] given by the user; NULL */
	double duration_s;          /* [I] */
	guint duration_source, exit_source, end_source, tick_source;
	_Atomic bool runs;                   /* not paused, as far as we were told */
	struct guest_program *program;       /* [M] once the route bpf was looked at; NULL: not loaded */
	struct bpf_route *bpf_route;         /* [M] while it samples; route_bpf.c */
	struct perf_route *perf_route;       /* [M] while it samples; route_perf.c */
	struct monitor_route *monitor_route; /* [M] while it samples; route_monitor.c */
};

/* Finds everything out; nothing is changed in the guest. */
struct qemu_guest *qemu_guest_new(const struct qemu_guest_config *config, GError **error);
void qemu_guest_free(struct qemu_guest *guest);

/* All vCPUs' registers by the monitor; returns how many, 0 on error. Any thread. */
size_t qemu_guest_registers(struct qemu_guest *guest, struct hmp_registers registers[GUEST_VCPUS_MAX], GError **error);

/* Whether the answer to a command has this member, and it is true. With a monitor. */
bool qemu_guest_says(struct qemu_guest *guest, const char *command, const char *member);

/* Whether the guest runs, or is paused. Any thread. */
bool qemu_guest_runs(const struct qemu_guest *guest);

/* The routes, best first. */
extern const struct counter_route *const qemu_routes[];

#endif
