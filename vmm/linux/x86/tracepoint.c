// SPDX-License-Identifier: BSD-2-Clause
#include "linux/tracepoint.h"

#include <string.h>

#include "guest/page_walk.h"
#include "guest/types.h"
#include "guest/x86/interpreter.h"
#include "lib/code/x86/instruction.h"

G_DEFINE_QUARK(vprof_tracepoint_error, tracepoint_error)

#define TABLE_BYTES_MAX (16u << 20)
#define TRACEPOINTS_MAX 16384u
#define NAME_BYTES_MAX 128u
#define STEPS_MAX 128u /* of a block; Debian's longest have 30 */
#define LOOK_MAX 512u  /* the same, when only its end is looked for */
#define RUN_MAX 256u   /* instructions that are executed at a hit */
#define FUNCTION_BYTES_MAX (64u << 10)
#define CALL 0xe8u
#define RETURN 0xc3u
#define RETURN_POP 0xc2u
#define JUMP 0xe9u
#define SHORT_JUMP 0xebu
#define LONG_NOP 0x0fu /* of 5 bytes; that of 2 has 66 90 */
#define WITHOUT_EVENT "raw"
#define FUNCTION_PREFIX "__traceiter_"

struct tracepoints {
	GPtrArray *all;      /* of struct tracepoint, by name */
	GHashTable *by_name; /* borrowed */
};

/* What is read, while it is. */
struct loading {
	const struct image *image;
	const struct symtab *symtab;
	GHashTable *by_address;                        /* of struct tracepoint */
	GHashTable *labels;                            /* each nop of the kernel's jump labels, to where it leads */
	uint32_t key, funcs, tramp, iterator, regfunc; /* offsets in struct tracepoint */
	uint32_t type, system, class;                  /* trace_event_call.tp, trace_event_class.system, ... */
	bool has_tramp, has_events;
};

static void tracepoint_free(gpointer data)
{
	struct tracepoint *self = data;

	for (guint i = 0; i < self->sites->len; i++)
		g_free(g_array_index(self->sites, struct tracepoint_site, i).steps);
	g_array_unref(self->sites);
	g_free(self->name);
	g_free(self);
}

/* ---- the kernel's tables ---- */

static bool read_at(const struct loading *loading, uint64_t address, void *to, size_t bytes)
{
	size_t n;
	const uint8_t *data = image_at(loading->image, address, &n);

	if (!data || n < bytes)
		return false;
	memcpy(to, data, bytes);
	return true;
}

/* An absolute address, which the file has as if nothing was moved. */
static uint64_t pointer_at(const struct loading *loading, uint64_t address)
{
	uint64_t value;

	return read_at(loading, address, &value, sizeof(value)) && value != 0 ? value + image_slide(loading->image) : 0;
}

static char *text_at(const struct loading *loading, uint64_t address)
{
	size_t n;
	const char *data = (const char *)image_at(loading->image, address, &n);
	const size_t length = data ? strnlen(data, MIN(n, NAME_BYTES_MAX)) : 0;

	if (length == 0 || length == MIN(n, NAME_BYTES_MAX))
		return NULL;
	for (size_t i = 0; i < length; i++)
		if (!g_ascii_isalnum(data[i]) && data[i] != '_' && data[i] != '-' && data[i] != '.')
			return NULL;
	return g_strndup(data, length);
}

static bool table_find(const struct loading *loading, const char *start, const char *end, uint64_t *from, uint64_t *to)
{
	*from = symtab_address(loading->symtab, start);
	*to = symtab_address(loading->symtab, end);
	return *from != 0 && *to > *from && *to - *from <= TABLE_BYTES_MAX;
}

