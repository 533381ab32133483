// SPDX-License-Identifier: BSD-2-Clause
/*
 * A vCPU at a patch in a file's page (file_patch.h), on its thread, and what the main thread does to these patches. The
 * instruction is always executed on the vCPU's registers: no other vCPU waits, and none executes it unseen.
 */
#ifndef VPROF_KVM_VCPU_VCPU_FILE_PATCH_H
#define VPROF_KVM_VCPU_VCPU_FILE_PATCH_H

#include "kvm/vcpu/file_patch.h"

struct vcpu;
struct vcpu_machine;

/* vcpu_arch_trapped: true when it was a trap of a patch, and has been dealt with. */
bool vcpu_file_patch_exit(struct vcpu *vcpu);

/*
 * Lays and lifts the traps where that has to be; while a byte is changed, no vCPU is in the guest. `only`: of this
 * patch; NULL: of all.
 */
void vcpu_file_patches_settle(struct vcpu_machine *machine, struct file_patch *only);

#endif
