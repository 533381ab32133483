// SPDX-License-Identifier: BSD-2-Clause
#include <string.h>

#include "lib/script/script_priv.h"

#define DEPTH_MAX 64u /* of what is nested */
#define NODES_MAX 4096u

struct parser {
	struct lexer lexer;
	struct token token; /* the next */
	unsigned depth, nodes, parentheses, blocks;
	bool in_predicate;
	GHashTable *pointers; /* of the clause: of variables, by name, the path each is set to; "": more than one */
	GError **error;
};

static struct script_node *parse_expression(struct parser *parser);
static struct script_node *parse_unary(struct parser *parser);
static bool parse_block(struct parser *parser, struct script_node **first);

static void *fail(struct parser *parser, const char *expected)
{
	const struct token *token = &parser->token;

	if (token->kind == TOKEN_END)
		script_fail(parser->error, SCRIPT_ERROR_SYNTAX, token->line, token->column,
		            "the script ends where %s should follow", expected);
	else
		script_fail(parser->error, SCRIPT_ERROR_SYNTAX, token->line, token->column,
		            "here is \"%s\", where %s should be", token->text, expected);
	return NULL;
}

static bool advance(struct parser *parser)
{
	g_free(g_steal_pointer(&parser->token.text));
	const bool done = lexer_next(&parser->lexer, &parser->token, parser->error);

	if (!done)
		g_clear_pointer(&parser->token.text, g_free);
	return done;
}

static bool is_sign(const struct parser *parser, const char *sign)
{
	return parser->token.kind == TOKEN_SIGN && strcmp(parser->token.text, sign) == 0;
}

static bool is_name(const struct parser *parser, const char *name)
{
	return parser->token.kind == TOKEN_NAME && strcmp(parser->token.text, name) == 0;
}

/* Takes that sign. */
static bool expect(struct parser *parser, const char *sign, const char *expected)
{
	if (is_sign(parser, sign))
		return advance(parser);
	fail(parser, expected);
	return false;
}

/* With the text and place of the next token, which it takes. */
static struct script_node *node_new(struct parser *parser, enum script_node_kind kind)
{
	struct script_node *node;

	if (++parser->nodes > NODES_MAX) {
		script_fail(parser->error, SCRIPT_ERROR_LIMIT, parser->token.line, parser->token.column,
		            "the script is too long");
		return NULL;
	}
	node = g_new0(struct script_node, 1);
	*node = (struct script_node){.kind = kind,
	                             .line = parser->token.line,
	                             .column = parser->token.column,
	                             .text = g_strdup(parser->token.text),
	                             .number = parser->token.number};
	if (advance(parser))
		return node;
	script_node_free(node);
	return NULL;
}

static bool enter(struct parser *parser)
{
	if (++parser->depth <= DEPTH_MAX)
		return true;
	script_fail(parser->error, SCRIPT_ERROR_LIMIT, parser->token.line, parser->token.column,
	            "this is nested too deeply");
	return false;
}

/* ---- expressions ---- */

/* Behind the opening sign, up to the closing one. */
static bool parse_list(struct parser *parser, const char *closing, struct script_node **list)
{
	bool first = true;

	parser->parentheses++;
	while (!is_sign(parser, closing)) {
		if (!first && !expect(parser, ",", "a comma, or the end of the list"))
			return false;
		*list = parse_expression(parser);
		if (!*list)
			return false;
		list = &(*list)->next;
		first = false;
	}
	parser->parentheses--;
	return advance(parser);
}

static struct script_node *parse_map(struct parser *parser)
{
	struct script_node *map = node_new(parser, NODE_MAP);

	if (map && is_sign(parser, "[") && (!advance(parser) || !parse_list(parser, "]", &map->first))) {
		script_node_free(map);
		return NULL;
	}
	return map;
}

