// SPDX-License-Identifier: BSD-2-Clause
/*
 * From the tree to programs. Temporary values are at the begin of the frame, and given up at the end of each statement;
 * variables are at its end, one behind the other, so that one which was not set is 0.
 */
#include <string.h>

#include "lib/script/script_compile.h"

#define STEPS_MAX 1000000u /* of compiling: a value is looked at again for each expression that it is in */

bool compile_fail(struct compiler *compiler, const struct script_node *node, enum script_error code, const char *why)
{
	script_fail(compiler->error, code, node->line, node->column, "%s", why);
	return false;
}

static bool type_error(struct compiler *compiler, const struct script_node *node, const char *why)
{
	return compile_fail(compiler, node, SCRIPT_ERROR_TYPE, why);
}

bool is_number(enum script_type type)
{
	return script_type_words(type) == 1;
}

/* ---- code ---- */

bool compile_emit(struct compiler *compiler, const struct script_node *node, struct vprof_instruction instruction)
{
	if (compiler->code->len == VPROF_PROGRAM_INSTRUCTIONS_MAX)
		return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "this makes the program of its probe too long");
	g_array_append_val(compiler->code, instruction);
	return true;
}

bool compile_allocate(struct compiler *compiler, const struct script_node *node, unsigned words, unsigned *at)
{
	if (compiler->temporary + words > compiler->variables_at)
		return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "this needs more memory than a program has");
	*at = compiler->temporary;
	compiler->temporary += words;
	return true;
}

/* Where the value goes: to `want`, or to a place of its own. */
static bool place(struct compiler *compiler, const struct script_node *node, enum script_type type, int want,
                  struct value *out)
{
	out->type = type;
	out->at = (unsigned)want;
	return want >= 0 || compile_allocate(compiler, node, script_type_words(type), &out->at);
}

/* An instruction without operands. */
static bool emit_leaf(struct compiler *compiler, const struct script_node *node, enum script_type type,
                      unsigned operation, int64_t constant, int want, struct value *out)
{
	return place(compiler, node, type, want, out) &&
	       compile_emit(compiler, node,
	                    (struct vprof_instruction){
				    .operation = (uint8_t)operation, .dst = (uint16_t)out->at, .constant = constant});
}

static bool emit_binary(struct compiler *compiler, const struct script_node *node, unsigned operation, unsigned dst,
                        unsigned a, unsigned b)
{
	return compile_emit(
		compiler, node,
		(struct vprof_instruction){
			.operation = (uint8_t)operation, .dst = (uint16_t)dst, .a = (uint16_t)a, .b = (uint16_t)b});
}

bool compile_copy(struct compiler *compiler, const struct script_node *node, enum script_type type, unsigned dst,
                  unsigned a)
{
	return emit_binary(compiler, node, type == SCRIPT_TEXT ? VPROF_PROGRAM_COPY_TEXT : VPROF_PROGRAM_COPY, dst, a,
	                   0);
}

bool compile_jump(struct compiler *compiler, const struct script_node *node, const struct value *condition, size_t *at)
{
	*at = compiler->code->len;
	return compile_emit(compiler, node,
	                    (struct vprof_instruction){
				    .operation = condition ? VPROF_PROGRAM_JUMP_IF_ZERO : VPROF_PROGRAM_JUMP,
				    .a = condition ? (uint16_t)condition->at : 0,
			    });
}

void compile_land(struct compiler *compiler, size_t at)
{
	g_array_index(compiler->code, struct vprof_instruction, at).constant = compiler->code->len;
}

/* ---- values ---- */

static bool compile_text(struct compiler *compiler, const struct script_node *node, const char *text, int want,
                         struct value *out)
{
	uint64_t words[VPROF_PROGRAM_TEXT_WORDS] = {0};

	if (strlen(text) >= VPROF_PROGRAM_TEXT_BYTES)
		return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "this text has more than 63 bytes");
	memcpy(words, text, strlen(text));
	if (!place(compiler, node, SCRIPT_TEXT, want, out))
		return false;
	for (unsigned i = 0; i < VPROF_PROGRAM_TEXT_WORDS; i++)
		if (!compile_emit(compiler, node,
		                  (struct vprof_instruction){.operation = VPROF_PROGRAM_CONSTANT,
		                                             .dst = (uint16_t)(out->at + i),
		                                             .constant = (int64_t)words[i]}))
			return false;
	return true;
}

