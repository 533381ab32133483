// SPDX-License-Identifier: BSD-2-Clause
#include "run/exec_plan.h"

#include <string.h>
#include <unistd.h>

#include "lib/initramfs/elf_links.h"
#include "lib/initramfs/initramfs.h"
#include "lib/initramfs/kernel_modules.h"
#include "lib/process/program_find.h"
#include "lib/record/arch.h"
#include "lib/symbol/image.h"

#define AGENT "vprof-agent"
#define INIT_PATH "/init"
#define ROOT_TYPE "ext4"
#define RUNS_MAX 100000
#define DEFAULT_PATH "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

G_DEFINE_QUARK(vprof_exec_error, exec_error)

const struct option_row exec_option_rows[] = {
	{"exec", OPTION_TEXT, offsetof(struct exec_options, command),
         "run a program from this host in the guest, and profile it", "COMMAND"},
	{"env", OPTION_TEXTS, offsetof(struct exec_options, variables),
         "set an environment variable for it; without =VALUE, copy the host's", "NAME=VALUE"},
	{"add", OPTION_FILES, offsetof(struct exec_options, files),
         "copy a file or folder into the guest; may be repeated", "FILE[:PATH]"},
	{"workdir", OPTION_FILE, offsetof(struct exec_options, folder),
         "its working directory in the guest (default: the current one)", "PATH"},
	{"time-limit", OPTION_TIME, offsetof(struct exec_options, time_limit_s), "end it after TIME, e.g. 10s or 2m",
         "TIME", .max = UINT32_MAX / 1000},
	{"root", OPTION_TEXT, offsetof(struct exec_options, root),
         "run it in the system on this disk of the guest (/dev/vda1)", "DEVICE[,TYPE]"},
	{"repeat", OPTION_NUMBER, offsetof(struct exec_options, repeats), "run it N times; each run is a phase", "N",
         .min = 1, .max = RUNS_MAX},
	{"warmup", OPTION_NUMBER, offsetof(struct exec_options, warmups),
         "run it W times before that, without profiling", "W", .max = RUNS_MAX},
	{"from-boot", OPTION_FLAG, offsetof(struct exec_options, from_boot), "also profile the boot and the warm-ups",
         NULL},
	{NULL},
};

/* The first option that requires --exec, or NULL. */
static const char *option_without_command(const struct exec_options *options)
{
	const struct {
		const char *name;
		bool given;
	} rows[] = {
		{"--env", options->variables != NULL},    {"--add", options->files != NULL},
		{"--workdir", options->folder != NULL},   {"--time-limit", options->time_limit_s != 0},
		{"--repeat", options->repeats != 0},      {"--warmup", options->warmups != 0},
		{"--from-boot", options->from_boot != 0}, {"--root", options->root != NULL},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(rows); i++)
		if (rows[i].given)
			return rows[i].name;
	return NULL;
}

static bool folder_check(const struct exec_options *options, GError **error)
{
	if (!options->folder || options->folder[0] == '/')
		return true;
	g_set_error(error, EXEC_ERROR, EXEC_ERROR_OPTIONS, "--workdir takes an absolute path, not %s", options->folder);
	return false;
}

/* With --root, the command sees the files of the disk only, and not those of the initramfs. */
static bool root_check(const struct exec_options *options, GError **error)
{
	if (!options->root)
		return true;
	if (!options->files && options->root[0] == '/')
		return true;
	g_set_error_literal(
		error, EXEC_ERROR, EXEC_ERROR_OPTIONS,
		options->files
			? "--add puts files into memory, which a command with --root does not see; put them on the disk"
			: "--root takes a device of the guest, as /dev/vda1 or /dev/vda,xfs");
	return false;
}

bool exec_options_check(const struct exec_options *options, GError **error)
{
	const char *lonely = !options->command ? option_without_command(options) : NULL;
	g_auto(GStrv) arguments = NULL;

	if (lonely) {
		g_set_error(error, EXEC_ERROR, EXEC_ERROR_OPTIONS, "%s requires --exec", lonely);
		return false;
	}
	if (!options->command)
		return true;
	if (!g_shell_parse_argv(options->command, NULL, &arguments, error)) {
		g_prefix_error(error, "--exec: ");
		return false;
	}
	return folder_check(options, error) && root_check(options, error);
}