static bool offsets_find(struct loading *loading, GError **error)
{
	struct types *types = types_new(loading->image, error);
	const struct types_member needed[] = {
		{"tracepoint", "key", TYPES_PLACE, &loading->key},
		{"tracepoint", "funcs", 8, &loading->funcs},
		{"tracepoint", "iterator", 8, &loading->iterator},
	};
	bool found = types && types_find(types, needed, G_N_ELEMENTS(needed), error);

	if (found) {
		loading->has_tramp = types_has(types, "tracepoint", "static_call_tramp", 8, &loading->tramp);
		/* Up to Linux 6.13; then it is a member of the structure that "ext" points to. */
		if (!types_has(types, "tracepoint", "regfunc", 8, &loading->regfunc) &&
		    !types_has(types, "tracepoint", "ext", 8, &loading->regfunc))
			loading->regfunc = loading->funcs;
		loading->has_events = types_has(types, "trace_event_call", "tp", 8, &loading->type) &&
		                      types_has(types, "trace_event_call", "class", 8, &loading->class) &&
		                      types_has(types, "trace_event_class", "system", 8, &loading->system);
	}
	types_free(types);
	return found;
}

static void tracepoint_add(struct tracepoints *self, struct loading *loading, uint64_t address)
{
	g_autofree char *name = text_at(loading, pointer_at(loading, address));

	if (!name || self->all->len == TRACEPOINTS_MAX ||
	    g_hash_table_contains(loading->by_address, GSIZE_TO_POINTER(address)))
		return;
	struct tracepoint *tracepoint = g_new0(struct tracepoint, 1);
	tracepoint->name = g_strdup_printf(WITHOUT_EVENT ":%s", name);
	tracepoint->address = address;
	tracepoint->funcs = address + loading->funcs;
	tracepoint->functions[0] = loading->has_tramp ? pointer_at(loading, address + loading->tramp) : 0;
	tracepoint->functions[1] = pointer_at(loading, address + loading->iterator);
	tracepoint->needs_kernel = pointer_at(loading, address + loading->regfunc) != 0;
	tracepoint->sites = g_array_new(false, true, sizeof(struct tracepoint_site));
	g_ptr_array_add(self->all, tracepoint);
	g_hash_table_insert(loading->by_address, GSIZE_TO_POINTER(address), tracepoint);
}

/* Words that say how far a trace point is from themselves. */
static bool tracepoints_read(struct tracepoints *self, struct loading *loading, GError **error)
{
	uint64_t from, to;
	int32_t distance;

	if (table_find(loading, "__start___tracepoints_ptrs", "__stop___tracepoints_ptrs", &from, &to) &&
	    offsets_find(loading, error)) {
		for (; from + sizeof(distance) <= to && read_at(loading, from, &distance, sizeof(distance));
		     from += sizeof(distance))
			tracepoint_add(self, loading, from + (uint64_t)(int64_t)distance);
		return true;
	}
	if (error && !*error)
		g_set_error(error, TRACEPOINT_ERROR, TRACEPOINT_ERROR_NONE,
		            "%s has no trace points: it is not Linux, or was built without CONFIG_TRACEPOINTS",
		            image_path(loading->image));
	return false;
}

/* Pointers to struct trace_event_call, of which those of a trace point say to which subsystem it belongs. */
static void events_read(struct loading *loading)
{
	uint64_t from, to;

	if (!loading->has_events || !table_find(loading, "__start_ftrace_events", "__stop_ftrace_events", &from, &to))
		return;
	for (; from + sizeof(uint64_t) <= to; from += sizeof(uint64_t)) {
		const uint64_t call = pointer_at(loading, from);
		struct tracepoint *tracepoint =
			call ? g_hash_table_lookup(loading->by_address,
		                                   GSIZE_TO_POINTER(pointer_at(loading, call + loading->type)))
			     : NULL;
		const uint64_t class = tracepoint ? pointer_at(loading, call + loading->class) : 0;
		g_autofree char *system = class ? text_at(loading, pointer_at(loading, class + loading->system)) : NULL;

		if (!system || !g_str_has_prefix(tracepoint->name, WITHOUT_EVENT ":"))
			continue;
		char *name = g_strdup_printf("%s:%s", system, strchr(tracepoint->name, ':') + 1);

		g_free(tracepoint->name);
		tracepoint->name = name;
	}
}