static enum script_type type_of_argument(const struct script_probe *probe, size_t i)
{
	size_t n = 0;

	while (probe->types[n])
		n++;
	const char *type = i < n ? probe->types[i] : NULL;

	if (type)
		return strchr(type, '*') || strstr(type, "unsigned") || g_str_has_prefix(type, "u") ||
		                       strstr(type, "size_t")
		               ? SCRIPT_UNSIGNED
		               : SCRIPT_NUMBER;
	return g_str_has_prefix(probe->arguments[i], "arg") ? SCRIPT_UNSIGNED : SCRIPT_NUMBER;
}

static bool no_field(struct compiler *compiler, const struct script_node *node)
{
	g_autofree char *all = g_strjoinv(", ", (char **)compiler->probe->arguments);

	script_fail(compiler->error, SCRIPT_ERROR_TYPE, node->line, node->column,
	            "%s has no argument that \"%s\" begins with; %s%s", compiler->probe->name, node->text,
	            all[0] != '\0' ? "it has " : "it has none", all);
	return false;
}

/* "struct file *file": an argument of a function by its name, too, which is behind its type. */
static bool is_called(const struct script_probe *probe, size_t i, const char *name)
{
	size_t n = 0;

	while (probe->types[n])
		n++;
	if (strcmp(probe->arguments[i], name) == 0)
		return true;
	return i < n && g_str_has_prefix(probe->name, "function:") && g_str_has_suffix(probe->types[i], name) &&
	       strlen(probe->types[i]) > strlen(name) &&
	       strchr(" *", probe->types[i][strlen(probe->types[i]) - strlen(name) - 1]);
}

static bool compile_name(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	static const struct {
		const char *name;
		enum script_type type;
		unsigned operation;
		int64_t constant;
	} all[] = {
		{"pid", SCRIPT_NUMBER, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_PID},
		{"tid", SCRIPT_NUMBER, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_TID},
		{"cgroup", SCRIPT_UNSIGNED, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_CGROUP},
		{"cpu", SCRIPT_NUMBER, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_CPU},
		{"nsecs", SCRIPT_UNSIGNED, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_NSECS},
		{"func", SCRIPT_KSYM, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_IP},
		{"faults", SCRIPT_UNSIGNED, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_FAULTS},
		{"curtask", SCRIPT_UNSIGNED, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_CURTASK},
		{"comm", SCRIPT_TEXT, VPROF_PROGRAM_COMM, 0},
		{"kstack", SCRIPT_STACK, VPROF_PROGRAM_KERNEL_STACK, VPROF_PROGRAM_STACK_WORDS - 1},
		{"ustack", SCRIPT_STACK, VPROF_PROGRAM_USER_STACK, VPROF_PROGRAM_STACK_WORDS - 1},
	};

	if (strcmp(node->text, "probe") == 0)
		return emit_leaf(compiler, node, SCRIPT_PROBE, VPROF_PROGRAM_CONSTANT, (int64_t)compiler->number, want,
		                 out);
	for (size_t i = 0; i < G_N_ELEMENTS(all); i++)
		if (strcmp(all[i].name, node->text) == 0)
			return emit_leaf(compiler, node, all[i].type, all[i].operation, all[i].constant, want, out);
	script_fail(
		compiler->error, SCRIPT_ERROR_TYPE, node->line, node->column,
		"there is no \"%s\"; there are pid, tid, uid, gid, comm, cgroup, cpu, nsecs, probe, func, kstack, ustack, curtask, faults, args, arg0 and so on, and retval",
		node->text);
	return false;
}