/* Searches for the command as a shell does. New string. */
static char *command_find(const char *name, GError **error)
{
	g_autofree char *path = strchr(name, '/') ? g_canonicalize_filename(name, NULL) : NULL;

	if (!path)
		path = g_find_program_in_path(name);
	if (!path || access(path, F_OK) != 0)
		g_set_error(error, EXEC_ERROR, EXEC_ERROR_NOT_FOUND, "there is no command %s on this host", name);
	else if (access(path, X_OK) != 0 || g_file_test(path, G_FILE_TEST_IS_DIR))
		g_set_error(error, EXEC_ERROR, EXEC_ERROR_NOT_EXECUTABLE, "%s is not executable", path);
	else
		return g_canonicalize_filename(path, NULL);
	return NULL;
}

static void variable_add(GPtrArray *list, const char *given)
{
	const char *value = !strchr(given, '=') ? g_getenv(given) : NULL;

	if (strchr(given, '='))
		g_ptr_array_add(list, g_strdup(given));
	else if (value)
		g_ptr_array_add(list, g_strdup_printf("%s=%s", given, value));
}

/*
 * Not vprof's own environment: results should not depend on the user. LD_LIBRARY_PATH is kept, since libraries are
 * copied to the paths where they were found.
 */
static char **variables_new(const struct exec_options *options)
{
	GPtrArray *list = g_ptr_array_new();

	g_ptr_array_add(list, g_strdup(DEFAULT_PATH));
	variable_add(list, "LD_LIBRARY_PATH");
	for (char **given = options->variables; given && *given; given++)
		variable_add(list, *given);
	g_ptr_array_add(list, NULL);
	return (char **)g_ptr_array_free(list, FALSE);
}

/* "DEVICE" or "DEVICE,TYPE". New string, or NULL without --root. */
static char *root_new(const char *root)
{
	if (!root)
		return NULL;
	return strchr(root, ',') ? g_strdup(root) : g_strdup_printf("%s," ROOT_TYPE, root);
}

static char *folder_new(const struct exec_plan *plan)
{
	if (plan->options->folder)
		return g_canonicalize_filename(plan->options->folder, "/");
	return plan->root ? g_strdup("/") : g_get_current_dir();
}

struct exec_plan *exec_plan_new(const struct exec_options *options, GError **error)
{
	struct exec_plan *plan = g_new0(struct exec_plan, 1);

	plan->options = options;
	plan->root = root_new(options->root);
	/* With --root, only the guest can find the command. */
	if (g_shell_parse_argv(options->command, NULL, &plan->arguments, error))
		plan->path = plan->root ? g_strdup(plan->arguments[0]) : command_find(plan->arguments[0], error);
	if (!plan->path) {
		exec_plan_free(plan);
		return NULL;
	}
	plan->variables = variables_new(options);
	plan->folder = folder_new(plan);
	plan->time_limit_ms = (uint32_t)(options->time_limit_s * 1000);
	plan->repeats = (unsigned)MAX(options->repeats, 1);
	plan->warmups = (unsigned)options->warmups;
	plan->from_boot = options->from_boot;
	return plan;
}

void exec_plan_free(struct exec_plan *plan)
{
	if (!plan)
		return;
	g_strfreev(plan->arguments);
	g_strfreev(plan->variables);
	g_strfreev(plan->programs);
	g_free(plan->path);
	g_free(plan->folder);
	g_free(plan->root);
	g_free(plan);
}

/* "FILE:PATH", or "FILE", which keeps its path. An existing FILE may contain a colon. */
static bool file_add(struct initramfs *initramfs, const char *given, GError **error)
{
	const char *colon = strrchr(given, ':');
	g_autofree char *file = NULL, *path = NULL;

	if (!colon || access(given, F_OK) == 0) {
		file = g_canonicalize_filename(given, NULL);
		return initramfs_add(initramfs, file, file, error);
	}
	file = g_strndup(given, (gsize)(colon - given));
	path = g_canonicalize_filename(colon + 1, "/");
	return initramfs_add(initramfs, file, path, error);
}

