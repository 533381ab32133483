// SPDX-License-Identifier: BSD-2-Clause
#include "engine/engine_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib/process/program_find.h"
#include "ui/message.h"
#include "ui/text.h"

#define CHILD_FD 3
#define CHILD_FD_TEXT "3"
_Static_assert(ENGINE_FIRST_FD == CHILD_FD + 1, "those of the caller come behind it");
#define FREE_FD (ENGINE_FIRST_FD + (int)ENGINE_FDS_MAX) /* the first number that is free for them */

/*
 * Before it answers, the engine unpacks a kernel, allocates guest memory and sets up KVM; on a busy host this takes
 * seconds.
 */
#define START_TIMEOUT_MS 60000u
#define EXIT_TIMEOUT_MS 10000
#define DEATH_TIMEOUT_MS 1000  /* the sockets of a process are closed shortly before it has exited */
#define ABANDON_TIMEOUT_MS 500 /* long enough for an orderly end, which removes its socket */

G_DEFINE_QUARK(vprof_engine_process_error, engine_process_error)

struct engine_process {
	pid_t pid;
	int pidfd;
	struct client *client;
	bool asked_to_quit;
	bool lingers; /* for other clients; it is not waited for */
	bool exited;
	int wait_status; /* of waitpid(2), once exited */
};

void engine_argument_add(GPtrArray *arguments, const char *option, const char *value)
{
	if (!value)
		return;
	g_ptr_array_add(arguments, g_strdup(option));
	g_ptr_array_add(arguments, g_strdup(value));
}

void engine_number_add(GPtrArray *arguments, const char *option, uint64_t number)
{
	g_autofree char *value = number != 0 ? g_strdup_printf("%" G_GUINT64_FORMAT, number) : NULL;

	engine_argument_add(arguments, option, value);
}

static char **engine_argv(const char *path, const char *const *arguments)
{
	GPtrArray *argv = g_ptr_array_new();

	g_ptr_array_add(argv, g_strdup(path));
	g_ptr_array_add(argv, g_strdup("--client-fd"));
	g_ptr_array_add(argv, g_strdup(CHILD_FD_TEXT));
	g_ptr_array_add(argv, g_strdup("--paused"));
	for (; *arguments; arguments++)
		g_ptr_array_add(argv, g_strdup(*arguments));
	g_ptr_array_add(argv, NULL);
	return (char **)g_ptr_array_free(argv, FALSE);
}

/* Maps descriptor fds[i] to CHILD_FD + i, by way of a copy with a number other than the targets. */
static void actions_pass(posix_spawn_file_actions_t *actions, const int *fds, int *copies, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		copies[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, FREE_FD);
		posix_spawn_file_actions_adddup2(actions, copies[i], CHILD_FD + (int)i);
	}
}

/* The engine must not inherit our blocked and ignored signals. */
static int engine_spawn(const char *path, char **argv, const int *fds, size_t n_fds, pid_t *pid)
{
	int copies[1 + ENGINE_FDS_MAX];
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, defaults;
	int result;

	sigemptyset(&none);
	sigemptyset(&defaults);
	sigaddset(&defaults, SIGPIPE);
	posix_spawn_file_actions_init(&actions);
	actions_pass(&actions, fds, copies, n_fds);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	posix_spawnattr_setsigdefault(&attributes, &defaults);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	result = posix_spawn(pid, path, &actions, &attributes, argv, environ);
	posix_spawnattr_destroy(&attributes);
	posix_spawn_file_actions_destroy(&actions);
	for (size_t i = 0; i < n_fds; i++)
		close(copies[i]);
	return result;
}

/* Waits until the engine has exited; false after timeout_ms. */
static bool engine_wait(struct engine_process *engine, int timeout_ms)
{
	struct pollfd ready = {.fd = engine->pidfd, .events = POLLIN};
	int result;

	if (engine->exited)
		return true;
	do
		result = poll(&ready, 1, timeout_ms);
	while (result < 0 && errno == EINTR);
	if (result > 0 && waitpid(engine->pid, &engine->wait_status, 0) == engine->pid)
		engine->exited = true;
	return engine->exited;
}

/* Starts the child and sets *ours, our end of the connection. */
static bool engine_launch(struct engine_process *engine, const struct engine_process_config *config, int *ours,
                          GError **error)
{
	g_autofree char *path = program_find(config->program, error);
	g_auto(GStrv) argv = NULL;
	int sockets[2], fds[1 + ENGINE_FDS_MAX], result;

	if (!path)
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sockets) != 0) {
		g_set_error(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_SPAWN, "cannot make a socket for %s: %s",
		            path, g_strerror(errno));
		return false;
	}
	argv = engine_argv(path, config->arguments);
	fds[0] = sockets[1];
	memcpy(&fds[1], config->fds, config->n_fds * sizeof(*fds));
	result = engine_spawn(path, argv, fds, 1 + config->n_fds, &engine->pid);
	close(sockets[1]);
	if (result != 0) {
		close(sockets[0]);
		g_set_error(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_SPAWN, "cannot start %s: %s", path,
		            g_strerror(result));
		return false;
	}
	*ours = sockets[0];
	return true;
}

