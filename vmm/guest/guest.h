// SPDX-License-Identifier: BSD-2-Clause
/*
 * A guest: our own VM (vmm/kvm) or an attached QEMU process (vmm/attach). Code that samples, unwinds or serves the
 * control socket sees only this.
 */
#ifndef VPROF_GUEST_GUEST_H
#define VPROF_GUEST_GUEST_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <vprof/control.h>

#include "guest/registers.h"
#include "lib/profile/vcpu_time.h"
#include "lib/symbol/image.h"

#define GUEST_VCPUS_MAX VPROF_VCPUS_MAX

/* Addresses as distinct types, so that none is added to a pointer by accident. */
typedef struct {
	uint64_t value;
} gpa_t; /* guest physical */
typedef struct {
	uint64_t value;
} gva_t; /* guest virtual */

struct guest;
struct vcpu_watcher;
struct counter_route;

/* How a watcher reaches the vCPU it watches; valid on that vCPU's thread between `started` and `stopped`. */
struct vcpu_port {
	int vcpu_fd;                      /* for KVM_SET_SIGNAL_MASK; -1 when there is none */
	volatile uint8_t *immediate_exit; /* kvm_run.immediate_exit; a signal handler may set it to 1 */
};

/*
 * Called for what one vCPU does, on its thread. Between `started` and `stopped`, calls must not block, allocate or log.
 */
struct vcpu_watcher_ops {
	/* The thread exists and has not entered the guest yet. */
	void (*started)(struct vcpu_watcher *watcher, const struct vcpu_port *port);
	/* KVM_RUN returned. `interrupted`: with EINTR. Overflows seen now fell into the guest, at `regs`. */
	void (*exited)(struct vcpu_watcher *watcher, const struct guest_regs *regs, bool interrupted);
	/*
	 * The exit is handled and the guest is about to be entered. Overflows since `exited` belong to the handling of
	 * exit_ip.
	 */
	void (*handled)(struct vcpu_watcher *watcher, uint64_t exit_ip);
	/* The guest has ended; the thread is about to end. */
	void (*stopped)(struct vcpu_watcher *watcher);
};

/* One for each vCPU, embedded in a sampler. */
struct vcpu_watcher {
	const struct vcpu_watcher_ops *ops;
};

struct guest_end {
	enum guest_end_reason reason;
	uint32_t code; /* GUEST_END_EXIT_PORT: the value written */
	char *message; /* one line of text; owned by the guest */
	char *details; /* registers, symbol and last console lines for TRIPLE_FAULT and VMM_ERROR; else NULL */
	char *console; /* otherwise, the last console lines if they went nowhere; else NULL */
};

#define GUEST_EXITS_MAX 192u
#define GUEST_COUNTERS_MAX 96u
#define GUEST_COUNTER_NAME_BYTES 48u /* KVM_STATS_NAME_SIZE of every kernel so far */

/* One kind of exit that the VMM handled. */
struct guest_exit {
	uint64_t ip; /* vprof/exit.h; detail VPROF_EXIT_DETAIL_MASK: the ones that had no room of their own */
	uint64_t count;
	uint64_t ns; /* wall time from KVM_RUN's return to the next entry */
};

/* A statistic of the hypervisor, under its own name. */
struct guest_counter {
	char name[GUEST_COUNTER_NAME_BYTES];
	uint64_t value;
};

#define GUEST_KVM_EXITS_MAX 66u
#define GUEST_KVM_EXIT_BUCKETS 32u
#define GUEST_EXIT_NAME_BYTES 48u

/* One reason for which the processor left the guest; from then until the guest is entered again. */
struct guest_kvm_exit {
	char name[GUEST_EXIT_NAME_BYTES]; /* as uapi asm/vmx.h and asm/svm.h have it; "other": those without room */
	uint64_t count;                   /* of those that are over */
	uint64_t ns;                      /* all of it; of it: */
	uint64_t kvm_ns, vmm_ns;          /* KVM; the VMM */
	uint64_t poll_ns, halt_ns;        /* KVM was awake, and asleep, because the vCPU was halted */
	uint64_t waiting_ns;              /* for a host CPU, in KVM */
	uint64_t max_ns;                  /* the longest since the guest's start */
	uint64_t histogram[GUEST_KVM_EXIT_BUCKETS]; /* [n]: of 2^n ns and more; the last has no end */
};

