// SPDX-License-Identifier: BSD-2-Clause
/*
 * kernel_placements KERNEL [N]: N random probes of a kernel's functions (function x offset x means), decided as for a
 * guest, and none of them placed in one. What is accepted is compared with what others say of the same image: an
 * instruction begins there by capstone, and, if it is to be patched, none that ftrace, jump labels, static calls,
 * alternatives or paravirtual operations own, by tables that are read here again. $VPROF_SEED repeats a run.
 */
#include <capstone/capstone.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "linux/os_linux.h"
#include "probe/probe.h"

#define PLACEMENTS 20000u
#define OFFSET_MAX 400
#define TOGETHER 12u /* probes at a time */
#define BREAKPOINTS_MAX (TOGETHER * 17)
#define CALL_BYTES 5u
/* Of the entries of functions; the others are the kernel's own. */
#define ENTRIES_MIN 0.9
/* capstone does not know all instructions of a kernel. */
#define UNDECODED_MAX 0.01

struct range {
	uint64_t start, bytes;
	const char *what;
};

/* ---- a guest that only has the kernel's file ---- */

static const struct guest_os *const systems[] = {&os_linux, NULL};

static struct image *image;
static const struct guest_breakpoint *placed[BREAKPOINTS_MAX];
static size_t n_placed;

static bool memory_read(struct guest *guest G_GNUC_UNUSED, gpa_t from, void *to, size_t bytes)
{
	size_t n, there;
	const struct image_segment *segments = image_segments(image, &n);

	for (size_t i = 0; i < n; i++) {
		const uint64_t at = from.value - segments[i].gpa;
		const uint8_t *data =
			at < segments[i].file_bytes ? image_at(image, segments[i].gva + at, &there) : NULL;

		if (!data || there < bytes)
			continue;
		memcpy(to, data, bytes);
		return true;
	}
	return false;
}

static bool run_on_vcpu(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED, void (*run)(void *data),
                        void *data)
{
	run(data);
	return true;
}

static bool breakpoint_add(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint, GError **error)
{
	size_t processors = 0;

	for (size_t i = 0; i < n_placed; i++)
		processors += !placed[i]->patched;
	breakpoint->patched =
		breakpoint->kind == GUEST_BREAKPOINT_PATCH ||
		(breakpoint->kind == GUEST_BREAKPOINT_ANY && processors == GUEST_BREAKPOINT_ADDRESSES_MAX);
	if (n_placed == BREAKPOINTS_MAX || (!breakpoint->patched && processors == GUEST_BREAKPOINT_ADDRESSES_MAX)) {
		g_set_error(error, GUEST_ERROR, GUEST_ERROR_TAKEN, "all are taken");
		return false;
	}
	placed[n_placed++] = breakpoint;
	return true;
}

static void breakpoint_remove(struct guest *guest G_GNUC_UNUSED, struct guest_breakpoint *breakpoint)
{
	size_t kept = 0;

	for (size_t i = 0; i < n_placed; i++)
		if (placed[i] != breakpoint)
			placed[kept++] = placed[i];
	n_placed = kept;
}

static bool breakpoint_intact(struct guest *guest G_GNUC_UNUSED,
                              const struct guest_breakpoint *breakpoint G_GNUC_UNUSED)
{
	return true;
}

static void unpatch(struct guest *guest G_GNUC_UNUSED, gva_t from G_GNUC_UNUSED, uint8_t *code G_GNUC_UNUSED,
                    size_t n G_GNUC_UNUSED)
{
}

static bool registers_read(struct guest *guest G_GNUC_UNUSED, unsigned vcpu G_GNUC_UNUSED,
                           struct guest_regs *regs G_GNUC_UNUSED, struct guest_gprs *gprs G_GNUC_UNUSED)
{
	return false; /* it has not begun: its code lies where it was loaded */
}

static const struct guest_ops ops = {.run_on_vcpu = run_on_vcpu, .memory_read = memory_read};
static const struct guest_debug_ops debug = {.breakpoint_add = breakpoint_add,
                                             .breakpoint_remove = breakpoint_remove,
                                             .breakpoint_intact = breakpoint_intact,
                                             .unpatch = unpatch,
                                             .registers_read = registers_read};

/* ---- what the kernel owns ---- */

static void own(GArray *owned, uint64_t start, uint64_t bytes, const char *what)
{
	const struct range range = {start, bytes, what};

	g_array_append_val(owned, range);
}

/* The word at `at`, and the address that it names, from itself on. */
static uint64_t relative(const uint8_t *table, uint64_t at, size_t offset)
{
	int32_t distance;

	memcpy(&distance, table + offset, sizeof(distance));
	return at + offset + (uint64_t)(int64_t)distance;
}

static uint64_t absolute(const uint8_t *table, uint64_t at G_GNUC_UNUSED, size_t offset)
{
	uint64_t address;

	memcpy(&address, table + offset, sizeof(address));
	return address;
}

