// SPDX-License-Identifier: BSD-2-Clause
#include "push/push_spool.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <jansson.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ui/output_file.h"
#include "ui/text.h"

#define SUFFIX ".push"
#define LOCK "lock"
#define FORMAT "vprof-push"
#define FORMAT_VERSION 1
#define HEADER_BYTES_MAX 65536u
#define LOCK_LOOK_US 20000

G_DEFINE_QUARK(push - spool - error - quark, push_spool_error)

struct push_spool {
	char *folder;
	int lock;             /* the file's descriptor, or -1 */
	GHashTable *unusable; /* names of files that push_spool_complain has had */
};

void push_profile_clear(struct push_profile *profile)
{
	g_clear_pointer(&profile->name, g_free);
	g_clear_pointer(&profile->bytes, g_bytes_unref);
}

struct push_spool *push_spool_open(const char *folder, GError **error)
{
	struct push_spool *spool = g_new0(struct push_spool, 1);

	spool->lock = -1;
	spool->unusable = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	spool->folder = folder ? g_strdup(folder) : g_build_filename(g_get_user_state_dir(), "vprof", "push", NULL);
	if (g_mkdir_with_parents(spool->folder, 0700) == 0)
		return spool;
	g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot make the folder %s: %s",
	            spool->folder, g_strerror(errno));
	push_spool_free(spool);
	return NULL;
}

void push_spool_free(struct push_spool *spool)
{
	if (!spool)
		return;
	if (spool->lock >= 0)
		close(spool->lock);
	g_hash_table_unref(spool->unusable);
	g_free(spool->folder);
	g_free(spool);
}

const char *push_spool_folder(const struct push_spool *spool)
{
	return spool->folder;
}

static char *path_of(const struct push_spool *spool, const char *name)
{
	return g_build_filename(spool->folder, name, NULL);
}

static const char *const format_names[] = {[PUSH_FORMAT_PPROF] = "pprof", [PUSH_FORMAT_OTLP] = "otlp"};

static bool file_write(FILE *to, const void *data, GError **error)
{
	const struct push_profile *profile = data;
	gsize n;

	const void *bytes = g_bytes_get_data(profile->bytes, &n);
	json_t *header = json_pack("{s:s, s:i, s:s, s:s, s:I, s:I}", "format", FORMAT, "version", FORMAT_VERSION,
	                           "profile", format_names[profile->format], "name", profile->name, "from",
	                           (json_int_t)profile->from_s, "until", (json_int_t)profile->until_s);

	(void)error;
	json_dumpf(header, to, JSON_COMPACT);
	json_decref(header);
	fputc('\n', to);
	fwrite(bytes, 1, n, to);
	return true;
}

bool push_spool_add(struct push_spool *spool, const struct push_profile *profile, GError **error)
{
	/* Names are in order of time; the pid distinguishes files of the same moment. */
	g_autofree char *name =
		g_strdup_printf("%016" G_GINT64_MODIFIER "x-%d" SUFFIX, g_get_real_time(), (int)getpid());
	g_autofree char *path = path_of(spool, name);

	return output_file_write(path, 0600, file_write, profile, error);
}

bool push_spool_lock(struct push_spool *spool, int64_t deadline_us, GError **error)
{
	g_autofree char *path = path_of(spool, LOCK);

	spool->lock = g_open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (spool->lock < 0) {
		g_set_error(error, G_FILE_ERROR, (gint)g_file_error_from_errno(errno), "cannot open %s: %s", path,
		            g_strerror(errno));
		return false;
	}
	while (flock(spool->lock, LOCK_EX | LOCK_NB) != 0) {
		if (g_get_monotonic_time() > deadline_us) {
			g_set_error(error, PUSH_SPOOL_ERROR, PUSH_SPOOL_ERROR_BUSY, "another push is sending from %s",
			            spool->folder);
			close(spool->lock);
			spool->lock = -1;
			return false;
		}
		g_usleep(LOCK_LOOK_US);
	}
	return true;
}

static int names_compare(gconstpointer left, gconstpointer right)
{
	return strcmp(*(const char *const *)left, *(const char *const *)right);
}

GPtrArray *push_spool_list(const struct push_spool *spool)
{
	GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
	g_autoptr(GDir) folder = g_dir_open(spool->folder, 0, NULL);
	const char *name;

	while (folder && (name = g_dir_read_name(folder)))
		if (g_str_has_suffix(name, SUFFIX))
			g_ptr_array_add(names, g_strdup(name));
	g_ptr_array_sort(names, names_compare);
	return names;
}

