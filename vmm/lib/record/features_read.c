// SPDX-License-Identifier: BSD-2-Clause
/* Feature sections, decoded (Linux, tools/perf/util/header.c, the process_* functions). */
#include <string.h>

#include "lib/record/cursor.h"
#include "lib/record/hex.h"
#include "lib/record/reader_priv.h"

/* Up to the first NUL, printable; NULL when there is none. Free with g_free. */
static char *take_string(struct cursor *cursor)
{
	uint32_t n;

	if (!cursor_take(cursor, &n, sizeof(n)) || n > cursor->left)
		return NULL;
	const char *text = (const char *)cursor->at;
	cursor_skip(cursor, n);
	g_autofree char *ended = g_strndup(text, n);

	return text_printable(ended);
}

static bool string_decode(struct cursor cursor, char **text)
{
	char *decoded = take_string(&cursor);

	if (!decoded)
		return false;
	g_free(*text);
	*text = decoded;
	return true;
}

static bool hostname_decode(struct recording_info *info, struct cursor cursor)
{
	return string_decode(cursor, &info->hostname);
}

static bool release_decode(struct recording_info *info, struct cursor cursor)
{
	return string_decode(cursor, &info->release);
}

static bool arch_decode(struct recording_info *info, struct cursor cursor)
{
	g_autofree char *name = take_string(&cursor);

	if (!name)
		return false;
	info->arch = arch_of_uname(name);
	return true;
}

static bool cmdline_decode(struct recording_info *info, struct cursor cursor)
{
	g_autoptr(GStrvBuilder) words = g_strv_builder_new();
	uint32_t n;

	if (!cursor_take(&cursor, &n, sizeof(n)))
		return false;
	for (uint32_t i = 0; i < n; i++) {
		g_autofree char *word = take_string(&cursor);

		if (!word)
			return false;
		g_strv_builder_add(words, word);
	}
	g_strfreev(info->cmdline);
	info->cmdline = g_strv_builder_end(words);
	return true;
}

static bool event_name_take(struct cursor *cursor, uint32_t attr_bytes, GPtrArray *names)
{
	uint32_t n_ids;

	if (!cursor_skip(cursor, attr_bytes) || !cursor_take(cursor, &n_ids, sizeof(n_ids)))
		return false;
	char *name = take_string(cursor);
	if (!name)
		return false;
	g_ptr_array_add(names, name);
	return cursor_skip(cursor, n_ids * UINT64_C(8));
}

static bool events_decode(struct recording_info *info, struct cursor cursor)
{
	g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
	uint32_t n, attr_bytes;

	if (!cursor_take(&cursor, &n, sizeof(n)) || !cursor_take(&cursor, &attr_bytes, sizeof(attr_bytes)))
		return false;
	for (uint32_t i = 0; i < n; i++)
		if (!event_name_take(&cursor, attr_bytes, names))
			return false;
	g_clear_pointer(&info->event_names, g_ptr_array_unref);
	info->event_names = g_steal_pointer(&names);
	return true;
}

bool dso_is_kernel(const char *name)
{
	const char *slash = strrchr(name, '/');

	return g_str_has_prefix(name, KERNEL_DSO_NAME) || g_str_has_prefix(slash ? slash + 1 : name, "vmlinux");
}

/* One entry for each DSO; the kernel's is kept. */
static bool build_id_decode(struct recording_info *info, struct cursor cursor)
{
	struct build_id_wire entry;

	while (cursor.left) {
		if (!cursor_take(&cursor, &entry, sizeof(entry)) || entry.header.size < sizeof(entry))
			return false;
		const size_t name_bytes = entry.header.size - sizeof(entry);
		const char *name = (const char *)cursor.at;
		const size_t id_bytes =
			entry.header.misc & BUILD_ID_MISC_SIZE ? entry.build_id_bytes : sizeof(entry.build_id);

		if (!cursor_skip(&cursor, name_bytes) || !memchr(name, '\0', name_bytes) ||
		    id_bytes > sizeof(entry.build_id))
			return false;
		if ((entry.header.misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL && id_bytes &&
		    dso_is_kernel(name)) {
			g_free(info->kernel_build_id);
			info->kernel_build_id = hex_encode(entry.build_id, id_bytes);
		}
	}
	return true;
}

static bool description_decode(struct recording_info *info, struct cursor cursor)
{
	g_free(info->description);
	info->description = g_utf8_make_valid((const char *)cursor.at, (gssize)cursor.left);
	return true;
}

/* Texts behind each other, each ended by NUL. */
static void texts_make_printable(char *text, uint64_t bytes)
{
	for (char *at = text; at < text + bytes;) {
		const size_t n = strlen(at);

		text_make_printable(at);
		memset(at + strlen(at), '\0', n - strlen(at));
		at += n + 1;
	}
}

static bool starts_text(const char *text, uint64_t bytes, uint64_t at)
{
	return at < bytes && (at == 0 || text[at - 1] == '\0');
}

/* Sorted, and each within the address space, so that a lookup is a search and a subtraction. */
static bool symbol_take(struct cursor *cursor, const char *text, uint64_t text_bytes, struct recording_symbol *symbol)
{
	struct symbol_wire entry;

	if (!cursor_take(cursor, &entry, sizeof(entry)) || entry.size > UINT64_MAX - entry.address ||
	    !starts_text(text, text_bytes, entry.name) || !starts_text(text, text_bytes, entry.module))
		return false;
	*symbol = (struct recording_symbol){entry.address, entry.size, text + entry.name, text + entry.module};
	return true;
}

static int by_address(const struct recording_symbol *a, const struct recording_symbol *b)
{
	return (a->address > b->address) - (a->address < b->address);
}

int recording_symbol_compare_user(const struct recording_symbol *a, const struct recording_symbol *b)
{
	int order = strcmp(a->module, b->module);

	return order != 0 ? order : by_address(a, b);
}

typedef int symbol_order(const struct recording_symbol *a, const struct recording_symbol *b);

static bool symbols_take(struct cursor *cursor, symbol_order *compare, const char *text, uint64_t text_bytes,
                         struct recording_symbol *symbols, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!symbol_take(cursor, text, text_bytes, &symbols[i]) ||
		    (i > 0 && compare(&symbols[i - 1], &symbols[i]) > 0))
			return false;
	return true;
}

