// SPDX-License-Identifier: BSD-2-Clause
/* The end of a recording: the symbols of what was sampled, and the description of the run. */
#include "capture/capture_priv.h"
#include "capture/capture_symbols.h"
#include "lib/record/processor.h"
#include "ui/text.h"

/* Sentences about what could not be known of the guest. */
static json_t *capture_missing(const struct capture *capture)
{
	static const struct {
		const char *what, *member;
	} whys[] = {{"tasks", "tasks-why"},
	            {"mapped files", "mappings-why"},
	            {"cgroups", "cgroups-why"},
	            {"modules", "modules-why"},
	            {"ORC", "unwinder-why"}};
	json_t *missing = json_array();

	for (size_t i = 0; i < G_N_ELEMENTS(whys); i++) {
		const char *why = member_text(capture->session, whys[i].member);

		if (why != NULL)
			json_array_append_new(missing, json_sprintf("%s: %s", whys[i].what, why));
	}
	if (capture->told_mappings)
		json_array_append_new(missing, json_string("mapped files: those that the agent in the guest has told"));
	return missing;
}

static int64_t realtime_offset_ns(void)
{
	return g_get_real_time() * 1000 - g_get_monotonic_time() * 1000;
}

/* VPROF_FEATURE_DESCRIPTION. */
static char *capture_description(const struct capture *capture, const struct capture_summary *summary)
{
	g_autofree char *cpu = processor_model();
	json_t *description = json_pack("{s:i, s:o, s:I}", "version", 1, "host-cpu", text_json(cpu),
	                                "realtime-offset-ns", (json_int_t)realtime_offset_ns());
	char *text;

	member_set(description, "guest", summary->guest);
	member_set(description, "events", json_object_get(capture->session, "events"));
	member_set(description, "rate", capture->rate);
	member_set(description, "unwinder", json_object_get(capture->session, "unwinder"));
	member_set(description, "statistics", summary->statistics);
	member_set(description, "end", summary->end);
	member_set(description, "phases", capture->phases);
	member_set(description, "marks", capture->marks);
	member_set(description, "exec", summary->exec);
	json_object_set_new(description, "missing", capture_missing(capture));
	text = json_dumps(description, JSON_COMPACT);
	json_decref(description);
	return text;
}

static const struct histogram *frames_of(const struct capture *capture, guint i)
{
	return i < capture->kernels->len ? g_array_index(capture->kernels, struct kernel_before, i).frames
	                                 : capture->frames;
}

/* Of all kernels, the last of which is `symtab`. What was seen while one booted fell to the one before. */
static GArray *capture_symbols(const struct capture *capture, const struct symtab *symtab)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; i <= capture->kernels->len; i++) {
		const struct symtab *own = i < capture->kernels->len
		                                   ? g_array_index(capture->kernels, struct kernel_before, i).symtab
		                                   : symtab;

		symbols_hit(frames_of(capture, i), own, symbols);
		if (i > 0)
			symbols_hit(frames_of(capture, i - 1), own, symbols);
	}
	if (capture->kernels->len > 0)
		symbols_order_certain(symbols);
	else
		symbols_order(symbols);
	return symbols;
}

static GArray *capture_user_symbols(const struct capture *capture, struct user_symbols *user)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; i <= capture->kernels->len; i++)
		user_symbols_hit(frames_of(capture, i), user, symbols);
	if (capture->guest_symbols != NULL)
		g_array_append_vals(symbols, capture->guest_symbols->data, capture->guest_symbols->len);
	symbols_order(symbols);
	return symbols;
}

static GArray *capture_host_symbols(const struct capture *capture, struct host_symbols *host)
{
	GArray *symbols = g_array_new(FALSE, FALSE, sizeof(struct recording_symbol));

	for (guint i = 0; host != NULL && i <= capture->kernels->len; i++)
		host_symbols_hit(frames_of(capture, i), host, symbols);
	symbols_order_addresses(symbols);
	return symbols;
}

bool capture_finish(struct capture *capture, const struct capture_summary *summary, const struct image *image,
                    const struct symtab *symtab, const char *const *command_line, GError **error)
{
	struct recording_features features = {
		.hostname = member_text(summary->guest, "name"),
		.release = member_text(summary->guest, "release"),
		.version = VPROF_VERSION,
		.cmdline = command_line,
		.vcpus = (unsigned)member_number(summary->guest, "vcpus", 1),
		.memory_bytes = member_number(summary->guest, "memory-bytes", 0),
		.kernel_path = member_text(summary->guest, "kernel"),
	};
	g_autoptr(GArray) symbols = capture_symbols(capture, symtab);
	g_autoptr(GArray) user_symbols = capture_user_symbols(capture, summary->user_symbols);
	g_autoptr(GArray) host_symbols = capture_host_symbols(capture, summary->host_symbols);
	char *description = capture_description(capture, summary);
	bool finished;

	features.description = description;
	if (image != NULL)
		features.kernel_build_id = image_build_id(image, &features.kernel_build_id_bytes);
	features.symbols = (const void *)symbols->data;
	features.n_symbols = symbols->len;
	features.user_symbols = (const void *)user_symbols->data;
	features.n_user_symbols = user_symbols->len;
	features.host_symbols = (const void *)host_symbols->data;
	features.n_host_symbols = host_symbols->len;
	finished = recording_writer_finish(capture->writer, &features, error);
	free(description);
	return finished;
}