#define GUEST_ACCESSES_MAX 65u

/* Accesses of the guest that KVM or the VMM emulates. */
struct guest_access_count {
	bool other;       /* those without room; the next three say nothing */
	bool mmio, write; /* else a port; a read */
	uint64_t address;
	uint64_t count;
	uint64_t ns; /* of the exits, from leaving the guest to entering it again */
};

/* Since the guest's start or the last reset. */
struct guest_vcpu_time {
	struct vcpu_time time;
	struct vcpu_modes modes;
	const char *missing;  /* the clocks that this host does not have, or NULL */
	const char *untraced; /* why KVM's exits are not known, a clause; NULL: they are */
	uint64_t lost;        /* records of KVM's trace points: exits that are not counted, and time in the residual */
	size_t n_kvm_exits;
	struct guest_kvm_exit kvm_exits[GUEST_KVM_EXITS_MAX];
	size_t n_accesses;
	struct guest_access_count accesses[GUEST_ACCESSES_MAX];
	size_t n_exits;
	struct guest_exit exits[GUEST_EXITS_MAX];
	size_t n_counters;
	struct guest_counter counters[GUEST_COUNTERS_MAX];
};

struct guest_debug_ops;
struct guest_os;
struct os_parts;
struct os_search;

/* What is known of a vCPU at one moment. */
struct guest_vcpu {
	uint32_t apic_id;
	bool whole; /* all registers that a call chain needs; else page tables only, which may be older */
	struct guest_regs regs;
};

enum guest_state { GUEST_CREATED, GUEST_RUNNING, GUEST_ENDED };

enum guest_kernel_use {
	GUEST_KERNEL_LOADED = 1, /* into the tables that samples need */
	GUEST_KERNEL_GIVEN = 2,  /* to a client */
};

struct guest_ops {
	/* Starts the vCPUs. GUEST_CREATED only. */
	bool (*start)(struct guest *guest, GError **error);
	/* Ends the guest for `reason` and returns at once; only the first call counts. */
	void (*stop)(struct guest *guest, enum guest_end_reason reason, const char *message);
	/*
	 * Runs fn(data) on the vCPU's thread, outside the guest, and returns when it is done; call it from another
	 * thread. Once the vCPU's watcher has stopped, it runs nothing and returns false.
	 */
	bool (*run_on_vcpu)(struct guest *guest, unsigned vcpu, void (*fn)(void *data), void *data);
	/* Copies guest physical memory; false when any byte of the range is not RAM. Any thread. */
	bool (*memory_read)(struct guest *guest, gpa_t from, void *to, size_t bytes);
	/* Characters typed at the guest's console. Main thread. */
	void (*console_input)(struct guest *guest, const uint8_t *bytes, size_t n);
	/*
	 * How the vCPU spent its time. Read on its thread, which leaves the guest for it; also works after the guest's
	 * end. With `reset`, everything then counts from 0 again. Main thread.
	 */
	void (*vcpu_time)(struct guest *guest, unsigned vcpu, bool reset, struct guest_vcpu_time *out);
	/*
	 * Calls `look` once for each vCPU of which anything is known, one after the other: on the vCPU's thread, while
	 * it stands still, where that is ours; else on the caller's, and the vCPU goes on. Main thread. NULL: nothing
	 * is known of any.
	 */
	void (*vcpus_look)(struct guest *guest, void (*look)(void *data, const struct guest_vcpu *vcpu), void *data);
	/* The guest's kernel_image has been put to one of its uses. Main thread. NULL: nothing comes of it. */
	void (*kernel_used)(struct guest *guest, enum guest_kernel_use use);
};

