// SPDX-License-Identifier: BSD-2-Clause
/* The demonstration guest, as guest/os.h asks for it: for the lists of systems of the engines' main.c. */
#ifndef VPROF_DEMO_OS_OS_DEMO_H
#define VPROF_DEMO_OS_OS_DEMO_H

#include "guest/os.h"

extern const struct guest_os os_demo;

#endif
