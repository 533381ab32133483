// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/host_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <glib.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "lib/symbol/symtab.h"
#include "lib/symbol/user_symbols.h"

/* The kernel's own code, or a module's. */
struct code {
	uint64_t start, bytes;
	const char *name; /* "[host]", "[kvm]" */
};

/* What the process has mapped to execute. */
struct mapped {
	uint64_t start, end, file_offset;
	const char *name; /* a path, or "[vdso]" */
};

struct host_symbols {
	GStringChunk *texts;
	GArray *codes;         /* of struct code */
	struct symtab *kernel; /* NULL: see kernel_why */
	char *kernel_why;
	GArray *mapped; /* of struct mapped */
	char *process_why;
	struct user_symbols *files;
	int root; /* of the process's files; -1: they are ours, as far as we may know */
};

/* ---- the kernel ---- */

/* All of a file of the proc file system, which does not tell its size. NULL, with errno. */
static char *proc_read(const char *proc, const char *name)
{
	g_autofree char *path = g_build_filename(proc, name, NULL);
	g_autoptr(GError) error = NULL;
	char *text = NULL;

	if (!g_file_get_contents(path, &text, NULL, &error))
		errno = error->code == G_FILE_ERROR_NOENT ? ENOENT : EACCES;
	return text;
}

/* A line of kallsyms: "ffffffffc0a00010 t kvm_vcpu_ioctl\t[kvm]". The name ends there. */
struct kallsyms_line {
	uint64_t address;
	char type;
	char *name;
};

/* The next one, which is cut out of the text; false at the end. */
static bool kallsyms_next(char **text, struct kallsyms_line *line)
{
	for (char *at; (at = strsep(text, "\n")) != NULL;) {
		char *end;

		line->address = g_ascii_strtoull(at, &end, 16);
		if (end == at || end[0] != ' ' || end[1] == '\0' || end[2] != ' ')
			continue;
		line->type = end[1];
		line->name = end + 3;
		line->name[strcspn(line->name, " \t")] = '\0';
		return true;
	}
	return false;
}

static void code_add(struct host_symbols *symbols, uint64_t start, uint64_t bytes, const char *name)
{
	const struct code code = {start, bytes, g_string_chunk_insert_const(symbols->texts, name)};

	g_array_append_val(symbols->codes, code);
}

/* "kvm 1056768 1 kvm_intel, Live 0xffffffffc0a00000" each; a kernel without modules has no such file. */
static void modules_read(struct host_symbols *symbols, const char *proc)
{
	g_autofree char *text = proc_read(proc, "modules");
	g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

	for (char **line = lines; *line; line++) {
		const char *address = strstr(*line, " 0x");
		char name[64], bracketed[sizeof(name) + 2];
		uint64_t bytes;

		if (!address || sscanf(*line, "%63s %" SCNu64, name, &bytes) != 2)
			continue;
		snprintf(bracketed, sizeof(bracketed), "[%s]", name);
		code_add(symbols, g_ascii_strtoull(address + 3, NULL, 16), bytes, bracketed);
	}
}

/* From _stext to _etext. False when the kernel gives zeros for addresses. */
static bool kernel_code_find(struct host_symbols *symbols, const char *kallsyms)
{
	g_autofree char *text = g_strdup(kallsyms);
	char *rest = text;
	struct kallsyms_line line;
	uint64_t start = 0, end = 0;

	while ((start == 0 || end == 0) && kallsyms_next(&rest, &line)) {
		if (strcmp(line.name, "_stext") == 0)
			start = line.address;
		else if (strcmp(line.name, "_etext") == 0)
			end = line.address;
	}
	if (end > start && start != 0)
		code_add(symbols, start, end - start, "[host]");
	return end > start && start != 0;
}

static void kallsyms_list(struct symtab_builder *builder, void *data)
{
	char *rest = data;
	struct kallsyms_line line;

	while (kallsyms_next(&rest, &line))
		if (strchr("tTwW", line.type))
			symtab_add(builder, line.address, 0, line.type, line.name, strcmp(line.name, "_etext") == 0);
}

static struct symtab *kernel_symtab(const struct host_symbols *symbols, char *kallsyms)
{
	g_autofree struct symtab_code *code = g_new(struct symtab_code, symbols->codes->len);

	for (guint i = 0; i < symbols->codes->len; i++) {
		const struct code *one = &g_array_index(symbols->codes, struct code, i);

		code[i] = (struct symtab_code){one->start, one->bytes};
	}
	return symtab_new_list("kallsyms", code, symbols->codes->len, UINT64_MAX, kallsyms_list, kallsyms);
}

static void kernel_read(struct host_symbols *symbols, const char *proc)
{
	g_autofree char *kallsyms = proc_read(proc, "kallsyms");

	if (!kallsyms) {
		symbols->kernel_why = g_strdup_printf("cannot read %s/kallsyms: %s", proc, g_strerror(errno));
		return;
	}
	if (!kernel_code_find(symbols, kallsyms)) {
		symbols->kernel_why = g_strdup_printf(
			"%s/kallsyms hides its addresses (kernel.kptr_restrict, kernel.perf_event_paranoid); run vprof as root or with CAP_SYSLOG",
			proc);
		return;
	}
	modules_read(symbols, proc);
	symbols->kernel = kernel_symtab(symbols, kallsyms);
	if (!symbols->kernel)
		symbols->kernel_why = g_strdup_printf("%s/kallsyms has no code", proc);
}