/* struct jump_entry (linux/jump_label.h): each word is relative to itself, and the last bits of the key are flags. */
static void sites_read(struct loading *loading)
{
	const uint64_t init = symtab_address(loading->symtab, "_sinittext"),
		       init_end = symtab_address(loading->symtab, "_einittext");
	struct {
		int32_t code, target;
		int64_t key;
	} entry;
	uint64_t at, to;
	uint8_t nop;

	if (!table_find(loading, "__start___jump_table", "__stop___jump_table", &at, &to))
		return;
	for (; at + sizeof(entry) <= to && read_at(loading, at, &entry, sizeof(entry)); at += sizeof(entry)) {
		const uint64_t key = (at + 8 + (uint64_t)entry.key) & ~UINT64_C(3);
		struct tracepoint *tracepoint =
			g_hash_table_lookup(loading->by_address, GSIZE_TO_POINTER(key - loading->key));
		struct tracepoint_site site = {.nop = at + (uint64_t)(int64_t)entry.code,
		                               .block = at + 4 + (uint64_t)(int64_t)entry.target};

		g_hash_table_insert(loading->labels, GSIZE_TO_POINTER(site.nop), GSIZE_TO_POINTER(site.block));
		/* The memory of what runs at the start only is used for something else later. */
		if (!tracepoint || site.nop - init < init_end - init || !read_at(loading, site.nop, &nop, sizeof(nop)))
			continue;
		site.behind = site.nop + (nop == LONG_NOP || nop == JUMP ? 5 : 2);
		g_array_append_val(tracepoint->sites, site);
	}
}

/* ---- the code of a block ---- */

struct look {
	const struct loading *loading;
	const struct tracepoint *tracepoint;
	const struct tracepoint_site *site;
	bool passes; /* code that cannot be interpreted, too: only whether there is a call counts */
	bool found;
	GArray *steps; /* of struct tracepoint_step, in no order */
	GArray *todo;  /* of uint64_t */
};

static const struct tracepoint_site *site_at(const struct tracepoint *tracepoint, uint64_t nop)
{
	for (guint i = 0; i < tracepoint->sites->len; i++) {
		const struct tracepoint_site *site = &g_array_index(tracepoint->sites, struct tracepoint_site, i);

		if (site->nop == nop)
			return site;
	}
	return NULL;
}

/* Whether the function at `address` has a place of the trace point itself. */
static bool has_site(const struct look *look, uint64_t address)
{
	const struct symbol *function = symtab_find(look->loading->symtab, address);

	for (guint i = 0; function && i < look->tracepoint->sites->len; i++)
		if (g_array_index(look->tracepoint->sites, struct tracepoint_site, i).nop - function->address <
		    function->size)
			return true;
	return false;
}

static bool is_seen(const struct look *look, uint64_t address)
{
	for (guint i = 0; i < look->steps->len; i++)
		if (g_array_index(look->steps, struct tracepoint_step, i).address == address)
			return true;
	return false;
}

static void go_on(struct look *look, uint64_t address)
{
	g_array_append_val(look->todo, address);
}

/* A direct call or jump. */
static void look_at_call(struct look *look, struct tracepoint_step *step, uint64_t next)
{
	const uint64_t *functions = look->tracepoint->functions;
	int32_t distance;

	memcpy(&distance, step->code + 1, sizeof(distance));
	const uint64_t target = next + (uint64_t)(int64_t)distance;
	const bool is_jump = step->code[0] == JUMP;

	if (target == functions[0] || target == functions[1]) {
		look->found = step->calls = true;
		step->jumps = is_jump;
	} else if (is_jump) {
		go_on(look, target);
	} else if (look->passes) {
		look->found |= has_site(look, target);
		go_on(look, next);
	}
}

static void look_at_code(struct look *look, struct tracepoint_step *step)
{
	const uint64_t next = step->address + step->length;
	uint64_t target;
	bool always = false;

	if (step->length == 5 && (step->code[0] == CALL || step->code[0] == JUMP)) {
		look_at_call(look, step, next);
		return;
	}
	if (!interpreter_knows(step->code, step->length) &&
	    (!look->passes || step->code[0] == RETURN || instruction_is_jump_through(step->code, step->length)))
		return;
	if (instruction_jump(step->code, step->length, step->address, &target, &always))
		go_on(look, target);
	if (!always)
		go_on(look, next);
}

