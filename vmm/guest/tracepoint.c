// SPDX-License-Identifier: BSD-2-Clause
/* The arguments of trace points, of any system. */
#include "guest/tracepoint.h"

static void argument_clear(gpointer data)
{
	struct tracepoint_argument *argument = data;

	g_free(argument->name);
	btf_value_clear(&argument->value);
}

GArray *tracepoint_arguments_new(void)
{
	GArray *arguments = g_array_new(false, true, sizeof(struct tracepoint_argument));

	g_array_set_clear_func(arguments, argument_clear);
	return arguments;
}