/* ".name", "->name" or "[number]" behind a path. */
static bool parse_step(struct parser *parser, GString *path)
{
	const bool is_element = is_sign(parser, "[");

	if (path->len > 0 || is_element)
		g_string_append(path, parser->token.text);
	if (!advance(parser))
		return false;
	if (parser->token.kind != (is_element ? TOKEN_NUMBER : TOKEN_NAME)) {
		fail(parser, is_element ? "the number of an element" : "the name of a field");
		return false;
	}
	g_string_append(path, parser->token.text);
	if (!advance(parser) || !is_element)
		return *parser->error == NULL;
	g_string_append_c(path, ']');
	return expect(parser, "]", "the ] of an element");
}

/* "args.prev->comm" becomes "prev->comm". */
static struct script_node *parse_path(struct parser *parser, struct script_node *node)
{
	g_autoptr(GString) path = g_string_new(strcmp(node->text, "args") == 0 ? "" : node->text);

	while (is_sign(parser, ".") || is_sign(parser, "->") || is_sign(parser, "[")) {
		if (parse_step(parser, path))
			continue;
		script_node_free(node);
		return NULL;
	}
	g_free(node->text);
	node->text = g_strdup(path->str);
	node->kind = NODE_PATH;
	return node;
}

/* "$p->member", where $p has been set to an argument or what is behind one. */
static struct script_node *parse_variable(struct parser *parser)
{
	struct script_node *node = node_new(parser, NODE_VARIABLE);
	const char *path = node ? g_hash_table_lookup(parser->pointers, node->text) : NULL;

	if (!node || !is_sign(parser, "->"))
		return node;
	if (!path || path[0] == '\0') {
		script_fail(
			parser->error, SCRIPT_ERROR_TYPE, node->line, node->column,
			"what %s points to is not known: it has to be set once, outside if, to curtask, an argument, or what is behind one",
			node->text);
		script_node_free(node);
		return NULL;
	}
	g_free(node->text);
	node->text = g_strdup(path);
	return parse_path(parser, node);
}

static bool is_argument(const char *name)
{
	return strcmp(name, "args") == 0 || strcmp(name, "retval") == 0 ||
	       (g_str_has_prefix(name, "arg") && g_ascii_isdigit(name[3]) && name[4 + (name[4] != '\0')] == '\0');
}

static struct script_node *parse_named(struct parser *parser)
{
	struct script_node *node = node_new(parser, NODE_NAME);

	if (!node)
		return NULL;
	if (is_sign(parser, "(")) {
		node->kind = NODE_CALL;
		if (advance(parser) && parse_list(parser, ")", &node->first))
			return node;
		script_node_free(node);
		return NULL;
	}
	if (strcmp(node->text, "uid") == 0 || strcmp(node->text, "gid") == 0) {
		char *path = g_strdup_printf("curtask->cred->%s.val", node->text);

		g_free(node->text);
		node->text = path;
		node->kind = NODE_PATH;
		return node;
	}
	if (is_argument(node->text) || (strcmp(node->text, "curtask") == 0 && is_sign(parser, "->")))
		return parse_path(parser, node);
	return node;
}

/* Bits, negative if signed; 0: no type of C. */
static int64_t type_bits(const char *name)
{
	static const struct {
		const char *name;
		int64_t bits;
	} types[] = {{"int8", -8},     {"int16", -16},   {"int32", -32}, {"int64", -64},   {"uint8", 8},
	             {"uint16", 16},   {"uint32", 32},   {"uint64", 64}, {"int8_t", -8},   {"int16_t", -16},
	             {"int32_t", -32}, {"int64_t", -64}, {"uint8_t", 8}, {"uint16_t", 16}, {"uint32_t", 32},
	             {"uint64_t", 64}, {"int", -32},     {"long", -64},  {"u8", 8},        {"u16", 16},
	             {"u32", 32},      {"u64", 64},      {"size_t", 64}, {"ssize_t", -64}, {"s8", -8},
	             {"s16", -16},     {"s32", -32},     {"s64", -64},   {"pid_t", -32}};

	for (size_t i = 0; i < G_N_ELEMENTS(types); i++)
		if (strcmp(types[i].name, name) == 0)
			return types[i].bits;
	return 0;
}

