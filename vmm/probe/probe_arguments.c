// SPDX-License-Identifier: BSD-2-Clause
/* The arguments of events where the guest's kernel says what they are: of trace points and of system calls. */
#include "probe/placement_priv.h"

void probe_fields_clear(struct probe_fields *fields)
{
	g_clear_pointer(&fields->names, g_strfreev);
	g_clear_pointer(&fields->types, g_strfreev);
}

void probe_fields_fill(const GArray *arguments, struct probe_fields *fields)
{
	fields->names = g_new0(char *, arguments->len + 1);
	fields->types = g_new0(char *, arguments->len + 1);
	for (guint i = 0; i < arguments->len; i++) {
		const struct tracepoint_argument *argument = &g_array_index(arguments, struct tracepoint_argument, i);

		fields->names[i] = g_strdup(argument->name);
		fields->types[i] = g_strdup(argument->value.type);
	}
}

/* The number of the call, and its parameters. */
GArray *probe_call_arguments(struct probe_hub *hub, const struct probe_spec *spec, GError **error G_GNUC_UNUSED)
{
	if (!probe_hub_has_calls(hub) || !g_strv_contains(hub->os->calls->names(hub->calls), spec->symbol))
		return NULL;
	const struct btf *btf = probe_hub_btf(hub);
	GArray *arguments = tracepoint_arguments_new();
	struct tracepoint_argument argument = {.name = g_strdup(probe_providers[spec->kind].arguments[0])};

	btf_value_named(btf, "int", &argument.value);
	g_array_append_val(arguments, argument);
	for (unsigned i = 0;
	     hub->os->calls->parameter(hub->calls, btf, spec->symbol, i, &argument.name, &argument.value); i++)
		g_array_append_val(arguments, argument);
	return arguments;
}

void probe_arguments_extend(const struct probe *probe, uint64_t *arguments)
{
	for (guint i = 0; i < probe->arguments->len; i++)
		arguments[i] = btf_value_extend(&g_array_index(probe->arguments, struct tracepoint_argument, i).value,
		                                arguments[i]);
}
