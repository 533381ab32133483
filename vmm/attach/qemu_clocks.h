// SPDX-License-Identifier: BSD-2-Clause
/* The accounts of an attached guest's vCPUs (vcpu_account.h). Main thread only. */
#ifndef VPROF_ATTACH_QEMU_CLOCKS_H
#define VPROF_ATTACH_QEMU_CLOCKS_H

#include "attach/qemu_guest.h"

/* A guest's vcpu_time. Nothing is counted before it is asked for: events of the PMU are few, and sampling wants them.
 */
void qemu_clocks_read(struct guest *guest, unsigned vcpu, bool reset, struct guest_vcpu_time *out);
/* A guest that ends takes its figures along: now and then they are read for nobody. */
void qemu_clocks_update(struct qemu_guest *qemu);
void qemu_clocks_clear(struct qemu_guest *qemu);

#endif
