// SPDX-License-Identifier: BSD-2-Clause
#include <stdarg.h>
#include <string.h>

#include "lib/script/script_priv.h"

void script_fail(GError **error, enum script_error code, unsigned line, unsigned column, const char *format, ...)
{
	va_list arguments;

	va_start(arguments, format);
	g_autofree char *why = g_strdup_vprintf(format, arguments);
	va_end(arguments);
	if (line == 0)
		g_set_error_literal(error, SCRIPT_ERROR, (gint)code, why);
	else
		g_set_error(error, SCRIPT_ERROR, (gint)code, "%u:%u: %s", line, column, why);
}

void lexer_advance(struct lexer *lexer, size_t n)
{
	for (; n > 0; n--, lexer->at++) {
		lexer->column++;
		if (*lexer->at == '\n') {
			lexer->line++;
			lexer->column = 1;
		}
	}
}

#define WITHOUT_BTF "#ifndef BPFTRACE_HAVE_BTF" /* the types are those of the kernel's BTF */

static bool is_header_line(const struct lexer *lexer)
{
	return (g_str_has_prefix(lexer->at, "#!") && lexer->line == 1) || g_str_has_prefix(lexer->at, "#include ");
}

bool lexer_skip(struct lexer *lexer, GError **error)
{
	for (;;) {
		const char *end;

		if (g_ascii_isspace(*lexer->at)) {
			lexer_advance(lexer, 1);
		} else if (g_str_has_prefix(lexer->at, "//") || is_header_line(lexer)) {
			lexer_advance(lexer, strcspn(lexer->at, "\n"));
		} else if (g_str_has_prefix(lexer->at, WITHOUT_BTF)) {
			end = strstr(lexer->at, "\n#endif");
			if (!end) {
				script_fail(error, SCRIPT_ERROR_SYNTAX, lexer->line, lexer->column,
				            "this #ifndef has no #endif");
				return false;
			}
			lexer_advance(lexer, (size_t)(end - lexer->at) + strlen("\n#endif"));
		} else if (g_str_has_prefix(lexer->at, "/*")) {
			end = strstr(lexer->at + 2, "*/");
			if (!end) {
				script_fail(error, SCRIPT_ERROR_SYNTAX, lexer->line, lexer->column,
				            "this comment has no end");
				return false;
			}
			lexer_advance(lexer, (size_t)(end - lexer->at) + 2);
		} else {
			return true;
		}
	}
}

static size_t name_length(const char *text)
{
	size_t n = 0;

	while (g_ascii_isalnum(text[n]) || text[n] == '_')
		n++;
	return n;
}

static bool fail(const struct token *token, GError **error, const char *why)
{
	script_fail(error, SCRIPT_ERROR_SYNTAX, token->line, token->column, "%s", why);
	return false;
}

/* Decimal, hexadecimal, 1e6, 1_000_000; and s, ms, us and ns, as nanoseconds. */
static bool parse_number(struct token *token, const char *text, size_t n, GError **error)
{
	static const struct {
		const char *name;
		uint64_t times;
	} units[] = {{"", 1},           {"ns", 1},          {"us", 1000},         {"ms", 1000000},
	             {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}, {"d", 86400000000000}};
	const bool hex = n > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X');
	uint64_t value = 0;
	size_t at = hex ? 2 : 0, digits = 0;
	bool fits = true;

	for (; at < n && (text[at] == '_' || (hex ? g_ascii_isxdigit(text[at]) : g_ascii_isdigit(text[at]))); at++) {
		if (text[at] == '_')
			continue;
		fits &= !__builtin_mul_overflow(value, hex ? 16 : 10, &value) &&
		        !__builtin_add_overflow(value, (uint64_t)g_ascii_xdigit_value(text[at]), &value);
		digits++;
	}
	g_autofree char *rest = g_strndup(text + at, n - at);
	bool known = false;

	if (!hex && rest[0] == 'e' && g_ascii_isdigit(rest[1]) && rest[2] == '\0') {
		for (int i = 0; i < rest[1] - '0'; i++)
			fits &= !__builtin_mul_overflow(value, 10, &value);
		known = true;
	}
	for (size_t i = 0; i < G_N_ELEMENTS(units) && !known; i++) {
		known = strcmp(rest, units[i].name) == 0;
		if (known)
			fits &= !__builtin_mul_overflow(value, units[i].times, &value);
	}
	if (!known || digits == 0)
		return fail(token, error, "this is no number");
	token->number = (int64_t)value;
	return fits || fail(token, error, "this number has more than 64 bits");
}