/* What is in memory becomes what the record has. */
static bool finish_field(struct compiler *compiler, const struct script_node *node, struct value *value)
{
	const unsigned bits = script_path_shift(compiler->probe->name, node->text);
	const bool is_rwbs = script_path_is_rwbs(compiler->probe->name, node->text);
	struct value by;

	if (bits == 0 && !is_rwbs)
		return true;
	if (is_rwbs)
		value->type = SCRIPT_RWBS;
	return emit_leaf(compiler, node, SCRIPT_NUMBER, VPROF_PROGRAM_CONSTANT,
	                 is_rwbs ? (int64_t)SCRIPT_RWBS_MASK : bits, -1, &by) &&
	       emit_binary(compiler, node, is_rwbs ? VPROF_PROGRAM_AND : VPROF_PROGRAM_SHIFT_RIGHT_UNSIGNED, value->at,
	                   value->at, by.at);
}

/* An argument, the task that runs, or what is behind one of them. */
static bool compile_path(struct compiler *compiler, const struct script_node *node, bool in_str, int want,
                         struct value *out)
{
	const struct script_probe *probe = compiler->probe;
	g_autofree char *field = script_path_field(probe->name, node->text, in_str);
	g_autofree char *plain = script_path_plain(node->text);
	struct script_node task = *node;

	task.text = plain;
	if (!field && strcmp(plain, "curtask") == 0)
		return compile_name(compiler, &task, want, out);
	for (size_t i = 0; !field && probe->arguments[i]; i++)
		if (is_called(probe, i, plain))
			return emit_leaf(compiler, node, type_of_argument(probe, i), VPROF_PROGRAM_ARGUMENT, (int64_t)i,
			                 want, out);
	for (size_t i = 0; field && probe->fields[i]; i++) {
		const bool is_text = probe->texts >> i & 1;

		if (strcmp(probe->fields[i], field) == 0)
			return emit_leaf(compiler, node, is_text ? SCRIPT_TEXT : SCRIPT_NUMBER,
			                 is_text ? VPROF_PROGRAM_FIELD_TEXT : VPROF_PROGRAM_FIELD, (int64_t)i, want,
			                 out) &&
			       finish_field(compiler, node, out);
	}
	return no_field(compiler, node);
}

static struct variable *find_variable(struct compiler *compiler, const char *name)
{
	for (guint i = 0; i < compiler->variables->len; i++) {
		struct variable *variable = &g_array_index(compiler->variables, struct variable, i);

		if (strcmp(variable->name, name) == 0)
			return variable;
	}
	return NULL;
}

struct variable *compile_variable(struct compiler *compiler, const struct script_node *node, enum script_type type)
{
	struct variable *found = find_variable(compiler, node->text), variable = {node->text, {type, 0}};
	const unsigned words = script_type_words(type);

	if (found) {
		if (is_number(found->value.type) == is_number(type))
			return found;
		type_error(compiler, node, "this variable has a number here and a text elsewhere");
		return NULL;
	}
	if (compiler->variables_at < compiler->temporary + words) {
		compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "this needs more memory than a program has");
		return NULL;
	}
	compiler->variables_at -= words;
	variable.value.at = compiler->variables_at;
	g_array_append_val(compiler->variables, variable);
	return find_variable(compiler, node->text);
}

static bool compile_unary(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	const unsigned operation = node->text[0] == '!'   ? VPROF_PROGRAM_NOT
	                           : node->text[0] == '-' ? VPROF_PROGRAM_NEGATE
	                                                  : VPROF_PROGRAM_COMPLEMENT;
	struct value a;

	return compile_number(compiler, node->a, &a) &&
	       place(compiler, node, operation == VPROF_PROGRAM_NOT ? SCRIPT_NUMBER : a.type, want, out) &&
	       emit_binary(compiler, node, operation, out->at, a.at, 0);
}

