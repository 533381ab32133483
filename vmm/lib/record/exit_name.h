// SPDX-License-Identifier: BSD-2-Clause
/* Names for the ip of HYPERVISOR samples (vprof/exit.h). */
#ifndef VPROF_RECORD_EXIT_NAME_H
#define VPROF_RECORD_EXIT_NAME_H

#include <stddef.h>
#include <stdint.h>

#define EXIT_NAME_BYTES 48u

/* "exit:io:0x3f8", "exit:mmio:0xfee00000", "exit:wrmsr:0xc0000082", "exit:vmm"; an unknown reason as its number. */
void exit_name_format(uint64_t exit_ip, char name[EXIT_NAME_BYTES]);

/* The word for a reason alone ("io"); NULL for one that has no name. Names exist for reasons 0..exit_name_count()-1. */
const char *exit_name_of_reason(uint64_t reason);
size_t exit_name_count(void);

#endif
