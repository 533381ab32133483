// SPDX-License-Identifier: BSD-2-Clause
/* The names of tasks and the executable mappings of processes, for a host that cannot read them in the kernel. */
#ifndef VPROF_AGENT_PROCESSES_H
#define VPROF_AGENT_PROCESSES_H

#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "link.h"

/* A walk through /proc, which continues when the link has room again. */
struct processes {
	bool walking;
	DIR *folder; /* NULL: of one process only */
	DIR *tasks;  /* of the process `pid` */
	FILE *maps;
	uint32_t pid;
};

/* Begins a walk, and ends one in progress. pid 0: all processes. */
void processes_begin(struct processes *processes, uint32_t pid);
/* Sends as much as there is room for, and MAPPINGS_END at the end. */
void processes_send(struct processes *processes, struct link *link);
void processes_end(struct processes *processes);

#endif