static const struct operator
{
	const char *sign;
	unsigned operation, of_unsigned;
	bool swap, negate, compares;
}
operators[] = {
	{"+", VPROF_PROGRAM_ADD, VPROF_PROGRAM_ADD},
	{"-", VPROF_PROGRAM_SUBTRACT, VPROF_PROGRAM_SUBTRACT},
	{"*", VPROF_PROGRAM_MULTIPLY, VPROF_PROGRAM_MULTIPLY},
	{"/", VPROF_PROGRAM_DIVIDE, VPROF_PROGRAM_DIVIDE_UNSIGNED},
	{"%", VPROF_PROGRAM_MODULO, VPROF_PROGRAM_MODULO_UNSIGNED},
	{"&", VPROF_PROGRAM_AND, VPROF_PROGRAM_AND},
	{"|", VPROF_PROGRAM_OR, VPROF_PROGRAM_OR},
	{"^", VPROF_PROGRAM_XOR, VPROF_PROGRAM_XOR},
	{"<<", VPROF_PROGRAM_SHIFT_LEFT, VPROF_PROGRAM_SHIFT_LEFT},
	{">>", VPROF_PROGRAM_SHIFT_RIGHT, VPROF_PROGRAM_SHIFT_RIGHT_UNSIGNED},
	{"==", VPROF_PROGRAM_EQUAL, VPROF_PROGRAM_EQUAL, .compares = true},
	{"!=", VPROF_PROGRAM_EQUAL, VPROF_PROGRAM_EQUAL, .negate = true, .compares = true},
	{"<", VPROF_PROGRAM_LESS, VPROF_PROGRAM_LESS_UNSIGNED, .compares = true},
	{">", VPROF_PROGRAM_LESS, VPROF_PROGRAM_LESS_UNSIGNED, .swap = true, .compares = true},
	{"<=", VPROF_PROGRAM_LESS, VPROF_PROGRAM_LESS_UNSIGNED, .swap = true, .negate = true, .compares = true},
	{">=", VPROF_PROGRAM_LESS, VPROF_PROGRAM_LESS_UNSIGNED, .negate = true, .compares = true},
};

bool compile_operator(struct compiler *compiler, const struct script_node *node, const char *sign,
                      const struct value *a, const struct value *b, unsigned dst, enum script_type *type)
{
	const bool is_unsigned = a->type == SCRIPT_UNSIGNED || b->type == SCRIPT_UNSIGNED;

	for (size_t i = 0; i < G_N_ELEMENTS(operators); i++) {
		const struct operator* operator= & operators[i];
		const size_t length = strlen(operator->sign);

		/* "+" of "+=", too. */
		if (strncmp(sign, operator->sign, length) != 0 ||
		    (sign[length] != '\0' && (strcmp(sign + length, "=") != 0 || operator->compares)))
			continue;
		*type = operator->compares || !is_unsigned ? SCRIPT_NUMBER : SCRIPT_UNSIGNED;
		return emit_binary(compiler, node, is_unsigned ? operator->of_unsigned : operator->operation, dst,
		                   operator->swap ? b->at : a->at, operator->swap ? a->at : b->at) &&
		       (!operator->negate || emit_binary(compiler, node, VPROF_PROGRAM_NOT, dst, dst, 0));
	}
	return type_error(compiler, node, "this operator means nothing here");
}

static bool compile_text_equality(struct compiler *compiler, const struct script_node *node, const struct value *a,
                                  const struct value *b, int want, struct value *out)
{
	const bool equal = strcmp(node->text, "==") == 0;

	if (a->type != b->type || a->type != SCRIPT_TEXT || (!equal && strcmp(node->text, "!=") != 0))
		return type_error(compiler, node, "texts can be compared with texts, by == and !=");
	return place(compiler, node, SCRIPT_NUMBER, want, out) &&
	       compile_emit(compiler, node,
	                    (struct vprof_instruction){.operation = VPROF_PROGRAM_DIFFERS,
	                                               .dst = (uint16_t)out->at,
	                                               .a = (uint16_t)a->at,
	                                               .b = (uint16_t)b->at,
	                                               .constant = (int64_t)VPROF_PROGRAM_TEXT_BYTES}) &&
	       (!equal || emit_binary(compiler, node, VPROF_PROGRAM_NOT, out->at, out->at, 0));
}

