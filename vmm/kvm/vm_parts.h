// SPDX-License-Identifier: BSD-2-Clause
/* The VM as its parts see it. */
#ifndef VPROF_KVM_VM_PARTS_H
#define VPROF_KVM_VM_PARTS_H

#include <stdatomic.h>

#include "exits/exit_trace.h"
#include "kvm/device/console.h"
#include "kvm/device/devices.h"
#include "kvm/device/virtio_device.h"
#include "kvm/host/host.h"
#include "kvm/host/memory.h"
#include "kvm/vcpu/vcpu.h"
#include "kvm/vcpu/vcpu_arch.h"
#include "kvm/vcpu/vcpu_machine.h"
#include "kvm/vm_config.h"

#define VM_PHASES_MAX 256u /* waiting for the main thread */

struct vm_phase {
	unsigned vcpu;
	uint8_t value;
	uint64_t time_ns;
};

/* The vCPU that failed, for the report. */
struct vm_crash {
	unsigned vcpu;
	struct vcpu_state state;
};

/* What the architecture keeps of a VM: kvm/x86, kvm/arm64. */
struct vm_arch;

/*
 * [I] immutable once launched, [M] main thread, [a] atomic, [E] under end_lock, [P] under phase_lock; devices and
 * consoles have locks of their own. Lock order: vcpu.lock, devices.lock or a virtio device's, then end_lock, phase_lock
 * or the console's.
 */
struct vm {
	struct guest guest;             /* first: what guest_ops are called with */
	struct vcpu_machine machine;    /* what the vCPUs see of it */
	struct vm *self;                /* [I] &self is the user data of our sources only */
	struct vm_arch *arch;           /* [I] */
	struct breakpoints breakpoints; /* [M] as every vCPU has them */
	struct observers observers;     /* [M] the same */
	GSource *file_watch;            /* [M] of patches in files; NULL: there are none */
	enum boot_uart uart;            /* [I] not BOOT_UART_AUTO */
	struct devices devices;
	struct console *consoles[DEVICES_SERIALS]; /* [I] NULL: no other end */
	bool console_unseen;                       /* [I] the first goes nowhere */
	struct virtio_device *port;                /* [I] the one beside the second UART; or NULL */
	struct exit_trace *exits;                  /* [I] KVM's trace points; NULL: not read, because: */
	char *exits_why;                           /* [I] */
	unsigned n_launched;                       /* [M] */
	enum vm_panic on_panic;                    /* [I] */
	void (*panicked)(const struct guest *guest, const char *message); /* [I] may be NULL */
	double duration_s;                                                /* [I] 0: none */
	guint duration_source;                                            /* [M] */
	atomic_uint n_running;                                            /* [a] threads that have not left yet */

	pthread_mutex_t end_lock;
	enum guest_end_reason end_reason; /* [E] */
	uint32_t end_code;                /* [E] */
	char *end_message;                /* [E] */
	bool crashed;                     /* [E] */
	struct vm_crash crash;            /* [E] */
	char *panic;                      /* [E] the line that began the panic, unless they are ignored */
	gint64 panic_us;                  /* [E] monotonic time of the last console line since */

	pthread_mutex_t phase_lock;
	struct vm_phase phases[VM_PHASES_MAX]; /* [P] */
	size_t n_phases;                       /* [P] */
	uint64_t phases_lost;                  /* [P] */
	bool phases_scheduled;                 /* [P] */
};

static inline struct vm *vm_of(struct guest *guest)
{
	return (struct vm *)guest;
}

/* vm_end.c */

/* Ends the guest; the first call counts. Steals message (NULL: the reason's own). Any thread. */
void vm_end(struct vm *vm, enum guest_end_reason reason, uint32_t code, char *message);
/* What vCPUs tell the VM. */
extern const struct vcpu_machine_ops vm_machine_ops;
/* Waits for the threads of the vCPUs. Main thread. */
void vm_join(struct vm *vm);
/* Ends the guest after duration_s seconds; 0: never. Main thread. */
void vm_limit_duration(struct vm *vm, double duration_s);
/*
 * Looks for a panic in a console line; `data` is the VM. A panicking Linux prints one and its report, and then resets
 * (panic=N) or says no more (kernel/panic.c). So the panic ends the guest at the reset, or when the console has been
 * silent for a while.
 */
void vm_watch_for_panic(const char *line, void *data);
/*
 * Has fn called from the default main context with a pointer to vm->self, until vm_shutdown. Any thread. Unlike
 * g_main_context_invoke it never calls fn right here, which that does while the main loop is not running.
 */
void vm_on_main_thread(GSourceFunc fn, struct vm *vm);

/* crash_report.c: registers, symbol and last console lines. New string. */
char *vm_crash_report(struct vm *vm);
/* The last console lines. New string. */
char *vm_console_lines(struct vm *vm);

/* vm_exits.c: once the threads of the vCPUs are there, has KVM's trace points counted for them, if that is allowed. */
void vm_exits_trace(struct vm *vm);

/* vm_debug.c */
extern const struct guest_debug_ops vm_debug_ops;

/* vm_file_patch.c: a breakpoint that is in_file; every vCPU knows it. Errors: GUEST_ERROR_UNSUPPORTED. */
uint8_t *vm_file_memory(struct guest *guest, gpa_t at);
bool vm_file_patch_add(struct vm *vm, const struct guest_breakpoint *breakpoint, GError **error);
bool vm_file_patch_intact(struct vm *vm, const struct guest_breakpoint *breakpoint);
void vm_file_patch_remove(struct vm *vm, const struct guest_breakpoint *breakpoint);
/* The main loop does not turn any more, and no vCPU runs. */
void vm_file_patches_end(struct vm *vm);

/* vm_devices.c */
bool vm_devices_init(struct vm *vm, const struct vm_config *config, GError **error);
void vm_devices_deinit(struct vm *vm);
/* vm_virtio.c */

/* How many devices a configuration asks for. */
unsigned vm_virtio_count(const struct vm_config *config);
bool vm_virtio_init(struct vm *vm, const struct vm_config *config, GError **error);
void vm_virtio_stop(struct vm *vm);
void vm_virtio_deinit(struct vm *vm);
/* Takes what the guest has left in its port, at most timeout_ms. Its vCPUs have stopped. */
void vm_virtio_flush(struct vm *vm, unsigned timeout_ms);

#endif
