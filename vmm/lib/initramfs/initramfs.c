// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/initramfs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "lib/initramfs/cpio.h"
#include "lib/initramfs/library_search.h"

#define SCRIPT_DEPTH_MAX 4u /* interpreters that are scripts; Linux, fs/exec.c, exec_binprm */

G_DEFINE_QUARK(vprof_initramfs_error, initramfs_error)

/* The entry at one path in the guest. */
struct node {
	char *target;  /* of a symbolic link; NULL */
	GBytes *bytes; /* of a file */
	unsigned permissions;
};

struct initramfs {
	GTree *folders; /* paths; the tree's order puts a folder before what is in it */
	GTree *nodes;   /* path: struct node */
	struct library_search *search;
	GPtrArray *programs; /* paths on the host */
	guint64 bytes;
};

static void node_free(void *data)
{
	struct node *node = data;

	g_free(node->target);
	g_clear_pointer(&node->bytes, g_bytes_unref);
	g_free(node);
}

static gint path_compare(const void *a, const void *b, void *data)
{
	(void)data;
	return strcmp(a, b);
}

struct initramfs *initramfs_new(void)
{
	struct initramfs *initramfs = g_new0(struct initramfs, 1);

	initramfs->folders = g_tree_new_full(path_compare, NULL, g_free, NULL);
	initramfs->nodes = g_tree_new_full(path_compare, NULL, g_free, node_free);
	initramfs->search = library_search_new(g_getenv("LD_LIBRARY_PATH"), LIBRARY_CACHE_PATH);
	initramfs->programs = g_ptr_array_new_with_free_func(g_free);
	return initramfs;
}

void initramfs_free(struct initramfs *initramfs)
{
	if (!initramfs)
		return;
	g_tree_unref(initramfs->folders);
	g_tree_unref(initramfs->nodes);
	library_search_free(initramfs->search);
	g_ptr_array_unref(initramfs->programs);
	g_free(initramfs);
}

void initramfs_add_folder(struct initramfs *initramfs, const char *path)
{
	g_autofree char *above = NULL;

	if (strcmp(path, "/") == 0 || g_tree_lookup_extended(initramfs->folders, path, NULL, NULL))
		return;
	above = g_path_get_dirname(path);
	initramfs_add_folder(initramfs, above);
	g_tree_insert(initramfs->folders, g_strdup(path), NULL);
}

/* Steals what the node holds. */
static void node_add(struct initramfs *initramfs, const char *path, struct node node)
{
	g_autofree char *folder = g_path_get_dirname(path);

	initramfs_add_folder(initramfs, folder);
	g_tree_replace(initramfs->nodes, g_strdup(path), g_memdup2(&node, sizeof(node)));
}

void initramfs_add_link(struct initramfs *initramfs, const char *path, const char *target)
{
	node_add(initramfs, path, (struct node){.target = g_strdup(target)});
}

static bool has_node(const struct initramfs *initramfs, const char *path)
{
	return g_tree_lookup(initramfs->nodes, path) != NULL;
}

static bool path_fail(const char *path, int number, GError **error)
{
	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_FILE, "cannot put %s into the initramfs: %s", path,
	            g_strerror(number));
	return false;
}

static GMappedFile *file_map(struct initramfs *initramfs, const char *path, GError **error)
{
	g_autoptr(GError) why = NULL;
	GMappedFile *bytes = g_mapped_file_new(path, FALSE, &why);

	if (!bytes) {
		g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_FILE, "cannot put %s into the initramfs: %s", path,
		            why->message);
		return NULL;
	}
	initramfs->bytes += g_mapped_file_get_length(bytes);
	if (elf_is_ours((const guint8 *)g_mapped_file_get_contents(bytes), g_mapped_file_get_length(bytes)))
		g_ptr_array_add(initramfs->programs, g_strdup(path));
	if (initramfs->bytes <= INITRAMFS_BYTES_MAX)
		return bytes;
	g_mapped_file_unref(bytes);
	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_FILE,
	            "cannot put %s into the initramfs: the files would exceed %u GiB", path,
	            (unsigned)(INITRAMFS_BYTES_MAX >> 30));
	return NULL;
}

static void file_node_add(struct initramfs *initramfs, const char *path, GMappedFile *file, unsigned permissions)
{
	node_add(initramfs, path, (struct node){.bytes = g_mapped_file_get_bytes(file), .permissions = permissions});
}

const GPtrArray *initramfs_programs(const struct initramfs *initramfs)
{
	return initramfs->programs;
}

