// SPDX-License-Identifier: BSD-2-Clause
/* What process 1 has to do besides: the file systems that programs expect, and the end of the machine. */
#ifndef VPROF_AGENT_MACHINE_H
#define VPROF_AGENT_MACHINE_H

/* Mounts /proc, /sys, /dev, /run and /tmp. Says on standard error what fails, which may not matter to anybody. */
void machine_prepare(void);
/* /run and /tmp of a root on a disk, after machine_prepare on another. */
void machine_prepare_disk(void);
/* Writes what is not on disk yet and ends the machine: by power-off if it can, else by a reboot. Does not return. */
void machine_end(void);

#endif
