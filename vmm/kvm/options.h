// SPDX-License-Identifier: BSD-2-Clause
/* The command line of vprof-vmm. */
#ifndef VPROF_KVM_OPTIONS_H
#define VPROF_KVM_OPTIONS_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#include "kvm/vm.h"

#define OPTIONS_ERROR_STATUS 2 /* of a program that was called in a way it does not understand */

struct vmm_options {
	char *kernel, *initrd, *append, *name;
	uint64_t memory_bytes;
	unsigned vcpus;
	enum boot_protocol boot;
	enum boot_uart uart;
	struct vm_disk disks[VM_DISKS_MAX];
	unsigned n_disks;
	int client_fd;  /* -1: none */
	char *control;  /* NULL: the default path; or "none" */
	char *policy;   /* of the control socket, or NULL */
	char *console;  /* "stdio", "stderr", "none" or a file */
	char *serial2;  /* NULL, a descriptor's number or a file */
	char *delivery; /* NULL: the first that works */
	double duration_s;
	enum vm_pmu_kind pmu;
	struct kvm_pmu_event_filter *pmu_filter; /* NULL: none */
	enum vm_panic on_panic;
	bool paused, quirks, sandbox, verbose;
	bool probe, list_events, version;
};

/* Fills *options, to be cleared also after a failure. Errors: G_OPTION_ERROR. --help prints and exits. */
bool options_parse(int *argc, char ***argv, struct vmm_options *options, GError **error);
void options_clear(struct vmm_options *options);

/* "128M", "2G", "262144K": bytes. False when it is no such text or does not fit. */
bool options_parse_size(const char *text, uint64_t *bytes);
/* "off", "emulated", "kvm". False: none of these. */
bool options_parse_pmu(const char *text, enum vm_pmu_kind *kind);

#endif