void initramfs_add_bytes(struct initramfs *initramfs, GBytes *bytes, const char *path)
{
	node_add(initramfs, path, (struct node){.bytes = g_bytes_ref(bytes), .permissions = 0644});
}

/* ---- programs ---- */

static bool program_add(struct initramfs *initramfs, const char *path, unsigned depth, GError **error);

/* The file under its own path, and the path by which it was found as a link to it. */
static bool host_file_add(struct initramfs *initramfs, const char *path, GError **error)
{
	g_autofree char *real = NULL;
	char *resolved = realpath(path, NULL);
	struct stat status;
	GMappedFile *bytes;

	real = resolved ? g_strdup(resolved) : NULL;
	free(resolved);
	if (!real || stat(real, &status) != 0)
		return path_fail(path, errno, error);
	if (strcmp(real, path) != 0 && !has_node(initramfs, path))
		initramfs_add_link(initramfs, path, real);
	if (has_node(initramfs, real))
		return true;
	bytes = file_map(initramfs, real, error);
	if (!bytes)
		return false;
	file_node_add(initramfs, real, bytes, status.st_mode);
	g_mapped_file_unref(bytes);
	return true;
}

static struct library_user *user_new(const char *path, const struct library_user *parent, GError **error)
{
	GMappedFile *bytes = g_mapped_file_new(path, FALSE, error);
	struct library_user *user;

	if (!bytes)
		return NULL;
	user = g_new0(struct library_user, 1);
	user->path = g_strdup(path);
	user->parent = parent;
	if (!elf_links_read(&user->links, path, (const guint8 *)g_mapped_file_get_contents(bytes),
	                    g_mapped_file_get_length(bytes), error)) {
		g_free(user->path);
		g_clear_pointer(&user, g_free);
	}
	g_mapped_file_unref(bytes);
	return user;
}

static void user_free(void *data)
{
	struct library_user *user = data;

	elf_links_clear(&user->links);
	g_free(user->path);
	g_free(user);
}

static bool missing(const struct library_user *user, const char *name, GError **error)
{
	g_set_error(
		error, INITRAMFS_ERROR, INITRAMFS_ERROR_LIBRARY,
		"%s needs the library %s, which is not on this host; install it, or name its folder in LD_LIBRARY_PATH",
		user->path, name);
	return false;
}

/* Adds the libraries that `user` names and no earlier user did; they become users in turn. */
static bool libraries_add(struct initramfs *initramfs, const struct library_user *user, GPtrArray *users,
                          GHashTable *names, GError **error)
{
	for (guint i = 0; i < user->links.needed->len; i++) {
		const char *name = g_ptr_array_index(user->links.needed, i);
		g_autofree char *path = NULL;
		struct library_user *library;

		if (!g_hash_table_add(names, g_strdup(name)))
			continue;
		path = library_search_find(initramfs->search, user, name);
		if (!path)
			return missing(user, name, error);
		library = host_file_add(initramfs, path, error) ? user_new(path, user, error) : NULL;
		if (!library)
			return false;
		g_ptr_array_add(users, library);
	}
	return true;
}

static bool interpreter_add(struct initramfs *initramfs, const struct library_user *program, GError **error)
{
	const char *interpreter = program->links.interpreter;

	if (!interpreter)
		return true;
	if (access(interpreter, R_OK) == 0)
		return host_file_add(initramfs, interpreter, error);
	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_LIBRARY,
	            "%s needs the dynamic linker %s, which is not on this host", program->path, interpreter);
	return false;
}

/* ld.so's cache comes along: only the cache knows some folders of libraries. */
static bool cache_add(struct initramfs *initramfs, GError **error)
{
	return access(LIBRARY_CACHE_PATH, R_OK) != 0 || host_file_add(initramfs, LIBRARY_CACHE_PATH, error);
}

static bool elf_program_add(struct initramfs *initramfs, const char *path, GError **error)
{
	g_autoptr(GPtrArray) users = g_ptr_array_new_with_free_func(user_free);
	g_autoptr(GHashTable) names = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	struct library_user *program = user_new(path, NULL, error);

	if (!program)
		return false;
	g_ptr_array_add(users, program);
	if (!interpreter_add(initramfs, program, error))
		return false;
	/* Added before all libraries: one of them may name it. */
	if (program->links.interpreter)
		g_hash_table_add(names, g_path_get_basename(program->links.interpreter));
	for (guint i = 0; i < users->len; i++)
		if (!libraries_add(initramfs, g_ptr_array_index(users, i), users, names, error))
			return false;
	return users->len == 1 || cache_add(initramfs, error);
}