/* The second value is computed only if the first does not decide. */
static bool compile_logic(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	const bool is_or = node->text[0] == '|';
	struct value a, b;
	size_t jump;

	if (!place(compiler, node, SCRIPT_NUMBER, want, out) || !compile_number(compiler, node->a, &a) ||
	    !emit_binary(compiler, node, VPROF_PROGRAM_NOT, out->at, a.at, 0) ||
	    (!is_or && !emit_binary(compiler, node, VPROF_PROGRAM_NOT, out->at, out->at, 0)) ||
	    !compile_jump(compiler, node, out, &jump) || !compile_number(compiler, node->b, &b) ||
	    !emit_binary(compiler, node, VPROF_PROGRAM_NOT, out->at, b.at, 0) ||
	    (!is_or && !emit_binary(compiler, node, VPROF_PROGRAM_NOT, out->at, out->at, 0)))
		return false;
	compile_land(compiler, jump);
	return !is_or || emit_binary(compiler, node, VPROF_PROGRAM_NOT, out->at, out->at, 0);
}

static bool compile_binary(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	struct value a, b;

	if (strcmp(node->text, "&&") == 0 || strcmp(node->text, "||") == 0)
		return compile_logic(compiler, node, want, out);
	if (!compile_value(compiler, node->a, -1, &a) || !compile_value(compiler, node->b, -1, &b))
		return false;
	if (!is_number(a.type) || !is_number(b.type))
		return compile_text_equality(compiler, node, &a, &b, want, out);
	return place(compiler, node, SCRIPT_NUMBER, want, out) &&
	       compile_operator(compiler, node, node->text, &a, &b, out->at, &out->type);
}

bool compile_measure(struct compiler *compiler, const struct script_node *node, enum script_type *type)
{
	const guint length = compiler->code->len;
	const unsigned temporary = compiler->temporary;
	struct value value;
	const bool done = compile_value(compiler, node, -1, &value);

	g_array_set_size(compiler->code, length);
	compiler->temporary = temporary;
	if (done)
		*type = value.type;
	return done;
}

static bool compile_ternary(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	enum script_type first, second;
	struct value condition, result;
	size_t other, end;

	if (!compile_measure(compiler, node->b, &first) || !compile_measure(compiler, node->c, &second))
		return false;
	if (is_number(first) != is_number(second) || (!is_number(first) && first != SCRIPT_TEXT))
		return type_error(compiler, node, "both values of a ? have to be numbers, or texts");
	if (!place(compiler, node, first, want, out) || !compile_number(compiler, node->a, &condition) ||
	    !compile_jump(compiler, node, &condition, &other) ||
	    !compile_value(compiler, node->b, (int)out->at, &result) || !compile_jump(compiler, node, NULL, &end))
		return false;
	compile_land(compiler, other);
	if (!compile_value(compiler, node->c, (int)out->at, &result))
		return false;
	compile_land(compiler, end);
	return true;
}

static bool compile_cast(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	const int64_t bits = ABS(node->number);
	struct value a, shift;

	return compile_number(compiler, node->a, &a) &&
	       emit_leaf(compiler, node, SCRIPT_NUMBER, VPROF_PROGRAM_CONSTANT, 64 - bits, -1, &shift) &&
	       place(compiler, node, node->number < 0 ? SCRIPT_NUMBER : SCRIPT_UNSIGNED, want, out) &&
	       emit_binary(compiler, node, VPROF_PROGRAM_SHIFT_LEFT, out->at, a.at, shift.at) &&
	       emit_binary(compiler, node,
	                   node->number < 0 ? VPROF_PROGRAM_SHIFT_RIGHT : VPROF_PROGRAM_SHIFT_RIGHT_UNSIGNED, out->at,
	                   out->at, shift.at);
}

/* ---- functions that give a value ---- */

static unsigned count_nodes(const struct script_node *node)
{
	unsigned n = 0;

	for (; node; node = node->next)
		n++;
	return n;
}

bool compile_takes(struct compiler *compiler, const struct script_node *call, unsigned least, unsigned most,
                   const char *how)
{
	const unsigned n = count_nodes(call->first);

	if (n >= least && n <= most)
		return true;
	script_fail(compiler->error, SCRIPT_ERROR_TYPE, call->line, call->column, "%s is written %s", call->text, how);
	return false;
}

