// SPDX-License-Identifier: BSD-2-Clause
#include "record/recorder_tables.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

#include "engine/engine_process.h"
#include "lib/record/hex.h"
#include "lib/symbol/cfi.h"
#include "lib/symbol/image.h"
#include "lib/symbol/python_file.h"
#include "record/guest_file.h"
#include "ui/message.h"
#include "ui/text.h"

#define IN_INITRAMFS "initramfs"
#define IN_DEBUGINFOD "debuginfod"
#define IN_GUEST "guest memory"
#define IN_GUEST_READ "guest memory (read by the agent)"
#define IN_GUEST_PART "guest memory (in part)"
#define COPIES_BYTES_MAX (UINT64_C(16) << 20) /* of symbols of files that a guest has in memory */
#define FILES_MAX 4096u                       /* that a guest can have named */

/* A guest reads its files when it needs them: what was not there is asked for again, each time after a longer wait. */
#define ASKED_MAX 4u
#define ASK_AGAIN_US INT64_C(1000000)
#define ASK_BUSY_US INT64_C(50000) /* the time that one look takes from the rings, and a file more */
#define SETTLE_US INT64_C(5000000) /* at the end, for names */

/* A file that was mapped, or the end of all: without a name. */
struct wanted {
	char *name;
	GBytes *build_id;
	unsigned asked;       /* how often the guest was asked for it */
	bool ask;             /* it is to be asked (again), */
	gint64 not_before_us; /* from this moment on */
	int memory;           /* what it has answered; -1 */
	/* For the agent in the guest. */
	uint32_t pid;     /* that has mapped it last; 0: not known */
	uint64_t address; /* where */
	unsigned reads;   /* `asked` of when the agent was told to read it; 0: not yet */
	uint32_t number;  /* of that read */
	bool read;        /* it has */
};

struct made {
	char *build_id;         /* in hexadecimal digits */
	GBytes *table;          /* NULL: none */
	struct user_copy *copy; /* symbols of the guest's own file; NULL */
	const char *source;     /* static text */
	struct cfi_statistics statistics;
	struct python_file python;
	char *why; /* why something of it cannot be read; NULL */
};

/* A table that the engine has. */
struct given {
	const char *source; /* static text */
	struct cfi_statistics statistics;
};

/* [I] immutable after recorder_tables_new, [m] the caller's thread only, [t] the other thread only, [a] atomic */
struct recorder_tables {
	char **programs;                     /* [I] */
	bool has_symfs;                      /* [I] */
	struct user_symbols *symfs, *initrd; /* [t] */
	struct user_symbols *debuginfod;     /* [t] */
	GHashTable *done;                    /* [t] build-ids that have tables, or for which there is none */
	GThread *thread;                     /* [I] */
	_Atomic uint64_t copies_bytes;       /* [a] that symbols from the guest's memory take */
	_Atomic bool over;                   /* [a] tables are no longer waited for */
	GAsyncQueue *wanted, *handled;       /* [I] of struct wanted *: to the other thread, and back */
	GAsyncQueue *made;                   /* [I] of struct made * */
	GQueue *asks;                        /* [m] of struct wanted *: what the guest is to be asked for */
	unsigned n_wanted;                   /* [m] that are not back */
	GHashTable *files;                   /* [m] name -> its build-id in digits; "": not known */
	GHashTable *tables;                  /* [m] build-id in digits -> struct given * */
	GHashTable *copies;                  /* [m] build-id in digits -> struct user_copy * */
	bool refused;                        /* [m] by the engine */
};

static void wanted_free(struct wanted *wanted)
{
	g_free(wanted->name);
	g_clear_pointer(&wanted->build_id, g_bytes_unref);
	if (wanted->memory >= 0)
		close(wanted->memory);
	g_free(wanted);
}

static void made_free(struct made *made)
{
	g_free(made->build_id);
	g_clear_pointer(&made->table, g_bytes_unref);
	user_copy_free(made->copy);
	g_free(made->why);
	g_free(made);
}

/* ---- the other thread ---- */

