// SPDX-License-Identifier: BSD-2-Clause
/* The change from the initramfs to a root on a disk. */
#ifndef VPROF_AGENT_ROOT_H
#define VPROF_AGENT_ROOT_H

#include <stdbool.h>

/*
 * Waits for the device, mounts it and makes it the root, with the present /dev, /proc and /sys. what: "DEVICE,TYPE",
 * for example "/dev/vda1,ext4". A disk that cannot be written is mounted read-only. False after a line on standard
 * error.
 */
bool root_switch(const char *what);

#endif
