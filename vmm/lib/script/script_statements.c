// SPDX-License-Identifier: BSD-2-Clause
/* Statements, clauses, and the programs of all probes. */
#include <string.h>

#include "lib/script/script_compile.h"

static bool compile_statements(struct compiler *compiler, const struct script_node *first);

static bool fail(struct compiler *compiler, const struct script_node *node, const char *why)
{
	return compile_fail(compiler, node, SCRIPT_ERROR_TYPE, why);
}

/* ---- what a program sends ---- */

static bool add_action(struct compiler *compiler, const struct script_node *node, const struct script_action *action,
                       unsigned operation, unsigned at, unsigned words)
{
	const int64_t number = compiler->script->actions->len;

	if (!compiler->guesses)
		g_array_append_vals(compiler->script->actions, action, 1);
	return compile_emit(
		compiler, node,
		(struct vprof_instruction){
			.operation = (uint8_t)operation, .a = (uint16_t)at, .b = (uint16_t)words, .constant = number});
}

/* The conversion that `at`, behind a "%", begins: its last character; 0: it is none. */
static char conversion(const char **at)
{
	*at += strspn(*at, "-+ #0");
	*at += strspn(*at, "0123456789");
	if (**at == '.')
		*at += 1 + strspn(*at + 1, "0123456789");
	*at += strspn(*at, "hljzt");
	return **at != '\0' && strchr("diuxXocsp%", **at) ? *(*at)++ : '\0';
}

/* Numbers that have a text. */
static bool is_shown_as_text(enum script_type type)
{
	return type == SCRIPT_KSYM || type == SCRIPT_RWBS || type == SCRIPT_PROBE;
}

static bool check_format(struct compiler *compiler, const struct script_node *node, const struct script_action *action)
{
	unsigned n = 0;

	for (const char *at = strchr(action->format, '%'); at; at = strchr(at, '%')) {
		const char *start = ++at;
		const char last = conversion(&at);

		if (last == '\0' || at - start > 16)
			return fail(compiler, node, "after a % there has to be one of d, i, u, x, X, o, c, s, p and %");
		if (last == '%')
			continue;
		if (n == action->n_sent)
			return fail(compiler, node, "the format has more conversions than there are values");
		const bool is_word = last == 's', has_word = script_type_words(action->sent[n]) > 1;

		if (is_word ? !has_word && !is_shown_as_text(action->sent[n]) : has_word)
			return fail(compiler, node,
			            is_word ? "%s is for a text, and there is a number"
			                    : "there is a text, which only %s prints");
		n++;
	}
	return n == action->n_sent || fail(compiler, node, "there are more values than conversions in the format");
}

static bool send_values(struct compiler *compiler, const struct script_node *node, const struct script_node *first,
                        struct script_action *action)
{
	unsigned at, words;

	for (const struct script_node *value = first; value; value = value->next)
		if (action->n_sent++ == SCRIPT_SENT_MAX)
			return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT,
			                    "at most 16 values can be printed at once");
	if (!compile_several(compiler, first, action->n_sent, action->sent, &at, &words))
		return false;
	if (words > VPROF_PROGRAM_SENT_WORDS)
		return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "these are too many values to print at once");
	return (!action->format || check_format(compiler, node, action)) &&
	       add_action(compiler, node, action, VPROF_PROGRAM_SEND, at, words);
}

static bool compile_printf(struct compiler *compiler, const struct script_node *call)
{
	struct script_action action = {.kind = SCRIPT_PRINTF};

	if (!call->first || call->first->kind != NODE_STRING)
		return fail(compiler, call, "printf begins with a format in quotes");
	action.format = call->first->text;
	return send_values(compiler, call, call->first->next, &action);
}

static bool of_map(struct compiler *compiler, const struct script_node *call, struct script_action *action)
{
	const struct script_node *map = call->first;

	if (!map || map->kind != NODE_MAP || map->first)
		return fail(compiler, call, "this takes a map, without a key");
	return compile_map_find(compiler, map, &action->map);
}

