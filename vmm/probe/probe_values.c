// SPDX-License-Identifier: BSD-2-Clause
/* Fields that a client asks for besides the arguments: members of what these point to, and texts. */
#include <string.h>
#include <vprof/probe.h>

#include "probe/probe_priv.h"

_Static_assert(FIELD_TEXT_BYTES == VPROF_PROBE_TEXT_BYTES, "events have it as it is read");

/* Of functions, a BTF parameter beside each number; the names of both. */
#define NAMES_MAX (2 * PROBE_ARGUMENTS_MAX + 1)
#define CURTASK "curtask"
#define CURTASK_VALUE NAMES_MAX /* in the place of an argument */

/* [I] all of it. */
struct probe_values {
	struct probe_path all[PROBE_PATHS_MAX];
	size_t n;
};

/* What a probe's fields may begin with; the first are its arguments, one after the other. */
struct names {
	struct field_argument all[NAMES_MAX];
	unsigned values[NAMES_MAX]; /* the argument that each of them names */
	size_t n;
	GPtrArray *texts;
};

static void name_add(struct names *names, const char *name, uint32_t type, unsigned value)
{
	if (names->n == NAMES_MAX)
		return;
	char *text = g_strdup(name);

	g_ptr_array_add(names->texts, text);
	names->values[names->n] = value;
	names->all[names->n++] = (struct field_argument){.name = text, .type = type};
}

static bool is_at_entry(const struct probe_spec *spec)
{
	return spec->kind == PROBE_FUNCTION && spec->symbol[0] != '\0' && spec->offset == 0;
}

/*
 * Parameters of the kernel's function: in registers, one each, up to the first that is larger (System V ABI for x86-64,
 * 3.2.3).
 */
static void add_parameters(struct names *names, const struct probe *probe, const struct btf *btf)
{
	const size_t n = names->n; /* the numbers */
	uint32_t prototype;
	struct btf_value value;
	char *name;

	if (!btf || !is_at_entry(&probe->spec) || !btf_function(btf, probe->spec.symbol, &prototype))
		return;
	for (unsigned i = 0; i < n && btf_parameter(btf, prototype, i, &name, &value); i++) {
		const uint32_t type = value.bytes != 0 ? value.id : 0;

		if (type != 0) {
			names->all[i].type = type;
			name_add(names, name, type, i);
		}
		g_free(name);
		btf_value_clear(&value);
		if (type == 0)
			return;
	}
}

char **probe_parameter_types(struct probe_hub *hub, const struct probe_spec *spec)
{
	const struct btf *btf = is_at_entry(spec) ? probe_hub_btf(hub) : NULL;
	GPtrArray *types = g_ptr_array_new();
	struct btf_value value;
	uint32_t prototype;
	bool known = btf && btf_function(btf, spec->symbol, &prototype);
	char *name;

	for (unsigned i = 0;
	     known && probe_providers[spec->kind].arguments[i] && btf_parameter(btf, prototype, i, &name, &value);
	     i++) {
		known = value.bytes != 0;
		if (known)
			g_ptr_array_add(types,
			                g_strdup_printf("%s%s%s", value.type, value.is_pointer ? "" : " ", name));
		g_free(name);
		btf_value_clear(&value);
	}
	g_ptr_array_add(types, NULL);
	return (char **)g_ptr_array_free(types, FALSE);
}

static void names_fill(struct names *names, const struct probe *probe, const struct btf *btf)
{
	const GArray *arguments = probe->arguments;
	uint32_t structure;

	names->texts = g_ptr_array_new_with_free_func(g_free);
	for (guint i = 0; arguments && i < arguments->len; i++) {
		const struct tracepoint_argument *argument = &g_array_index(arguments, struct tracepoint_argument, i);

		name_add(names, argument->name, argument->value.id, i);
	}
	for (unsigned i = 0; !arguments && probe_providers[probe->spec.kind].arguments[i]; i++)
		name_add(names, probe_providers[probe->spec.kind].arguments[i], 0, i);
	add_parameters(names, probe, btf);
	name_add(names, CURTASK, 0, CURTASK_VALUE);
	if (btf && btf_structure(btf, "task_struct", &structure))
		names->all[names->n - 1].structure = structure;
}

static bool values_fill(struct probe_values *self, const struct names *names, const struct btf *btf,
                        const char *const *fields, GError **error)
{
	for (size_t i = 0; fields[i]; i++) {
		struct probe_path *path = &self->all[self->n];

		if (field_path_argument(fields[i], names->all, names->n) < 0)
			continue;
		if (!field_path_parse(fields[i], btf, names->all, names->n, &path->path, error))
			return false;
		const unsigned value = names->values[path->path.argument];

		path->of_task = value == CURTASK_VALUE;
		path->path.argument = path->of_task ? 0 : value;
		path->name = g_strdup(fields[i]);
		self->n++;
	}
	return true;
}

bool probe_values_new(struct probe *probe, const char *const *fields, GError **error)
{
	if (!fields || !fields[0])
		return true;
	const struct btf *btf = probe_hub_btf(probe->set->hub);
	struct names names = {.n = 0};

	if (g_strv_length((char **)fields) > PROBE_PATHS_MAX) {
		g_set_error(error, FIELD_ERROR, FIELD_ERROR_SYNTAX, "a probe can have %u fields besides its arguments",
		            PROBE_PATHS_MAX);
		return false;
	}
	probe->values = g_new0(struct probe_values, 1);
	names_fill(&names, probe, btf);
	const bool done = values_fill(probe->values, &names, btf, fields, error);
	g_ptr_array_unref(names.texts);
	return done;
}

void probe_values_free(struct probe_values *self)
{
	for (size_t i = 0; self && i < PROBE_PATHS_MAX; i++) {
		g_free(self->all[i].name);
		field_path_clear(&self->all[i].path);
	}
	g_free(self);
}

const struct probe_path *probe_values_paths(const struct probe_values *self, size_t *n)
{
	*n = self ? self->n : 0;
	return self ? self->all : NULL;
}

bool probe_values_read_one(const struct probe_values *self, struct page_walk *walk, unsigned field,
                           const uint64_t *arguments, uint64_t task, uint64_t *words)
{
	const struct field_path *path = &self->all[field].path;
	const uint64_t *from = self->all[field].of_task ? &task : arguments;
	char text[FIELD_TEXT_BYTES];

	if (self->all[field].of_task && task == 0)
		return false;
	if (!path->is_text)
		return field_path_number(path, walk, from, words);
	if (!field_path_text(path, walk, from, text))
		return false;
	memcpy(words, text, sizeof(text));
	return true;
}

unsigned probe_values_read(const struct probe_values *self, struct guest *guest, const struct guest_regs *regs,
                           uint64_t task, uint64_t *values, size_t *n)
{
	uint64_t *known = &values[*n]; /* bit i: field i could be read */
	struct page_walk walk;
	unsigned faults = 0;

	if (!self || self->n == 0)
		return 0;
	*known = 0;
	*n += 1;
	page_walk_init_regs(&walk, guest, regs);
	for (size_t i = 0; i < self->n; i++) {
		const struct field_path *path = &self->all[i].path;
		const size_t words = path->is_text ? FIELD_TEXT_BYTES / sizeof(uint64_t) : 1;

		memset(&values[*n], 0, words * sizeof(*values));
		const bool done = probe_values_read_one(self, &walk, (unsigned)i, values, task, &values[*n]);
		*known |= (uint64_t)done << i;
		faults += !done;
		*n += words;
	}
	return faults;
}