/* Entries of a table; `length_at`: the byte that says how long the code is, or 0: it has CALL_BYTES, the longest. */
static size_t own_table(GArray *owned, const struct symtab *symtab, const char *start, const char *end,
                        size_t entry_bytes, size_t length_at,
                        uint64_t (*address)(const uint8_t *table, uint64_t at, size_t offset), const char *what)
{
	const uint64_t from = symtab_address(symtab, start), to = symtab_address(symtab, end);
	size_t n;
	const uint8_t *table = from != 0 && to > from ? image_at(image, from, &n) : NULL;

	if (!table || n < to - from || (to - from) % entry_bytes != 0)
		return 0;
	for (size_t at = 0; at < to - from; at += entry_bytes)
		own(owned, address(table, from, at), length_at != 0 ? table[at + length_at] : CALL_BYTES, what);
	return (to - from) / entry_bytes;
}

static int compare_ranges(gconstpointer left, gconstpointer right)
{
	const struct range *x = left, *y = right;

	return (x->start > y->start) - (x->start < y->start);
}

/* False when a table that each of these kernels has is not there. */
static bool own_all(GArray *owned, const struct symtab *symtab)
{
	/* Linux 6.3 made struct alt_instr larger. */
	const bool is_old = g_str_has_prefix(image_release(image), "6.1.");
	const size_t entry = is_old ? 12 : 14;
	const bool has_all =
		own_table(owned, symtab, "__start_mcount_loc", "__stop_mcount_loc", 8, 0, absolute, "ftrace's") > 0 &&
		own_table(owned, symtab, "__start___jump_table", "__stop___jump_table", 16, 0, relative,
	                  "a jump label's") > 0 &&
		own_table(owned, symtab, "__start_static_call_sites", "__stop_static_call_sites", 8, 0, relative,
	                  "a static call's") > 0 &&
		own_table(owned, symtab, "__alt_instructions", "__alt_instructions_end", entry, entry - 2, relative,
	                  "an alternative's") > 0;

	own_table(owned, symtab, "__parainstructions", "__parainstructions_end", 16, 9, absolute,
	          "a paravirtual operation's");
	g_array_sort(owned, compare_ranges);
	return has_all;
}

/* A jump label's nop may be shorter than CALL_BYTES: an instruction may begin inside of the range, but not at its
 * start. */
static const char *owner(const GArray *owned, uint64_t address)
{
	for (guint i = 0; i < owned->len; i++) {
		const struct range *range = &g_array_index(owned, struct range, i);
		const bool is_label = strstr(range->what, "label") != NULL;

		if (range->start > address)
			return NULL;
		if (is_label ? address == range->start : address - range->start < range->bytes)
			return range->what;
	}
	return NULL;
}

/* ---- where instructions begin ---- */

enum begins { BEGINS, BEGINS_NOT, BEGINS_UNKNOWN };

static const struct symbol *function_at(const struct symtab *symtab, uint64_t address)
{
	const struct symbol *symbol = symtab_find(symtab, address);

	return symbol && strchr("tTwW", symbol->type) ? symbol : NULL;
}

static enum begins begins(csh capstone, const struct symtab *symtab, uint64_t address)
{
	const struct symbol *function = function_at(symtab, address);
	size_t n;
	const uint8_t *code = function ? image_at(image, function->address, &n) : NULL;
	uint64_t at = function ? function->address : 0;
	cs_insn *instruction = cs_malloc(capstone);

	n = code ? MIN(n, function->size) : 0;
	while (code && at < address && cs_disasm_iter(capstone, &code, &n, &at, instruction))
		;
	cs_free(instruction, 1);
	return !function || at < address ? BEGINS_UNKNOWN : at == address ? BEGINS : BEGINS_NOT;
}

/* ---- the placements ---- */

struct tally {
	unsigned accepted[GUEST_BREAKPOINT_PATCH + 1], refused[GUEST_BREAKPOINT_PATCH + 1];
	unsigned entries, entries_accepted, undecoded, checked, wrong;
};

struct fuzz {
	struct symtab *symtab;
	GPtrArray *functions; /* of const struct symbol */
	GArray *owned;
	GRand *random;
	csh capstone;
	struct tally tally;
};

static void look_at(struct fuzz *fuzz, const struct guest_breakpoint *breakpoint)
{
	const uint64_t address = breakpoint->at.value;
	const enum begins found = begins(fuzz->capstone, fuzz->symtab, address);
	const char *of = breakpoint->patched ? owner(fuzz->owned, address) : NULL;

	fuzz->tally.checked++;
	fuzz->tally.undecoded += found == BEGINS_UNKNOWN;
	if (found != BEGINS_NOT && !of)
		return;
	fuzz->tally.wrong++;
	printf("%s at 0x%" PRIx64 " %s %s\n", breakpoint->what, address, of ? "is" : "is no instruction's begin",
	       of ? of : "");
}

