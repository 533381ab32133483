// SPDX-License-Identifier: BSD-2-Clause
#include "trace/trace_names.h"

#include <inttypes.h>
#include <string.h>
#include <vprof/probe.h>

#include "engine/engine_process.h"
#include "lib/profile/mappings.h"
#include "lib/profile/resolver.h"
#include "trace/trace_program.h"
#include "ui/text.h"

/* A guest cannot make vprof keep more of them: then all are forgotten, and the mappings of new processes are kept. */
#define MAPPINGS_MAX 65536u

/* Addresses in modules that are looked up, each once: what is behind it changes seldom, and a look takes time. */
#define MODULE_ADDRESSES_MAX 4096u

struct trace_names {
	struct client *client;
	GHashTable *modules;   /* from addresses of the kernel (uint64_t) to names of what modules have there, or "" */
	struct symtab *symtab; /* NULL: no names of the kernel's functions */
	struct user_symbols *user;
	struct mappings *mappings;
	unsigned n_mappings;
	struct resolver *resolver; /* of user space */
};

/* What is known of the files of user space. */
static void forget(struct trace_names *names)
{
	resolver_free(names->resolver);
	mappings_free(names->mappings);
	names->mappings = mappings_new();
	names->n_mappings = 0;
	names->resolver = resolver_new_symtab(NULL, NULL);
	resolver_set_user(names->resolver, names->user);
}

struct trace_names *trace_names_new(struct client *client, const char *symfs)
{
	json_t *guest = engine_ask(client, "query-guest", NULL, NULL);
	const char *kernel = member_text(guest, "kernel");
	struct image *image = kernel ? image_open(kernel, NULL) : NULL;
	struct trace_names *names = g_new0(struct trace_names, 1);

	names->client = client;
	names->modules = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);

	if (image)
		names->symtab = symtab_load(image, NULL);
	image_free(image);
	names->user = trace_program_copies(client, symfs);
	forget(names);
	json_decref(guest);
	return names;
}

void trace_names_free(struct trace_names *names)
{
	if (!names)
		return;
	g_hash_table_unref(names->modules);
	resolver_free(names->resolver);
	mappings_free(names->mappings);
	user_symbols_free(names->user);
	symtab_free(names->symtab);
	g_free(names);
}

void trace_names_take(struct trace_names *names, const struct perf_event_header *record, size_t bytes)
{
	uint64_t time_ns = 0;

	if (record->type != PERF_RECORD_MMAP2)
		return;
	if (++names->n_mappings > MAPPINGS_MAX)
		forget(names);
	record_time(record, bytes, VPROF_PROBE_SAMPLE_TYPE, &time_ns);
	mappings_add(names->mappings, record, bytes, time_ns);
}

/* NULL: nothing known. New string. */
static char *ask_module(const struct trace_names *names, uint64_t ip)
{
	json_t *wanted = json_pack("{s:[o]}", "addresses", json_sprintf("0x%" PRIx64, ip));
	json_t *answer = engine_ask(names->client, "module-symbols", wanted, NULL);
	const json_t *place = json_array_get(json_object_get(answer, "symbols"), 0);
	const char *symbol = member_text(place, "symbol"), *start = member_text(place, "start");
	g_autofree char *name = symbol ? text_printable(symbol) : NULL;
	const uint64_t distance = start ? ip - g_ascii_strtoull(start, NULL, 16) : 0;

	json_decref(answer);
	return name && distance != 0 ? g_strdup_printf("%s+0x%" PRIx64, name, distance) : g_steal_pointer(&name);
}

/* "": nothing known. */
static const char *find_module(const struct trace_names *names, uint64_t ip)
{
	char *name = g_hash_table_lookup(names->modules, &ip);

	if (!name && ip >> 63 && g_hash_table_size(names->modules) < MODULE_ADDRESSES_MAX) {
		name = ask_module(names, ip);
		if (!name)
			name = g_strdup("");
		g_hash_table_insert(names->modules, g_memdup2(&ip, sizeof(ip)), name);
	}
	return name ? name : "";
}

char *trace_names_kernel(const struct trace_names *names, uint64_t ip)
{
	const struct symbol *symbol = names->symtab ? symtab_find(names->symtab, ip) : NULL;
	const char *module = symbol ? "" : find_module(names, ip);
	g_autofree char *name = NULL;

	if (!symbol)
		return *module != '\0' ? g_strdup(module) : g_strdup_printf("0x%" PRIx64, ip);
	name = text_printable(symbol->name);
	return ip != symbol->address ? g_strdup_printf("%s+0x%" PRIx64, name, ip - symbol->address)
	                             : g_steal_pointer(&name);
}

char *trace_names_function(const struct trace_names *names, uint64_t ip)
{
	char *name = trace_names_kernel(names, ip);
	char *offset = strchr(name, '+');

	if (offset)
		*offset = '\0';
	return name;
}

char *trace_names_frame(struct trace_names *names, const struct chain_frame *frame, uint32_t pid, uint64_t time_ns)
{
	const struct mapping *mapping = NULL;
	struct place place;

	if (frame->misc != PERF_RECORD_MISC_USER)
		return trace_names_kernel(names, frame->ip);
	mapping = mappings_find(names->mappings, PROFILE_USER, pid, frame->ip, time_ns);
	if (!mapping)
		return trace_names_kernel(names, frame->ip);
	resolver_find(names->resolver, PROFILE_USER, frame->ip, mapping, &place);
	return place.known && place.offset != 0 ? g_strdup_printf("%s+0x%" PRIx64, place.symbol, place.offset)
	                                        : g_strdup(place.symbol);
}

struct user_symbols *trace_names_copies(const struct trace_names *names)
{
	return names->user;
}
