// SPDX-License-Identifier: BSD-2-Clause
#include "guest/field_path.h"

#include <string.h>

G_DEFINE_QUARK(vprof_field_error, field_error)

#define TEXT "str("
#define CAST "((struct "
#define CAST_END " *)"
#define NAME_BYTES_MAX 64u
#define READ_BYTES 16u /* of a text at once, so that the page behind it need not be there */

/* While a path is read. */
struct parsing {
	const char *text; /* all of it, for messages */
	const char *at;
	const struct btf *btf;
	uint32_t type;
	uint32_t structure; /* that the argument is a pointer to, or is cast to one; 0: none */
	bool in_memory;     /* the value is at `offset`, and not in a register */
	struct field_path *path;
	GError **error;
};

static bool fail(const struct parsing *parsing, enum field_error code, const char *why)
{
	g_set_error(parsing->error, FIELD_ERROR, (gint)code, "field \"%s\" %s", parsing->text, why);
	return false;
}

static size_t name_length(const char *text)
{
	size_t n = 0;

	while (g_ascii_isalnum(text[n]) || text[n] == '_')
		n++;
	return n;
}

static const char *behind_str(const char *text)
{
	return g_str_has_prefix(text, TEXT) ? text + strlen(TEXT) : text;
}

/* The name of the structure that the argument is cast to; NULL: it is not. */
static const char *cast_of(const char *text)
{
	const char *begin = behind_str(text);

	if (!g_str_has_prefix(begin, CAST))
		return NULL;
	begin += strlen(CAST);
	return g_str_has_prefix(begin + name_length(begin), CAST_END) ? begin : NULL;
}

static const char *first_name(const char *text)
{
	const char *cast = cast_of(text);

	return cast ? cast + name_length(cast) + strlen(CAST_END) : behind_str(text);
}

int field_path_argument(const char *text, const struct field_argument *arguments, size_t n)
{
	const char *name = first_name(text);
	const size_t length = name_length(name);

	for (size_t i = 0; i < n; i++)
		if (strlen(arguments[i].name) == length && memcmp(arguments[i].name, name, length) == 0)
			return (int)i;
	return -1;
}

/* The pointer that has been reached is loaded: the next offset counts from what it points to. */
static bool load(struct parsing *parsing)
{
	struct field_path *path = parsing->path;

	if (parsing->in_memory) {
		if (path->n_loads == FIELD_LOADS_MAX)
			return fail(parsing, FIELD_ERROR_SYNTAX, "has too many pointers; it may have 8");
		path->loads[path->n_loads++] = path->offset;
	}
	path->offset = 0;
	parsing->in_memory = true;
	return true;
}

/* Behind "->" or ".": a member. */
static bool parse_member(struct parsing *parsing)
{
	char name[NAME_BYTES_MAX];
	const size_t length = name_length(parsing->at);
	uint32_t offset;

	if (length == 0 || length >= sizeof(name))
		return fail(parsing, FIELD_ERROR_SYNTAX,
		            "is no path; one is written ARGUMENT->MEMBER.MEMBER, or str(PATH)");
	memcpy(name, parsing->at, length);
	name[length] = '\0';
	parsing->at += length;
	if (!btf_member_of(parsing->btf, parsing->type, name, &offset, &parsing->type)) {
		g_autofree char *why = g_strdup_printf("has no member %s there that can be read", name);

		return fail(parsing, FIELD_ERROR_TYPE, why);
	}
	return !__builtin_add_overflow(parsing->path->offset, offset, &parsing->path->offset) ||
	       fail(parsing, FIELD_ERROR_TYPE, "is too far away");
}

/* Behind "[": an element of an array of numbers or addresses. */
static bool parse_element(struct parsing *parsing)
{
	char *end;
	const uint64_t number = g_ascii_isdigit(parsing->at[0]) ? g_ascii_strtoull(parsing->at, &end, 10) : UINT64_MAX;
	struct btf_value value;
	uint32_t element, n;

	if (!parsing->in_memory || !btf_array(parsing->btf, parsing->type, &element, &n))
		return fail(parsing, FIELD_ERROR_TYPE, "has [ behind what is no array");
	if (number >= n || *end != ']')
		return fail(parsing, FIELD_ERROR_TYPE, "has an element that its array does not have");
	btf_value_fill(parsing->btf, element, &value);
	const uint32_t bytes = value.bytes;
	btf_value_clear(&value);
	if (bytes == 0)
		return fail(parsing, FIELD_ERROR_TYPE, "has an element that is no number and no address");
	parsing->at = end + 1;
	parsing->type = element;
	return !__builtin_add_overflow(parsing->path->offset, number * bytes, &parsing->path->offset) ||
	       fail(parsing, FIELD_ERROR_TYPE, "is too far away");
}

static bool parse_step(struct parsing *parsing)
{
	uint32_t target;

	if (!parsing->btf)
		return fail(parsing, FIELD_ERROR_TYPE, "needs the kernel's BTF, which its image does not have");
	if (g_str_has_prefix(parsing->at, "->")) {
		parsing->at += 2;
		if (parsing->structure != 0)
			target = parsing->structure;
		else if (!btf_target(parsing->btf, parsing->type, &target))
			return fail(parsing, FIELD_ERROR_TYPE, "has -> behind what is no pointer");
		parsing->type = target;
		parsing->structure = 0;
		return load(parsing) && parse_member(parsing);
	}
	if (*parsing->at++ == '[')
		return parse_element(parsing);
	if (!parsing->in_memory)
		return fail(parsing, FIELD_ERROR_TYPE, "has . behind what is no structure in memory");
	return parse_member(parsing);
}