/* Behind "(", if it is a cast to a number. */
static struct script_node *parse_cast(struct parser *parser, int64_t bits)
{
	struct script_node *node = node_new(parser, NODE_CAST);

	if (node) {
		node->number = bits;
		if (expect(parser, ")", "the ) of the cast"))
			node->a = parse_unary(parser);
	}
	if (node && node->a)
		return node;
	script_node_free(node);
	return NULL;
}

/* "(struct path *)arg0" keeps the words of the type: "((struct path *)arg0)". */
static struct script_node *parse_struct_cast(struct parser *parser)
{
	g_autofree char *name = NULL;
	struct script_node *node = NULL;

	if (!advance(parser))
		return NULL;
	name = g_strdup(parser->token.text);
	if (parser->token.kind != TOKEN_NAME)
		return fail(parser, "the name of a structure");
	if (!advance(parser) || !expect(parser, "*", "the * of a pointer") || !expect(parser, ")", "the ) of the cast"))
		return NULL;
	const bool of_args = is_name(parser, "args");
	if (of_args && (!advance(parser) || (!is_sign(parser, ".") && !is_sign(parser, "->")) || !advance(parser)))
		return *parser->error ? NULL : fail(parser, "the argument that is cast");
	if (parser->token.kind != TOKEN_NAME ||
	    (!of_args && !is_argument(parser->token.text) && !is_name(parser, "curtask")))
		return fail(parser, "curtask or an argument, as arg0: no other value can be cast to a structure");
	node = node_new(parser, NODE_PATH);
	if (node) {
		char *text = g_strdup_printf("((struct %s *)%s)", name, node->text);

		g_free(node->text);
		node->text = text;
	}
	return node;
}

/* What is between them, and members of it. */
static struct script_node *parse_parentheses(struct parser *parser)
{
	struct script_node *node;

	if (!enter(parser) || !advance(parser))
		return NULL;
	if (is_name(parser, "struct")) {
		node = parse_struct_cast(parser);
	} else if (parser->token.kind == TOKEN_NAME && type_bits(parser->token.text) != 0) {
		node = parse_cast(parser, type_bits(parser->token.text));
	} else {
		parser->parentheses++;
		node = parse_expression(parser);
		parser->parentheses--;
		if (node && !expect(parser, ")", "a )"))
			g_clear_pointer(&node, script_node_free);
	}
	parser->depth--;
	return node && node->kind == NODE_PATH ? parse_path(parser, node) : node;
}

static struct script_node *parse_primary(struct parser *parser)
{
	switch (parser->token.kind) {
	case TOKEN_NUMBER:
		return node_new(parser, NODE_NUMBER);
	case TOKEN_STRING:
		return node_new(parser, NODE_STRING);
	case TOKEN_VARIABLE:
		return parse_variable(parser);
	case TOKEN_MAP:
		return parse_map(parser);
	case TOKEN_NAME:
		return parse_named(parser);
	default:
		break;
	}
	return is_sign(parser, "(") ? parse_parentheses(parser) : fail(parser, "a value");
}

static struct script_node *parse_unary(struct parser *parser)
{
	if (!is_sign(parser, "!") && !is_sign(parser, "-") && !is_sign(parser, "~"))
		return parse_primary(parser);
	struct script_node *node = enter(parser) ? node_new(parser, NODE_UNARY) : NULL;

	if (node)
		node->a = parse_unary(parser);
	if (!node || !node->a) {
		script_node_free(node);
		return NULL;
	}
	parser->depth--;
	return node;
}