static void look_at(struct look *look, uint64_t address)
{
	const struct tracepoint_site *inner = site_at(look->tracepoint, address);
	struct tracepoint_step step = {.address = address, .target = inner ? inner->block : 0};
	size_t n;
	const uint8_t *code = image_at(look->loading->image, address, &n);
	const size_t length = code ? instruction_length(code, MIN(n, INSTRUCTION_LENGTH_MAX)) : 0;

	if (length == 0 || is_seen(look, address) || address == look->site->behind)
		return;
	step.length = (uint8_t)length;
	memcpy(step.code, code, length);
	if (inner)
		go_on(look, inner->block);
	else
		look_at_code(look, &step);
	look->found |= inner && look->passes;
	g_array_append_val(look->steps, step);
}

static bool look_for_call(struct look *look)
{
	const guint max = look->passes ? LOOK_MAX : STEPS_MAX;

	g_array_set_size(look->steps, 0);
	g_array_set_size(look->todo, 0);
	go_on(look, look->site->block);
	while (look->todo->len > 0 && look->steps->len < max) {
		const uint64_t address = g_array_index(look->todo, uint64_t, look->todo->len - 1);

		g_array_set_size(look->todo, look->todo->len - 1);
		look_at(look, address);
	}
	return look->found;
}

static int compare_steps(gconstpointer left, gconstpointer right)
{
	const struct tracepoint_step *x = left, *y = right;

	return (x->address > y->address) - (x->address < y->address);
}

/* False where the block does not lead to the trace point's functions: it asks only if the trace point is in use. */
static bool site_understand(const struct loading *loading, const struct tracepoint *tracepoint,
                            struct tracepoint_site *site)
{
	struct look look = {.loading = loading,
	                    .tracepoint = tracepoint,
	                    .site = site,
	                    .steps = g_array_new(false, false, sizeof(struct tracepoint_step)),
	                    .todo = g_array_new(false, false, sizeof(uint64_t))};

	if (look_for_call(&look)) {
		g_array_sort(look.steps, compare_steps);
		site->n_steps = look.steps->len;
		site->steps = g_memdup2(look.steps->data, site->n_steps * sizeof(struct tracepoint_step));
	} else {
		look.passes = true;
		look_for_call(&look);
	}
	g_array_unref(look.steps);
	g_array_unref(look.todo);
	return look.found;
}

/* ---- whether other code leads behind a nop ---- */

/* A function and its part in another section (".cold"), as far as it is executed while the trace point is not in use.
 */
struct part {
	uint64_t start;
	const uint8_t *code;
	size_t n;
	uint8_t *seen; /* for each byte of the code */
};

struct flow {
	const struct loading *loading;
	const struct tracepoint_site *site;
	struct part parts[2];
	unsigned n_parts;
	bool joins;
	GArray *todo; /* of uint64_t */
};

static bool part_add(struct flow *flow, const struct symbol *symbol)
{
	size_t n;
	const uint8_t *code = image_at(flow->loading->image, symbol->address, &n);

	n = MIN(n, symbol->size);
	if (!code || n == 0 || n > FUNCTION_BYTES_MAX)
		return false;
	flow->parts[flow->n_parts++] = (struct part){symbol->address, code, n, g_malloc0(n)};
	return true;
}

static void flow_join(struct flow *flow, uint64_t from, uint64_t to)
{
	flow->joins |= to == flow->site->behind && from != flow->site->nop;
}

static void flow_to(struct flow *flow, uint64_t from, uint64_t to)
{
	flow_join(flow, from, to);
	g_array_append_val(flow->todo, to);
}

