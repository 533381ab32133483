// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guest kernel's functions that a recording has been in, as /proc/kallsyms would list them (proc_kallsyms(5)), for
 * perf, which has nothing else to name them by when the kernel has no vmlinux. Addresses are those that the guest had.
 */
#include <string.h>

#include "export/export.h"
#include "lib/profile/chain.h"
#include "ui/text.h"

/* A function, or one address that is in none. */
struct listed {
	uint64_t address;   /* first: it is the key */
	uint64_t last;      /* of those that were seen in it */
	const char *name;   /* "": none */
	const char *module; /* "[virtio_blk]"; "": the kernel itself */
};

struct listing {
	struct input *input;
	GHashTable *seen;     /* struct listed by address; borrowed */
	GPtrArray *functions; /* of struct listed */
	GStringChunk *texts;
};

static struct listed *listed_new(struct listing *listing, uint64_t address, const char *name, const char *module)
{
	struct listed *listed = g_new(struct listed, 1);

	*listed = (struct listed){address, address, g_string_chunk_insert_const(listing->texts, name),
	                          g_string_chunk_insert_const(listing->texts, module)};
	return listed;
}

static void place_take(struct listing *listing, uint64_t ip, const struct place *place)
{
	const char *name = place->known ? place->symbol : "";
	const uint64_t address = ip - (place->known ? place->offset : 0);
	struct listed *listed = g_hash_table_lookup(listing->seen, &address);

	if (!listed) {
		listed =
			listed_new(listing, address, name, strcmp(place->module, "[kernel]") == 0 ? "" : place->module);
		g_ptr_array_add(listing->functions, listed);
		g_hash_table_insert(listing->seen, &listed->address, listed);
	}
	listed->last = MAX(listed->last, ip);
}

/* Of whichever event. */
static bool sample_take(const struct record_sample *sample, unsigned event, void *data)
{
	struct listing *listing = data;
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	const uint32_t n = chain_frames(sample, frames);
	struct place place;

	(void)event;
	for (uint32_t i = 0; i < n; i++) {
		if (profile_mode_of(frames[i].misc) != PROFILE_KERNEL || vprof_is_real_mode(frames[i].ip))
			continue;
		input_find_place(listing->input, sample, PROFILE_KERNEL, frames[i].ip, &place);
		place_take(listing, frames[i].ip, &place);
	}
	return true;
}

static int addresses_compare(const void *a, const void *b)
{
	const struct listed *left = *(struct listed *const *)a, *right = *(struct listed *const *)b;

	return (left->address > right->address) - (left->address < right->address);
}

static void listing_read(struct listing *listing)
{
	static const struct input_visitor visitor = {.sample = sample_take};
	const struct kernel_place *kernel = &listing->input->kernel;

	input_walk(listing->input, &visitor, listing);
	/* perf takes the kernel's address from this symbol. Of a function that begins there, it takes the name that
	 * comes last. */
	if (kernel->symbol[0] != '\0')
		g_ptr_array_insert(listing->functions, 0, listed_new(listing, kernel->address, kernel->symbol, ""));
	g_ptr_array_sort(listing->functions, addresses_compare);
}

/*
 * perf lets a function end where the next one begins, and the last one of the kernel and of each module within a page
 * or two. So the end is set where no function of the same module follows, behind the last sampled address and behind
 * the return address there, by which perf looks callers up. It is data of a module that perf does not find: perf ends
 * the function there, and then drops the symbol (Linux, tools/perf/util/symbol.c, symbols__fixup_end,
 * maps__split_kallsyms). The module's name in brackets shows perf that the end is of that module.
 */
static void end_print(const struct listed *function, const struct listed *next, FILE *to)
{
	uint64_t end;

	if (next && next->name[0] != '\0' && strcmp(next->module, function->module) == 0)
		return;
	if (__builtin_add_overflow(function->last, 2, &end))
		return;
	fprintf(to, "%016" G_GINT64_MODIFIER "x d .end\tvprof%s\n", next ? MIN(end, next->address) : end,
	        function->module);
}

static void listing_print(const struct listing *listing, FILE *to)
{
	for (guint i = 0; i < listing->functions->len; i++) {
		const struct listed *listed = g_ptr_array_index(listing->functions, i);
		const struct listed *next =
			i + 1 < listing->functions->len ? g_ptr_array_index(listing->functions, i + 1) : NULL;

		if (listed->name[0] == '\0')
			continue;
		fprintf(to, "%016" G_GINT64_MODIFIER "x T %s%s%s\n", listed->address, listed->name,
		        listed->module[0] != '\0' ? "\t" : "", listed->module);
		end_print(listed, next, to);
	}
}

static bool kallsyms_write(const struct export_profile *profile, FILE *to, GError **error)
{
	struct listing listing = {
		.input = profile->input,
		.seen = g_hash_table_new(g_int64_hash, g_int64_equal),
		.functions = g_ptr_array_new_with_free_func(g_free),
		.texts = g_string_chunk_new(4096),
	};

	(void)error;
	listing_read(&listing);
	listing_print(&listing, to);
	g_hash_table_unref(listing.seen);
	g_ptr_array_unref(listing.functions);
	g_string_chunk_free(listing.texts);
	return true;
}

const struct exporter export_buildid_cache = {
	.name = "buildid-cache",
	.summary = "the kernel's functions where plain perf report finds them",
	.by_sample = true,
	.write = kallsyms_write,
};

const struct exporter export_kallsyms = {
	.name = "kallsyms",
	.summary = "the kernel's functions for perf report --kallsyms FILE",
	.by_sample = true,
	.write = kallsyms_write,
};
