// SPDX-License-Identifier: BSD-2-Clause
#include "tasks/task_stacks.h"

#include <inttypes.h>
#include <string.h>

#include "ui/text.h"

static const struct task_row *first_of(const struct task_stack *stack)
{
	return g_ptr_array_index(stack->rows, 0);
}

static void stack_free(void *data)
{
	struct task_stack *stack = data;

	g_ptr_array_unref(stack->rows);
	g_free(stack);
}

/* ---- which belong together ---- */

/* A task that runs stands for itself. */
static char *key_of(const struct task_row *row)
{
	GString *key = g_string_new(NULL);

	g_string_append_printf(key, "%c %" PRId64 " %s", row->state, row->cpu, row->chain_end);
	for (size_t i = 0; i < row->n_frames; i++)
		g_string_append_printf(key, "\n%s %s", row->frames[i].symbol, row->frames[i].module);
	return g_string_free(key, FALSE);
}

static unsigned rank_of(const struct task_row *row)
{
	if (row->cpu >= 0)
		return row->pid != 0 ? 0 : 1;
	return row->state == 'D' ? 2 : row->state == 'R' ? 3 : 4;
}

static int stacks_compare(const void *a, const void *b)
{
	const struct task_stack *left = *(struct task_stack *const *)a, *right = *(struct task_stack *const *)b;
	const struct task_row *one = first_of(left), *other = first_of(right);

	if (rank_of(one) != rank_of(other))
		return rank_of(one) < rank_of(other) ? -1 : 1;
	if (one->cpu != other->cpu)
		return one->cpu < other->cpu ? -1 : 1;
	if (left->rows->len != right->rows->len)
		return left->rows->len > right->rows->len ? -1 : 1;
	return (one->tid > other->tid) - (one->tid < other->tid);
}

GPtrArray *task_stacks_new(const struct task_table *table)
{
	GPtrArray *stacks = g_ptr_array_new_with_free_func(stack_free);
	g_autoptr(GHashTable) by_key = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);

	for (guint i = 0; i < table->rows->len; i++) {
		struct task_row *row = g_ptr_array_index(table->rows, i);
		g_autofree char *key = key_of(row);
		struct task_stack *stack = g_hash_table_lookup(by_key, key);

		if (!stack) {
			stack = g_new0(struct task_stack, 1);
			stack->rows = g_ptr_array_new();
			g_ptr_array_add(stacks, stack);
			g_hash_table_insert(by_key, g_steal_pointer(&key), stack);
		}
		g_ptr_array_add(stack->rows, row);
	}
	g_ptr_array_sort(stacks, stacks_compare);
	return stacks;
}

/* ---- as text ---- */

static void heading_print(const struct task_stack *stack, FILE *to)
{
	const struct task_row *first = first_of(stack);
	g_autoptr(GString) heading = g_string_new(NULL), lines = g_string_new(NULL);

	if (first->cpu >= 0 && first->pid == 0)
		g_string_append_printf(heading, "idle on CPU %" PRId64 ":", first->cpu);
	else if (first->cpu >= 0)
		g_string_append_printf(heading, "running on CPU %" PRId64 ":", first->cpu);
	else
		g_string_append_printf(heading, "%u %c:", stack->rows->len, first->state);
	for (guint i = 0; i < stack->rows->len; i++) {
		const struct task_row *row = g_ptr_array_index(stack->rows, i);

		g_string_append_printf(heading, "%s %s %" PRIu32, i == 0 ? "" : ",", row->comm, row->tid);
	}
	text_wrap(lines, heading->str, 0);
	fprintf(to, "%s\n", lines->str);
}

static void frames_print(const struct task_row *row, FILE *to)
{
	for (size_t i = 0; i < row->n_frames; i++) {
		const struct task_frame *frame = &row->frames[i];

		fprintf(to, "    %s", frame->symbol);
		fprintf(to, strcmp(frame->module, "[kernel]") == 0 ? "\n" : " %s\n", frame->module);
	}
	if (row->n_frames == 0 && (row->state == 'Z' || row->state == 'X'))
		fprintf(to, "    it has ended\n");
	else if (row->n_frames == 0)
		fprintf(to, "    its call chain is not known\n");
	else if (strcmp(row->chain_end, "whole") != 0)
		fprintf(to, "    ... (%s)\n", row->chain_end);
}

void task_stacks_print(const GPtrArray *stacks, FILE *to)
{
	for (guint i = 0; i < stacks->len; i++) {
		const struct task_stack *stack = g_ptr_array_index(stacks, i);

		if (i > 0)
			fputc('\n', to);
		heading_print(stack, to);
		frames_print(first_of(stack), to);
	}
}

/* ---- as JSON ---- */

static json_t *stack_json(const struct task_stack *stack)
{
	const struct task_row *first = first_of(stack);
	json_t *tasks = json_array(), *frames = json_array();

	for (guint i = 0; i < stack->rows->len; i++)
		json_array_append_new(tasks, task_row_json(g_ptr_array_index(stack->rows, i)));
	for (size_t i = 0; i < first->n_frames; i++)
		json_array_append_new(frames, task_frame_json(&first->frames[i]));
	return json_pack("{s:I, s:o, s:o, s:s}", "count", (json_int_t)stack->rows->len, "tasks", tasks, "frames",
	                 frames, "chain-end", first->chain_end);
}

json_t *task_stacks_json(const GPtrArray *stacks)
{
	json_t *list = json_array();

	for (guint i = 0; i < stacks->len; i++)
		json_array_append_new(list, stack_json(g_ptr_array_index(stacks, i)));
	return list;
}
