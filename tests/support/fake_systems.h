// SPDX-License-Identifier: BSD-2-Clause
/* The systems of guests without KVM. */
#ifndef VPROF_TEST_SUPPORT_FAKE_SYSTEMS_H
#define VPROF_TEST_SUPPORT_FAKE_SYSTEMS_H

#include "linux/os_linux.h"

static const struct guest_os *const fake_systems[] = {&os_linux, NULL};

#endif