/* The words behind "#!" in a script's first line; NULL: no such line. */
static char **script_words(const char *bytes, gsize n)
{
	const char *end = memchr(bytes, '\n', n);
	g_autofree char *line = NULL;

	if (n < 2 || bytes[0] != '#' || bytes[1] != '!')
		return NULL;
	line = g_strndup(bytes + 2, (end ? (gsize)(end - bytes) : n) - 2);
	return g_strsplit_set(g_strstrip(line), " \t", 2);
}

/* "#!/usr/bin/env NAME" needs NAME. */
static bool env_program_add(struct initramfs *initramfs, char **words, unsigned depth, GError **error)
{
	g_autofree char *base = g_path_get_basename(words[0]), *path = NULL;

	if (strcmp(base, "env") != 0 || !words[1] || words[1][0] == '-')
		return true;
	path = g_find_program_in_path(g_strstrip(words[1]));
	return !path || program_add(initramfs, path, depth, error);
}

static bool script_add(struct initramfs *initramfs, const char *path, char **words, unsigned depth, GError **error)
{
	if (!words[0] || words[0][0] != '/' || depth == 0 || access(words[0], R_OK) != 0) {
		g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_LIBRARY,
		            "%s is a script for \"%s\", which is not on this host", path, words[0] ? words[0] : "");
		return false;
	}
	return program_add(initramfs, words[0], depth - 1, error) &&
	       env_program_add(initramfs, words, depth - 1, error);
}

/* Adds what the program with these contents needs to start. */
static bool needs_add(struct initramfs *initramfs, const char *path, GMappedFile *file, unsigned depth, GError **error)
{
	const char *bytes = g_mapped_file_get_contents(file);
	gsize n = g_mapped_file_get_length(file);
	g_auto(GStrv) words = bytes ? script_words(bytes, n) : NULL;

	if (words)
		return script_add(initramfs, path, words, depth, error);
	if (bytes && elf_is_any((const guint8 *)bytes, n))
		return elf_program_add(initramfs, path, error);
	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_FORMAT,
	            "%s is neither an ELF program nor a script that begins with \"#!\"", path);
	return false;
}

static bool program_add(struct initramfs *initramfs, const char *path, unsigned depth, GError **error)
{
	GMappedFile *file = g_mapped_file_new(path, FALSE, error);
	bool added = file && host_file_add(initramfs, path, error) && needs_add(initramfs, path, file, depth, error);

	g_clear_pointer(&file, g_mapped_file_unref);
	return added;
}

bool initramfs_add_program(struct initramfs *initramfs, const char *path, GError **error)
{
	return program_add(initramfs, path, SCRIPT_DEPTH_MAX, error);
}

/* ---- files that the user names ---- */

static bool can_run(GMappedFile *file)
{
	const char *bytes = g_mapped_file_get_contents(file);
	gsize n = g_mapped_file_get_length(file);

	return n >= 2 && (strncmp(bytes, "#!", 2) == 0 || elf_is_ours((const guint8 *)bytes, n));
}

static bool file_add(struct initramfs *initramfs, const char *host_path, const char *guest_path, unsigned permissions,
                     GError **error)
{
	GMappedFile *bytes = file_map(initramfs, host_path, error);
	bool added = bytes != NULL;

	if (!added)
		return false;
	file_node_add(initramfs, guest_path, bytes, permissions);
	/* Data files may be marked executable by mistake; only programs have dependencies. */
	if ((permissions & 0111) != 0 && can_run(bytes))
		added = needs_add(initramfs, host_path, bytes, SCRIPT_DEPTH_MAX, error);
	g_mapped_file_unref(bytes);
	return added;
}

static bool folder_add(struct initramfs *initramfs, const char *host_path, const char *guest_path, GError **error)
{
	GDir *folder = g_dir_open(host_path, 0, error);
	bool added = folder != NULL;
	const char *name;

	initramfs_add_folder(initramfs, guest_path);
	while (added && (name = g_dir_read_name(folder)) != NULL) {
		g_autofree char *from = g_build_filename(host_path, name, NULL);
		g_autofree char *to = g_build_filename(guest_path, name, NULL);
		g_autofree char *target = g_file_read_link(from, NULL);

		if (target)
			initramfs_add_link(initramfs, to, target);
		else
			added = initramfs_add(initramfs, from, to, error);
	}
	g_clear_pointer(&folder, g_dir_close);
	return added;
}

