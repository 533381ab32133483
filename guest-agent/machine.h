// SPDX-License-Identifier: BSD-2-Clause
/* Other duties of process 1: the file systems that programs expect, and the end of the machine. */
#ifndef VPROF_AGENT_MACHINE_H
#define VPROF_AGENT_MACHINE_H

/* Mounts /proc, /sys, /dev, /run and /tmp. Prints failures on standard error and continues. */
void machine_prepare(void);
/* Mounts /run and /tmp of a root on a disk, after machine_prepare and the change to it. */
void machine_prepare_disk(void);
/* Syncs the disks and ends the machine, by power-off if possible, else by a reboot. Does not return. */
void machine_end(void);

#endif