/* The release of the guest's kernel, to be compared with its modules; NULL if unknown. */
static char *kernel_release(const char *kernel, GError **error)
{
	struct image *image = image_open(kernel, error);
	char *release = image ? g_strdup(image_release(image)) : NULL;

	image_free(image);
	return release;
}

/* The modules that the guest needs for the agent's port, its disks and its root. */
static bool modules_fill(struct kernel_modules *modules, struct initramfs *initramfs, const struct exec_plan *plan,
                         const struct exec_guest *guest, GError **error)
{
	return kernel_modules_add(modules, "virtio_mmio", initramfs, error) &&
	       kernel_modules_add(modules, "virtio_console", initramfs, error) &&
	       (!guest->has_disks || kernel_modules_add(modules, "virtio_blk", initramfs, error)) &&
	       (!plan->root || kernel_modules_add(modules, strrchr(plan->root, ',') + 1, initramfs, error));
}

static bool modules_add(struct initramfs *initramfs, const struct exec_plan *plan, const struct exec_guest *guest,
                        GError **error)
{
	g_autofree char *release = NULL;
	g_autoptr(GError) why = NULL;
	struct kernel_modules *modules;
	bool added;

	if (!guest->modules)
		return true;
	release = kernel_release(guest->kernel, &why);
	if (why) {
		g_propagate_error(error, g_steal_pointer(&why));
		return false;
	}
	modules = kernel_modules_new(guest->modules, release, error);
	added = modules && modules_fill(modules, initramfs, plan, guest, error);
	kernel_modules_free(modules);
	return added;
}

char *exec_agent_find(GError **error)
{
	g_autofree char *path = program_find(AGENT, error);
	GMappedFile *file = path ? g_mapped_file_new(path, FALSE, error) : NULL;
	bool ours;

	if (!file)
		return NULL;
	ours = elf_is_ours((const guint8 *)g_mapped_file_get_contents(file), g_mapped_file_get_length(file));
	g_mapped_file_unref(file);
	if (ours)
		return g_steal_pointer(&path);
	g_set_error(
		error, EXEC_ERROR, EXEC_ERROR_AGENT,
		"%s cannot run in a guest of this host: it is not an ELF program for %s; build or install all of vprof",
		path, arch_name(arch_here()));
	return NULL;
}

static bool initramfs_fill(struct initramfs *initramfs, const struct exec_plan *plan, const struct exec_guest *guest,
                           GError **error)
{
	static const char *const folders[] = {"/dev", "/proc", "/sys", "/run", "/tmp"};
	g_autofree char *agent = exec_agent_find(error);

	for (size_t i = 0; i < G_N_ELEMENTS(folders); i++)
		initramfs_add_folder(initramfs, folders[i]);
	initramfs_add_folder(initramfs, plan->folder);
	/* For `vprof-agent mark`. */
	initramfs_add_link(initramfs, "/bin/" AGENT, INIT_PATH);
	if (!agent || !initramfs_add(initramfs, agent, INIT_PATH, error) || !modules_add(initramfs, plan, guest, error))
		return false;
	if (!plan->root && !initramfs_add_program(initramfs, plan->path, error))
		return false;
	for (char **file = plan->options->files; file && *file; file++)
		if (!file_add(initramfs, *file, error))
			return false;
	return true;
}

static char **programs_copy(const GPtrArray *programs)
{
	char **copy = g_new0(char *, programs->len + 1);

	for (guint i = 0; i < programs->len; i++)
		copy[i] = g_strdup(g_ptr_array_index(programs, i));
	return copy;
}

int exec_plan_initramfs(struct exec_plan *plan, const struct exec_guest *guest, GError **error)
{
	struct initramfs *initramfs = initramfs_new();
	int fd = initramfs_fill(initramfs, plan, guest, error) ? initramfs_write(initramfs, guest->base, error) : -1;

	g_strfreev(plan->programs);
	plan->programs = programs_copy(initramfs_programs(initramfs));
	initramfs_free(initramfs);
	return fd;
}
