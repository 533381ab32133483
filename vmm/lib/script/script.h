// SPDX-License-Identifier: BSD-2-Clause
/*
 * The language of `vprof trace`: what bpftrace's is where it can be seen from outside the guest. A script is clauses, a
 * clause is probes, a predicate and statements; it becomes a program (vprof/program.h) for each probe that an engine
 * has added, and maps that all of them share. The text may be anything.
 */
#ifndef VPROF_SCRIPT_SCRIPT_H
#define VPROF_SCRIPT_SCRIPT_H

#include <glib.h>
#include <stdbool.h>
#include <stddef.h>
#include <vprof/program.h>

/* A message begins with the line and the column of the text, if there is one: "2:14: ...". */
#define SCRIPT_ERROR script_error_quark()
GQuark script_error_quark(void);
enum script_error {
	SCRIPT_ERROR_SYNTAX,
	SCRIPT_ERROR_TYPE,  /* a text where a number belongs, no such field, a map of two kinds, ... */
	SCRIPT_ERROR_LIMIT, /* more than a program can have */
};

#define SCRIPT_BYTES_MAX 65536u
#define SCRIPT_KEYS_MAX 8u  /* parts of a key */
#define SCRIPT_SENT_MAX 16u /* arguments of a printf */

enum script_type {
	SCRIPT_NUMBER,
	SCRIPT_UNSIGNED,
	SCRIPT_TEXT,
	SCRIPT_STACK,
	SCRIPT_KSYM,  /* an address of the kernel, which is shown by its name */
	SCRIPT_USYM,  /* the same of a process: its number, and the address */
	SCRIPT_RWBS,  /* what a request of the block layer does, for script_rwbs */
	SCRIPT_PROBE, /* the number of a probe, in the order of script_compile */
};
/* Words that a value takes. */
unsigned script_type_words(enum script_type type);

/* The flags of a request of the block layer that say what it does. */
#define SCRIPT_RWBS_MASK UINT64_C(0xe18ff)
/* As the trace points of the block layer show them: "WS", a write that is waited for. New string. */
char *script_rwbs(uint64_t flags);

struct script;
/* `parameters`: of $1 and so on, up to NULL. Errors: SCRIPT_ERROR. */
struct script *script_parse(const char *text, const char *const *parameters, GError **error);
void script_free(struct script *script); /* NULL is fine */

/* What the script probes: each once, in their order, with the names that engines have for them. Up to NULL. */
const char *const *script_probes(const struct script *script);

/* A probe of an engine. */
struct script_probe {
	const char *const *written;                  /* those of script_probes that stand for it, up to NULL */
	const char *name;                            /* as the engine has it */
	const char *const *arguments, *const *types; /* up to NULL; fewer types where the others are not known */
	const char *const *fields; /* as script_fields has them, fewer if some are unknown; up to NULL */
	uint32_t texts;            /* bit i: field i is a text */
};

/* The fields that its clauses need besides its arguments, for probe-add. Free with g_strfreev. */
char **script_fields(const struct script *script, const char *const *written, const char *name);

/*
 * Makes a program for each of the probes. The maps and actions are those of all of them. Errors: SCRIPT_ERROR.
 */
bool script_compile(struct script *script, const struct script_probe *probes, size_t n, GError **error);

/* Of the i-th probe; borrowed. */
const struct vprof_instruction *script_program(const struct script *script, size_t i, size_t *n);
/* The name of the i-th probe as bpftrace has it, if the script is written so: "kprobe:vfs_read". New string. */
char *script_probe_shown(const struct script *script, size_t i);

/* By enum vprof_map_kind, as the control protocol has them. */
extern const char *const script_map_kinds[];

struct script_map {
	const char *name; /* "@start" */
	enum vprof_map_kind kind;
	enum script_type value; /* of a number */
	unsigned n_keys;
	enum script_type keys[SCRIPT_KEYS_MAX];
	int64_t low, high, range; /* of a lhist */
};
size_t script_map_count(const struct script *script);
const struct script_map *script_map(const struct script *script, size_t i);

enum script_action_kind { SCRIPT_PRINTF, SCRIPT_PRINT, SCRIPT_PRINT_MAP, SCRIPT_CLEAR, SCRIPT_ZERO, SCRIPT_EXIT };
/* What the client does when a program sends the number of an action. */
struct script_action {
	enum script_action_kind kind;
	const char *format; /* of a printf, with its conversions checked */
	unsigned n_sent;    /* values, one behind the other */
	enum script_type sent[SCRIPT_SENT_MAX];
	size_t map;        /* PRINT_MAP, CLEAR, ZERO */
	uint64_t top, div; /* PRINT_MAP: so many entries, 0: all; what values are divided by */
};
/* NULL: there is none of that number. */
const struct script_action *script_action(const struct script *script, uint64_t number);

#endif
