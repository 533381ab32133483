// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/module_file.h"

#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/symbol/user_file.h"

#define MODULE_BYTES_MAX (256u << 20) /* unpacked */
#define FOLDER_DEPTH_MAX 16u

struct module_folder {
	GHashTable *paths; /* name: path of the file */
};

char *module_file_name(const char *file)
{
	const char *end = strstr(file, ".ko");

	if (!end || end == file || (end[3] != '\0' && end[3] != '.'))
		return NULL;
	return g_strdelimit(g_strndup(file, (gsize)(end - file)), "-", '_');
}

static void folder_scan(struct module_folder *modules, const char *path, unsigned depth)
{
	GDir *folder = depth == 0 ? NULL : g_dir_open(path, 0, NULL);
	const char *entry;

	while (folder && (entry = g_dir_read_name(folder)) != NULL) {
		char *below = g_build_filename(path, entry, NULL);
		char *name = module_file_name(entry);

		/* `build` and `source` lead out of the folder. */
		if (name && g_file_test(below, G_FILE_TEST_IS_REGULAR)) {
			g_hash_table_replace(modules->paths, g_steal_pointer(&name), g_steal_pointer(&below));
		} else if (g_file_test(below, G_FILE_TEST_IS_DIR) && !g_file_test(below, G_FILE_TEST_IS_SYMLINK)) {
			folder_scan(modules, below, depth - 1);
		}
		g_free(name);
		g_free(below);
	}
	g_clear_pointer(&folder, g_dir_close);
}

struct module_folder *module_folder_new(const char *path)
{
	struct module_folder *folder = g_new0(struct module_folder, 1);

	folder->paths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	folder_scan(folder, path, FOLDER_DEPTH_MAX);
	return folder;
}

void module_folder_free(struct module_folder *folder)
{
	if (!folder)
		return;
	g_hash_table_unref(folder->paths);
	g_free(folder);
}

unsigned module_folder_n(const struct module_folder *folder)
{
	return g_hash_table_size(folder->paths);
}

const char *module_folder_find(const struct module_folder *folder, const char *name)
{
	g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');

	return g_hash_table_lookup(folder->paths, key);
}

int module_file_read(const char *path, GError **error)
{
	struct vprof_parse_request request = {.what = VPROF_PARSE_UNPACK, .answer_bytes = MODULE_BYTES_MAX};
	g_autoptr(GError) why = NULL;
	int file = user_file_open(path, &request.bytes, &why);
	int answer = file >= 0 ? parser_ask(&request, file, &why) : -1;

	if (file >= 0)
		close(file);
	if (answer < 0)
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_PAYLOAD, "kernel module %s %s", path,
		            why ? why->message : "cannot be read");
	return answer;
}