bool push_spool_complain(struct push_spool *spool, const char *name)
{
	return g_hash_table_add(spool->unusable, g_strdup(name));
}

static uint64_t bytes_of(const struct push_spool *spool, const char *name)
{
	g_autofree char *path = path_of(spool, name);
	struct stat status;

	return stat(path, &status) == 0 && status.st_size > 0 ? (uint64_t)status.st_size : 0;
}

unsigned push_spool_trim(struct push_spool *spool, uint64_t max_bytes, struct push_spool_size *left)
{
	g_autoptr(GPtrArray) names = push_spool_list(spool);
	struct push_spool_size kept = {0};

	/* Keeps the newest files that fit. */
	while (kept.profiles < names->len) {
		const uint64_t bytes = bytes_of(spool, g_ptr_array_index(names, names->len - 1 - kept.profiles));

		if (kept.bytes + bytes > max_bytes)
			break;
		kept.bytes += bytes;
		kept.profiles++;
	}
	const unsigned removed = names->len - kept.profiles;

	for (guint i = 0; i < removed; i++)
		push_spool_remove(spool, g_ptr_array_index(names, i));
	if (left)
		*left = kept;
	return removed;
}

bool push_spool_changed(const struct push_spool *spool, int64_t since_us)
{
	struct stat status;
	const int64_t clock_us = G_USEC_PER_SEC / 10; /* of file systems, which may be 10 ms behind */

	return stat(spool->folder, &status) != 0 ||
	       (int64_t)status.st_mtim.tv_sec * G_USEC_PER_SEC + status.st_mtim.tv_nsec / 1000 >= since_us - clock_us;
}

/* What earlier versions left there is pprof. */
static bool format_parse(const char *name, enum push_format *format)
{
	*format = PUSH_FORMAT_PPROF;
	for (size_t i = 0; name && i < G_N_ELEMENTS(format_names); i++)
		if (strcmp(name, format_names[i]) == 0) {
			*format = (enum push_format)i;
			return true;
		}
	return !name;
}

static bool time_take(const json_t *header, const char *name, uint64_t *seconds)
{
	const json_t *value = json_object_get(header, name);
	const bool good = json_is_integer(value) && json_integer_value(value) >= 0;

	if (good)
		*seconds = (uint64_t)json_integer_value(value);
	return good;
}

static bool header_take(const char *line, size_t n, struct push_profile *profile)
{
	json_t *header = json_loadb(line, n, 0, NULL);
	const char *format = member_text(header, "format"), *name = member_text(header, "name");
	bool good = format && strcmp(format, FORMAT) == 0 && name &&
	            member_number(header, "version", 0) == FORMAT_VERSION &&
	            format_parse(member_text(header, "profile"), &profile->format) &&
	            time_take(header, "from", &profile->from_s) && time_take(header, "until", &profile->until_s);

	if (good)
		profile->name = g_strdup(name);
	json_decref(header);
	return good;
}

bool push_profile_parse(const char *text, size_t n, struct push_profile *profile)
{
	const char *end = memchr(text, '\n', MIN(n, HEADER_BYTES_MAX));
	struct push_profile read = {0};

	if (!end || !header_take(text, (size_t)(end - text), &read))
		return false;
	end++;
	read.bytes = g_bytes_new(end, n - (size_t)(end - text));
	*profile = read;
	return true;
}

bool push_spool_read(const struct push_spool *spool, const char *name, struct push_profile *profile, GError **error)
{
	g_autofree char *path = path_of(spool, name), *text = NULL;
	gsize n;

	if (!g_file_test(path, G_FILE_TEST_IS_REGULAR) ||
	    bytes_of(spool, name) > PUSH_PROFILE_BYTES_MAX + HEADER_BYTES_MAX) {
		g_set_error(error, PUSH_SPOOL_ERROR, PUSH_SPOOL_ERROR_FORMAT, "%s is not a regular file, or too large",
		            path);
		return false;
	}
	if (!g_file_get_contents(path, &text, &n, error))
		return false;
	if (push_profile_parse(text, n, profile))
		return true;
	g_set_error(error, PUSH_SPOOL_ERROR, PUSH_SPOOL_ERROR_FORMAT, "%s is not a profile of vprof push", path);
	return false;
}

void push_spool_remove(struct push_spool *spool, const char *name)
{
	g_autofree char *path = path_of(spool, name);

	g_unlink(path);
}