/* A number that stands there. */
bool compile_literal(struct compiler *compiler, const struct script_node *node, int64_t least, int64_t most,
                     int64_t *number)
{
	const bool negative = node->kind == NODE_UNARY && node->text[0] == '-' && node->a->kind == NODE_NUMBER;

	if (negative || node->kind == NODE_NUMBER)
		*number = negative ? -node->a->number : node->number;
	if ((!negative && node->kind != NODE_NUMBER) || *number < least || *number > most) {
		script_fail(compiler->error, SCRIPT_ERROR_TYPE, node->line, node->column,
		            "a number from %" G_GINT64_FORMAT " to %" G_GINT64_FORMAT " has to stand here", least,
		            most);
		return false;
	}
	return true;
}

static bool compile_str(struct compiler *compiler, const struct script_node *call, int want, struct value *out)
{
	int64_t bytes = VPROF_PROGRAM_TEXT_BYTES;
	struct value a;

	if (!compile_takes(compiler, call, 1, 2, "str(ADDRESS) or str(ADDRESS, BYTES)") ||
	    (call->first->next && !compile_literal(compiler, call->first->next, 1, VPROF_PROGRAM_TEXT_BYTES, &bytes)))
		return false;
	if (call->first->kind == NODE_PATH ? !compile_path(compiler, call->first, true, -1, &a)
	                                   : !compile_value(compiler, call->first, -1, &a))
		return false;
	if (!is_number(a.type) && a.type != SCRIPT_TEXT)
		return type_error(compiler, call, "this is no text and no address");
	if (!place(compiler, call, SCRIPT_TEXT, want, out))
		return false;
	if (a.type == SCRIPT_TEXT)
		return compile_copy(compiler, call, SCRIPT_TEXT, out->at, a.at);
	return compile_emit(compiler, call,
	                    (struct vprof_instruction){.operation = VPROF_PROGRAM_READ_TEXT,
	                                               .dst = (uint16_t)out->at,
	                                               .a = (uint16_t)a.at,
	                                               .constant = bytes});
}

static bool compile_strncmp(struct compiler *compiler, const struct script_node *call, int want, struct value *out)
{
	struct value a, b;
	int64_t n;

	if (!compile_takes(compiler, call, 3, 3, "strncmp(TEXT, TEXT, BYTES)") ||
	    !compile_value(compiler, call->first, -1, &a) || !compile_value(compiler, call->first->next, -1, &b) ||
	    !compile_literal(compiler, call->first->next->next, 1, VPROF_PROGRAM_TEXT_BYTES, &n))
		return false;
	if (a.type != SCRIPT_TEXT || b.type != SCRIPT_TEXT)
		return type_error(compiler, call, "strncmp compares texts");
	return place(compiler, call, SCRIPT_NUMBER, want, out) &&
	       compile_emit(compiler, call,
	                    (struct vprof_instruction){.operation = VPROF_PROGRAM_DIFFERS,
	                                               .dst = (uint16_t)out->at,
	                                               .a = (uint16_t)a.at,
	                                               .b = (uint16_t)b.at,
	                                               .constant = n});
}

static bool compile_usym(struct compiler *compiler, const struct script_node *call, int want, struct value *out)
{
	struct value a, process;

	return compile_takes(compiler, call, 1, 1, "usym(ADDRESS)") && compile_number(compiler, call->first, &a) &&
	       place(compiler, call, SCRIPT_USYM, want, out) &&
	       emit_leaf(compiler, call, SCRIPT_NUMBER, VPROF_PROGRAM_BUILTIN, VPROF_PROGRAM_MAPPED_PID, (int)out->at,
	                 &process) &&
	       compile_copy(compiler, call, SCRIPT_NUMBER, out->at + 1, a.at);
}