/* As the engine reads them in the guest. */
static char *build_id_text(const uint8_t *build_id, size_t n)
{
	return hex_encode(build_id, MIN(n, RECORD_BUILD_ID_BYTES_MAX));
}

/* Of which all but the build-id is taken over. */
static void made_push(struct recorder_tables *tables, const char *build_id, const struct made *made)
{
	struct made *pushed = g_memdup2(made, sizeof(*made));

	pushed->build_id = g_strdup(build_id);
	g_async_queue_push(tables->made, pushed);
}

/* Keeps the first reason. */
static void made_explain(struct made *made, GError *error)
{
	if (error && !made->why)
		made->why = g_strdup(error->message);
	g_clear_error(&error);
}

static void table_make(struct recorder_tables *tables, const struct image *image, const char *source)
{
	struct made made = {.source = source};
	size_t n;
	const uint8_t *build_id = image_build_id(image, &n);
	g_autofree char *text = build_id ? build_id_text(build_id, n) : NULL;
	GError *error = NULL;

	if (!text || g_hash_table_contains(tables->done, text))
		return;
	made.table = cfi_table_load(image, &made.statistics, &error);
	made_explain(&made, error);
	made.python = python_file_read(image);
	if (made.table || made.why)
		made_push(tables, text, &made);
	g_hash_table_add(tables->done, g_steal_pointer(&text));
}

/* Of a file that is in the initramfs. */
static void program_make(struct recorder_tables *tables, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct image *image = fd >= 0 ? image_open_fd(path, IMAGE_PROGRAM, fd, NULL) : NULL;

	if (fd >= 0)
		close(fd);
	if (image)
		table_make(tables, image, IN_INITRAMFS);
	image_free(image);
}

/* What is wanted was mapped with this build-id: user_symbols_open compares it with that of the copy. */
static bool file_make(struct recorder_tables *tables, struct user_symbols *files, const struct wanted *wanted,
                      const char *source)
{
	gsize n;
	const uint8_t *build_id = g_bytes_get_data(wanted->build_id, &n);
	struct image *image = user_symbols_open(files, wanted->name, build_id, n);

	if (image)
		table_make(tables, image, source);
	image_free(image);
	return image != NULL;
}

/* The file that the guest has in memory now may be another one than what was mapped. */
static struct image *guest_open(const struct wanted *wanted)
{
	struct image *image = wanted->memory >= 0 ? image_open_partial(wanted->name, wanted->memory, NULL) : NULL;
	gsize n;
	const uint8_t *build_id = g_bytes_get_data(wanted->build_id, &n);
	size_t have_bytes;
	const uint8_t *have = image ? image_build_id(image, &have_bytes) : NULL;

	if (have && have_bytes >= n && memcmp(have, build_id, n) == 0)
		return image;
	image_free(image);
	return NULL;
}

/* As many as there is room for. */
static void made_symbols(struct recorder_tables *tables, const struct image *image, struct made *made)
{
	const uint64_t used = atomic_load_explicit(&tables->copies_bytes, memory_order_relaxed);
	GError *error = NULL;

	if (used >= COPIES_BYTES_MAX) {
		if (!made->why)
			made->why =
				g_strdup_printf("%s: its functions have no names: those of the guest's other programs "
			                        "take all memory that there is for them",
			                        image_path(image));
		return;
	}
	made->copy = user_copy_new(image, COPIES_BYTES_MAX - used, &error);
	made_explain(made, error);
	g_autofree char *left_out = user_copy_left_out_text(made->copy);

	if (left_out && !made->why)
		made->why = g_strdup_printf("%s: %s", image_path(image), left_out);
	atomic_fetch_add_explicit(&tables->copies_bytes, user_copy_bytes(made->copy), memory_order_relaxed);
}