static bool compile_print(struct compiler *compiler, const struct script_node *call)
{
	struct script_action action = {.kind = SCRIPT_PRINT};
	int64_t top = 0, div = 0;

	if (!compile_takes(compiler, call, 1, 3, "print(@x), print(@x, TOP, DIVISOR) or print(VALUE)"))
		return false;
	const struct script_node *limit = call->first->next;
	if (call->first->kind != NODE_MAP || call->first->first)
		return limit ? fail(compiler, limit, "only a map is printed with a limit")
		             : send_values(compiler, call, call->first, &action);
	action.kind = SCRIPT_PRINT_MAP;
	if ((limit && !compile_literal(compiler, limit, 0, INT32_MAX, &top)) ||
	    (limit && limit->next && !compile_literal(compiler, limit->next, 1, INT64_MAX, &div)))
		return false;
	action.top = (uint64_t)top;
	action.div = (uint64_t)div;
	return of_map(compiler, call, &action) && add_action(compiler, call, &action, VPROF_PROGRAM_SEND, 0, 0);
}

static bool compile_statement_call(struct compiler *compiler, const struct script_node *call)
{
	struct script_action action = {.kind = SCRIPT_EXIT};

	if (strcmp(call->text, "printf") == 0)
		return compile_printf(compiler, call);
	if (strcmp(call->text, "print") == 0)
		return compile_print(compiler, call);
	if (strcmp(call->text, "delete") == 0)
		return compile_map_delete(compiler, call);
	if (strcmp(call->text, "exit") == 0)
		return compile_takes(compiler, call, 0, 0, "exit()") &&
		       add_action(compiler, call, &action, VPROF_PROGRAM_EXIT, 0, 0);
	if (compiler->script->has_events && strcmp(call->text, "event") == 0)
		return compile_takes(compiler, call, 0, 0, "event()") &&
		       compile_emit(compiler, call, (struct vprof_instruction){.operation = VPROF_PROGRAM_EVENT});
	if (strcmp(call->text, "clear") == 0 || strcmp(call->text, "zero") == 0) {
		action.kind = call->text[0] == 'c' ? SCRIPT_CLEAR : SCRIPT_ZERO;
		return compile_takes(compiler, call, 1, 1, "clear(@x) or zero(@x)") &&
		       of_map(compiler, call, &action) && add_action(compiler, call, &action, VPROF_PROGRAM_SEND, 0, 0);
	}
	script_fail(compiler->error, SCRIPT_ERROR_TYPE, call->line, call->column,
	            "there is no statement %s(); there are printf, print, clear, zero, delete and exit", call->text);
	return false;
}

/* ---- variables ---- */

static bool compile_variable_assign(struct compiler *compiler, const struct script_node *node)
{
	const bool plain = strcmp(node->text, "=") == 0;
	struct variable *variable;
	struct value before, value;

	if ((!plain && !compile_number(compiler, node->a, &before)) || !compile_value(compiler, node->b, -1, &value))
		return false;
	if (!is_number(value.type) && value.type != SCRIPT_TEXT)
		return fail(compiler, node, "a stack or usym() can be a part of a key, and no value");
	if (!plain && (!is_number(value.type) ||
	               !compile_operator(compiler, node, node->text, &before, &value, value.at, &value.type)))
		return is_number(value.type) ? false : fail(compiler, node->b, "a number has to stand here");
	variable = compile_variable(compiler, node->a, value.type);
	return variable && compile_copy(compiler, node, variable->value.type, variable->value.at, value.at);
}

static bool compile_variable_step(struct compiler *compiler, const struct script_node *node)
{
	struct script_node one = {.kind = NODE_NUMBER, .line = node->line, .column = node->column, .number = 1};
	const struct script_node assign = {.kind = NODE_ASSIGN,
	                                   .line = node->line,
	                                   .column = node->column,
	                                   .text = node->text[0] == '+' ? (char *)"+=" : (char *)"-=",
	                                   .a = node->a,
	                                   .b = &one};

	return compile_variable_assign(compiler, &assign);
}

/* ---- statements ---- */

static bool compile_if(struct compiler *compiler, const struct script_node *node)
{
	struct value condition;
	size_t other, end;

	if (!compile_number(compiler, node->a, &condition) || !compile_jump(compiler, node, &condition, &other) ||
	    !compile_statements(compiler, node->first))
		return false;
	if (!node->second) {
		compile_land(compiler, other);
		return true;
	}
	if (!compile_jump(compiler, node, NULL, &end))
		return false;
	compile_land(compiler, other);
	if (!compile_statements(compiler, node->second))
		return false;
	compile_land(compiler, end);
	return true;
}

static bool leave_clause(struct compiler *compiler, const struct script_node *node, const struct value *condition)
{
	size_t at;
	const bool done = compile_jump(compiler, node, condition, &at);

	g_array_append_val(compiler->ends, at);
	return done;
}

