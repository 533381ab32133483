// SPDX-License-Identifier: BSD-2-Clause
/*
 * What is made of the method table when this is built:
 *   control-docs json              the answer to query-schema
 *   control-docs header            method and argument names, for the completions of `vprof ctl`
 *   control-docs manual TEMPLATE   vprof-control(7): the template with its lines "@NAME@" replaced by the table NAME
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/method_priv.h"

static const char *text_of(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name));
}

static bool has(const json_t *object, const char *name)
{
	return json_object_get(object, name) != NULL;
}

/* ---- header ---- */

static void print_header(const json_t *schema)
{
	const json_t *method, *argument;
	size_t i, j;

	puts("/* Made by control-docs from the table of methods. */\n"
	     "static const struct {\n"
	     "\tconst char *name, *keys; /* \"KEY= KEY=\" */\n"
	     "} ctl_methods[] = {");
	json_array_foreach(json_object_get(schema, "methods"), i, method) {
		printf("\t{\"%s\", \"", text_of(method, "name"));
		json_array_foreach(json_object_get(method, "arguments"), j, argument)
			printf("%s%s=", j > 0 ? " " : "", text_of(argument, "name"));
		puts("\"},");
	}
	puts("\t{NULL, NULL},\n};");
}

/* ---- manual ---- */

/* Text in mdoc(7), each sentence on a line of its own. */
static void print_text(const char *text)
{
	if (*text == '.' || *text == '\'')
		fputs("\\&", stdout);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			fputs("\\e", stdout);
		else
			putchar(*text);
		if (*text == '.' && text[1] == ' ') {
			putchar('\n');
			text++;
		}
	}
	putchar('\n');
}

static void print_range(const json_t *argument)
{
	const json_t *choices = json_object_get(argument, "choices"), *choice;
	size_t i;

	printf("(%s", text_of(argument, "type"));
	json_array_foreach(choices, i, choice)
		printf("%s%s", i > 0 ? ", " : ": ", json_string_value(choice));
	if (has(argument, "min"))
		printf(" of %" JSON_INTEGER_FORMAT " to %" JSON_INTEGER_FORMAT "%s",
		       json_integer_value(json_object_get(argument, "min")),
		       json_integer_value(json_object_get(argument, "max")),
		       strcmp(text_of(argument, "type"), "string") == 0     ? " bytes"
		       : strcmp(text_of(argument, "type"), "[string]") == 0 ? " strings"
		                                                            : "");
	if (has(argument, "default")) {
		char *preset = json_dumps(json_object_get(argument, "default"), JSON_ENCODE_ANY);

		printf("; %s by default", preset);
		free(preset);
	} else if (json_is_true(json_object_get(argument, "optional"))) {
		printf("; optional");
	}
	puts(")");
}

static void print_arguments(const json_t *arguments)
{
	const json_t *argument;
	size_t i;

	if (json_array_size(arguments) == 0)
		return;
	puts(".Bl -tag -width Ds");
	json_array_foreach(arguments, i, argument) {
		printf(".It Fa %s\n", text_of(argument, "name"));
		print_range(argument);
		puts(".br");
		print_text(text_of(argument, "summary"));
	}
	puts(".El");
}

/* "(integer or null; optional)" */
static void print_member_type(const json_t *member)
{
	printf("(%s%s%s)\n", text_of(member, "type"), has(member, "nullable") ? " or null" : "",
	       json_is_true(json_object_get(member, "optional")) ? "; optional" : "");
}

static void print_members(const json_t *members)
{
	const json_t *member;
	size_t i;

	puts(".Bl -tag -width Ds");
	json_array_foreach(members, i, member) {
		printf(".It Li %s\n", text_of(member, "name"));
		print_member_type(member);
		puts(".br");
		print_text(text_of(member, "summary"));
		if (has(member, "members-of"))
			printf("Its members are those of\n.Cm %s .\n", text_of(member, "members-of"));
		if (has(member, "members"))
			print_members(json_object_get(member, "members"));
	}
	puts(".El");
}

static void print_returns(const json_t *method)
{
	const json_t *members = json_object_get(method, "returns");

	puts(".Pp");
	if (json_array_size(members) == 0) {
		puts("Returns an empty object.");
	} else {
		puts("Returns:");
		print_members(members);
	}
	if (has(method, "descriptors")) {
		puts(".Pp\nFile descriptors:");
		print_text(text_of(method, "descriptors"));
	}
}

static void print_methods(const json_t *methods)
{
	const json_t *method;
	size_t i;

	json_array_foreach(methods, i, method) {
		printf(".Ss %s\n", text_of(method, "name"));
		printf("Role: %s.\n.br\n", text_of(method, "role"));
		print_text(text_of(method, "summary"));
		if (has(method, "arguments-of"))
			printf("Its arguments are those of\n.Sx %s .\n", text_of(method, "arguments-of"));
		print_arguments(json_object_get(method, "arguments"));
		print_returns(method);
	}
}

static void print_terms(const json_t *terms)
{
	const json_t *term;
	size_t i;

	puts(".Bl -tag -width Ds");
	json_array_foreach(terms, i, term) {
		printf(".It Li %s\n", text_of(term, "name"));
		print_text(text_of(term, "summary"));
		if (has(term, "data"))
			print_members(json_object_get(term, "data"));
	}
	puts(".El");
}

static void print_table(const json_t *schema, const char *name)
{
	const json_t *table = json_object_get(schema, name);

	if (!table) {
		fprintf(stderr, "control-docs: the template wants @%s@, which the schema does not have\n", name);
		exit(EXIT_FAILURE);
	}
	if (strcmp(name, "methods") == 0)
		print_methods(table);
	else
		print_terms(table);
}

static bool print_manual(const json_t *schema, const char *template)
{
	g_autoptr(GError) error = NULL;
	g_autofree char *page = NULL;

	if (!g_file_get_contents(template, &page, NULL, &error)) {
		fprintf(stderr, "control-docs: %s\n", error->message);
		return false;
	}
	g_auto(GStrv) lines = g_strsplit(g_strchomp(page), "\n", -1);
	for (char **line = lines; *line; line++) {
		size_t n = strlen(*line);

		if (n > 2 && (*line)[0] == '@' && (*line)[n - 1] == '@') {
			g_autofree char *name = g_strndup(*line + 1, n - 2);

			print_table(schema, name);
		} else {
			puts(*line);
		}
	}
	return true;
}

int main(int argc, char **argv)
{
	json_auto_t *schema = control_schema();
	const char *what = argc > 1 ? argv[1] : "";
	bool done = true;

	if (strcmp(what, "json") == 0)
		json_dumpf(schema, stdout, JSON_INDENT(2));
	else if (strcmp(what, "header") == 0)
		print_header(schema);
	else if (strcmp(what, "manual") == 0 && argc == 3)
		done = print_manual(schema, argv[2]);
	else
		done = fputs("usage: control-docs json | header | manual TEMPLATE\n", stderr) < 0;
	return done && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
