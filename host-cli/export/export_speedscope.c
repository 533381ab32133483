// SPDX-License-Identifier: BSD-2-Clause
/* speedscope.app's own format (https://www.speedscope.app/file-format-schema.json): a sampled profile a task. */
#include <jansson.h>

#include "export/export.h"
#include "ui/text.h"

struct frames {
	json_t *list;      /* of {"name", "file"} */
	GHashTable *index; /* "name\nmodule" -> its number + 1 */
};

static json_int_t frame_number(struct frames *frames, const struct call_node *node)
{
	g_autofree char *key = g_strdup_printf("%s\n%s", node->symbol, node->module);
	gsize number = GPOINTER_TO_SIZE(g_hash_table_lookup(frames->index, key));

	if (number == 0) {
		json_array_append_new(frames->list, json_pack("{s:o, s:o}", "name", text_json(node->symbol), "file",
		                                              text_json(node->module)));
		number = json_array_size(frames->list);
		g_hash_table_insert(frames->index, g_steal_pointer(&key), GSIZE_TO_POINTER(number));
	}
	return (json_int_t)number - 1;
}

struct sampled {
	struct frames *frames;
	json_t *samples, *weights;
	json_t *path; /* the frames above, callers first */
};

static void nodes_add(struct sampled *sampled, const struct call_node *nodes, size_t first)
{
	for (size_t i = first; i != 0; i = nodes[i].next_sibling) {
		json_array_append_new(sampled->path, json_integer(frame_number(sampled->frames, &nodes[i])));
		if (nodes[i].self_period != 0) {
			json_array_append_new(sampled->samples, json_copy(sampled->path));
			json_array_append_new(sampled->weights, json_integer((json_int_t)nodes[i].self_period));
		}
		nodes_add(sampled, nodes, nodes[i].first_child);
		json_array_remove(sampled->path, json_array_size(sampled->path) - 1);
	}
}

static json_t *task_json(const struct task_stacks *task, const char *unit, struct frames *frames)
{
	struct sampled sampled = {
		.frames = frames,
		.samples = json_array(),
		.weights = json_array(),
		.path = json_array(),
	};

	nodes_add(&sampled, task->nodes, task->nodes[0].first_child);
	json_decref(sampled.path);
	return json_pack("{s:s, s:o, s:s, s:i, s:I, s:o, s:o}", "type", "sampled", "name", text_json(task->comm),
	                 "unit", unit, "startValue", 0, "endValue", (json_int_t)task->nodes[0].period, "samples",
	                 sampled.samples, "weights", sampled.weights);
}

static bool speedscope_write(const struct export_profile *profile, FILE *to, GError **error)
{
	const char *unit = g_str_equal(profile->unit, "nanoseconds") ? "nanoseconds" : "none";
	struct frames frames = {
		.list = json_array(),
		.index = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL),
	};
	json_t *profiles = json_array(), *document;

	(void)error;
	for (size_t i = 0; i < profile->n_tasks; i++)
		json_array_append_new(profiles, task_json(&profile->tasks[i], unit, &frames));
	document = json_pack("{s:s, s:s, s:o, s:i, s:{s:o}, s:o}", "$schema",
	                     "https://www.speedscope.app/file-format-schema.json", "exporter", "vprof " VPROF_VERSION,
	                     "name", text_json(profile->path), "activeProfileIndex", 0, "shared", "frames", frames.list,
	                     "profiles", profiles);
	json_write(document, JSON_COMPACT, to);
	fputc('\n', to);
	json_decref(document);
	g_hash_table_unref(frames.index);
	return true;
}

const struct exporter export_speedscope = {
	.name = "speedscope",
	.summary = "speedscope.app",
	.write = speedscope_write,
};