static bool parse_string(struct lexer *lexer, struct token *token, GError **error)
{
	static const char escapes[] = "n\nt\tr\r\\\\\"\"";
	GString *text = g_string_new(NULL);
	const char *at = lexer->at + 1;
	bool good = true;

	for (; *at != '\0' && *at != '"' && *at != '\n' && good; at++) {
		const char *escape = *at == '\\' && at[1] != '\0' ? strchr(escapes, at[1]) : NULL;

		good = *at != '\\' || (escape && (escape - escapes) % 2 == 0);
		if (good && escape)
			at++;
		g_string_append_c(text, escape && good ? escape[1] : *at);
	}
	token->text = g_string_free(text, FALSE);
	if (!good)
		return fail(token, error,
		            "this text has a \\ that stands for nothing; there are \\n, \\t, \\r, \\\\ and \\\"");
	if (*at != '"')
		return fail(token, error, "this text has no \" at its end");
	lexer_advance(lexer, (size_t)(at + 1 - lexer->at));
	return true;
}

/* $1 and so on: what was given for it, a number or a text. */
static bool parse_parameter(struct lexer *lexer, struct token *token, size_t n, GError **error)
{
	const char *value = NULL;
	uint64_t number = 0, count = 0;

	for (size_t i = 1; i < n && number < 1000; i++)
		number = number * 10 + (uint64_t)(lexer->at[i] - '0');
	while (lexer->parameters && lexer->parameters[count])
		count++;
	if (number >= 1 && number <= count)
		value = lexer->parameters[number - 1];
	if (!value) {
		script_fail(error, SCRIPT_ERROR_SYNTAX, token->line, token->column,
		            "there is no parameter %.*s; %" G_GUINT64_FORMAT " are given behind the engine", (int)n,
		            lexer->at, count);
		return false;
	}
	lexer_advance(lexer, n);
	const bool negative = value[0] == '-';
	const bool is_number = g_ascii_isdigit(value[negative]) &&
	                       parse_number(token, value + negative, strlen(value + negative), NULL);

	token->kind = is_number ? TOKEN_NUMBER : TOKEN_STRING;
	token->text = g_strdup(value);
	if (negative)
		token->number = (int64_t) - (uint64_t)token->number;
	return true;
}

static size_t sign_length(const char *at)
{
	static const char *const signs[] = {"<<=", ">>=", "->", "++", "--", "&&", "||", "==", "!=", "<=", ">=",
	                                    "<<",  ">>",  "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^="};

	for (size_t i = 0; i < G_N_ELEMENTS(signs); i++)
		if (g_str_has_prefix(at, signs[i]))
			return strlen(signs[i]);
	return 1;
}

static void take(struct lexer *lexer, struct token *token, enum token_kind kind, size_t n)
{
	token->kind = kind;
	token->text = g_strndup(lexer->at, n);
	lexer_advance(lexer, n);
}

bool lexer_next(struct lexer *lexer, struct token *token, GError **error)
{
	if (!lexer_skip(lexer, error))
		return false;
	const char first = *lexer->at;

	*token = (struct token){.kind = TOKEN_END, .line = lexer->line, .column = lexer->column, .at = lexer->at};
	if (first == '\0')
		return true;
	if (first == '"') {
		token->kind = TOKEN_STRING;
		return parse_string(lexer, token, error);
	}
	if (first == '$' && g_ascii_isdigit(lexer->at[1]))
		return parse_parameter(lexer, token, 1 + strspn(lexer->at + 1, "0123456789"), error);
	if (first == '@' || (first == '$' && name_length(lexer->at + 1) > 0)) {
		take(lexer, token, first == '@' ? TOKEN_MAP : TOKEN_VARIABLE, 1 + name_length(lexer->at + 1));
		return true;
	}
	if (g_ascii_isdigit(first)) {
		take(lexer, token, TOKEN_NUMBER, name_length(lexer->at));
		return parse_number(token, token->text, strlen(token->text), error);
	}
	if (g_ascii_isalpha(first) || first == '_') {
		take(lexer, token, TOKEN_NAME, name_length(lexer->at));
		return true;
	}
	if (!strchr("{}()[];,:?.+-*/%&|^~!<>=", first))
		return fail(token, error, "this character means nothing here");
	take(lexer, token, TOKEN_SIGN, sign_length(lexer->at));
	return true;
}
