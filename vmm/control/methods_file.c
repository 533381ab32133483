// SPDX-License-Identifier: BSD-2-Clause
/* file-read: what the guest has in memory of a program or library that a process has mapped, or of what names the code
 * that it has made. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/method_priv.h"
#include "guest/guest_debug.h"
#include "guest/os.h"
#include "lib/parser/parser.h"
#include "lib/record/hex.h"

/* As the file has it: without patches of probes. */
static bool page_read(const struct file_copy *copy, uint64_t at, uint8_t page[PAGE_WALK_AHEAD_BYTES])
{
	if (!copy->files->read(copy->file, at / PAGE_WALK_AHEAD_BYTES, page))
		return false;
	if (copy->guest->debug)
		copy->guest->debug->unpatch_file(copy->guest, copy->mapping, at, page, PAGE_WALK_AHEAD_BYTES);
	return true;
}

static bool pages_copy(struct file_copy *copy, int to)
{
	uint8_t page[PAGE_WALK_AHEAD_BYTES];

	if (ftruncate(to, (off_t)copy->size) != 0)
		return false;
	for (uint64_t at = copy->from; at < copy->end; at += sizeof(page)) {
		const size_t n = (size_t)MIN(copy->end - at, sizeof(page));

		if (!page_read(copy, at, page))
			continue;
		if (pwrite(to, page, n, (off_t)(at - copy->begin)) != (ssize_t)n)
			return false;
		copy->pages++;
	}
	return sealed_finish(to);
}

bool control_file_copy(struct control_call *call, struct file_copy *copy, GError **error)
{
	const int memory = sealed_new("vprof-guest-file");
	const bool copied = memory >= 0 && pages_copy(copy, memory);

	if (!copied) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_GENERIC, "cannot copy the guest's file: %s",
		            g_strerror(errno));
		if (memory >= 0)
			close(memory);
		return false;
	}
	call->fds[call->n_fds++] = memory;
	call->owns_fds = true;
	return true;
}

/* What names the pages of the file that is asked for; 0: *why. */
static uint64_t mapping_of(struct control_call *call, const struct os_kernel *kernel, struct page_walk *walk,
                           const char **why)
{
	const char *text = json_string_value(json_object_get(call->arguments, "build-id"));
	const json_t *map_pid = json_object_get(call->arguments, "perf-map");
	const json_t *dump_pid = json_object_get(call->arguments, "jit-dump");
	uint8_t build_id[ELF_NOTE_BUILD_ID_BYTES_MAX];
	char name[sizeof("perf-4294967295.map")];
	size_t n = text ? hex_decode(text, build_id, sizeof(build_id)) : 0;

	if (text) {
		*why = "no process was seen to execute it";
		return n != 0 ? file_places_find(table_store_places(session_tables(call->server->session)), build_id, n)
		              : 0;
	}
	g_snprintf(name, sizeof(name), map_pid ? "perf-%u.map" : "jit-%u.dump",
	           (unsigned)json_integer_value(map_pid ? map_pid : dump_pid));
	return kernel->files->find(kernel, walk, name, why);
}

static bool file_open(struct control_call *call, struct file_copy *copy, struct page_walk *walk, GError **error)
{
	struct session *session = call->server->session;
	const char *build_id = json_string_value(json_object_get(call->arguments, "build-id"));
	const bool map = json_object_get(call->arguments, "perf-map"),
		   dump = json_object_get(call->arguments, "jit-dump");
	const struct os_kernel *kernel = session_kernel(session);
	const char *why = NULL;

	if ((build_id != NULL) + map + dump != 1) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_INVALID_ARGUMENT,
		            "cannot read a file: one of build-id, perf-map and jit-dump names it");
		return false;
	}
	if (!kernel->files)
		why = "its kernel does not say where its page cache is";
	else if (!session_kernel_walk(session, walk))
		why = "the guest's page tables are not known";
	else if ((copy->mapping = mapping_of(call, kernel, walk, &why)) != 0)
		why = (copy->file = kernel->files->open(kernel, walk, copy->mapping, &copy->bytes))
		              ? NULL
		              : "the guest does not have it in memory any more";
	copy->files = kernel->files;
	if (why)
		g_set_error(error, CONTROL_ERROR, kernel->files ? CONTROL_ERROR_STATE : CONTROL_ERROR_UNSUPPORTED,
		            "cannot read the guest's %s%s: %s",
		            build_id ? "file with build-id "
		            : map    ? "perf map"
		                     : "jitdump",
		            build_id ? build_id : "", why);
	return !why;
}

static json_t *method_file_read(struct control_call *call, GError **error)
{
	const uint64_t from = (uint64_t)json_integer_value(json_object_get(call->arguments, "offset"));
	struct file_copy copy = {.guest = call->server->guest};
	struct page_walk walk;

	if (!file_open(call, &copy, &walk, error))
		return NULL;
	copy.begin = copy.from = MIN(from, copy.bytes);
	copy.size = MIN(copy.bytes - copy.from, VPROF_FILE_READ_BYTES_MAX);
	copy.end = copy.from + copy.size;
	const bool copied = control_file_copy(call, &copy, error);

	copy.files->close(copy.file);
	return copied ? json_pack("{s:I, s:I}", "bytes", (json_int_t)copy.bytes, "pages", (json_int_t)copy.pages)
	              : NULL;
}

static const struct method_argument read_arguments[] = {
	{"build-id", "its build-id", ARGUMENT_STRING, .optional = true, .min = 2,
         .max = 2 * ELF_NOTE_BUILD_ID_BYTES_MAX},
	{"perf-map", "instead: the perf map of this process", ARGUMENT_INTEGER, .optional = true, .min = 1,
         .max = UINT32_MAX},
	{"jit-dump", "instead: the jitdump of this process, of the name jit-PID.dump", ARGUMENT_INTEGER,
         .optional = true, .min = 1, .max = UINT32_MAX},
	{"offset", "where to begin, a multiple of 4096", ARGUMENT_INTEGER, .optional = true, .min = 0,
         .max = INT64_MAX - 4095, .preset = "0"},
	{0},
};

static const struct method_member read_members[] = {
	{"bytes", "size of the file", MEMBER_INTEGER},
	{"pages", "pages of the part that are in the guest's memory", MEMBER_INTEGER},
	{0},
};

const struct control_method file_methods[] = {
	{
		.name = "file-read",
		.summary = "returns what the guest has in memory of a program or library that runs, at most 2 MiB",
		.returns = read_members,
		.descriptors = "memory with the bytes, and holes where pages are missing",
		.role = ROLE_INSTRUMENT,
		.arguments = read_arguments,
		.run = method_file_read,
	},
	{0},
};
