// SPDX-License-Identifier: BSD-2-Clause
#include "attach/kernel_search.h"

#include <string.h>
#include <unistd.h>

#include "lib/parser/parser.h"
#include "lib/record/clock.h"

struct hand_over {
	GSource source; /* first */
	struct kernel_search *search;
};

/* [I] immutable after kernel_search_new, [t] the thread that searches, [M] main thread only. */
struct kernel_search {
	struct kernel_search_config config;              /* [I] without `registers` */
	struct look scan, look;                          /* [t] */
	struct kernel_search_result result;              /* [t], then [M] */
	GThread *thread;                                 /* [M] NULL: none runs */
	void (*done)(void *data);                        /* [M] */
	void *data;                                      /* [M] */
	GSource *source;                                 /* [I] while the thread runs: calls `done` */
	size_t n;                                        /* [t] */
	struct seen_vcpu registers[GUEST_VCPUS_MAX + 1]; /* [t] */
};

struct kernel_search *kernel_search_new(const struct kernel_search_config *config)
{
	struct kernel_search *search = g_new0(struct kernel_search, 1);

	search->config = *config;
	search->config.registers = NULL;
	search->n = config->n;
	memcpy(search->registers, config->registers, config->n * sizeof(search->registers[0]));
	look_init(&search->scan, config->guest);
	look_init(&search->look, config->guest);
	return search;
}

static void scan_tables(struct kernel_search *search)
{
	const struct kernel_search_config *config = &search->config;
	struct seen_vcpu *scanned = &search->result.scanned;

	search->result.scan = config->scan;
	if (config->guest->searches[0]->scan(&search->result.scan, &search->scan, guest_memory_next, config->memory,
	                                     config->five_levels, scanned))
		search->registers[search->n++] = *scanned;
}

/* The reason that says most; the first of its kind. */
static void why_take(GError **why, GError *own)
{
	if (*why && g_error_matches(own, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_EARLY)) {
		g_error_free(own);
		return;
	}
	g_clear_error(why);
	*why = own;
}

static void find_by_any(struct kernel_search *search)
{
	const struct kernel_search_config *config = &search->config;
	struct kernel_search_result *result = &search->result;

	for (size_t i = 0; i < search->n && !look_gave_up(&search->look); i++) {
		GError *own = NULL;

		if (kernel_find(&search->look, &search->registers[i], config->kernel_path, config->kernel_file,
		                &result->found, &own)) {
			g_clear_error(&result->why);
			return;
		}
		why_take(&result->why, own);
	}
	result->gave_up = look_gave_up(&search->look);
	if (result->gave_up)
		g_prefix_error(
			&result->why,
			"the search for the guest's kernel was given up, as more of its memory looks like one than a search reads; it is repeated when the guest changes: ");
	else if (!result->why)
		g_set_error_literal(&result->why, KERNEL_FIND_ERROR, KERNEL_FIND_ERROR_NONE,
		                    "no registers of the guest's vCPUs are known");
}

/* The kernel that was found by a file, as the guest's memory has it; NULL: it cannot be read. */
static struct image *running_image(struct kernel_search *search)
{
	struct image *image = NULL;

	for (size_t i = 0; i < search->n && !image; i++)
		image = kernel_find_running(&search->look, &search->registers[i], &search->result.found);
	return image;
}

static void parts_load(struct kernel_search *search)
{
	const struct kernel_search_config *config = &search->config;
	struct image *image = search->result.found.image, *running = NULL;

	if (config->sites && config->kernel_path)
		running = running_image(search);
	search->result.parts = os_parts_load(config->guest->systems, image,
	                                     !config->sites ? NULL
	                                     : running      ? running
	                                                    : image);
	image_free(running);
}

void kernel_search_run(struct kernel_search *search)
{
	const uint64_t began_ns = clock_ns(CLOCK_THREAD_CPUTIME_ID);

	if (search->config.memory)
		scan_tables(search);
	find_by_any(search);
	if (search->result.found.image && search->config.parts && !look_cancelled(&search->look))
		parts_load(search);
	search->result.took_us = (int64_t)(clock_ns(CLOCK_THREAD_CPUTIME_ID) - began_ns) / 1000;
}

/* ---- on a thread ---- */

/* Once the thread has made it ready. */
static gboolean hand_over(GSource *source, GSourceFunc callback G_GNUC_UNUSED, void *data G_GNUC_UNUSED)
{
	struct kernel_search *search = ((struct hand_over *)source)->search;

	g_source_unref(g_steal_pointer(&search->source));
	g_thread_join(g_steal_pointer(&search->thread));
	search->done(search->data); /* which may free it */
	return G_SOURCE_REMOVE;
}

static void *search_thread(void *data)
{
	struct kernel_search *search = data;

	kernel_search_run(search);
	g_source_set_ready_time(search->source, 0);
	return NULL;
}

void kernel_search_begin(struct kernel_search *search, void (*done)(void *data), void *data)
{
	static GSourceFuncs functions = {.dispatch = hand_over};

	search->done = done;
	search->data = data;
	search->source = g_source_new(&functions, sizeof(struct hand_over));
	((struct hand_over *)search->source)->search = search;
	g_source_attach(search->source, NULL);
	search->thread = g_thread_new("kernel search", search_thread, search);
}

struct kernel_search_result *kernel_search_result(struct kernel_search *search)
{
	return &search->result;
}

void kernel_search_free(struct kernel_search *search)
{
	if (!search)
		return;
	look_cancel(&search->scan);
	look_cancel(&search->look);
	if (search->thread) {
		parser_abandon();
		g_thread_join(search->thread);
	}
	if (search->source) {
		g_source_destroy(search->source);
		g_source_unref(search->source);
	}
	kernel_found_clear(&search->result.found);
	os_parts_free(search->result.parts);
	g_clear_error(&search->result.why);
	g_free(search);
}
