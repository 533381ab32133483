// SPDX-License-Identifier: BSD-2-Clause
/* "comm;caller;callee 42": what stackcollapse-perf.pl of FlameGraph prints; kernel frames end in "_[k]". */
#include <string.h>

#include "export/export.h"
#include "ui/text.h"

/* Appends a frame: a semicolon or a line's end in a name would be taken for structure. */
static void path_append(GString *path, const char *name, enum profile_mode mode)
{
	g_autofree char *printable = text_printable(name);

	g_string_append(path, g_strdelimit(printable, ";", ':'));
	if (mode == PROFILE_KERNEL)
		g_string_append(path, "_[k]");
}

static void nodes_write(const struct call_node *nodes, size_t first, GString *path, FILE *to)
{
	const gsize length = path->len;

	for (size_t i = first; i != 0; i = nodes[i].next_sibling) {
		g_string_append_c(path, ';');
		path_append(path, nodes[i].symbol, nodes[i].mode);
		if (nodes[i].self_period != 0)
			fprintf(to, "%s %" G_GUINT64_FORMAT "\n", path->str, nodes[i].self_period);
		nodes_write(nodes, nodes[i].first_child, path, to);
		g_string_truncate(path, length);
	}
}

static bool folded_write(const struct export_profile *profile, FILE *to, GError **error)
{
	(void)error;
	for (size_t i = 0; i < profile->n_tasks; i++) {
		GString *path = g_string_new(NULL);

		path_append(path, profile->tasks[i].comm, PROFILE_USER);
		nodes_write(profile->tasks[i].nodes, profile->tasks[i].nodes[0].first_child, path, to);
		g_string_free(path, TRUE);
	}
	return true;
}

const struct exporter export_folded = {
	.name = "folded",
	.summary = "folded stacks: FlameGraph, inferno, speedscope",
	.write = folded_write,
};
