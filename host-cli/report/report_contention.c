// SPDX-License-Identifier: BSD-2-Clause
/*
 * Waits for a lock, a page or a device: the innermost functions of the chain belong to one of the kinds, and what has
 * called the outermost of them is the caller.
 */
#include <string.h>
#include <vprof/recording.h>

#include "lib/profile/chain.h"
#include "report/contention_locks.h"
#include "report/report.h"
#include "ui/text.h"

#define CONTENTION_JSON_VERSION 1
#define NS_PER_S 1e9
#define WAIT_FRAMES_MAX 24u /* of a wait, at most */
#define NAME_WIDTH_MAX 60

/* Prefixes of the functions of each, in the kernel and in libc. */
static const struct kind {
	const char *name;
	const char *const *functions;
} kinds[] = {
	{"mutex", (const char *const[]){"mutex_lock", "__mutex_lock", "ww_mutex_lock", "__ww_mutex_lock", NULL}},
	{"rwsem", (const char *const[]){"rwsem_down_", "down_read", "down_write", "__down_read", "__down_write",
                                        "percpu_down_", "__percpu_down_", "percpu_rwsem_wait", NULL}},
	{"semaphore", (const char *const[]){"down", "__down", NULL}},
	{"rtmutex", (const char *const[]){"rt_mutex_", "__rt_mutex_", "rtlock_", NULL}},
	{"futex",
         (const char *const[]){"futex_", "__futex_", "pthread_", "__pthread_", "___pthread_", "__lll_lock_wait",
                               "__GI___lll_lock_wait", "sem_wait", "__new_sem_wait", "sem_timedwait", NULL}},
	{"page", (const char *const[]){"folio_wait_", "__folio_lock", "folio_lock", "wait_on_page_", "__lock_page",
                                       "lock_page", "migration_entry_wait", NULL}},
	{"io", (const char *const[]){"io_schedule", "bit_wait_io", "__wait_on_bit", "out_of_line_wait_on_bit",
                                     "__wait_on_buffer", "wait_on_buffer", "blk_mq_get_tag", "rq_qos_wait",
                                     "submit_bio_wait", "blkdev_issue_", NULL}},
};
/* In between. */
static const char *const through[] = {
	"do_futex",      "__x64_sys_futex",  "__do_sys_futex", "__se_sys_futex",   "x64_sys_call",
	"do_syscall_64", "entry_SYSCALL_64", "bit_wait",       "wait_on_bit_lock", NULL};

G_DEFINE_QUARK(vprof_report_error, report_error)

struct row {
	const struct kind *kind;
	char *function, *caller;
	uint64_t waits, period, max;
};

struct contention {
	struct input *input;
	unsigned event;
	GHashTable *by_place; /* "kind\nfunction\ncaller" -> struct row * */
	uint64_t waits, period;
	struct row others; /* waits for something else */
	struct contention_locks *locks;
	struct chain_frame frames[CHAIN_FRAMES_MAX];
};

/* ---- a wait ---- */

static bool has_prefix(const char *const *prefixes, const char *name)
{
	for (; *prefixes; prefixes++)
		if (g_str_has_prefix(name, *prefixes))
			return true;
	return false;
}

/* The first kind that has it: "down_read" is no semaphore's. */
static const struct kind *kind_of(const char *function)
{
	for (size_t i = 0; i < G_N_ELEMENTS(kinds); i++)
		if (has_prefix(kinds[i].functions, function))
			return &kinds[i];
	return NULL;
}

static void row_free(void *data)
{
	struct row *row = data;

	g_free(row->function);
	g_free(row->caller);
	g_free(row);
}

static void row_add(struct row *row, uint64_t period)
{
	row->waits++;
	row->period += period;
	row->max = MAX(row->max, period);
}

static struct row *row_find(struct contention *contention, const struct kind *kind, const char *function,
                            const char *caller)
{
	g_autofree char *key = g_strdup_printf("%s\n%s\n%s", kind->name, function, caller);
	struct row *row = g_hash_table_lookup(contention->by_place, key);

	if (row)
		return row;
	row = g_new0(struct row, 1);
	row->kind = kind;
	row->function = text_printable(function);
	row->caller = text_printable(caller);
	g_hash_table_insert(contention->by_place, g_steal_pointer(&key), row);
	return row;
}

static struct row *row_of_sample(struct contention *contention, const struct record_sample *sample)
{
	const uint32_t n = MIN(chain_frames(sample, contention->frames), WAIT_FRAMES_MAX);
	const char *function = NULL, *caller = "[unknown]";
	const struct kind *kind = NULL;

	for (uint32_t i = 0; i < n; i++) {
		const struct chain_frame *frame = &contention->frames[i];
		struct place place;

		input_find_place(contention->input, sample, profile_mode_of(frame->misc), frame->ip, &place);
		const struct kind *of = kind_of(place.symbol);

		if (!of && has_prefix(through, place.symbol))
			continue;
		if (!of) {
			caller = place.symbol;
			break;
		}
		kind = of;
		function = place.symbol;
	}
	return kind ? row_find(contention, kind, function, caller) : &contention->others;
}

static bool take_sample(const struct record_sample *sample, unsigned event, void *data)
{
	struct contention *contention = data;
	const unsigned state = profile_state_of(sample->misc);

	/* A task that could run waits for a vCPU, wherever it is. */
	if (event != contention->event || state == VPROF_TASK_RUNNING || state == VPROF_TASK_RUNNABLE)
		return true;
	contention->waits++;
	contention->period += sample->period;
	row_add(row_of_sample(contention, sample), sample->period);
	contention_locks_take(contention->locks, sample);
	return true;
}

/* ---- rows ---- */