static bool compile_statement(struct compiler *compiler, const struct script_node *node)
{
	switch (node->kind) {
	case NODE_ASSIGN:
		return node->a->kind == NODE_MAP ? compile_map_assign(compiler, node)
		                                 : compile_variable_assign(compiler, node);
	case NODE_STEP:
		return node->a->kind == NODE_MAP ? compile_map_step(compiler, node)
		                                 : compile_variable_step(compiler, node);
	case NODE_IF:
		return compile_if(compiler, node);
	case NODE_RETURN:
		return leave_clause(compiler, node, NULL);
	default: /* NODE_CALL */
		return compile_statement_call(compiler, node);
	}
}

static bool compile_statements(struct compiler *compiler, const struct script_node *first)
{
	for (const struct script_node *node = first; node; node = node->next) {
		const unsigned temporary = compiler->temporary;

		if (!compile_statement(compiler, node))
			return false;
		compiler->temporary = temporary;
	}
	return true;
}

static bool compile_clause(struct compiler *compiler, const struct clause *clause)
{
	struct value condition;

	g_array_set_size(compiler->ends, 0);
	g_array_set_size(compiler->variables, 0);
	compiler->temporary = 0;
	if (clause->predicate && (!compile_number(compiler, clause->predicate, &condition) ||
	                          !leave_clause(compiler, clause->predicate, &condition)))
		return false;
	if (!compile_statements(compiler, clause->statements))
		return false;
	for (guint i = 0; i < compiler->ends->len; i++)
		compile_land(compiler, g_array_index(compiler->ends, size_t, i));
	return true;
}

/* ---- all probes ---- */

static char *shown_name(const struct clause *clause, const struct script_probe *probe)
{
	for (guint i = 0; i < clause->probes->len; i++) {
		const struct probe_written *written = &g_array_index(clause->probes, struct probe_written, i);
		const char *what = strchr(probe->name, ':');

		if (!g_strv_contains(probe->written, written->name) || !written->shown)
			continue;
		if (!what || g_str_has_prefix(written->name, "recording:"))
			return g_strdup(written->shown);
		return g_strdup_printf("%s%.*s", written->shown, (int)(strlen(what) - strlen(written->end)), what);
	}
	return g_strdup(probe->name);
}

static bool compile_probe(struct compiler *compiler, struct program *program)
{
	const struct script *script = compiler->script;

	compiler->code = program->instructions;
	compiler->variables_at = VPROF_PROGRAM_FRAME_WORDS;
	for (guint i = 0; i < script->clauses->len; i++) {
		const struct clause *clause = g_ptr_array_index(script->clauses, i);

		if (!clause_is_of(clause, compiler->probe->written))
			continue;
		if (!program->shown)
			program->shown = shown_name(clause, compiler->probe);
		if (!compile_clause(compiler, clause))
			return false;
	}
	return true;
}

static bool compile_all(struct compiler *compiler, const struct script_probe *probes, size_t n)
{
	g_ptr_array_set_size(compiler->script->programs, 0);
	for (compiler->number = 0; compiler->number < n; compiler->number++) {
		struct program *program = g_new0(struct program, 1);

		program->instructions = g_array_new(FALSE, FALSE, sizeof(struct vprof_instruction));
		g_ptr_array_add(compiler->script->programs, program);
		compiler->probe = &probes[compiler->number];
		if (!compile_probe(compiler, program))
			return false;
	}
	return true;
}

/* A clause without statements still is a program, which does nothing. */
static void fill_empty(struct script *script)
{
	const struct vprof_instruction nothing = {.operation = VPROF_PROGRAM_JUMP, .constant = 1};

	for (guint i = 0; i < script->programs->len; i++) {
		const struct program *program = g_ptr_array_index(script->programs, i);

		if (program->instructions->len == 0)
			g_array_append_val(program->instructions, nothing);
	}
}

bool script_compile(struct script *script, const struct script_probe *probes, size_t n, GError **error)
{
	struct compiler compiler = {.script = script,
	                            .variables = g_array_new(FALSE, FALSE, sizeof(struct variable)),
	                            .ends = g_array_new(FALSE, FALSE, sizeof(size_t)),
	                            .guesses = true,
	                            .error = error};

	g_ptr_array_set_size(script->maps, 0);
	g_array_set_size(script->actions, 0);
	/* The second time for maps that are set to what others keep. */
	bool done = compile_all(&compiler, probes, n) && compile_all(&compiler, probes, n);
	compiler.guesses = false;
	done = done && compile_all(&compiler, probes, n);
	if (done)
		fill_empty(script);
	g_array_unref(compiler.variables);
	g_array_unref(compiler.ends);
	return done;
}