bool initramfs_add(struct initramfs *initramfs, const char *host_path, const char *guest_path, GError **error)
{
	struct stat status;

	if (stat(host_path, &status) != 0)
		return path_fail(host_path, errno, error);
	if (S_ISDIR(status.st_mode))
		return folder_add(initramfs, host_path, guest_path, error);
	if (S_ISREG(status.st_mode))
		return file_add(initramfs, host_path, guest_path, status.st_mode, error);
	g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_FILE,
	            "cannot put %s into the initramfs: not a file or a folder", host_path);
	return false;
}

/* ---- the archive ---- */

struct writing {
	struct cpio *cpio;
	bool links; /* of the nodes, these; else the files */
	bool failed;
	GError **error;
};

static gboolean write_folder(void *path, void *value, void *data)
{
	struct writing *writing = data;

	(void)value;
	writing->failed = !cpio_add_folder(writing->cpio, path, writing->error);
	return writing->failed;
}

static gboolean write_node(void *path, void *value, void *data)
{
	const struct node *node = value;
	struct writing *writing = data;

	if ((node->target != NULL) != writing->links)
		return FALSE;
	if (writing->links)
		writing->failed = !cpio_add_link(writing->cpio, path, node->target, writing->error);
	else
		writing->failed = !cpio_add_file(writing->cpio, path, node->permissions, node->bytes, writing->error);
	return writing->failed;
}

/*
 * Links before files: where a folder is a link in the base, a link of ours can overwrite the very file that it leads
 * to; the file, written later, restores it.
 */
static bool write_nodes(const struct initramfs *initramfs, struct cpio *cpio, GError **error)
{
	struct writing writing = {.cpio = cpio, .links = true, .error = error};

	g_tree_foreach(initramfs->nodes, write_node, &writing);
	writing.links = false;
	if (!writing.failed)
		g_tree_foreach(initramfs->nodes, write_node, &writing);
	return !writing.failed;
}

/* init's standard streams use it. */
static bool write_folders(const struct initramfs *initramfs, struct cpio *cpio, GError **error)
{
	struct writing writing = {.cpio = cpio, .error = error};

	g_tree_foreach(initramfs->folders, write_folder, &writing);
	return !writing.failed;
}

static bool write_console(const struct initramfs *initramfs, struct cpio *cpio, GError **error)
{
	(void)initramfs;
	return cpio_add_character_device(cpio, "/dev/console", 5, 1, error);
}

static bool write_archive(const struct initramfs *initramfs, struct cpio *cpio,
                          bool (*const *parts)(const struct initramfs *, struct cpio *, GError **), GError **error)
{
	for (; *parts; parts++)
		if (!(*parts)(initramfs, cpio, error))
			return false;
	return cpio_end(cpio, error);
}

static bool write_base(struct cpio *cpio, const char *path, GError **error)
{
	GMappedFile *base = g_mapped_file_new(path, FALSE, error);
	bool written = base && cpio_add_archive(cpio, path, g_mapped_file_get_contents(base),
	                                        g_mapped_file_get_length(base), error);

	g_clear_pointer(&base, g_mapped_file_unref);
	return written;
}

/*
 * The kernel unpacks concatenated archives in order, each over the result of the ones before. Folders come before the
 * base, which can still replace one by a link (/bin, /lib); our files then go where that link leads.
 */
static bool write_parts(const struct initramfs *initramfs, int fd, const char *base, GError **error)
{
	static bool (*const folders[])(const struct initramfs *, struct cpio *, GError **) = {write_folders, NULL};
	static bool (*const rest[])(const struct initramfs *, struct cpio *, GError **) = {write_console, write_nodes,
	                                                                                   NULL};
	struct cpio *cpio = cpio_open(fd);
	const bool written = write_archive(initramfs, cpio, folders, error) &&
	                     (!base || write_base(cpio, base, error)) && write_archive(initramfs, cpio, rest, error);

	cpio_free(cpio);
	return written;
}

int initramfs_write(const struct initramfs *initramfs, const char *base, GError **error)
{
	int fd = memfd_create("vprof-initramfs", MFD_CLOEXEC);

	if (fd < 0) {
		g_set_error(error, INITRAMFS_ERROR, INITRAMFS_ERROR_WRITE, "cannot make a file in memory: %s",
		            g_strerror(errno));
		return -1;
	}
	if (write_parts(initramfs, fd, base, error))
		return fd;
	close(fd);
	return -1;
}