static void place(struct fuzz *fuzz, struct probe_set *set)
{
	const struct symbol *function =
		g_ptr_array_index(fuzz->functions, g_rand_int_range(fuzz->random, 0, (gint32)fuzz->functions->len));
	const int kind = g_rand_int_range(fuzz->random, 0, 4);
	const int offset = kind < 2 ? 0 : g_rand_int_range(fuzz->random, 1, kind == 2 ? 32 : OFFSET_MAX);
	const bool returns = kind == 1 && g_rand_int_range(fuzz->random, 0, 4) == 0;
	const struct probe_options options = {.breakpoint = (enum guest_breakpoint_kind)g_rand_int_range(
						      fuzz->random, 0, GUEST_BREAKPOINT_PATCH + 1)};
	g_autofree char *text =
		g_strdup_printf(offset ? "%s:%s+%d" : "%s:%s", returns ? "return" : "function", function->name, offset);
	const size_t before = n_placed;
	struct probe_info info;

	if (offset == 0 && !returns && options.breakpoint == GUEST_BREAKPOINT_ANY)
		fuzz->tally.entries++;
	if (!probe_set_add(set, text, &options, &info, NULL)) {
		fuzz->tally.refused[options.breakpoint]++;
		return;
	}
	fuzz->tally.accepted[options.breakpoint]++;
	if (offset == 0 && !returns && options.breakpoint == GUEST_BREAKPOINT_ANY)
		fuzz->tally.entries_accepted++;
	for (size_t i = before; i < n_placed; i++)
		look_at(fuzz, placed[i]);
}

static void run(struct fuzz *fuzz, unsigned n)
{
	struct guest guest = {.ops = &ops,
	                      .debug = &debug,
	                      .name = (char *)"file",
	                      .kind = "file",
	                      .systems = systems,
	                      .vcpus = 1,
	                      .kernel_image = image};
	struct session *session = session_new(&guest, NULL);
	struct probe_hub *hub = probe_hub_new(&guest, session);

	for (unsigned i = 0; i < n; i += TOGETHER) {
		struct probe_set *set = probe_set_new(hub);

		for (unsigned j = 0; j < TOGETHER; j++)
			place(fuzz, set);
		probe_set_free(set);
	}
	probe_hub_free(hub);
	session_free(session);
}

static GPtrArray *functions_of(const struct symtab *symtab)
{
	GPtrArray *functions = g_ptr_array_new();
	size_t n;
	const struct symbol *symbols = symtab_symbols(symtab, &n);

	for (size_t i = 0; i < n; i++)
		if (strchr("tTwW", symbols[i].type) && !g_str_has_prefix(symbols[i].name, "__pfx_"))
			g_ptr_array_add(functions, (gpointer)&symbols[i]);
	return functions;
}

static bool report(const struct tally *tally)
{
	static const char *const means[] = {"any", "processor", "patch"};

	for (size_t i = 0; i < G_N_ELEMENTS(means); i++)
		printf("  %s: %u accepted, %u refused\n", means[i], tally->accepted[i], tally->refused[i]);
	printf("  %u of %u entries; of %u places, %u wrong, %u that capstone does not reach\n", tally->entries_accepted,
	       tally->entries, tally->checked, tally->wrong, tally->undecoded);
	return tally->wrong == 0 && tally->undecoded <= UNDECODED_MAX * tally->checked &&
	       tally->accepted[GUEST_BREAKPOINT_PATCH] > 0 && tally->entries_accepted > ENTRIES_MIN * tally->entries;
}

int main(int argc, char **argv)
{
	const char *seed = g_getenv("VPROF_SEED");
	const uint32_t value = seed ? (uint32_t)g_ascii_strtoull(seed, NULL, 10) : g_random_int();
	g_autoptr(GError) error = NULL;
	struct fuzz fuzz = {.owned = g_array_new(false, false, sizeof(struct range))};

	image = argc >= 2 ? image_open(argv[1], &error) : NULL;
	fuzz.symtab = image ? symtab_load(image, &error) : NULL;
	if (!fuzz.symtab || !image_release(image)) {
		fprintf(stderr, "%s\n", error ? error->message : "usage: kernel_placements KERNEL [N]");
		return 1;
	}
	printf("  VPROF_SEED=%u\n", value);
	fuzz.random = g_rand_new_with_seed(value);
	fuzz.functions = functions_of(fuzz.symtab);
	bool right = own_all(fuzz.owned, fuzz.symtab) && cs_open(CS_ARCH_X86, CS_MODE_64, &fuzz.capstone) == CS_ERR_OK;

	if (right)
		run(&fuzz, argc >= 3 ? (unsigned)atoi(argv[2]) : PLACEMENTS);
	else
		printf("a table of the kernel is missing, or capstone\n");
	right &= report(&fuzz.tally);
	cs_close(&fuzz.capstone);
	g_ptr_array_unref(fuzz.functions);
	g_array_unref(fuzz.owned);
	g_rand_free(fuzz.random);
	symtab_free(fuzz.symtab);
	image_free(image);
	return right ? 0 : 1;
}