static bool kernel_find(const struct host_symbols *symbols, uint64_t address, struct host_symbol *out)
{
	const struct symbol *found = symbols->kernel ? symtab_find(symbols->kernel, address) : NULL;

	if (!found)
		return false;
	*out = (struct host_symbol){found->address, found->size, found->name, "[host]"};
	for (guint i = 0; i < symbols->codes->len; i++) {
		const struct code *code = &g_array_index(symbols->codes, struct code, i);

		if (address - code->start < code->bytes)
			out->module = code->name;
	}
	return true;
}

/* ---- the process ---- */

/* "7f10a000-7f10b000 r-xp 00001000 fe:01 1234   /usr/lib/libc.so.6"; the name may be missing. */
static void mapping_add(struct host_symbols *symbols, const char *line)
{
	struct mapped mapped;
	char executable;
	int name_at = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %*c%*c%c%*c %" SCNx64 " %*s %*s %n", &mapped.start, &mapped.end,
	           &executable, &mapped.file_offset, &name_at) != 4 ||
	    executable != 'x' || name_at == 0 || line[name_at] == '\0')
		return;
	mapped.name = g_string_chunk_insert_const(symbols->texts, line + name_at);
	g_array_append_val(symbols->mapped, mapped);
}

static void process_read(struct host_symbols *symbols, const char *proc, pid_t process)
{
	g_autofree char *name = g_strdup_printf("%d/maps", (int)process);
	g_autofree char *text = proc_read(proc, name);
	g_auto(GStrv) lines = g_strsplit(text ? text : "", "\n", -1);

	for (char **line = lines; *line; line++)
		mapping_add(symbols, *line);
	if (symbols->mapped->len == 0)
		symbols->process_why =
			g_strdup_printf("cannot read what process %d has mapped: %s; run vprof as its user or root",
		                        (int)process, text ? "it has ended" : g_strerror(errno));
}

/* The process may see other files than we do (libvirt gives QEMU a mount namespace), and be gone when they are read. */
static char *root_open(struct host_symbols *symbols, const char *proc, pid_t process)
{
	g_autofree char *path = g_strdup_printf("%s/%d/root", proc, (int)process);

	symbols->root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return symbols->root >= 0 ? g_strdup_printf("/proc/self/fd/%d", symbols->root) : g_strdup("");
}

static bool process_find(struct host_symbols *symbols, const struct mapped *mapped, uint64_t address,
                         struct host_symbol *out)
{
	uint64_t offset = address - mapped->start + mapped->file_offset;
	const char *slash = strrchr(mapped->name, '/');
	struct user_symbol found;

	if (mapped->name[0] == '/' && user_symbols_find(symbols->files, mapped->name, NULL, 0, offset, &found)) {
		*out = (struct host_symbol){address - (offset - found.file_offset), found.size, found.name,
		                            mapped->name};
		return true;
	}
	g_autofree char *text = g_strdup_printf("%s+0x%" PRIx64, slash ? slash + 1 : mapped->name, offset);

	*out = (struct host_symbol){address, 1, g_string_chunk_insert_const(symbols->texts, text), mapped->name};
	return true;
}

/* ---- both ---- */

struct host_symbols *host_symbols_new(const char *proc, pid_t process, bool debuginfod)
{
	struct host_symbols *symbols = g_new0(struct host_symbols, 1);

	symbols->texts = g_string_chunk_new(4096);
	symbols->codes = g_array_new(FALSE, FALSE, sizeof(struct code));
	symbols->mapped = g_array_new(FALSE, FALSE, sizeof(struct mapped));
	g_autofree char *root = root_open(symbols, proc, process);
	const struct user_symbol_sources sources = {.symfs = root, .debuginfod = debuginfod};

	symbols->files = user_symbols_new(&sources);
	kernel_read(symbols, proc);
	process_read(symbols, proc, process);
	return symbols;
}

void host_symbols_free(struct host_symbols *symbols)
{
	if (!symbols)
		return;
	user_symbols_free(symbols->files);
	symtab_free(symbols->kernel);
	if (symbols->root >= 0)
		close(symbols->root);
	g_array_unref(symbols->codes);
	g_array_unref(symbols->mapped);
	g_string_chunk_free(symbols->texts);
	g_free(symbols->kernel_why);
	g_free(symbols->process_why);
	g_free(symbols);
}

const char *host_symbols_kernel_why(const struct host_symbols *symbols)
{
	return symbols->kernel_why;
}

const char *host_symbols_process_why(const struct host_symbols *symbols)
{
	return symbols->process_why;
}

bool host_symbols_find(struct host_symbols *symbols, uint64_t address, struct host_symbol *symbol)
{
	if (address >> 63 != 0)
		return kernel_find(symbols, address, symbol);
	for (guint i = 0; i < symbols->mapped->len; i++) {
		const struct mapped *mapped = &g_array_index(symbols->mapped, struct mapped, i);

		if (address >= mapped->start && address < mapped->end)
			return process_find(symbols, mapped, address, symbol);
	}
	return false;
}
