// SPDX-License-Identifier: BSD-2-Clause
/* Scripts as trees: what a text becomes, and what is built without one. */
#ifndef VPROF_SCRIPT_SCRIPT_TREE_H
#define VPROF_SCRIPT_SCRIPT_TREE_H

#include "lib/script/script.h"

enum script_node_kind {
	/* expressions */
	NODE_NUMBER,   /* number */
	NODE_STRING,   /* text */
	NODE_VARIABLE, /* text */
	NODE_MAP,      /* text; first: keys */
	NODE_NAME,     /* text: a builtin */
	NODE_PATH,     /* text: "prev->comm", behind `args`, or of an argument by its number or `curtask` */
	NODE_CALL,     /* text; first: arguments */
	NODE_UNARY,    /* text: the sign; a */
	NODE_BINARY,   /* text; a, b */
	NODE_TERNARY,  /* a, b, c */
	NODE_CAST,     /* number: bits, negative if signed; a */
	/* statements */
	NODE_ASSIGN, /* text: "=", "+=", ...; a, b */
	NODE_STEP,   /* text: "++" or "--"; a */
	NODE_IF,     /* a; first, second: statements */
	NODE_RETURN,
};

struct script_node {
	enum script_node_kind kind;
	unsigned line, column;
	char *text;
	int64_t number;
	struct script_node *a, *b, *c;
	struct script_node *first, *second; /* lists by `next` */
	struct script_node *next;
};
/* New nodes, with copies of the texts; they own the nodes that they are given. */
struct script_node *script_node_number(int64_t number);
/* Of a kind that has a text alone: NODE_STRING, NODE_VARIABLE, NODE_NAME or NODE_PATH. */
struct script_node *script_node_text(enum script_node_kind kind, const char *text);
/* NODE_MAP or NODE_CALL; `first`: its keys or its arguments, NULL: none. */
struct script_node *script_node_list(enum script_node_kind kind, const char *text, struct script_node *first);
/* NODE_BINARY or NODE_ASSIGN; `sign`: "==", "=", ... */
struct script_node *script_node_pair(enum script_node_kind kind, const char *sign, struct script_node *a,
                                     struct script_node *b);
struct script_node *script_node_cast(int64_t bits, struct script_node *a);
struct script_node *script_node_if(struct script_node *condition, struct script_node *statements);
/* `node` behind the others of the list, which may be empty; returns its first. */
struct script_node *script_node_append(struct script_node *list, struct script_node *node);
void script_node_free(struct script_node *node); /* and those behind it */

/*
 * A script without clauses. Its statements may be a call of event(), which records what the probe would without a
 * program: an event that no script_action is for.
 */
struct script *script_new(void);
/* `probe`: as script_probe.written has it. `predicate` NULL: none. The tree is the script's then. */
void script_add_clause(struct script *script, const char *probe, struct script_node *predicate,
                       struct script_node *statements);

#endif
