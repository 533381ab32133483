// SPDX-License-Identifier: BSD-2-Clause
/* The program that runs for the host: its process group, its three pipes, its end. */
#ifndef VPROF_AGENT_PROGRAM_H
#define VPROF_AGENT_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <vprof/agent.h>

/* What RUN asks for. The strings are in the caller's memory; the lists end with NULL. */
struct program_order {
	uint32_t run;
	uint32_t time_limit_ms;
	const char *path, *folder;
	char **arguments;
	char **variables; /* of the environment, on top of the agent's own; a later one wins */
};

enum program_state { PROGRAM_NONE, PROGRAM_RUNNING, PROGRAM_ENDED };

struct program {
	enum program_state state;
	uint32_t run;
	pid_t pid;
	int input, output[2];                         /* ends of its pipes, output[0] standard output; -1: closed */
	uint8_t waiting[VPROF_AGENT_STDIN_BYTES_MAX]; /* input that the pipe did not take yet */
	size_t waiting_at, waiting_n;
	bool input_ends;      /* once that has gone */
	uint64_t deadline_ns; /* when its time is over, then when it is killed; 0: never */
	bool time_over;
	size_t last_bytes[2]; /* since its end: output that it can have left in each pipe, at most */
	/* Since PROGRAM_ENDED. */
	uint64_t ended_ns;
	int wait_status;
	struct rusage usage;
};

/* In program->state PROGRAM_NONE. 0, or an errno and *what could not be done. */
int program_start(struct program *program, const struct program_order *order, const char **what);

/* Takes input from the host; false when there was no room for it, which the host was told. */
bool program_input(struct program *program, const uint8_t *bytes, size_t n);
void program_input_end(struct program *program);
/* Hands input on; returns how many bytes the pipe took. */
size_t program_feed(struct program *program);

void program_signal(const struct program *program, int number);
/* What its deadline asks for. */
void program_check_time(struct program *program, uint64_t now_ns);

/* Its process has been waited for. What it has left running in its group is killed. */
void program_ended(struct program *program, int wait_status, const struct rusage *usage, uint64_t now_ns);
/* Forgets it. */
void program_close(struct program *program);

#endif
