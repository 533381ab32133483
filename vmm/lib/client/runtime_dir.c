// SPDX-License-Identifier: BSD-2-Clause
/* Where engines put their sockets, and which of them still answer. */
#include <errno.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/client/client.h"
#include "lib/client/socket.h"

char *client_runtime_dir(void)
{
	if (geteuid() == 0)
		return g_strdup("/run/vprof");

	const char *base = g_getenv("XDG_RUNTIME_DIR");
	if (base && g_path_is_absolute(base))
		return g_build_filename(base, "vprof", NULL);
	return g_strdup_printf("/tmp/vprof-%u", geteuid());
}

static void client_socket_clear(void *element)
{
	struct client_socket *entry = element;

	g_free(entry->path);
}

bool client_socket_live(const char *path)
{
	int fd = client_socket_connect(path);

	/* Other errors can come from a live socket: full backlog, other user or type, no descriptor left here. */
	if (fd < 0)
		return errno != ECONNREFUSED && errno != ENOENT;
	close(fd);
	return true;
}

int client_socket_holder(const char *path)
{
	int fd = client_socket_connect(path);

	if (fd < 0)
		return 0;
	pid_t pid = client_socket_peer(fd).pid;
	close(fd);
	return pid;
}

static int by_path(const void *a, const void *b)
{
	return g_strcmp0(((const struct client_socket *)a)->path, ((const struct client_socket *)b)->path);
}

/* Why sockets in it may be another user's, or NULL. */
static char *folder_refused(const char *folder)
{
	struct stat status;

	if (stat(folder, &status) != 0) /* opening it says why */
		return NULL;
	if (status.st_uid != 0 && status.st_uid != geteuid())
		return g_strdup_printf("folder %s belongs to uid %u", folder, status.st_uid);
	if (status.st_mode & S_IWOTH)
		return g_strdup_printf("every user may write to folder %s; change that with chmod o-w", folder);
	return NULL;
}

GArray *client_list_sockets(GError **error)
{
	g_autofree char *folder = client_runtime_dir();
	g_autoptr(GArray) sockets = g_array_new(FALSE, FALSE, sizeof(struct client_socket));

	g_array_set_clear_func(sockets, client_socket_clear);
	g_autofree char *why = folder_refused(folder);

	if (why) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_CONNECT, "cannot list running engines: %s", why);
		return NULL;
	}

	g_autoptr(GError) reason = NULL;
	g_autoptr(GDir) dir = g_dir_open(folder, 0, &reason);
	if (g_error_matches(reason, G_FILE_ERROR, G_FILE_ERROR_NOENT))
		return g_steal_pointer(&sockets);
	if (!dir) {
		g_set_error(error, CLIENT_ERROR, CLIENT_ERROR_CONNECT, "cannot list running engines: %s",
		            reason->message);
		return NULL;
	}

	for (const char *name; (name = g_dir_read_name(dir));) {
		if (!g_str_has_suffix(name, ".sock"))
			continue;
		struct client_socket entry = {.path = g_build_filename(folder, name, NULL)};
		entry.live = client_socket_live(entry.path);
		g_array_append_val(sockets, entry);
	}
	g_array_sort(sockets, by_path);
	return g_steal_pointer(&sockets);
}