/* Characters in the memory that has been reached, or where a pointer leads. Without types, an argument is an address.
 */
static bool finish_text(struct parsing *parsing)
{
	uint32_t element = 0, n = FIELD_TEXT_BYTES;
	struct btf_value value = {.bytes = 1};

	if (parsing->type != 0) {
		if (!btf_array(parsing->btf, parsing->type, &element, &n)) {
			if (!btf_target(parsing->btf, parsing->type, &element))
				return fail(parsing, FIELD_ERROR_TYPE,
				            "is no text: neither characters nor a pointer to them");
			if (!load(parsing))
				return false;
			n = FIELD_TEXT_BYTES;
		}
		btf_value_fill(parsing->btf, element, &value);
		btf_value_clear(&value);
	} else if (!load(parsing)) {
		return false;
	}
	parsing->path->is_text = true;
	parsing->path->bytes = MIN(n, FIELD_TEXT_BYTES - 1);
	return value.bytes == 1 ||
	       fail(parsing, FIELD_ERROR_TYPE, "is no text: neither characters nor a pointer to them");
}

static bool finish_number(struct parsing *parsing)
{
	struct field_path *path = parsing->path;
	uint32_t element, n;

	path->is_argument = !parsing->in_memory;
	if (parsing->type == 0) {
		path->value = (struct btf_value){.bytes = sizeof(uint64_t)};
		return true;
	}
	if (btf_array(parsing->btf, parsing->type, &element, &n))
		return finish_text(parsing);
	btf_value_fill(parsing->btf, parsing->type, &path->value);
	return path->value.bytes != 0 || fail(parsing, FIELD_ERROR_TYPE, "is no number and no address");
}

/* "((struct path *)arg0)", of which the first name has been read. */
static bool parse_cast(struct parsing *parsing)
{
	const char *cast = cast_of(parsing->text);

	if (!cast)
		return true;
	g_autofree char *name = g_strndup(cast, name_length(cast));
	if (!parsing->btf || !btf_structure(parsing->btf, name, &parsing->structure))
		return fail(parsing, FIELD_ERROR_TYPE, "is cast to a structure that the kernel's BTF does not have");
	if (!g_str_has_prefix(parsing->at, ")->"))
		return fail(parsing, FIELD_ERROR_SYNTAX, "has a cast without ->");
	parsing->at += 1;
	return true;
}

static bool parse(struct parsing *parsing, const struct field_argument *arguments, size_t n)
{
	const bool is_text = g_str_has_prefix(parsing->text, TEXT);
	const int argument = field_path_argument(parsing->text, arguments, n);

	if (argument < 0)
		return fail(parsing, FIELD_ERROR_TYPE, "begins with no argument of the probe");
	parsing->path->argument = (unsigned)argument;
	parsing->type = arguments[argument].type;
	parsing->structure = arguments[argument].structure;
	parsing->at = first_name(parsing->text) + strlen(arguments[argument].name);
	if (!parse_cast(parsing))
		return false;
	while (g_str_has_prefix(parsing->at, "->") || parsing->at[0] == '.' || parsing->at[0] == '[')
		if (!parse_step(parsing))
			return false;
	if (strcmp(parsing->at, is_text ? ")" : "") != 0)
		return fail(parsing, FIELD_ERROR_SYNTAX,
		            "is no path; one is written ARGUMENT->MEMBER.MEMBER, or str(PATH)");
	return is_text ? finish_text(parsing) : finish_number(parsing);
}

bool field_path_parse(const char *text, const struct btf *btf, const struct field_argument *arguments, size_t n,
                      struct field_path *path, GError **error)
{
	struct parsing parsing = {.text = text, .btf = btf, .path = path, .error = error};

	*path = (struct field_path){.argument = 0};
	if (parse(&parsing, arguments, n))
		return true;
	field_path_clear(path);
	return false;
}

void field_path_clear(struct field_path *path)
{
	btf_value_clear(&path->value);
}

/* ---- at a hit ---- */

static bool find(const struct field_path *path, struct page_walk *walk, const uint64_t *arguments, uint64_t *address)
{
	uint64_t at = arguments[path->argument];

	for (unsigned i = 0; i < path->n_loads; i++)
		if (!page_walk_read(walk, (gva_t){at + path->loads[i]}, &at, sizeof(at)))
			return false;
	*address = at + path->offset;
	return true;
}

bool field_path_number(const struct field_path *path, struct page_walk *walk, const uint64_t *arguments,
                       uint64_t *number)
{
	uint64_t address, value = 0;

	if (path->is_argument)
		value = arguments[path->argument];
	else if (!find(path, walk, arguments, &address) ||
	         !page_walk_read(walk, (gva_t){address}, &value, path->value.bytes))
		return false;
	*number = btf_value_extend(&path->value, value);
	return true;
}

bool field_path_text(const struct field_path *path, struct page_walk *walk, const uint64_t *arguments,
                     char text[FIELD_TEXT_BYTES])
{
	uint64_t address;

	memset(text, 0, FIELD_TEXT_BYTES);
	if (!find(path, walk, arguments, &address))
		return false;
	for (uint32_t at = 0; at < path->bytes;) {
		/* Up to where the next piece begins in the guest: a piece is in one page. */
		const uint32_t piece = READ_BYTES - (uint32_t)((address + at) % READ_BYTES),
			       n = MIN(piece, path->bytes - at);

		if (!page_walk_read(walk, (gva_t){address + at}, text + at, n))
			return false;
		const char *end = memchr(text + at, '\0', n);

		if (end) {
			memset(text + (end - text), 0, FIELD_TEXT_BYTES - (size_t)(end - text));
			return true;
		}
		at += n;
	}
	return true;
}
