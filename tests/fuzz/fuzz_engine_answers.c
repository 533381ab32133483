// SPDX-License-Identifier: BSD-2-Clause
/*
 * What the client makes of a hostile engine's answers about tasks, modules' symbols and files. Input: lines, each the
 * "return" of the next answer; memory with a page comes along with those that begin with "!".
 */
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vprof/control.h>

#include "engine/engine_modules.h"
#include "engine/guest_kernel.h"
#include "fuzz_target.h"
#include "lib/client/socket.h"
#include "lib/parser/parser.h"
#include "record/guest_file.h"
#include "tasks/task_table.h"
#include "tasks/task_user.h"

#define TIMEOUT_MS 1000u /* not reached: the engine has closed its side */
#define FILE_BYTES 5000u

/* ---- the rest of the command line: a kernel that is not known, and no files of programs ---- */

struct guest_kernel guest_kernel_load(struct client *client, const json_t *guest, const char *path, GError **error)
{
	(void)client, (void)guest, (void)path;
	g_set_error_literal(error, CLIENT_ERROR, CLIENT_ERROR_REMOTE, "not known");
	return (struct guest_kernel){0};
}

void guest_kernel_clear(struct guest_kernel *kernel)
{
	(void)kernel;
}

struct task_user *task_user_new(const struct task_table *table, const struct guest_engine *engine,
                                const struct user_symbol_sources *sources)
{
	(void)table, (void)engine, (void)sources;
	return NULL;
}

void task_user_free(struct task_user *user)
{
	(void)user;
}

const char *task_user_symbol(struct task_user *user, const struct task_mapping *mapping, uint64_t ip)
{
	(void)user, (void)mapping, (void)ip;
	return NULL;
}

/* ---- the engine ---- */

static int memory = -1;

static void say(int to, const char *line, size_t n)
{
	const bool with = n > 0 && line[0] == '!';
	g_autofree char *answer = g_strdup_printf("{\"return\":%.*s}\n", (int)(n - with), line + with);

	(void)client_socket_send(to, answer, strlen(answer), &memory, with ? 1 : 0);
}

static void say_all(int to, const char *lines, size_t n)
{
	static const char greeting[] = "{\"vprof\":{\"version\":\"0\",\"protocol\":1}}\n{\"return\":{}}\n";

	(void)client_socket_send(to, greeting, strlen(greeting), NULL, 0);
	while (n > 0) {
		const char *end = memchr(lines, '\n', n);
		const size_t line = end ? (size_t)(end - lines) : n, all = MIN(line + 1, n);

		say(to, lines, line);
		lines += all;
		n -= all;
	}
	shutdown(to, SHUT_WR);
}

/* ---- the client ---- */

static void take_symbol(uint64_t address, const struct recording_symbol *symbol, void *data)
{
	(void)address;
	*(size_t *)data += strlen(symbol->name) + strlen(symbol->module);
}

static void ask(struct client *client)
{
	const struct guest_engine engine = {.client = client};
	const struct task_wish wish = {.depth = 8};
	struct task_table *table = task_table_new(&engine, &wish, NULL);
	const uint64_t places[] = {UINT64_C(0xffffffffc0000000), 7};
	g_autoptr(GArray) addresses = g_array_new(FALSE, FALSE, sizeof(uint64_t));
	size_t sum = 0;
	int file;

	if (table && task_table_name(table, &engine, NULL, NULL))
		for (guint i = 0; i < table->rows->len; i++)
			json_decref(task_row_json(g_ptr_array_index(table->rows, i)));
	task_table_free(table);
	g_array_append_vals(addresses, places, G_N_ELEMENTS(places));
	module_symbols_ask(client, addresses, take_symbol, &sum, NULL);
	file = guest_jit_file_read(client, "perf-map", 1, NULL);
	if (file >= 0)
		close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct client *client;
	int pair[2];

	if (memory < 0) {
		memory = sealed_new("fuzz");
		g_assert(ftruncate(memory, FILE_BYTES) == 0 && sealed_finish(memory));
	}
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) != 0)
		return 0;
	say_all(pair[0], (const char *)data, size);
	client = client_new_fd(pair[1], 0, TIMEOUT_MS, NULL);
	if (client)
		ask(client);
	client_free(client);
	close(pair[0]);
	return 0;
}