/* From the loosest on; of one row, from the left. */
static const char *const operators[][5] = {
	{"||"},       {"&&"},     {"|"},           {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="},
	{"<<", ">>"}, {"+", "-"}, {"*", "/", "%"},
};

static bool is_operator(struct parser *parser, size_t row)
{
	bool found = false;

	for (size_t i = 0; i < G_N_ELEMENTS(operators[row]) && operators[row][i]; i++)
		found |= is_sign(parser, operators[row][i]);
	if (!found || !parser->in_predicate || parser->parentheses > 0 || !is_sign(parser, "/"))
		return found;
	/* The end of the predicate, if the statements follow. */
	struct lexer ahead = parser->lexer;
	const bool skipped = lexer_skip(&ahead, NULL);

	return !skipped || *ahead.at != '{';
}

static struct script_node *parse_binary(struct parser *parser, size_t row)
{
	struct script_node *left = row == G_N_ELEMENTS(operators) ? parse_unary(parser) : parse_binary(parser, row + 1);

	while (row < G_N_ELEMENTS(operators) && left && is_operator(parser, row)) {
		struct script_node *node = node_new(parser, NODE_BINARY);

		if (node)
			node->b = parse_binary(parser, row + 1);
		if (!node || !node->b) {
			script_node_free(node);
			script_node_free(left);
			return NULL;
		}
		node->a = left;
		left = node;
	}
	return left;
}

static struct script_node *parse_expression(struct parser *parser)
{
	struct script_node *condition = enter(parser) ? parse_binary(parser, 0) : NULL, *node;

	if (!condition || !is_sign(parser, "?")) {
		parser->depth -= condition != NULL;
		return condition;
	}
	node = node_new(parser, NODE_TERNARY);
	if (!node) {
		script_node_free(condition);
		return NULL;
	}
	node->a = condition;
	node->b = parse_expression(parser);
	if (node->b && expect(parser, ":", "the : of a ?"))
		node->c = parse_expression(parser);
	parser->depth--;
	if (node->c)
		return node;
	script_node_free(node);
	return NULL;
}

/* ---- statements ---- */

static bool is_assignment(const struct parser *parser)
{
	static const char *const signs[] = {"=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>="};
	bool found = false;

	for (size_t i = 0; i < G_N_ELEMENTS(signs); i++)
		found |= is_sign(parser, signs[i]);
	return found;
}

/* A variable is set: to a path, which its members are found by. */
static void note_pointer(struct parser *parser, const struct script_node *assign)
{
	const struct script_node *value = assign->b;
	const bool has_path =
		value->kind == NODE_PATH || (value->kind == NODE_NAME && strcmp(value->text, "curtask") == 0);
	const bool is_known = has_path && parser->blocks == 1 && strcmp(assign->text, "=") == 0 &&
	                      !g_hash_table_contains(parser->pointers, assign->a->text);

	g_hash_table_insert(parser->pointers, g_strdup(assign->a->text), g_strdup(is_known ? value->text : ""));
}

/* Behind a variable or a map. */
static struct script_node *parse_change(struct parser *parser, struct script_node *target)
{
	const bool steps = is_sign(parser, "++") || is_sign(parser, "--");
	struct script_node *node = NULL;

	if (steps || is_assignment(parser))
		node = node_new(parser, steps ? NODE_STEP : NODE_ASSIGN);
	else
		fail(parser, "=, ++ or another change of the variable");
	if (!node) {
		script_node_free(target);
		return NULL;
	}
	node->a = target;
	if (steps)
		return node;
	node->b = parse_expression(parser);
	if (node->b) {
		if (target->kind == NODE_VARIABLE)
			note_pointer(parser, node);
		return node;
	}
	script_node_free(node);
	return NULL;
}

static struct script_node *parse_target(struct parser *parser)
{
	if (parser->token.kind == TOKEN_VARIABLE)
		return node_new(parser, NODE_VARIABLE);
	return parser->token.kind == TOKEN_MAP ? parse_map(parser) : fail(parser, "a variable or a map");
}

static struct script_node *parse_if(struct parser *parser)
{
	struct script_node *node = enter(parser) ? node_new(parser, NODE_IF) : NULL;
	bool done = node && (node->a = parse_expression(parser)) && parse_block(parser, &node->first);

	if (done && is_name(parser, "else")) {
		done = advance(parser);
		if (done && is_name(parser, "if"))
			done = (node->second = parse_if(parser)) != NULL;
		else
			done = done && parse_block(parser, &node->second);
	}
	parser->depth--;
	if (done)
		return node;
	script_node_free(node);
	return NULL;
}

static struct script_node *parse_statement(struct parser *parser)
{
	struct script_node *node;

	if (is_sign(parser, "++") || is_sign(parser, "--")) {
		node = node_new(parser, NODE_STEP);
		if (node && !(node->a = parse_target(parser)))
			g_clear_pointer(&node, script_node_free);
		return node;
	}
	if (is_name(parser, "if"))
		return parse_if(parser);
	if (is_name(parser, "return"))
		return node_new(parser, NODE_RETURN);
	if (parser->token.kind == TOKEN_NAME) {
		node = parse_named(parser);
		if (!node || node->kind == NODE_CALL)
			return node;
		script_fail(parser->error, SCRIPT_ERROR_SYNTAX, node->line, node->column,
		            "this is no statement; one calls a function, as printf or exit, or changes a variable");
		script_node_free(node);
		return NULL;
	}
	node = parse_target(parser);
	return node ? parse_change(parser, node) : NULL;
}

/* In braces. */
static bool parse_block(struct parser *parser, struct script_node **first)
{
	if (!expect(parser, "{", "a {"))
		return false;
	parser->blocks++;
	while (!is_sign(parser, "}")) {
		if (is_sign(parser, ";")) {
			if (!advance(parser))
				return false;
			continue;
		}
		*first = parse_statement(parser);
		if (!*first)
			return false;
		if (!is_sign(parser, ";") && !is_sign(parser, "}") && (*first)->kind != NODE_IF) {
			fail(parser, "a ; or a }");
			return false;
		}
		first = &(*first)->next;
	}
	parser->blocks--;
	return advance(parser);
}

/* ---- clauses ---- */

/* The lexer is at its first character. */
static bool parse_probe(struct parser *parser, struct script *script, struct clause *clause)
{
	struct lexer *lexer = &parser->lexer;
	const char *text = parser->token.at;
	const size_t n = probe_written_length(text);
	const char *elsewhere = probe_written_elsewhere(text);
	struct probe_written written;

	if (elsewhere) {
		script_fail(parser->error, SCRIPT_ERROR_TYPE, parser->token.line, parser->token.column,
		            "%s is not available; `vprof probe list` shows what can be probed", elsewhere);
		return false;
	}
	if (n == 0 || (parser->token.kind != TOKEN_NAME && text[0] != '*')) {
		fail(parser, "a probe");
		return false;
	}
	/* The token may have been a part of it only. */
	lexer->at = text;
	lexer->line = parser->token.line;
	lexer->column = parser->token.column;
	probe_written_parse(text, n, &written);
	script_clause_add_probe(script, clause, &written);
	lexer_advance(lexer, n);
	return advance(parser);
}

static bool parse_predicate(struct parser *parser, struct clause *clause)
{
	if (!is_sign(parser, "/"))
		return true;
	parser->in_predicate = true;
	clause->predicate = advance(parser) ? parse_expression(parser) : NULL;
	parser->in_predicate = false;
	return clause->predicate && expect(parser, "/", "the / at the end of the predicate");
}

static bool parse_clause(struct parser *parser, struct script *script)
{
	struct clause *clause = script_clause_new(script);

	if (!parse_probe(parser, script, clause))
		return false;
	while (is_sign(parser, ","))
		if (!advance(parser) || !parse_probe(parser, script, clause))
			return false;
	g_hash_table_remove_all(parser->pointers);
	return parse_predicate(parser, clause) && parse_block(parser, &clause->statements);
}

bool script_read(struct script *script, const char *text, const char *const *parameters, GError **error)
{
	g_autoptr(GError) failure = NULL;
	struct parser parser = {.lexer = {text, 1, 1, parameters},
	                        .pointers = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free),
	                        .error = &failure};
	bool done = advance(&parser);

	while (done && (parser.token.kind != TOKEN_END || script->clauses->len == 0))
		done = parse_clause(&parser, script);
	g_free(parser.token.text);
	g_hash_table_unref(parser.pointers);
	if (!done)
		g_propagate_error(error, g_steal_pointer(&failure));
	return done;
}
