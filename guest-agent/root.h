// SPDX-License-Identifier: BSD-2-Clause
/* From the initramfs to a root on a disk. */
#ifndef VPROF_AGENT_ROOT_H
#define VPROF_AGENT_ROOT_H

#include <stdbool.h>

/*
 * Waits for the device, mounts it and makes it the root, with /dev, /proc and /sys as they are. what: "DEVICE,TYPE", as
 * "/dev/vda1,ext4". Read-only where it cannot be written. False, after a line on standard error.
 */
bool root_switch(const char *what);

#endif
