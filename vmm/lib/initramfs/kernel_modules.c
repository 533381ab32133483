// SPDX-License-Identifier: BSD-2-Clause
#include "lib/initramfs/kernel_modules.h"

#include <archive.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#define MODULE_BYTES_MAX (256u << 20) /* unpacked */
#define PIECE_BYTES (64u << 10)
#define FOLDER_DEPTH_MAX 16u
#define BUILTIN_LIST "modules.builtin" /* Linux, Documentation/kbuild/kbuild.rst */

G_DEFINE_QUARK(vprof_kernel_modules_error, kernel_modules_error)

struct kernel_modules {
	char *folder, *release;
	GHashTable *paths; /* name: path of the file */
	GHashTable *done;  /* names of those that are added, built in, or being added */
	unsigned added;
};

/* The name of the module in this file: its base name up to ".ko", where '-' and '_' are the same. NULL: it is none. */
static char *module_name(const char *file)
{
	const char *end = strstr(file, ".ko");
	if (!end || end == file || (end[3] != '\0' && end[3] != '.'))
		return NULL;
	return g_strdelimit(g_strndup(file, (gsize)(end - file)), "-", '_');
}

static void folder_scan(struct kernel_modules *modules, const char *path, unsigned depth)
{
	GDir *folder = depth == 0 ? NULL : g_dir_open(path, 0, NULL);
	const char *entry;
	while (folder && (entry = g_dir_read_name(folder)) != NULL) {
		char *below = g_build_filename(path, entry, NULL);
		char *name = module_name(entry);
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

/* A path of the build on each line. */
static void builtins_read(struct kernel_modules *modules)
{
	g_autofree char *path = g_build_filename(modules->folder, BUILTIN_LIST, NULL), *text = NULL;
	if (!g_file_get_contents(path, &text, NULL, NULL))
		return;
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	for (char **line = lines; *line; line++) {
		g_autofree char *file = g_path_get_basename(*line);
		char *name = module_name(file);
		if (name)
			g_hash_table_add(modules->done, name);
	}
}

struct kernel_modules *kernel_modules_new(const char *folder, const char *release, GError **error)
{
	struct kernel_modules *modules = g_new0(struct kernel_modules, 1);
	modules->folder = g_strdup(folder);
	modules->release = g_strdup(release);
	modules->paths = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
	modules->done = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	folder_scan(modules, folder, FOLDER_DEPTH_MAX);
	builtins_read(modules);
	if (g_hash_table_size(modules->paths) > 0)
		return modules;
	g_set_error(
		error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FOLDER,
		"there are no kernel modules (*.ko) in %s; name the folder /lib/modules/VERSION of the guest's kernel",
		folder);
	kernel_modules_free(modules);
	return NULL;
}

void kernel_modules_free(struct kernel_modules *modules)
{
	if (!modules)
		return;
	g_hash_table_unref(modules->paths);
	g_hash_table_unref(modules->done);
	g_free(modules->folder);
	g_free(modules->release);
	g_free(modules);
}

static bool unpack(struct archive *archive, const char *path, GByteArray *bytes)
{
	struct archive_entry *entry;
	guint8 piece[PIECE_BYTES];
	la_ssize_t n;
	archive_read_support_filter_all(archive);
	archive_read_support_format_raw(archive);
	if (archive_read_open_filename(archive, path, PIECE_BYTES) != ARCHIVE_OK ||
	    archive_read_next_header(archive, &entry) != ARCHIVE_OK)
		return false;
	while ((n = archive_read_data(archive, piece, sizeof(piece))) > 0) {
		g_byte_array_append(bytes, piece, (guint)n);
		if (bytes->len > MODULE_BYTES_MAX) {
			archive_set_error(archive, EFBIG, "it is too large");
			return false;
		}
	}
	return n == 0;
}

/* A module's file without its compression. */
static GBytes *module_read(const char *path, GError **error)
{
	struct archive *archive = archive_read_new();
	GByteArray *bytes = g_byte_array_new();
	bool read = unpack(archive, path, bytes);
	if (!read)
		g_set_error(error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FORMAT,
		            "cannot read kernel module %s: %s", path, archive_error_string(archive));
	archive_read_free(archive);
	if (read)
		return g_byte_array_free_to_bytes(bytes);
	g_byte_array_unref(bytes);
	return NULL;
}

/* ---- .modinfo: "KEY=VALUE" strings (Linux, include/linux/moduleparam.h) ---- */

struct span {
	const guint8 *at;
	gsize n;
};

static bool span_part(struct span whole, guint64 from, guint64 n, struct span *part)
{
	if (from > whole.n || n > whole.n - from)
		return false;
	*part = (struct span){whole.at + from, n};
	return true;
}

static bool section_at(struct span file, const Elf64_Ehdr *header, unsigned i, Elf64_Shdr *section)
{
	struct span bytes;
	if (!span_part(file, header->e_shoff, (guint64)header->e_shnum * sizeof(*section), &bytes) ||
	    !span_part(bytes, i * sizeof(*section), sizeof(*section), &bytes))
		return false;
	memcpy(section, bytes.at, sizeof(*section));
	return true;
}

static bool section_named(struct span file, const Elf64_Ehdr *header, const char *name, struct span *contents)
{
	Elf64_Shdr section;
	struct span names, candidate;
	if (!section_at(file, header, header->e_shstrndx, &section) ||
	    !span_part(file, section.sh_offset, section.sh_size, &names))
		return false;
	for (unsigned i = 0; i < header->e_shnum && section_at(file, header, i, &section); i++) {
		if (span_part(names, section.sh_name, strlen(name) + 1, &candidate) &&
		    memcmp(candidate.at, name, candidate.n) == 0)
			return span_part(file, section.sh_offset, section.sh_size, contents);
	}
	return false;
}

static bool modinfo_find(struct span file, struct span *modinfo)
{
	Elf64_Ehdr header;
	if (file.n < sizeof(header) || memcmp(file.at, ELFMAG, SELFMAG) != 0)
		return false;
	memcpy(&header, file.at, sizeof(header));
	return header.e_ident[EI_CLASS] == ELFCLASS64 && header.e_machine == EM_X86_64 &&
	       header.e_shentsize == sizeof(Elf64_Shdr) && section_named(file, &header, ".modinfo", modinfo);
}

/* The value of the first string with this key; new string, or NULL. */
static char *modinfo_value(struct span modinfo, const char *key)
{
	gsize key_n = strlen(key);
	while (modinfo.n > 0) {
		gsize n = strnlen((const char *)modinfo.at, modinfo.n);
		if (n > key_n && modinfo.at[key_n] == '=' && memcmp(modinfo.at, key, key_n) == 0)
			return g_strndup((const char *)modinfo.at + key_n + 1, n - key_n - 1);
		n = MIN(n + 1, modinfo.n);
		modinfo = (struct span){modinfo.at + n, modinfo.n - n};
	}
	return NULL;
}

/* ---- adding ---- */

/* vermagic begins with the release of the kernel that the module was built for. */
static bool release_check(const struct kernel_modules *modules, const char *path, struct span modinfo, GError **error)
{
	g_autofree char *vermagic = modinfo_value(modinfo, "vermagic");
	if (!modules->release || !vermagic)
		return true;
	vermagic[strcspn(vermagic, " ")] = '\0';
	if (strcmp(vermagic, modules->release) == 0)
		return true;
	g_set_error(
		error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_RELEASE,
		"kernel module %s is for Linux %s, and the guest's kernel is %s; give --modules the folder of that one",
		path, vermagic, modules->release);
	return false;
}

static bool needs_add(struct kernel_modules *modules, struct span modinfo, struct initramfs *initramfs, GError **error)
{
	g_autofree char *depends = modinfo_value(modinfo, "depends");
	g_auto(GStrv) names = g_strsplit(depends ? depends : "", ",", -1);
	for (char **name = names; *name; name++) {
		if (**name && !kernel_modules_add(modules, *name, initramfs, error))
			return false;
	}
	return true;
}

static bool module_add(struct kernel_modules *modules, const char *name, const char *path, struct initramfs *initramfs,
                       GError **error)
{
	g_autoptr(GBytes) bytes = module_read(path, error);
	struct span file, modinfo;
	if (!bytes)
		return false;
	file.at = g_bytes_get_data(bytes, &file.n);
	if (!modinfo_find(file, &modinfo)) {
		g_set_error(error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_FORMAT,
		            "%s is not a kernel module for x86-64", path);
		return false;
	}
	if (!release_check(modules, path, modinfo, error) || !needs_add(modules, modinfo, initramfs, error))
		return false;
	g_autofree char *to = g_strdup_printf("%s/%03u-%s.ko", KERNEL_MODULES_PATH, modules->added++, name);
	initramfs_add_bytes(initramfs, bytes, to);
	return true;
}

bool kernel_modules_add(struct kernel_modules *modules, const char *name, struct initramfs *initramfs, GError **error)
{
	g_autofree char *key = g_strdelimit(g_strdup(name), "-", '_');
	const char *path = g_hash_table_lookup(modules->paths, key);
	if (g_hash_table_contains(modules->done, key))
		return true;
	if (!path) {
		g_set_error(
			error, KERNEL_MODULES_ERROR, KERNEL_MODULES_ERROR_MISSING,
			"the guest needs the kernel module %s, which is not in %s, nor in its list of what is built in "
			"(" BUILTIN_LIST ")",
			key, modules->folder);
		return false;
	}
	/* Before what it needs, so that a circle ends. */
	g_hash_table_add(modules->done, g_strdup(key));
	return module_add(modules, key, path, initramfs, error);
}
