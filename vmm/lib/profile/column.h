// SPDX-License-Identifier: BSD-2-Clause
/* The columns of a profile as data: what a row can be grouped by, how it is headed, printed and ordered. */
#ifndef VPROF_PROFILE_COLUMN_H
#define VPROF_PROFILE_COLUMN_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <vprof/recording.h>

#include "lib/profile/mode.h"

#define COLUMN_ERROR column_error_quark()
GQuark column_error_quark(void);
enum column_error { COLUMN_ERROR_UNKNOWN, COLUMN_ERROR_TWICE };

/* What the samples of a histogram are told apart by, besides address, mode, file and event. */
enum column_key {
	COLUMN_KEY_CPU = 1u << 0,
	COLUMN_KEY_TASK = 1u << 1, /* pid, tid and name */
	COLUMN_KEY_CGROUP = 1u << 2,
	COLUMN_KEY_STATE = 1u << 3,
	COLUMN_KEY_WAKER = 1u << 4,
};
#define COLUMN_KEYS_ALL (~0u)

/* One row of a profile. A member that the profile does not group by has the value of any sample of the row. */
struct profile_row {
	const char *symbol;
	const char *module;
	const char *event;
	const char *comm;
	const char *cgroup;
	const char *waker;  /* of a wait, as names_waker has it */
	const char *domain; /* the guest, in a report on several; else "" */
	uint64_t ip;
	uint32_t cpu; /* the vCPU */
	uint32_t pid, tid;
	enum profile_mode mode;
	enum vprof_task_state state;
	uint64_t samples;
	uint64_t period; /* summed: events, nanoseconds for clocks */
};

struct column {
	const char *name; /* in --sort */
	const char *header;
	const char *json_key;
	int (*compare)(const struct profile_row *a, const struct profile_row *b);
	/* Exactly one of the two is set. */
	const char *(*text)(const struct profile_row *row);
	int64_t (*number)(const struct profile_row *row);
	const char *alias; /* perf's word for it in --sort; NULL */
	unsigned keys;     /* of enum column_key: what it wants samples to be told apart by */
	bool hexadecimal;  /* how a number is printed; JSON has it as "0x..." text then, since it may need 64 bits */
};

extern const struct column columns[];
extern const size_t n_columns;

/* The names of all columns, as help and errors list them. */
#define COLUMN_NAMES "sym, module, mode, cpu, event, comm, state, waker, cgroup, domain, pid, tid, ip"

#define COLUMN_LIST_MAX 16u
struct column_list {
	const struct column *column[COLUMN_LIST_MAX];
	size_t n;
};

/* "mode,sym": at least one, none twice. */
bool column_list_parse(const char *text, struct column_list *list, GError **error);
/* Whether the list has the column of that name. */
bool column_list_has(const struct column_list *list, const char *name);
/* All keys that the columns of the list want. */
unsigned column_list_keys(const struct column_list *list);

/* 0 when both rows belong together. */
int column_list_compare(const struct column_list *list, const struct profile_row *a, const struct profile_row *b);

#endif