/* Replaces "the connection was closed" by what is known of the engine's exit. */
static void engine_explain(struct engine_process *engine, const char *program, int *status, GError **error)
{
	if (!g_error_matches(*error, CLIENT_ERROR, CLIENT_ERROR_CLOSED) || !engine_wait(engine, EXIT_TIMEOUT_MS))
		return;
	g_clear_error(error);
	if (WIFEXITED(engine->wait_status) && WEXITSTATUS(engine->wait_status) != 0) {
		*status = WEXITSTATUS(engine->wait_status);
		g_set_error(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_REFUSED, "%s could not start", program);
	} else {
		g_autofree char *death = engine_process_death(engine);

		g_set_error(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_SPAWN, "%s %s before its guest was ready",
		            program, death);
	}
}

struct engine_process *engine_process_start(const struct engine_process_config *config, int *status, GError **error)
{
	struct engine_process *engine = g_new0(struct engine_process, 1);
	g_autoptr(GError) why = NULL;
	int ours;

	engine->pidfd = -1;
	if (!engine_launch(engine, config, &ours, error)) {
		g_free(engine);
		return NULL;
	}
	/* Not glibc's pidfd_open: Debian 12's has it, older ones do not. */
	engine->pidfd = (int)syscall(SYS_pidfd_open, engine->pid, 0);
	engine->client = client_new_fd(ours, engine->pid, START_TIMEOUT_MS, &why);
	if (engine->client)
		return engine;
	engine_explain(engine, config->program, status, &why);
	g_propagate_error(error, g_steal_pointer(&why));
	engine_process_free(engine);
	return NULL;
}

int engine_process_failure(int status, const GError *error)
{
	return g_error_matches(error, ENGINE_PROCESS_ERROR, ENGINE_PROCESS_ERROR_REFUSED) ? status : failure(error);
}

static void engine_ask_to_quit(struct engine_process *engine, int timeout_ms)
{
	json_t *answer = NULL;

	if (engine->client && !engine->asked_to_quit)
		answer = client_execute(engine->client, "quit", NULL, NULL, NULL, (unsigned)timeout_ms, NULL);
	engine->asked_to_quit = true;
	engine->lingers |= json_is_true(json_object_get(answer, "lingers"));
	json_decref(answer);
}

void engine_process_quit(struct engine_process *engine)
{
	engine_ask_to_quit(engine, EXIT_TIMEOUT_MS);
}

static void engine_end(struct engine_process *engine, int timeout_ms)
{
	engine_ask_to_quit(engine, timeout_ms);
	client_free(engine->client);
	if (!engine->lingers && !engine_wait(engine, timeout_ms)) {
		kill(engine->pid, SIGKILL);
		engine_wait(engine, -1);
	}
	if (engine->pidfd >= 0)
		close(engine->pidfd);
	g_free(engine);
}

void engine_process_free(struct engine_process *engine)
{
	if (engine)
		engine_end(engine, EXIT_TIMEOUT_MS);
}

void engine_process_abandon(struct engine_process *engine)
{
	engine_end(engine, ABANDON_TIMEOUT_MS);
}

struct client *engine_process_client(const struct engine_process *engine)
{
	return engine->client;
}

int engine_process_pidfd(const struct engine_process *engine)
{
	return engine->pidfd;
}

char *engine_process_death(struct engine_process *engine)
{
	if (!engine_wait(engine, DEATH_TIMEOUT_MS))
		return NULL;
	if (WIFSIGNALED(engine->wait_status) && WTERMSIG(engine->wait_status) == SIGSYS)
		return g_strdup(
			"was ended by its sandbox, for a system call that is not allowed (--sandbox off allows all)");
	if (WIFSIGNALED(engine->wait_status))
		return g_strdup_printf("was killed by signal %d (%s)", WTERMSIG(engine->wait_status),
		                       strsignal(WTERMSIG(engine->wait_status)));
	return g_strdup_printf("exited with status %d", WEXITSTATUS(engine->wait_status));
}

/* ---- calls ---- */

json_t *engine_ask(struct client *client, const char *method, json_t *arguments, GError **error)
{
	return json_printable(client_execute(client, method, arguments, NULL, NULL, ENGINE_ANSWER_TIMEOUT_MS, error));
}

bool engine_tell(struct client *client, const char *method, json_t *arguments, GError **error)
{
	json_t *answer = engine_ask(client, method, arguments, error);

	json_decref(answer);
	return answer != NULL;
}
