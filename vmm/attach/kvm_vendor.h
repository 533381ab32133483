// SPDX-License-Identifier: BSD-2-Clause
#ifndef VPROF_ATTACH_KVM_VENDOR_H
#define VPROF_ATTACH_KVM_VENDOR_H

#include <stdbool.h>

#include "attach/bpf/guest_sample.h"

/* Which of KVM's machine-specific parts runs guests on this host; false when none that is known does. */
bool kvm_vendor_find(enum guest_sample_vendor *vendor);

#endif
