// SPDX-License-Identifier: BSD-2-Clause
/*
 * kernel_text KERNEL [functions]: whether all functions of a real kernel are decoded to their ends, and whether what
 * its tables say that it changes itself begins where an instruction begins; and of how many of its trace points the
 * arguments can be read. Prints where its code is, and, if asked to, the names of its functions, too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "lib/code/function_returns.h"
#include "lib/code/x86/instruction.h"
#include "linux/text_sites.h"
#include "linux/tracepoint.h"

/*
 * Code that is not the kernel's in 64-bit mode (pvh_start_xen), not only code (retbleed_untrain_ret and its like, which
 * are jumped into), or no function (_etext).
 */
#define UNDECODED_MAX 8u

struct tally {
	unsigned functions, undecoded, inside, returning;
	GHashTable *sites; /* what it is -> how many begin where an instruction begins */
};

/* The share of functions with known returns; the others never return, or jump through pointers. */
#define RETURNING_MIN 0.9

struct known {
	const struct image *image;
	const struct symtab *symtab;
};

static const struct symbol *find_symbol(void *data, uint64_t address)
{
	return symtab_find(((const struct known *)data)->symtab, address);
}

static bool read_image(void *data, uint64_t from, uint8_t *code, size_t n)
{
	size_t there;
	const uint8_t *bytes = image_at(((const struct known *)data)->image, from, &there);

	if (!bytes || there < n)
		return false;
	memcpy(code, bytes, n);
	return true;
}

static void count_returns(struct tally *tally, const struct image *image, const struct symtab *symtab,
                          const struct symbol *function)
{
	struct known known = {image, symtab};
	const struct function_code code = {.find = find_symbol, .read = read_image, .data = &known};
	struct function_returns returns;
	g_autofree char *why = function_returns_find(code_of(ARCH_X86_64), function->address, &code, &returns);

	tally->returning += why == NULL;
}

static void count_site(struct tally *tally, const char *what)
{
	gsize n = GPOINTER_TO_SIZE(g_hash_table_lookup(tally->sites, what));

	g_hash_table_insert(tally->sites, (gpointer)what, GSIZE_TO_POINTER(n + 1));
}

static void look_at(struct tally *tally, const struct text_sites *sites, const struct symbol *function,
                    const uint8_t *code, size_t n)
{
	size_t length;

	tally->functions++;
	for (size_t at = 0; at < n; at += length) {
		const uint64_t address = function->address + at;

		length = instruction_length(code + at, n - at);
		if (length == 0) {
			printf("%s+0x%zx of 0x%zx is not decoded\n", function->name, at, n);
			tally->undecoded++;
			return;
		}
		if (text_sites_find(sites, address) && !text_sites_find(sites, address - 1))
			count_site(tally, text_sites_find(sites, address));
		for (size_t i = 1; i < length; i++)
			tally->inside +=
				text_sites_find(sites, address + i) && !text_sites_find(sites, address + i - 1);
	}
}

static void look_at_all(struct tally *tally, const struct image *image, const struct symtab *symtab)
{
	struct text_sites *sites = text_sites_read(image, symtab);
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++) {
		size_t bytes;
		const uint8_t *code = image_at(image, symbols[i].address, &bytes);

		/* __pfx_NAME: padding in front of a function. */
		if (code && strchr("tTwW", symbols[i].type) && !g_str_has_prefix(symbols[i].name, "__pfx_") &&
		    (i == 0 || symbols[i].address != symbols[i - 1].address)) {
			look_at(tally, sites, &symbols[i], code, MIN(bytes, symbols[i].size));
			count_returns(tally, image, symtab, &symbols[i]);
		}
	}
	text_sites_free(sites);
}

static void print_functions(const struct symtab *symtab)
{
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++)
		if (strchr("tTwW", symbols[i].type) && !g_str_has_prefix(symbols[i].name, "__pfx_"))
			printf("function %s\n", symbols[i].name);
}

/* ---- trace points ---- */

#define WITHOUT_ARGUMENTS_MAX 0.06 /* 4.2 % in Debian's 6.12, 5.6 % in its 6.1 */
#define TRACEPOINTS_MIN 500u

static bool count_tracepoints(const struct image *image, const struct symtab *symtab)
{
	g_autoptr(GError) error = NULL;
	struct tracepoints *tracepoints = tracepoints_load(image, symtab, &error);
	const GPtrArray *all = tracepoints ? tracepoints_all(tracepoints) : NULL;
	unsigned unused = 0, unknown = 0, sites = 0, joins = 0, told = 0;

	if (!tracepoints) {
		printf("%s\n", error->message);
		return true;
	}
	for (guint i = 0; i < all->len; i++) {
		const struct tracepoint *tracepoint = g_ptr_array_index(all, i);

		unused += tracepoint->sites->len == 0;
		told += tracepoint->needs_kernel;
		if (tracepoint->sites->len > 0 && !tracepoint_has_arguments(tracepoint)) {
			printf("%s: without arguments\n", tracepoint->name);
			unknown++;
		}
		for (guint j = 0; j < tracepoint->sites->len; j++) {
			sites++;
			joins += g_array_index(tracepoint->sites, struct tracepoint_site, j).joins;
		}
	}
	printf("%u trace points, %u in no code, %u without arguments, %u that need the kernel; %u places, %u without a place behind\n",
	       all->len, unused, unknown, told, sites, joins);
	const bool right = all->len >= TRACEPOINTS_MIN && unknown <= WITHOUT_ARGUMENTS_MAX * (all->len - unused);
	tracepoints_free(tracepoints);
	return right;
}

int main(int argc, char **argv)
{
	g_autoptr(GError) error = NULL;
	struct image *image = argc >= 2 ? image_open(argv[1], &error) : NULL;
	struct symtab *symtab = image ? symtab_load(image, &error) : NULL;
	struct tally tally = {.sites = g_hash_table_new(g_str_hash, g_str_equal)};
	GHashTableIter iterator;
	gpointer what, n;

	if (!symtab) {
		fprintf(stderr, "%s\n", error ? error->message : "usage: kernel_text KERNEL [functions]");
		return 1;
	}
	look_at_all(&tally, image, symtab);
	if (argc == 3)
		print_functions(symtab);
	printf("text 0x%" PRIx64 " 0x%" PRIx64 "\n", symtab_address(symtab, "_stext"),
	       symtab_address(symtab, "_etext"));
	printf("%u functions, %u not decoded, %u with known returns; sites inside of instructions: %u; where instructions begin:\n",
	       tally.functions, tally.undecoded, tally.returning, tally.inside);
	g_hash_table_iter_init(&iterator, tally.sites);
	while (g_hash_table_iter_next(&iterator, &what, &n))
		printf("  %s: %zu\n", (const char *)what, GPOINTER_TO_SIZE(n));
	bool right = tally.functions > 1000 && tally.returning > RETURNING_MIN * tally.functions &&
	             tally.undecoded <= UNDECODED_MAX && tally.inside == 0 &&
	             g_hash_table_contains(tally.sites, "a jump label") &&
	             g_hash_table_contains(tally.sites, "a static call") &&
	             g_hash_table_contains(tally.sites, "an alternative") && count_tracepoints(image, symtab);
	g_hash_table_unref(tally.sites);
	symtab_free(symtab);
	image_free(image);
	return right ? 0 : 1;
}
