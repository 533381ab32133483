// SPDX-License-Identifier: BSD-2-Clause
/* struct guest_os: needs, of Linux. */
#ifndef VPROF_LINUX_NEEDS_H
#define VPROF_LINUX_NEEDS_H

#include "guest/os.h"

extern const struct os_need linux_needs[];

#endif