static int rows_compare(gconstpointer left, gconstpointer right)
{
	const struct row *x = *(struct row *const *)left, *y = *(struct row *const *)right;

	if (x->period != y->period)
		return x->period > y->period ? -1 : 1;
	int order = strcmp(x->function, y->function);

	return order ? order : strcmp(x->caller, y->caller);
}

static double share_of(const struct contention *contention, const struct row *row)
{
	return contention->period ? (double)row->period / (double)contention->period : 0;
}

static GPtrArray *rows_of(const struct contention *contention, const struct report_options *options, guint *n_left_out)
{
	return contention_rows(contention->by_place, rows_compare, offsetof(struct row, period), contention->period,
	                       options, n_left_out);
}

static json_t *row_json(const struct contention *contention, const struct row *row)
{
	return json_pack("{s:s, s:o, s:o, s:f, s:I, s:I, s:I}", "kind", row->kind->name, "function",
	                 text_json(row->function), "caller", text_json(row->caller), "share", share_of(contention, row),
	                 "waits", (json_int_t)row->waits, "period", (json_int_t)row->period, "max",
	                 (json_int_t)row->max);
}

static void print_json(const struct contention *contention, const struct report_options *options, const GPtrArray *rows,
                       guint n_left_out, FILE *to)
{
	const struct row *others = &contention->others;
	guint n_locks_left_out;
	json_t *list = json_array(),
	       *locks = contention_locks_json(contention->locks, options, contention->period, &n_locks_left_out);

	for (guint i = 0; i < rows->len; i++)
		json_array_append_new(list, row_json(contention, g_ptr_array_index(rows, i)));
	json_auto_t *document = json_pack(
		"{s:s, s:i, s:o, s:s, s:I, s:I, s:{s:I, s:I, s:I}, s:I, s:o, s:I, s:o}", "format", "vprof-contention",
		"version", CONTENTION_JSON_VERSION, "file", text_json(contention->input->path), "event",
		recording_event(contention->input->recording, contention->event)->name, "waits",
		(json_int_t)contention->waits, "period", (json_int_t)contention->period, "others", "waits",
		(json_int_t)others->waits, "period", (json_int_t)others->period, "max", (json_int_t)others->max,
		"rows-left-out", (json_int_t)n_left_out, "rows", list, "locks-left-out", (json_int_t)n_locks_left_out,
		"locks", locks);

	json_write(document, JSON_INDENT(2), to);
	fputc('\n', to);
}

static int width_of(const GPtrArray *rows, size_t member, const char *header)
{
	glong width = g_utf8_strlen(header, -1);

	for (guint i = 0; i < rows->len; i++) {
		const char *text = *(char *const *)((const char *)g_ptr_array_index(rows, i) + member);

		width = MAX(width, g_utf8_strlen(text, -1));
	}
	return (int)MIN(width, NAME_WIDTH_MAX);
}

static void print_text(const struct contention *contention, const struct report_options *options, const GPtrArray *rows,
                       guint n_left_out, FILE *to)
{
	const struct row *others = &contention->others;
	const int width = width_of(rows, offsetof(struct row, function), "Waits in");

	fprintf(to,
	        "# event    %s: %" G_GUINT64_FORMAT " waits of %.3f s; %" G_GUINT64_FORMAT
	        " of %.3f s are for none of these\n",
	        recording_event(contention->input->recording, contention->event)->name, contention->waits,
	        (double)contention->period / NS_PER_S, others->waits, (double)others->period / NS_PER_S);
	fprintf(to, "#%7s %10s %10s %10s  %-9s  %-*s  %s\n", "Share", "Seconds", "Waits", "Longest", "Kind", width,
	        "Waits in", "Caller");
	for (guint i = 0; i < rows->len; i++) {
		const struct row *row = g_ptr_array_index(rows, i);

		fprintf(to, "%7.2f%% %9.6f %10" G_GUINT64_FORMAT " %10.6f  %-9s  %-*s  %s\n",
		        100 * share_of(contention, row), (double)row->period / NS_PER_S, row->waits,
		        (double)row->max / NS_PER_S, row->kind->name, width, row->function, row->caller);
	}
	if (n_left_out > 0)
		fprintf(to, "# %u more\n", n_left_out);
	contention_locks_print(contention->locks, options, contention->period, to);
}

/* The exact one, where a recording has both. */
static int event_of(const struct input *input)
{
	int found = -1;

	for (unsigned i = 0; i < recording_n_events(input->recording); i++) {
		const char *name = recording_event(input->recording, i)->name;

		if (strcmp(name, VPROF_OFF_CPU_EVENT) == 0 || (strcmp(name, VPROF_WALL_EVENT) == 0 && found < 0))
			found = (int)i;
	}
	return found;
}

bool report_print_contention(struct input *input, const struct report_options *options, bool json, FILE *to,
                             GError **error)
{
	static const struct input_visitor visitor = {.sample = take_sample};
	const int event = event_of(input);
	guint n_left_out;

	if (event < 0) {
		g_set_error(error, REPORT_ERROR, REPORT_ERROR_NO_WAITS,
		            "%s has no samples of tasks that wait; record them with --off-cpu or --wall", input->path);
		return false;
	}
	g_autofree struct contention *contention = g_new0(struct contention, 1);

	contention->input = input;
	contention->event = (unsigned)event;
	contention->by_place = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, row_free);
	contention->locks = contention_locks_new(input);
	input_walk(input, &visitor, contention);
	g_autoptr(GPtrArray) rows = rows_of(contention, options, &n_left_out);

	input_say_warnings(input);
	if (json)
		print_json(contention, options, rows, n_left_out, to);
	else
		print_text(contention, options, rows, n_left_out, to);
	contention_locks_free(contention->locks);
	g_hash_table_unref(contention->by_place);
	return true;
}