/* False when it is not, or not all, in the guest's memory. */
static bool guest_make(struct recorder_tables *tables, const struct wanted *wanted, const char *build_id)
{
	struct image *image = guest_open(wanted);
	struct made made = {NULL};
	GError *error = NULL;

	if (!image)
		return false;
	made.table = cfi_table_load(image, &made.statistics, &error);
	made_explain(&made, g_steal_pointer(&error));
	const bool whole = made.table && made.statistics.missing == 0;

	made.python = python_file_read(image);
	made_symbols(tables, image, &made);
	made.source = !whole ? IN_GUEST_PART : wanted->read ? IN_GUEST_READ : IN_GUEST;
	made_push(tables, build_id, &made);
	image_free(image);
	return whole;
}

/* To look into an archive may mean to unpack it, and a server may take its time. */
static bool copy_make(struct recorder_tables *tables, const struct wanted *wanted)
{
	return file_make(tables, tables->initrd, wanted, IN_INITRAMFS) ||
	       file_make(tables, tables->debuginfod, wanted, IN_DEBUGINFOD);
}

/* Whether the guest is to be asked for it (again). */
static bool wanted_make(struct recorder_tables *tables, struct wanted *wanted)
{
	gsize n;
	const uint8_t *build_id = g_bytes_get_data(wanted->build_id, &n);
	g_autofree char *text = build_id_text(build_id, n);

	if (g_hash_table_contains(tables->done, text))
		return false;
	if (wanted->asked == 0)
		return !file_make(tables, tables->symfs, wanted, "--symfs");
	if (guest_make(tables, wanted, text) || (wanted->asked == 1 && copy_make(tables, wanted)) ||
	    wanted->asked >= ASKED_MAX) {
		g_hash_table_add(tables->done, g_steal_pointer(&text));
		return false;
	}
	wanted->not_before_us = g_get_monotonic_time() + (ASK_AGAIN_US << 2 * (wanted->asked - 1));
	return true;
}

static bool is_wanted(struct recorder_tables *tables)
{
	return !atomic_load_explicit(&tables->over, memory_order_relaxed);
}

static gpointer tables_thread(gpointer data)
{
	struct recorder_tables *tables = data;

	for (char **path = tables->programs; is_wanted(tables) && path && *path; path++)
		program_make(tables, *path);
	while (is_wanted(tables)) {
		struct wanted *wanted = g_async_queue_pop(tables->wanted);

		wanted->ask = wanted->name && wanted_make(tables, wanted);
		g_async_queue_push(tables->handled, wanted);
	}
	return NULL;
}

/* ---- the caller's ---- */

struct recorder_tables *recorder_tables_new(const struct user_symbol_sources *sources, char *const *programs)
{
	struct recorder_tables *tables = g_new0(struct recorder_tables, 1);
	/* Files with debug information come without the tables. */
	const struct user_symbol_sources symfs = {.symfs = sources->symfs, .arch = sources->arch};
	const struct user_symbol_sources initrd = {.initrd = sources->initrd, .arch = sources->arch};
	const struct user_symbol_sources debuginfod = {
		.debuginfod = sources->debuginfod, .executables = true, .arch = sources->arch};

	tables->programs = g_strdupv((char **)programs);
	tables->has_symfs = sources->symfs;
	tables->symfs = user_symbols_new(&symfs);
	tables->initrd = user_symbols_new(&initrd);
	tables->debuginfod = user_symbols_new(&debuginfod);
	tables->done = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	tables->wanted = g_async_queue_new_full((GDestroyNotify)wanted_free);
	tables->handled = g_async_queue_new_full((GDestroyNotify)wanted_free);
	tables->made = g_async_queue_new_full((GDestroyNotify)made_free);
	tables->asks = g_queue_new();
	tables->files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	tables->tables = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	tables->copies = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, (GDestroyNotify)user_copy_free);
	tables->thread = g_thread_new("unwind tables", tables_thread, tables);
	return tables;
}

/* mapping NULL: the end of all. */
static struct wanted *wanted_new(const struct record_mmap *mapping)
{
	struct wanted *wanted = g_new(struct wanted, 1);

	*wanted = (struct wanted){.memory = -1};
	if (mapping) {
		wanted->name = g_strdup(mapping->file_name.raw);
		wanted->build_id = g_bytes_new(mapping->build_id, mapping->build_id_bytes);
		wanted->pid = mapping->pid;
		wanted->address = mapping->start;
	}
	return wanted;
}

