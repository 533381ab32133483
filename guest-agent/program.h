// SPDX-License-Identifier: BSD-2-Clause
/* The program that runs for the host: process group, three pipes, end. */
#ifndef VPROF_AGENT_PROGRAM_H
#define VPROF_AGENT_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/resource.h>
#include <sys/types.h>
#include <vprof/agent.h>

/* The request in a RUN frame. The strings are in the caller's memory; the lists end with NULL. */
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
	uint8_t waiting[VPROF_AGENT_STDIN_BYTES_MAX]; /* input that the pipe has not taken yet */
	size_t waiting_at, waiting_n;
	bool input_ends;      /* after that */
	uint64_t deadline_ns; /* of its time limit, then of its SIGKILL; 0: none */
	bool time_over;
	size_t last_bytes[2]; /* after its end: the most that it can have left in each pipe */
	/* Since PROGRAM_ENDED. */
	uint64_t ended_ns;
	int wait_status;
	struct rusage usage;
};

/* Requires the state PROGRAM_NONE. Returns 0, or an errno and in *what the step that failed. */
int program_start(struct program *program, const struct program_order *order, const char **what);

/* Takes input from the host; false when there is no room for it, against what the host was told. */
bool program_input(struct program *program, const uint8_t *bytes, size_t n);
void program_input_end(struct program *program);
/* Forwards input; returns the number of bytes that the pipe took. */
size_t program_feed(struct program *program);

void program_signal(const struct program *program, int number);
/* Ends it if its deadline is over. */
void program_check_time(struct program *program, uint64_t now_ns);

/* Its process has been waited for. Kills the processes left in its group. */
void program_ended(struct program *program, int wait_status, const struct rusage *usage, uint64_t now_ns);
/* Back to PROGRAM_NONE. */
void program_close(struct program *program);

#endif
