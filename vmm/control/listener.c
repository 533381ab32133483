// SPDX-License-Identifier: BSD-2-Clause
/* The listening socket: its folder, its file, and the clients that connect. */
#include <errno.h>
#include <fcntl.h>
#include <glib-unix.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "control/control_error.h"
#include "control/keeper.h"
#include "control/server_priv.h"
#include "lib/client/client.h"
#include "lib/client/socket.h"

#define BACKLOG 16
/* How long to wait while the host has no descriptor for another client. */
#define RETRY_MS 1000u
#define ENDED_TIMEOUT_MS 2000u /* an engine that takes longer to say so keeps its name */
#define LOCK_TRIES 100u
#define LOCK_WAIT_US 10000u

struct listener {
	void (*connected)(void *data, int fd);
	void *data;
	int fd;
	char *path;
	dev_t device; /* of the socket's file, to recognise it */
	ino_t inode;  /* 0 before there is one */
	bool kept;    /* the keeper removes the file */
	guint source; /* accepts, or waits for RETRY_MS */
};

static bool G_GNUC_PRINTF(3, 4) fail(GError **error, const char *path, const char *format, ...)
{
	va_list args;

	va_start(args, format);
	g_autofree char *why = g_strdup_vprintf(format, args);
	va_end(args);
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN, "cannot listen on %s: %s", path, why);
	return false;
}

/* In a folder of another user, that user could replace our socket by its own. */
static bool folder_prepare(const char *path, bool others, GError **error)
{
	g_autofree char *folder = g_path_get_dirname(path);

	if (mkdir(folder, others ? 0711 : 0700) < 0 && errno != EEXIST)
		return fail(error, path, "cannot make folder %s: %s; choose another path with --control", folder,
		            g_strerror(errno));

	struct stat status;
	const int fd = open(folder, O_PATH | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &status) < 0) {
		fail(error, path, "cannot access folder %s: %s", folder, g_strerror(errno));
		if (fd >= 0)
			close(fd);
		return false;
	}
	const uid_t owner = keeper_identify(fd).uid;

	close(fd);
	if (!S_ISDIR(status.st_mode))
		return fail(error, path, "%s is not a folder", folder);
	if (geteuid() != 0 && owner != geteuid() && owner != 0)
		return fail(error, path, "folder %s belongs to uid %u; choose another path with --control", folder,
		            owner);
	if ((status.st_mode & (S_IWOTH | S_ISVTX)) == S_IWOTH)
		return fail(error, path, "every user may write to folder %s; change that with chmod o-w", folder);
	return true;
}

/*
 * Two engines that find the socket of a dead one could each remove the socket that the other has just made, so they
 * take turns. In a folder that all users can open, another process may hold the lock for ever; the engine then goes on
 * without it. Returns a descriptor, or -1.
 */