void recorder_tables_free(struct recorder_tables *tables)
{
	if (!tables)
		return;
	atomic_store_explicit(&tables->over, true, memory_order_relaxed);
	g_async_queue_push(tables->wanted, wanted_new(NULL));
	g_thread_join(tables->thread);
	g_queue_free_full(tables->asks, (GDestroyNotify)wanted_free);
	g_async_queue_unref(tables->handled);
	g_async_queue_unref(tables->wanted);
	g_async_queue_unref(tables->made);
	g_hash_table_unref(tables->done);
	g_hash_table_unref(tables->files);
	g_hash_table_unref(tables->tables);
	g_hash_table_unref(tables->copies);
	user_symbols_free(tables->symfs);
	user_symbols_free(tables->initrd);
	user_symbols_free(tables->debuginfod);
	g_strfreev(tables->programs);
	g_free(tables);
}

static void wanted_push(struct recorder_tables *tables, struct wanted *wanted)
{
	g_async_queue_push(tables->wanted, wanted);
	tables->n_wanted++;
}

/* What is mapped only so that perf records where it is (lib/symbol/perf_map.h). */
static bool is_jitdump(const char *path)
{
	return g_pattern_match_simple("*/jit-*.dump", path);
}

/* The process that had mapped it before may have ended. */
static void asks_update(struct recorder_tables *tables, const struct record_mmap *mapping)
{
	for (GList *next = tables->asks->head; next; next = next->next) {
		struct wanted *wanted = next->data;

		if (strcmp(wanted->name, mapping->file_name.raw) == 0) {
			wanted->pid = mapping->pid;
			wanted->address = mapping->start;
		}
	}
}

/* The build-id of a file may become known only at a later look. */
void recorder_tables_want(struct recorder_tables *tables, const struct record_mmap *mapping)
{
	const char *known = g_hash_table_lookup(tables->files, mapping->file_name.raw);

	if (mapping->mode != PERF_RECORD_MISC_USER)
		return;
	asks_update(tables, mapping);
	if (mapping->file_name.raw[0] != '/' || mapping->file_name.raw[1] == '/' ||
	    (known && (known[0] != '\0' || !mapping->build_id)) || is_jitdump(mapping->file_name.raw) ||
	    g_hash_table_size(tables->files) >= FILES_MAX)
		return;
	g_hash_table_insert(tables->files, g_strdup(mapping->file_name.raw),
	                    mapping->build_id ? build_id_text(mapping->build_id, mapping->build_id_bytes)
	                                      : g_strdup(""));
	known = g_hash_table_lookup(tables->files, mapping->file_name.raw);
	if (!mapping->build_id || g_hash_table_contains(tables->tables, known))
		return;
	struct wanted *wanted = wanted_new(mapping);

	if (tables->has_symfs)
		wanted_push(tables, wanted);
	else
		g_queue_push_tail(tables->asks, wanted);
}

static bool write_all(int fd, GBytes *block)
{
	gsize n, at = 0;
	const uint8_t *bytes = g_bytes_get_data(block, &n);

	while (at < n) {
		ssize_t written = pwrite(fd, bytes + at, n - at, (off_t)at);

		if (written <= 0 && errno != EINTR)
			return false;
		at += written > 0 ? (size_t)written : 0;
	}
	return true;
}

static bool table_send(const struct made *made, struct client *client, GError **error)
{
	json_t *arguments = json_pack("{s:I}", "bytes", (json_int_t)g_bytes_get_size(made->table));
	g_autofree int *fds = NULL;
	size_t n_fds = 0;
	json_t *answer =
		client_execute(client, "unwind-table-new", arguments, &fds, &n_fds, ENGINE_ANSWER_TIMEOUT_MS, error);
	bool written = answer && n_fds == 1 && write_all(fds[0], made->table);

	json_decref(answer);
	for (size_t i = 0; i < n_fds; i++)
		close(fds[i]);
	if (answer && !written)
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_PROTOCOL,
		            "the engine's memory for it cannot be written to: %s", g_strerror(errno));
	if (!written)
		return false;
	arguments = json_pack("{s:s}", "build-id", made->build_id);
	if (made->python.version != 0 && made->python.runtime <= INT64_MAX) {
		json_object_set_new(arguments, "python-version", json_integer((json_int_t)made->python.version));
		json_object_set_new(arguments, "python-runtime", json_integer((json_int_t)made->python.runtime));
	}
	return engine_tell(client, "unwind-table-add", arguments, error);
}

