// SPDX-License-Identifier: BSD-2-Clause
/* A script as it was read: a tree of nodes for each clause. */
#ifndef VPROF_SCRIPT_SCRIPT_PRIV_H
#define VPROF_SCRIPT_SCRIPT_PRIV_H

#include "lib/probe_name/probe_name.h"
#include "lib/script/script.h"
#include "lib/script/script_tree.h"

enum token_kind { TOKEN_END, TOKEN_NAME, TOKEN_NUMBER, TOKEN_STRING, TOKEN_VARIABLE, TOKEN_MAP, TOKEN_SIGN };

struct token {
	enum token_kind kind;
	unsigned line, column;
	const char *at; /* where it begins in the text */
	char *text;     /* a name, "$x" and "@x" with their sign, a string without its quotes, or a sign */
	int64_t number;
};

/* What is still to be read of a text. */
struct lexer {
	const char *at;
	unsigned line, column;
	const char *const *parameters;
};

/* The next token, to be cleared. False: SCRIPT_ERROR_SYNTAX. */
bool lexer_next(struct lexer *lexer, struct token *token, GError **error);
/* Blanks and comments. */
bool lexer_skip(struct lexer *lexer, GError **error);
void lexer_advance(struct lexer *lexer, size_t n);
void script_fail(GError **error, enum script_error code, unsigned line, unsigned column, const char *format, ...)
	G_GNUC_PRINTF(5, 6);

struct clause {
	GArray *probes;                /* of struct probe_written */
	struct script_node *predicate; /* NULL: none */
	struct script_node *statements;
};

struct map_entry {
	struct script_map map;
	bool has_kind, has_keys;
	char *name;
};

struct program {
	GArray *instructions; /* of struct vprof_instruction */
	char *shown;
};

struct script {
	GPtrArray *clauses;  /* of struct clause */
	GPtrArray *probes;   /* script_probes, with its NULL */
	GPtrArray *maps;     /* of struct map_entry */
	GArray *actions;     /* of struct script_action; their texts belong to the tree */
	GPtrArray *programs; /* of struct program */
	bool has_events;     /* event() is a statement */
};

/* script.c: without clauses; and one more of them, without a statement. */
struct script *script_empty(void);
struct clause *script_clause_new(struct script *script);
/* The clause is for this probe, too; takes what `written` has. */
void script_clause_add_probe(struct script *script, struct clause *clause, const struct probe_written *written);

/* script_parser.c */
bool script_read(struct script *script, const char *text, const char *const *parameters, GError **error);
/* script_fields.c: whether the clause is for that probe of the script. */
bool clause_is_of(const struct clause *clause, const char *const *written);
/* Without a cast that nothing follows: "arg0" of "((struct path *)arg0)". */
char *script_path_plain(const char *path);
/* By how many bits what the field says is shifted to the right. */
unsigned script_path_shift(const char *probe, const char *path);
/* It is of SCRIPT_RWBS, by SCRIPT_RWBS_MASK. */
bool script_path_is_rwbs(const char *probe, const char *path);
/* "prev->comm" and "str(...)" for the engine, of a path in a text or not; NULL when it is an argument alone. */
char *script_path_field(const char *probe, const char *path, bool in_str);

#endif