static int folder_lock(const char *path)
{
	g_autofree char *folder = g_path_get_dirname(path);
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	for (unsigned i = 0; fd >= 0 && i < LOCK_TRIES && flock(fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK; i++)
		g_usleep(LOCK_WAIT_US);
	return fd;
}

/* An engine whose guest has ended gives its name up. *socket: its file, to know it again. */
static bool is_of_ended_guest(const char *path, struct stat *socket)
{
	if (lstat(path, socket) < 0 || !S_ISSOCK(socket->st_mode) || !client_socket_live(path))
		return false;
	struct client *client = client_connect(path, ENDED_TIMEOUT_MS, NULL);
	json_auto_t *status =
		client ? client_execute(client, "query-status", NULL, NULL, NULL, ENDED_TIMEOUT_MS, NULL) : NULL;

	client_free(client);
	return g_strcmp0(json_string_value(json_object_get(status, "state")), "ended") == 0;
}

/* One engine for a guest of one name: later ones are told which process was first. */
static bool refuse_taken(const char *path, GError **error)
{
	int holder = client_socket_holder(path);
	g_autofree char *comm_path = g_strdup_printf("/proc/%d/comm", holder);
	g_autofree char *comm = NULL;

	g_file_get_contents(comm_path, &comm, NULL, NULL);
	return fail(
		error, path,
		"it is in use by process %d (%s), which has a guest of this name; look on with `vprof top`, or end that process",
		holder, comm ? g_strchomp(comm) : "?");
}

/* The time of change tells a file from an earlier one, whose inode it may have got. */
static bool is_same_file(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_ctim.tv_sec == b->st_ctim.tv_sec &&
	       a->st_ctim.tv_nsec == b->st_ctim.tv_nsec;
}

/* Removes the socket of an engine that died, or whose guest has ended (`ended`: its file; NULL: none). */
static bool path_clear(const char *path, const struct stat *ended, GError **error)
{
	struct stat status;

	if (lstat(path, &status) < 0)
		return errno == ENOENT || fail(error, path, "%s", g_strerror(errno));
	if (!S_ISSOCK(status.st_mode))
		return fail(error, path, "the file exists and is not a socket; remove it or choose another path");
	if (!(ended && is_same_file(ended, &status)) && client_socket_live(path))
		return refuse_taken(path, error);
	if (unlink(path) < 0 && errno != ENOENT)
		return fail(error, path, "cannot remove the socket of an earlier engine: %s", g_strerror(errno));
	return true;
}

/* bind(2) gives the file the mode of the socket's inode (net/unix/af_unix.c, unix_bind_bsd), so it is never wider. */
static bool socket_bind(struct listener *listener, bool others, GError **error)
{
	struct sockaddr_un address;
	struct stat status;

	if (!client_socket_address(listener->path, &address))
		return fail(error, listener->path,
		            "the path is longer than %zu bytes; choose a shorter one with --control",
		            sizeof(address.sun_path) - 1);
	listener->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (listener->fd < 0 || fchmod(listener->fd, 0600) < 0 ||
	    bind(listener->fd, (const struct sockaddr *)&address, sizeof(address)) < 0)
		return fail(error, listener->path, "%s", g_strerror(errno));
	/* The mode is widened by name, as the umask applies to bind(2). */
	if ((others && chmod(listener->path, 0666) < 0) || lstat(listener->path, &status) < 0)
		return fail(error, listener->path, "%s", g_strerror(errno));
	listener->device = status.st_dev;
	listener->inode = status.st_ino;
	if (listen(listener->fd, BACKLOG) < 0)
		return fail(error, listener->path, "%s", g_strerror(errno));
	return true;
}

static void listen_again(struct listener *listener);

static gboolean retry(gpointer data)
{
	listen_again(data);
	return G_SOURCE_REMOVE;
}

static gboolean accept_client(int listen_fd, GIOCondition condition G_GNUC_UNUSED, gpointer data)
{
	struct listener *listener = data;
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNABORTED))
		return G_SOURCE_CONTINUE;
	if (fd < 0) {
		listener->source = g_timeout_add(RETRY_MS, retry, listener);
		return G_SOURCE_REMOVE;
	}
	listener->connected(listener->data, fd);
	return G_SOURCE_CONTINUE;
}

static void listen_again(struct listener *listener)
{
	listener->source = g_unix_fd_add(listener->fd, G_IO_IN, accept_client, listener);
}

struct listener *listener_new(const char *path, bool others, void (*connected)(void *data, int fd), void *data,
                              GError **error)
{
	struct listener *listener = g_new(struct listener, 1);

	*listener = (struct listener){.connected = connected, .data = data, .fd = -1, .path = g_strdup(path)};

	bool prepared = folder_prepare(path, others, error);
	struct stat socket;
	bool ended = prepared && is_of_ended_guest(path, &socket); /* asked before others have to wait for us */
	int lock = prepared ? folder_lock(path) : -1;
	bool bound =
		prepared && path_clear(path, ended ? &socket : NULL, error) && socket_bind(listener, others, error);

	if (lock >= 0)
		close(lock);
	if (!bound) {
		listener_free(listener);
		return NULL;
	}
	listener->kept = keeper_socket(path, listener->device, listener->inode);
	listen_again(listener);
	return listener;
}

struct listener *listener_new_fd(int fd, void (*connected)(void *data, int fd), void *data, GError **error)
{
	int listens = 0, flags = fcntl(fd, F_GETFL);
	socklen_t bytes = sizeof(listens);

	if (flags < 0 || getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &bytes) < 0 || !listens ||
	    fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0) {
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN,
		            "cannot listen on descriptor %d: it is not a listening socket", fd);
		return NULL;
	}
	struct listener *listener = g_new(struct listener, 1);
	*listener = (struct listener){.connected = connected, .data = data, .fd = fd};
	listen_again(listener);
	return listener;
}

/* False for the socket of an engine that took over the path. */
static bool path_is_ours(const struct listener *listener)
{
	struct stat status;

	return listener->inode != 0 && lstat(listener->path, &status) == 0 && status.st_dev == listener->device &&
	       status.st_ino == listener->inode;
}

void listener_free(struct listener *listener)
{
	if (!listener)
		return;
	if (listener->kept)
		keeper_end();
	else if (path_is_ours(listener))
		unlink(listener->path);
	g_clear_handle_id(&listener->source, g_source_remove);
	if (listener->fd >= 0)
		close(listener->fd);
	g_free(listener->path);
	g_free(listener);
}