/* Notes where the instruction leads; whether the code does not go on behind it. */
static bool flow_ends(struct flow *flow, uint64_t address, const uint8_t *code, size_t length)
{
	const gpointer label = g_hash_table_lookup(flow->loading->labels, GSIZE_TO_POINTER(address));
	const size_t opcode = instruction_opcode(code, length);
	uint64_t target;
	bool always = false;

	/* Whichever way the kernel has made it: both are possible, but for the trace point itself. */
	if (label) {
		if (address != flow->site->nop)
			flow_to(flow, address, GPOINTER_TO_SIZE(label));
		return false;
	}
	if (instruction_jump(code, length, address, &target, &always))
		flow_to(flow, address, target);
	flow->joins |= instruction_is_jump_through(code, length); /* which may lead anywhere */
	return always || code[opcode] == RETURN || code[opcode] == RETURN_POP;
}

static void flow_from(struct flow *flow, struct part *part, uint64_t address)
{
	size_t length;

	for (size_t at = address - part->start; at < part->n && !part->seen[at] && !flow->joins; at += length) {
		const uint8_t *code = part->code + at;

		part->seen[at] = true;
		length = instruction_length(code, part->n - at);
		flow->joins |= length == 0;
		if (length == 0 || flow_ends(flow, part->start + at, code, length))
			return;
		flow_join(flow, part->start + at, part->start + at + length);
	}
}

/* Elsewhere in the function; or in its part in another section, which is found when code leads there. */
static struct part *part_at(struct flow *flow, const struct symbol *function, uint64_t address)
{
	for (unsigned i = 0; i < flow->n_parts; i++)
		if (address - flow->parts[i].start < flow->parts[i].n)
			return &flow->parts[i];
	const struct symbol *symbol =
		flow->n_parts < G_N_ELEMENTS(flow->parts) ? symtab_find(flow->loading->symtab, address) : NULL;
	const size_t length = strlen(function->name);

	if (!symbol || strncmp(symbol->name, function->name, length) != 0 ||
	    strcmp(symbol->name + length, ".cold") != 0)
		return NULL;
	flow->joins |= !part_add(flow, symbol);
	return flow->joins ? NULL : part_at(flow, function, address);
}

static bool site_joins(const struct loading *loading, const struct tracepoint_site *site)
{
	const struct symbol *function = symtab_find(loading->symtab, site->nop);
	struct flow flow = {.loading = loading, .site = site, .todo = g_array_new(false, false, sizeof(uint64_t))};

	flow.joins = !function || !part_add(&flow, function);
	if (!flow.joins)
		g_array_append_val(flow.todo, function->address);
	while (flow.todo->len > 0 && !flow.joins) {
		const uint64_t address = g_array_index(flow.todo, uint64_t, flow.todo->len - 1);
		struct part *part = part_at(&flow, function, address);

		g_array_set_size(flow.todo, flow.todo->len - 1);
		if (part)
			flow_from(&flow, part, address);
	}
	for (unsigned i = 0; i < flow.n_parts; i++)
		g_free(flow.parts[i].seen);
	g_array_unref(flow.todo);
	return flow.joins;
}

/* ---- loading ---- */

static void sites_understand(const struct loading *loading, struct tracepoint *tracepoint)
{
	g_autoptr(GArray) kept = g_array_new(false, true, sizeof(struct tracepoint_site));

	for (guint i = 0; i < tracepoint->sites->len; i++) {
		struct tracepoint_site site = g_array_index(tracepoint->sites, struct tracepoint_site, i);

		if (!site_understand(loading, tracepoint, &site))
			continue;
		site.joins = site_joins(loading, &site);
		g_array_append_val(kept, site);
	}
	g_array_set_size(tracepoint->sites, 0);
	g_array_append_vals(tracepoint->sites, kept->data, kept->len);
}

static int compare_names(gconstpointer left, gconstpointer right)
{
	const struct tracepoint *x = *(struct tracepoint *const *)left, *y = *(struct tracepoint *const *)right;

	return strcmp(x->name, y->name);
}

static void finish(struct tracepoints *self, const struct loading *loading)
{
	for (guint i = 0; i < self->all->len; i++) {
		struct tracepoint *tracepoint = g_ptr_array_index(self->all, i);

		tracepoint->event = strchr(tracepoint->name, ':') + 1;
		sites_understand(loading, tracepoint);
		g_hash_table_insert(self->by_name, tracepoint->name, tracepoint);
	}
	g_ptr_array_sort(self->all, compare_names);
}

