// SPDX-License-Identifier: BSD-2-Clause
/* The configuration of a VM. */
#ifndef VPROF_KVM_VM_CONFIG_H
#define VPROF_KVM_VM_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "kvm/boot/boot.h"

enum vm_pmu_kind {
	VM_PMU_OFF,
	VM_PMU_EMULATED, /* registers of ours behind MSR exits */
	VM_PMU_KVM,      /* KVM's vPMU, on the host's PMU */
};

#define VM_DISKS_MAX 6u

struct vm_disk {
	char *path;
	bool read_only;
};

/* What is done at a Linux panic on the console, if anything. */
enum vm_panic {
	VM_PANIC_IGNORED,
	VM_PANIC_END,  /* the guest ends with GUEST_END_PANIC, when it has said all */
	VM_PANIC_KEEP, /* `panicked` is told, and its vCPUs go on; however it ends, that is its end */
};

struct vm_config {
	const char *name; /* NULL: the kernel's base name and our process id */
	const char *kernel_path;
	const char *initrd_path;  /* NULL: none */
	const char *command_line; /* the user's; see command_line.h for what is put before it; NULL: none */
	uint64_t memory_bytes;
	unsigned vcpus; /* 1..GUEST_VCPUS_MAX */
	enum boot_protocol protocol;
	enum boot_uart uart;
	bool quirks; /* apply the quirks of the host */
	enum vm_panic on_panic;
	void (*panicked)(const struct guest *guest, const char *message); /* main thread; NULL */
	double duration_s;           /* from guest_ops.start, then GUEST_END_DURATION; 0: no limit */
	const struct vm_disk *disks; /* virtio-blk, /dev/vda and on */
	unsigned n_disks;            /* 0..VM_DISKS_MAX */
	int serial_fds[2];           /* take the output of the two UARTs; -1: none. The caller's */
	enum vm_pmu_kind pmu;
	const struct kvm_pmu_event_filter *pmu_filter; /* VM_PMU_KVM; NULL: the guest may count any event */
};

#endif
