// SPDX-License-Identifier: BSD-2-Clause
/* The tasks of a guest at one moment, as an engine's query-tasks has them, with the names of functions. */
#ifndef VPROF_CLI_TASKS_TASK_TABLE_H
#define VPROF_CLI_TASKS_TASK_TABLE_H

#include <glib.h>
#include <jansson.h>

#include "engine/guest_engine.h"
#include "lib/record/record.h"
#include "lib/symbol/user_symbols.h"

/* Code of a program or library that a chain leads through. */
struct task_mapping {
	uint64_t start, end, file_offset;
	char *file; /* as the guest has it: not printable */
	uint8_t build_id[RECORD_BUILD_ID_BYTES_MAX];
	size_t build_id_bytes;
	bool has_table;
};

struct task_frame {
	uint64_t ip;
	const char *symbol; /* "0xffffffff81000000" where there is none */
	const char *module; /* "[kernel]", "[virtio_blk]", "/usr/bin/sort", "[user]" */
	bool known;         /* the symbol is one */
};

struct task_row {
	uint32_t pid, tid;
	char *comm; /* printable */
	char state;
	int64_t cpu; /* -1: it does not run */
	uint64_t cpu_ns;
	bool kernel_thread;
	char *cgroup;                          /* printable; NULL: not known */
	const struct task_frame *wait_channel; /* NULL: it does not wait, or that is not known */
	char *chain_end;                       /* "whole", ... */
	size_t n_frames;
	struct task_frame *frames; /* innermost first */
	GArray *mappings;          /* of struct task_mapping */
	json_t *pythons;           /* names of Python's frames by their addresses, as the engine has them; NULL: none */
};

struct task_user;

struct task_table {
	GPtrArray *rows;      /* of struct task_row, in the order of the guest's list */
	GStringChunk *texts;  /* of the frames */
	const char *list_end; /* "whole", "broken", "limit" */
	const char *unwinder; /* "orc", "fp" */
	uint64_t torn, late, unseen;
	struct task_user *user; /* names of user space; NULL: not wanted */
	char *no_symbols;       /* why functions have no names; NULL: they have */
};

/* What of a guest's tasks is wanted. */
struct task_wish {
	const char *who;                       /* a process id, or the name of threads with * and ?; NULL: all */
	unsigned depth;                        /* of call chains; 0: no limit but the engine's */
	bool user;                             /* chains go on into user space */
	struct user_symbol_sources user_files; /* with `user`: of the guest's programs */
};

/* Without the names of functions. Errors: those of client_execute. */
struct task_table *task_table_new(const struct guest_engine *engine, const struct task_wish *wish, GError **error);
void task_table_free(struct task_table *table); /* NULL is fine */

/*
 * Names the functions of all call chains; those of a guest without modules, or without their symbols, have addresses
 * there. `kernel`: a file, or NULL for the engine's. Errors: a kernel that was named.
 */
bool task_table_name(struct task_table *table, const struct guest_engine *engine, const char *kernel, GError **error);

/* The call chain of a task that runs, in the form of PERF_SAMPLE_CALLCHAIN; copied. */
void task_row_set_chain(struct task_row *row, const uint64_t *chain, uint32_t n, const char *chain_end);

/* Says on stderr what is missing in it; `stacks`: it is also about those of tasks that run. */
void task_table_say_missing(const struct task_table *table, bool stacks);

/* The members of both JSON documents about it; new reference. */
json_t *task_table_json(const struct task_table *table, const char *format, const json_t *guest);
json_t *task_row_json(const struct task_row *row);
json_t *task_frame_json(const struct task_frame *frame);

#endif