struct tracepoints *tracepoints_load(const struct image *image, const struct symtab *symtab, GError **error)
{
	struct tracepoints *self = g_new0(struct tracepoints, 1);
	struct loading loading = {.image = image,
	                          .symtab = symtab,
	                          .by_address = g_hash_table_new(NULL, NULL),
	                          .labels = g_hash_table_new(NULL, NULL)};
	g_autoptr(GError) why = NULL;

	self->all = g_ptr_array_new_with_free_func(tracepoint_free);
	self->by_name = g_hash_table_new(g_str_hash, g_str_equal);
	if (tracepoints_read(self, &loading, &why)) {
		events_read(&loading);
		sites_read(&loading);
		finish(self, &loading);
	} else {
		g_propagate_error(error, g_steal_pointer(&why));
		g_clear_pointer(&self, tracepoints_free);
	}
	g_hash_table_unref(loading.labels);
	g_hash_table_unref(loading.by_address);
	return self;
}

void tracepoints_free(struct tracepoints *self)
{
	if (!self)
		return;
	g_hash_table_unref(self->by_name);
	g_ptr_array_unref(self->all);
	g_free(self);
}

const GPtrArray *tracepoints_all(const struct tracepoints *self)
{
	return self->all;
}

const struct tracepoint *tracepoints_find(const struct tracepoints *self, const char *name)
{
	return g_hash_table_lookup(self->by_name, name);
}

bool tracepoint_has_arguments(const struct tracepoint *tracepoint)
{
	for (guint i = 0; i < tracepoint->sites->len; i++)
		if (g_array_index(tracepoint->sites, struct tracepoint_site, i).n_steps == 0)
			return false;
	return true;
}

/* ---- arguments ---- */

#define ARGUMENT_REGISTERS 6u /* one of them has the data that a caller of the kernel's has registered */

static void arguments_by_number(GArray *arguments)
{
	for (unsigned i = 0; i + 1 < ARGUMENT_REGISTERS; i++) {
		const struct tracepoint_argument argument = {
			.name = g_strdup_printf("arg%u", i),
			.value = {.type = g_strdup("unsigned long"), .bytes = sizeof(uint64_t)}};

		g_array_append_val(arguments, argument);
	}
}

GArray *tracepoint_arguments(const struct tracepoint *tracepoint, const struct btf *btf)
{
	g_autofree char *function = g_strconcat(FUNCTION_PREFIX, tracepoint->event, NULL);
	GArray *arguments = tracepoint_arguments_new();
	uint32_t prototype;

	if (!btf || !btf_function(btf, function, &prototype)) {
		arguments_by_number(arguments);
		return arguments;
	}
	for (unsigned i = 1; i <= TRACEPOINT_ARGUMENTS_MAX; i++) { /* behind __data */
		struct tracepoint_argument argument = {.name = NULL};

		if (!btf_parameter(btf, prototype, i, &argument.name, &argument.value))
			break;
		if (argument.name[0] == '\0') {
			g_free(argument.name);
			argument.name = g_strdup_printf("arg%u", i - 1);
		}
		g_array_append_val(arguments, argument);
	}
	return arguments;
}

/* ---- a hit ---- */

struct run {
	const struct tracepoint *tracepoint;
	struct page_walk walk;
	struct interpreter interpreter;
};

/*
 * While the trace point is not in use, its list of functions is NULL. Some address is as good as the list's, of which
 * only the first argument is taken.
 */
static bool run_read(void *data, uint64_t from, void *to, size_t bytes)
{
	struct run *run = data;

	if (from != run->tracepoint->funcs || bytes != sizeof(uint64_t))
		return page_walk_read_kernel(&run->walk, (gva_t){from}, to, bytes);
	memcpy(to, &run->tracepoint->address, bytes);
	return true;
}