/* [I] immutable after the guest is made, [M] main thread only. */
struct guest {
	const struct guest_ops *ops;         /* [I] */
	const struct guest_debug_ops *debug; /* [I] guest_debug.h; NULL: not possible */
	const char *kind;                    /* [I] "kvm"; "qemu": another process's, seen from outside */
	char *name;                          /* [I] what `vprof list` shows */
	char *kernel_path;                   /* [I] absolute, or NULL */
	int kernel_file;                     /* [I] that file, open for reading; 0: it is opened when it is read */
	int kernel_unpacked;                 /* [M] sealed memory with what is packed in it, until it runs; 0: none */
	char *initrd_path;                   /* [I] absolute, or NULL */
	char *command_line;                  /* [I] as the guest sees it */
	char *build_id;                      /* [I] lower-case hex, or NULL */
	struct image_start start;            /* [I] of a Linux kernel that it boots */
	char *release;                       /* [I] kernel release ("6.1.0-50-cloud-amd64"), or NULL */
	uint64_t memory_bytes;               /* [I] */
	unsigned vcpus;                      /* [I] 1..GUEST_VCPUS_MAX */
	enum guest_processor processor;      /* [I] */
	/* [I] The systems that it may run (guest/os.h), the likeliest first; NULL-terminated. Set by the engine's main.
	 */
	const struct guest_os *const *systems;
	/* [I] How their kernels are found (guest/os.h), the same; NULL: the kernel is known without. */
	const struct os_search *const *searches;
	int process;                    /* [I] that runs it; 0: this one */
	uint32_t vsock_cid;             /* [I] its vsock(7) address; 0: not known, or none */
	char *pmu;                      /* [I] the PMU that the guest has, a sentence; NULL: none */
	char **quirks;                  /* [I] host quirks in force, a sentence each; NULL-terminated, may be NULL */
	struct vcpu_watcher **watchers; /* [I] one for each vCPU, set before the threads start; owned by the session */
	/*
	 * [I] How a guest with vCPU threads in another process is sampled (counter/route.h): best first,
	 * NULL-terminated. NULL: the threads are ours, and have watchers.
	 */
	const struct counter_route *const *routes;
	/*
	 * [M] The kernel of a guest that was already running, at its addresses in the guest, and a descriptor of its
	 * bytes; NULL while it is unknown; without contents, and -1, once a lean engine has used them. kernel_path has
	 * the kernel that a guest of ours boots.
	 */
	struct image *kernel_image;
	int kernel_fd;
	struct os_parts *kernel_parts; /* [M] of it, for the session to take; NULL: to be loaded */
	char *kernel_why;              /* [M] why it is unknown: a sentence, or NULL */
	enum guest_state state;        /* [M] */
	struct guest_end end;          /* [M] once state is GUEST_ENDED */
	/* [I] Called on the main thread, from the default GMainContext. Set by the engine's main. */
	void (*on_ended)(struct guest *guest, void *data);
	/*
	 * For a guest with routes: its kernel or the threads of its vCPUs are replaced. Users of both stop in the first
	 * call, and may go on in the second; `other_kernel`: the kernel is replaced.
	 */
	void (*on_changing)(struct guest *guest, void *data);
	void (*on_changed)(struct guest *guest, bool other_kernel, void *data);
	void (*on_phase)(struct guest *guest, unsigned vcpu, uint8_t value, uint64_t time_ns, void *data);
	/* As above, but on the thread that wrote the line: it must not wait. */
	void (*on_console_line)(struct guest *guest, const char *line, void *data);
	void *listener_data; /* [I] for all of them */
	/*
	 * For a guest with routes: how it stands still, as what follows its name ("is paused"), static; NULL: it runs,
	 * as far as is known. on_pause: it has changed.
	 */
	const char *pause;                                 /* [M] */
	void (*on_pause)(struct guest *guest, void *data); /* [I] */
};

/*
 * The address for which the kernel's code at `ip` is linked, where its symbols and its ORC data are: until Linux has
 * mapped itself, it runs at its physical addresses.
 */
uint64_t guest_linked_address(const struct guest *guest, uint64_t ip);

/* The file at kernel_path, for the caller to close; -1 with errno. Of a guest of ours: what it has booted. */
int guest_kernel_file(const struct guest *guest);
/* The image in it. Errors: those of image_open. */
struct image *guest_image_open(const struct guest *guest, GError **error);

/* The exits of a reading, the longest first. */
void guest_exits_sort(struct guest_vcpu_time *time);

/* "power-off", ... as in VPROF_GUEST_ENDS. */
const char *guest_end_name(enum guest_end_reason reason);

#endif