static bool compile_call(struct compiler *compiler, const struct script_node *call, int want, struct value *out)
{
	const bool user = strcmp(call->text, "ustack") == 0;
	int64_t frames = VPROF_PROGRAM_STACK_WORDS - 1;
	struct value a;

	if (strcmp(call->text, "str") == 0)
		return compile_str(compiler, call, want, out);
	if (strcmp(call->text, "strncmp") == 0)
		return compile_strncmp(compiler, call, want, out);
	if (strcmp(call->text, "usym") == 0)
		return compile_usym(compiler, call, want, out);
	if (strcmp(call->text, "ksym") == 0)
		return compile_takes(compiler, call, 1, 1, "ksym(ADDRESS)") &&
		       compile_number(compiler, call->first, &a) && place(compiler, call, SCRIPT_KSYM, want, out) &&
		       compile_copy(compiler, call, SCRIPT_KSYM, out->at, a.at);
	if (user || strcmp(call->text, "kstack") == 0)
		return compile_takes(compiler, call, 0, 1, "kstack(FRAMES) or ustack(FRAMES)") &&
		       (!call->first ||
		        compile_literal(compiler, call->first, 1, VPROF_PROGRAM_STACK_WORDS - 1, &frames)) &&
		       emit_leaf(compiler, call, SCRIPT_STACK,
		                 user ? VPROF_PROGRAM_USER_STACK : VPROF_PROGRAM_KERNEL_STACK, frames, want, out);
	script_fail(
		compiler->error, SCRIPT_ERROR_TYPE, call->line, call->column,
		"%s() gives no value; str, ksym, usym, strncmp, kstack and ustack do, and count, sum, avg, min, max, hist, lhist and stats for a map",
		call->text);
	return false;
}

/* ---- any of them ---- */

bool compile_value(struct compiler *compiler, const struct script_node *node, int want, struct value *out)
{
	const struct variable *variable;

	if (++compiler->steps > STEPS_MAX)
		return compile_fail(compiler, node, SCRIPT_ERROR_LIMIT, "this is nested too deeply");
	switch (node->kind) {
	case NODE_NUMBER:
		return emit_leaf(compiler, node, SCRIPT_NUMBER, VPROF_PROGRAM_CONSTANT, node->number, want, out);
	case NODE_STRING:
		return compile_text(compiler, node, node->text, want, out);
	case NODE_VARIABLE:
		variable = find_variable(compiler, node->text);
		if (!variable)
			return type_error(compiler, node, "this variable has not been set");
		return place(compiler, node, variable->value.type, want, out) &&
		       compile_copy(compiler, node, variable->value.type, out->at, variable->value.at);
	case NODE_MAP:
		return compile_map_get(compiler, node, want, out);
	case NODE_NAME:
		return compile_name(compiler, node, want, out);
	case NODE_PATH:
		return compile_path(compiler, node, false, want, out);
	case NODE_CALL:
		return compile_call(compiler, node, want, out);
	case NODE_UNARY:
		return compile_unary(compiler, node, want, out);
	case NODE_BINARY:
		return compile_binary(compiler, node, want, out);
	case NODE_TERNARY:
		return compile_ternary(compiler, node, want, out);
	default: /* NODE_CAST */
		return compile_cast(compiler, node, want, out);
	}
}

bool compile_number(struct compiler *compiler, const struct script_node *node, struct value *out)
{
	return compile_value(compiler, node, -1, out) &&
	       (is_number(out->type) || type_error(compiler, node, "a number has to stand here"));
}

bool compile_several(struct compiler *compiler, const struct script_node *first, unsigned n, enum script_type *types,
                     unsigned *at, unsigned *words)
{
	const struct script_node *node = first;
	unsigned to;

	*words = 0;
	*at = 0;
	for (unsigned i = 0; i < n; i++, node = node->next) {
		if (!compile_measure(compiler, node, &types[i]))
			return false;
		*words += script_type_words(types[i]);
	}
	if (n > 0 && !compile_allocate(compiler, first, *words, at))
		return false;
	to = *at;
	node = first;
	for (unsigned i = 0; i < n; i++, node = node->next) {
		const unsigned temporary = compiler->temporary;
		struct value value;

		if (!compile_value(compiler, node, (int)to, &value))
			return false;
		compiler->temporary = temporary;
		to += script_type_words(types[i]);
	}
	return true;
}