static const struct tracepoint_step *step_find(const struct tracepoint_site *site, uint64_t address)
{
	unsigned low = 0, high = site->n_steps;

	while (low < high) {
		const unsigned middle = low + (high - low) / 2;

		if (site->steps[middle].address == address)
			return &site->steps[middle];
		if (site->steps[middle].address < address)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* The kernel has made the nop a jump (arch/x86/kernel/jump_label.c). */
static bool is_in_use(struct run *run, const struct tracepoint_site *site)
{
	uint8_t byte;

	return page_walk_read_code(&run->walk, (gva_t){site->nop}, &byte, sizeof(byte)) &&
	       (byte == JUMP || byte == SHORT_JUMP);
}

/* System V ABI for x86-64, 3.2.3: the seventh argument and those behind it are on the stack. */
static bool arguments_take(struct run *run, bool jumps, size_t n, uint64_t *arguments)
{
	static const enum interpreter_register registers[ARGUMENT_REGISTERS - 1] = {
		INTERPRETER_RSI, INTERPRETER_RDX, INTERPRETER_RCX, INTERPRETER_R8, INTERPRETER_R9};
	const uint64_t stack = run->interpreter.registers[INTERPRETER_RSP] + (jumps ? sizeof(uint64_t) : 0);

	for (size_t i = 0; i < n; i++) {
		if (i < G_N_ELEMENTS(registers))
			arguments[i] = run->interpreter.registers[registers[i]];
		else if (!interpreter_load(&run->interpreter, stack + (i - G_N_ELEMENTS(registers)) * sizeof(uint64_t),
		                           sizeof(uint64_t), &arguments[i]))
			return false;
	}
	return true;
}

static enum tracepoint_outcome run_block(struct run *run, const struct tracepoint_site *site, bool in_use, size_t n,
                                         uint64_t *arguments)
{
	struct interpreter *interpreter = &run->interpreter;
	bool inner = false;

	interpreter->rip = site->block;
	for (unsigned i = 0; i < RUN_MAX; i++) {
		const struct tracepoint_step *step = step_find(site, interpreter->rip);

		if (interpreter->rip == site->behind)
			return TRACEPOINT_PASSED;
		if (!step)
			return TRACEPOINT_UNKNOWN;
		if (step->calls && in_use && inner)
			return TRACEPOINT_PASSED;
		if (step->calls)
			return arguments_take(run, step->jumps, n, arguments) ? TRACEPOINT_HIT : TRACEPOINT_UNKNOWN;
		inner |= step->target != 0;
		if (step->target != 0)
			interpreter->rip = step->target;
		else if (interpreter_step(interpreter, step->code, step->length) != INTERPRETER_NEXT)
			return TRACEPOINT_UNKNOWN;
	}
	return TRACEPOINT_UNKNOWN;
}

enum tracepoint_outcome tracepoint_site_run(const struct tracepoint *tracepoint, const struct tracepoint_site *site,
                                            struct guest *guest, const struct guest_regs *regs,
                                            const struct guest_gprs *gprs, size_t n, uint64_t *arguments)
{
	struct run run = {
		.tracepoint = tracepoint,
		.interpreter = {.registers = {gprs->rax, gprs->rcx, gprs->rdx, gprs->rbx, gprs->rsp, gprs->rbp,
	                                      gprs->rsi, gprs->rdi, gprs->r8, gprs->r9, gprs->r10, gprs->r11, gprs->r12,
	                                      gprs->r13, gprs->r14, gprs->r15},
	                        .gs_base = regs->gs_base,
	                        .flags = gprs->rflags,
	                        .read = run_read,
	                        .data = &run},
	};

	page_walk_init_regs(&run.walk, guest, regs);
	const bool in_use = is_in_use(&run, site);
	/* A patch behind the nop is not for what has come out of the block; that at the block's begin has told it. */
	if (in_use && regs->rip == site->behind)
		return TRACEPOINT_PASSED;
	if (site->n_steps == 0)
		return in_use ? TRACEPOINT_PASSED : TRACEPOINT_UNKNOWN;
	return run_block(&run, site, in_use, n, arguments);
}
