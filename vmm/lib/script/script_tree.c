// SPDX-License-Identifier: BSD-2-Clause
#include "lib/script/script_priv.h"

static struct script_node *node_of(enum script_node_kind kind, const char *text)
{
	struct script_node *node = g_new0(struct script_node, 1);

	node->kind = kind;
	node->text = g_strdup(text);
	return node;
}

struct script_node *script_node_number(int64_t number)
{
	struct script_node *node = node_of(NODE_NUMBER, NULL);

	node->number = number;
	return node;
}

struct script_node *script_node_text(enum script_node_kind kind, const char *text)
{
	return node_of(kind, text);
}

struct script_node *script_node_list(enum script_node_kind kind, const char *text, struct script_node *first)
{
	struct script_node *node = node_of(kind, text);

	node->first = first;
	return node;
}

struct script_node *script_node_pair(enum script_node_kind kind, const char *sign, struct script_node *a,
                                     struct script_node *b)
{
	struct script_node *node = node_of(kind, sign);

	node->a = a;
	node->b = b;
	return node;
}

struct script_node *script_node_cast(int64_t bits, struct script_node *a)
{
	struct script_node *node = node_of(NODE_CAST, NULL);

	node->number = bits;
	node->a = a;
	return node;
}

struct script_node *script_node_if(struct script_node *condition, struct script_node *statements)
{
	struct script_node *node = node_of(NODE_IF, NULL);

	node->a = condition;
	node->first = statements;
	return node;
}

struct script_node *script_node_append(struct script_node *list, struct script_node *node)
{
	struct script_node *last = list;

	while (last && last->next)
		last = last->next;
	if (!last)
		return node;
	last->next = node;
	return list;
}

void script_node_free(struct script_node *node)
{
	while (node) {
		struct script_node *next = node->next;

		script_node_free(node->a);
		script_node_free(node->b);
		script_node_free(node->c);
		script_node_free(node->first);
		script_node_free(node->second);
		g_free(node->text);
		g_free(node);
		node = next;
	}
}

struct script *script_new(void)
{
	struct script *script = script_empty();

	script->has_events = true;
	return script;
}

void script_add_clause(struct script *script, const char *probe, struct script_node *predicate,
                       struct script_node *statements)
{
	struct clause *clause = script_clause_new(script);
	const struct probe_written written = {.name = g_strdup(probe), .end = ""};

	script_clause_add_probe(script, clause, &written);
	clause->predicate = predicate;
	clause->statements = statements;
}