/* What the engine does not know, or the guest does not have any more, is said with the files without tables. */
static void guest_ask(struct recorder_tables *tables, struct wanted *wanted, struct client *client)
{
	gsize n;
	const uint8_t *build_id = g_bytes_get_data(wanted->build_id, &n);
	g_autofree char *text = build_id_text(build_id, n);

	if (wanted->memory >= 0)
		close(wanted->memory);
	wanted->memory = guest_file_read(client, text, NULL);
	wanted->asked++;
	wanted_push(tables, wanted);
}

/* One that is back: to be asked for, or done with. */
static void handled_take(struct recorder_tables *tables, struct wanted *wanted)
{
	tables->n_wanted--;
	if (wanted->ask)
		g_queue_push_tail(tables->asks, wanted);
	else
		wanted_free(wanted);
}

static void asks_send(struct recorder_tables *tables, struct client *client)
{
	const gint64 from_us = g_get_monotonic_time();
	struct wanted *wanted;

	while ((wanted = g_async_queue_try_pop(tables->handled)))
		handled_take(tables, wanted);
	for (guint left = tables->asks->length; left > 0; left--) {
		wanted = g_queue_pop_head(tables->asks);
		if (wanted->not_before_us <= from_us && g_get_monotonic_time() - from_us < ASK_BUSY_US)
			guest_ask(tables, wanted, client);
		else
			g_queue_push_tail(tables->asks, wanted);
	}
}

/* What the guest has not all in memory, once after each time that it was asked for it. */
bool recorder_tables_read_next(struct recorder_tables *tables, struct vprof_agent_read *read)
{
	for (GList *next = tables->asks->head; next; next = next->next) {
		struct wanted *wanted = next->data;

		if (wanted->pid == 0 || wanted->read || wanted->reads == wanted->asked)
			continue;
		wanted->reads = wanted->asked;
		wanted->number = read->number;
		read->what = VPROF_AGENT_READ_MAPPING;
		read->pid = wanted->pid;
		read->address = wanted->address;
		return true;
	}
	return false;
}

/* One that the other thread has at the moment is asked for again in any case. */
void recorder_tables_read_done(struct recorder_tables *tables, uint32_t number)
{
	for (GList *next = tables->asks->head; next; next = next->next) {
		struct wanted *wanted = next->data;

		if (wanted->reads == 0 || wanted->number != number)
			continue;
		wanted->read = true;
		wanted->not_before_us = 0;
	}
}

static void made_take(struct recorder_tables *tables, struct made *made)
{
	if (made->why)
		warn("%s", made->why);
	if (!made->copy)
		return;
	const struct user_copy *before = g_hash_table_lookup(tables->copies, made->build_id);

	if (before)
		atomic_fetch_sub_explicit(&tables->copies_bytes, user_copy_bytes(before), memory_order_relaxed);
	g_hash_table_replace(tables->copies, g_strdup(made->build_id), g_steal_pointer(&made->copy));
}

static void table_given(struct recorder_tables *tables, const struct made *made)
{
	const struct given given = {made->source, made->statistics};

	g_hash_table_insert(tables->tables, g_strdup(made->build_id), g_memdup2(&given, sizeof(given)));
}

void recorder_tables_send(struct recorder_tables *tables, struct client *client)
{
	struct made *made;

	asks_send(tables, client);
	while (!tables->refused && (made = g_async_queue_try_pop(tables->made))) {
		g_autoptr(GError) error = NULL;

		made_take(tables, made);
		/* An engine that is gone is reported elsewhere. */
		tables->refused = made->table && !table_send(made, client, &error);
		if (made->table && !tables->refused)
			table_given(tables, made);
		else if (tables->refused && !g_error_matches(error, CLIENT_ERROR, CLIENT_ERROR_CLOSED))
			warn("user space is unwound by frame pointers where they are: the engine takes no unwind tables: %s",
			     error->message);
		made_free(made);
	}
}