static bool symbol_table_take(struct cursor cursor, symbol_order *compare, struct recording_symbols *table)
{
	struct symbols_wire header;

	if (!cursor_take(&cursor, &header, sizeof(header)) || header.version != VPROF_SYMBOLS_VERSION ||
	    header.count > cursor.left / sizeof(struct symbol_wire))
		return false;
	const uint8_t *text_at = cursor.at + header.count * sizeof(struct symbol_wire);
	const size_t text_left = cursor.left - header.count * sizeof(struct symbol_wire);
	if (header.text_bytes < 1 || header.text_bytes > text_left || text_at[header.text_bytes - 1] != '\0')
		return false;

	char *text = g_memdup2(text_at, header.text_bytes);
	texts_make_printable(text, header.text_bytes);
	struct recording_symbol *symbols = g_new(struct recording_symbol, header.count);
	if (!symbols_take(&cursor, compare, text, header.text_bytes, symbols, header.count)) {
		g_free(symbols);
		g_free(text);
		return false;
	}
	g_free(table->symbols);
	g_free(table->text);
	*table = (struct recording_symbols){symbols, header.count, text};
	return true;
}

static bool symbols_decode(struct recording_info *info, struct cursor cursor)
{
	return symbol_table_take(cursor, by_address, &info->symbols);
}

static bool user_symbols_decode(struct recording_info *info, struct cursor cursor)
{
	return symbol_table_take(cursor, recording_symbol_compare_user, &info->user_symbols);
}

static bool host_symbols_decode(struct recording_info *info, struct cursor cursor)
{
	return symbol_table_take(cursor, by_address, &info->host_symbols);
}

static const struct {
	unsigned feature;
	bool (*decode)(struct recording_info *info, struct cursor cursor);
} decoders[] = {
	{FEATURE_BUILD_ID, build_id_decode},
	{FEATURE_HOSTNAME, hostname_decode},
	{FEATURE_RELEASE, release_decode},
	{FEATURE_ARCH, arch_decode},
	{FEATURE_CMDLINE, cmdline_decode},
	{FEATURE_EVENTS, events_decode},
	{VPROF_FEATURE_DESCRIPTION, description_decode},
	{VPROF_FEATURE_SYMBOLS, symbols_decode},
	{VPROF_FEATURE_USER_SYMBOLS, user_symbols_decode},
	{VPROF_FEATURE_HOST_SYMBOLS, host_symbols_decode},
};

bool feature_decode(struct recording_info *info, unsigned feature, const uint8_t *bytes, size_t n)
{
	for (size_t i = 0; i < G_N_ELEMENTS(decoders); i++)
		if (decoders[i].feature == feature)
			return decoders[i].decode(info, (struct cursor){bytes, n});
	return true;
}

void recording_info_clear(struct recording_info *info)
{
	g_free(info->hostname);
	g_free(info->release);
	g_strfreev(info->cmdline);
	g_free(info->description);
	g_free(info->kernel_build_id);
	g_clear_pointer(&info->event_names, g_ptr_array_unref);
	g_free(info->symbols.symbols);
	g_free(info->symbols.text);
	g_free(info->user_symbols.symbols);
	g_free(info->user_symbols.text);
	g_free(info->host_symbols.symbols);
	g_free(info->host_symbols.text);
	*info = (struct recording_info){0};
}
