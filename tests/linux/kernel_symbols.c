// SPDX-License-Identifier: BSD-2-Clause
/*
 * kernel_symbols KERNEL [VMLINUX]: whether the symbols of a real kernel are right. linux_banner must be where the
 * banner is; and what KERNEL's kallsyms say must be what VMLINUX, the same kernel with its .symtab, says.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/symbol/symtab.h"

struct kernel {
	struct image *image;
	struct symtab *symtab;
};

static unsigned failures;

G_GNUC_PRINTF(2, 3)
static void expect(bool ok, const char *format, ...)
{
	va_list arguments;

	if (ok)
		return;
	failures++;
	va_start(arguments, format);
	vfprintf(stderr, format, arguments);
	va_end(arguments);
	fputc('\n', stderr);
}

static struct kernel kernel_open(const char *path)
{
	g_autoptr(GError) error = NULL;
	struct kernel kernel = {.image = image_open(path, &error)};

	if (kernel.image)
		kernel.symtab = symtab_load(kernel.image, &error);
	if (!kernel.symtab) {
		fprintf(stderr, "%s\n", error->message);
		exit(1);
	}

	size_t n;

	symtab_symbols(kernel.symtab, &n);
	printf("%s: Linux %s, %s, %zu symbols from %s\n", path, image_release(kernel.image),
	       image_compression(kernel.image) ? image_compression(kernel.image) : "plain", n,
	       symtab_source(kernel.symtab));
	return kernel;
}

static void kernel_close(struct kernel *kernel)
{
	symtab_free(kernel->symtab);
	image_free(kernel->image);
}

static void check_banner(const struct kernel *kernel)
{
	g_autofree char *banner = g_strdup_printf("Linux version %s (", image_release(kernel->image));
	const struct symbol *symbol = symtab_find_name(kernel->symtab, "linux_banner");
	size_t n = 0;
	const uint8_t *at = symbol ? image_at(kernel->image, symbol->address, &n) : NULL;

	expect(image_is_linux(kernel->image), "not recognised as Linux");
	expect(symbol, "no symbol linux_banner");
	expect(at && n > strlen(banner) && memcmp(at, banner, strlen(banner)) == 0, "linux_banner is not at \"%s\"",
	       banner);
}

/* "ADDRESS TYPE NAME" of all code, as a set. */
static GHashTable *code_set(const struct symtab *symtab)
{
	GHashTable *set = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++)
		if (strchr("tTwW", symbols[i].type))
			g_hash_table_add(set, g_strdup_printf("%lx %c %s", symbols[i].address, symbols[i].type,
			                                      symbols[i].name));
	return set;
}

static void check_subset(GHashTable *part, GHashTable *whole, const char *which)
{
	GHashTableIter iterator;
	gpointer symbol;

	g_hash_table_iter_init(&iterator, part);
	while (g_hash_table_iter_next(&iterator, &symbol, NULL))
		expect(g_hash_table_contains(whole, symbol), "only in %s: %s", which, (const char *)symbol);
}

/* Every address that .symtab gives to a function, kallsyms give to a symbol that begins in it. */
static void check_lookups(const struct symtab *truth, const struct symtab *kallsyms)
{
	size_t n;
	const struct symbol *symbols = symtab_symbols(truth, &n);

	for (size_t i = 0; i < n; i++) {
		const struct symbol *want = symtab_find(truth, symbols[i].address);

		if (!want)
			continue;

		const struct symbol *first = symtab_find(kallsyms, want->address);
		const struct symbol *last = symtab_find(kallsyms, want->address + want->size - 1);

		expect(first && first->address == want->address, "%s: nothing begins there in kallsyms", want->name);
		expect(last && last->address >= want->address, "%s: its end is another's in kallsyms", want->name);
	}
}

static void check_agreement(const struct kernel *kernel, const struct kernel *truth)
{
	g_autoptr(GHashTable) ours = code_set(kernel->symtab);
	g_autoptr(GHashTable) theirs = code_set(truth->symtab);
	size_t n, m;
	const uint8_t *id = image_build_id(kernel->image, &n), *true_id = image_build_id(truth->image, &m);

	expect(strcmp(symtab_source(kernel->symtab), "kallsyms") == 0, "the first kernel has a .symtab");
	expect(strcmp(symtab_source(truth->symtab), "symtab") == 0, "the second kernel has no .symtab");
	expect(id && true_id && n == m && memcmp(id, true_id, n) == 0, "different build-ids");
	expect(image_entry(kernel->image) == image_entry(truth->image), "different entries");
	expect(g_hash_table_size(ours) > 5000, "only %u code symbols", g_hash_table_size(ours));
	check_subset(ours, theirs, "kallsyms");
	check_subset(theirs, ours, ".symtab");
	check_lookups(truth->symtab, kernel->symtab);
}

int main(int argc, char **argv)
{
	if (argc != 2 && argc != 3) {
		fprintf(stderr, "usage: %s KERNEL [VMLINUX]\n", argv[0]);
		return 2;
	}

	struct kernel kernel = kernel_open(argv[1]);

	check_banner(&kernel);
	if (argc == 3) {
		struct kernel truth = kernel_open(argv[2]);

		check_banner(&truth);
		check_agreement(&kernel, &truth);
		kernel_close(&truth);
	}
	kernel_close(&kernel);
	return failures == 0 ? 0 : 1;
}