bool recorder_tables_busy(const struct recorder_tables *tables)
{
	bool busy = tables->n_wanted != 0;

	for (const GList *next = tables->asks->head; next && !busy; next = next->next)
		busy = ((const struct wanted *)next->data)->asked == 0;
	return busy && !tables->refused;
}

void recorder_tables_settle(struct recorder_tables *tables, struct client *client)
{
	const gint64 until_us = g_get_monotonic_time() + SETTLE_US;
	struct wanted *wanted;
	struct made *made;

	while (g_get_monotonic_time() < until_us) {
		/* What was there in part has names already. */
		if ((wanted = g_queue_pop_head(tables->asks)) && wanted->asked == 0)
			guest_ask(tables, wanted, client);
		else if (wanted)
			wanted_free(wanted);
		else if (tables->n_wanted == 0)
			break;
		else if ((wanted = g_async_queue_timeout_pop(tables->handled, SETTLE_US / 100)))
			handled_take(tables, wanted);
	}
	while ((made = g_async_queue_try_pop(tables->made))) {
		made_take(tables, made);
		made_free(made);
	}
}

void recorder_tables_give(struct recorder_tables *tables, struct user_symbols *symbols)
{
	GHashTableIter iter;
	gpointer build_id, copy;

	g_hash_table_iter_init(&iter, tables->copies);
	while (g_hash_table_iter_next(&iter, &build_id, &copy)) {
		uint8_t bytes[RECORD_BUILD_ID_BYTES_MAX];

		user_symbols_give(symbols, bytes, hex_decode(build_id, bytes, sizeof(bytes)), copy);
		g_hash_table_iter_steal(&iter);
		g_free(build_id);
	}
}

static gint compare_names(gconstpointer a, gconstpointer b)
{
	return strcmp(a, b);
}

/* What is not in the tables, though the files have it. */
static json_t *left_out_json(const struct recorder_tables *tables)
{
	struct cfi_statistics sum = {0};
	GHashTableIter iter;
	gpointer value;

	g_hash_table_iter_init(&iter, tables->tables);
	while (g_hash_table_iter_next(&iter, NULL, &value)) {
		const struct cfi_statistics *statistics = &((const struct given *)value)->statistics;

		sum.rows += statistics->rows;
		sum.unknown += statistics->unknown;
		sum.corrupt += statistics->corrupt;
		sum.overlapping += statistics->overlapping;
		sum.outside += statistics->outside;
		sum.missing += statistics->missing;
	}
	return json_pack("{s:I, s:I, s:I, s:I, s:I, s:I}", "rows", (json_int_t)sum.rows, "rows-of-no-form",
	                 (json_int_t)sum.unknown, "corrupt", (json_int_t)sum.corrupt, "overlapping",
	                 (json_int_t)sum.overlapping, "outside", (json_int_t)sum.outside, "missing",
	                 (json_int_t)sum.missing);
}

json_t *recorder_tables_json(const struct recorder_tables *tables)
{
	json_t *sources = json_object(), *without = json_array();
	g_autoptr(GList) names = g_list_sort(g_hash_table_get_keys(tables->files), compare_names);

	for (const GList *name = names; name; name = name->next) {
		const char *build_id = g_hash_table_lookup(tables->files, name->data);
		const struct given *given = g_hash_table_lookup(tables->tables, build_id);
		const char *source = given ? given->source : NULL;
		json_int_t n = source ? json_integer_value(json_object_get(sources, source)) : 0;

		if (source)
			json_object_set_new(sources, source, json_integer(n + 1));
		else
			json_array_append_new(without, text_json(name->data));
	}
	return json_pack("{s:o, s:o, s:o}", "sources", sources, "without", without, "left-out", left_out_json(tables));
}
