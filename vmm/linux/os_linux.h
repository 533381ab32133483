// SPDX-License-Identifier: BSD-2-Clause
/* Linux, as guest/os.h asks for it: for the lists of systems of the engines' main.c. */
#ifndef VPROF_LINUX_OS_LINUX_H
#define VPROF_LINUX_OS_LINUX_H

#include "guest/os.h"

extern const struct guest_os os_linux;
/* os_linux.unwinding */
extern const struct os_unwinding linux_unwinding;

#endif
