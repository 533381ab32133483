// SPDX-License-Identifier: BSD-2-Clause
/*
 * The guest kernel's functions that a recording has been in, as /proc/kallsyms would list them (proc_kallsyms(5)), for
 * perf, which has nothing else to name them by when the kernel has no vmlinux. Addresses are those that the guest had.
 */
#include <string.h>

#include "export/export_samples.h"
#include "text.h"

struct listed {
	uint64_t address;
	const char *name, *module; /* "[virtio_blk]"; "": the kernel itself */
};

struct listing {
	GHashTable *seen; /* addresses */
	GArray *functions;
	GStringChunk *texts;
};

static void function_add(struct listing *listing, uint64_t address, const char *name, const char *module)
{
	const struct listed listed = {address, g_string_chunk_insert_const(listing->texts, name),
	                              g_string_chunk_insert_const(listing->texts, module)};

	g_array_append_val(listing->functions, listed);
}

/*
 * perf ends a function where the next one begins: what has no name must not become part of what is listed before it.
 * Its name has no brackets, in which perf would see a module's.
 */
static void frame_take(struct listing *listing, const struct export_frame *frame)
{
	g_autofree char *name = text_printable(frame->place.symbol);
	g_autofree char *module = text_printable(frame->place.module);

	uint64_t address = frame->ip - (frame->place.known ? frame->place.offset : 0);

	if (g_hash_table_add(listing->seen, g_memdup2(&address, sizeof(address))))
		function_add(listing, address, frame->place.known ? name : "unknown",
		             strcmp(module, "[kernel]") == 0 ? "" : module);
}

static bool sample_take(const struct record_sample *sample, const char *comm, const struct export_frame *frames,
                        size_t n, void *data)
{
	(void)sample;
	(void)comm;
	for (size_t i = 0; i < n; i++)
		if (frames[i].mode == PROFILE_KERNEL)
			frame_take(data, &frames[i]);
	return true;
}

static int addresses_compare(const void *a, const void *b)
{
	const struct listed *left = a, *right = b;

	return (left->address > right->address) - (left->address < right->address);
}

static void listing_read(struct listing *listing, const struct export_profile *profile)
{
	struct export_profile of = *profile;

	for (size_t i = 0; i < recording_n_events(profile->input->recording); i++) {
		of.event_number = (unsigned)i;
		export_samples_each(&of, sample_take, listing);
	}
	/* What perf takes the kernel's place from, also when a function begins there. */
	if (profile->input->kernel.symbol[0] != '\0')
		function_add(listing, profile->input->kernel.address, profile->input->kernel.symbol, "");
	g_array_sort(listing->functions, addresses_compare);
}

static bool kallsyms_write(const struct export_profile *profile, FILE *to, GError **error)
{
	struct listing listing = {
		.seen = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, NULL),
		.functions = g_array_new(FALSE, FALSE, sizeof(struct listed)),
		.texts = g_string_chunk_new(4096),
	};

	(void)error;
	listing_read(&listing, profile);
	for (guint i = 0; i < listing.functions->len; i++) {
		const struct listed *listed = &g_array_index(listing.functions, struct listed, i);

		fprintf(to, "%016" G_GINT64_MODIFIER "x T %s%s%s\n", listed->address, listed->name,
		        listed->module[0] != '\0' ? "\t" : "", listed->module);
	}
	g_hash_table_unref(listing.seen);
	g_array_unref(listing.functions);
	g_string_chunk_free(listing.texts);
	return true;
}

const struct exporter export_kallsyms = {
	.name = "kallsyms",
	.summary = "the kernel's functions for perf report --kallsyms FILE",
	.by_sample = true,
	.write = kallsyms_write,
};
