// SPDX-License-Identifier: BSD-2-Clause
#include "lib/symbol/usdt.h"

#include <elf.h>
#include <string.h>

#include "lib/parser/table.h"
#include "lib/symbol/image_priv.h"

#define NOTE_NAME "stapsdt"
#define NOTE_TYPE 3u
#define ANSWER_BYTES_MAX (UINT64_C(64) << 20)

/* ---- in vprof-parse ---- */

/* What is left of the section, or of a note. */
struct cursor {
	const uint8_t *at;
	size_t left;
};

static const void *take(struct cursor *cursor, size_t n)
{
	const void *taken = cursor->at;

	if (n > cursor->left)
		return NULL;
	cursor->at += n;
	cursor->left -= n;
	return taken;
}

/* Of a name or a description in the section, which is aligned; the last one may lack the padding. */
static const void *take_padded(struct cursor *cursor, uint32_t n)
{
	const void *taken = take(cursor, n);

	if (taken)
		take(cursor, MIN(-(size_t)n & 3, cursor->left));
	return taken;
}

static bool take_address(struct cursor *cursor, uint64_t *address)
{
	const void *bytes = take(cursor, sizeof(*address));

	if (bytes)
		memcpy(address, bytes, sizeof(*address));
	return bytes;
}

static const char *take_text(struct cursor *cursor)
{
	const char *text = (const char *)cursor->at;
	const size_t n = strnlen(text, cursor->left);

	return n < cursor->left ? take(cursor, n + 1) : NULL;
}

struct encoding {
	GArray *notes; /* of struct vprof_parse_note */
	GByteArray *text;
	uint64_t base; /* where .stapsdt.base is; 0: nowhere */
};

/* Addresses are as at link time, and prelink(8) moves the file and not the note: the base says how far. */
static void encode_note(struct encoding *encoding, struct cursor description)
{
	uint64_t address, base, semaphore;
	const char *provider, *name, *operands;

	if (!take_address(&description, &address) || !take_address(&description, &base) ||
	    !take_address(&description, &semaphore) || !(provider = take_text(&description)) ||
	    !(name = take_text(&description)) || !(operands = take_text(&description)))
		return;
	const struct vprof_parse_note note = {
		.address = address + (encoding->base != 0 ? encoding->base - base : 0),
		.provider = table_text_add(encoding->text, provider),
		.name = table_text_add(encoding->text, name),
		.operands = table_text_add(encoding->text, operands),
		.has_semaphore = semaphore != 0,
	};
	g_array_append_val(encoding->notes, note);
}

/* False at the end of the section, or of what can be read in it. */
static bool encode_next(struct encoding *encoding, struct cursor *section)
{
	const void *bytes = take(section, sizeof(Elf64_Nhdr));
	Elf64_Nhdr header;

	if (!bytes)
		return false;
	memcpy(&header, bytes, sizeof(header));
	const void *name = take_padded(section, header.n_namesz);
	const void *description = name ? take_padded(section, header.n_descsz) : NULL;
	if (!description)
		return false;
	if (header.n_type == NOTE_TYPE && header.n_namesz == sizeof(NOTE_NAME) &&
	    memcmp(name, NOTE_NAME, sizeof(NOTE_NAME)) == 0)
		encode_note(encoding, (struct cursor){description, header.n_descsz});
	return encoding->notes->len < USDT_NOTES_MAX;
}

GByteArray *usdt_notes_encode(const struct image *image)
{
	GByteArray *answer = g_byte_array_new();
	struct encoding encoding = {.base = 0};
	size_t n, n_base;
	uint64_t address;
	const uint8_t *section = image_section(image, ".note.stapsdt", &n, &address);

	if (!section || !image_has(image, section, n))
		return answer;
	if (!image_section(image, ".stapsdt.base", &n_base, &encoding.base))
		encoding.base = 0;
	encoding.notes = g_array_new(FALSE, FALSE, sizeof(struct vprof_parse_note));
	encoding.text = g_byte_array_new();
	struct cursor cursor = {section, n};
	while (encode_next(&encoding, &cursor))
		;
	if (encoding.notes->len > 0) {
		table_add(answer, VPROF_PARSE_TABLE_TEXT, 1, encoding.text->data, encoding.text->len);
		table_add(answer, VPROF_PARSE_TABLE_NOTES, sizeof(struct vprof_parse_note), encoding.notes->data,
		          encoding.notes->len);
	}
	g_byte_array_unref(encoding.text);
	g_array_unref(encoding.notes);
	return answer;
}

/* ---- in the program that asks ---- */

struct usdt_notes *usdt_notes_decode(GBytes *answer)
{
	struct usdt_notes *notes = g_new0(struct usdt_notes, 1);
	size_t n = 0, text_bytes = 0;
	const struct vprof_parse_note *rows =
		table_find(answer, VPROF_PARSE_TABLE_NOTES, sizeof(struct vprof_parse_note), &n);
	const char *text = table_text(answer, &text_bytes);
	bool is_sound = g_bytes_get_size(answer) == 0 || (rows && text && n <= USDT_NOTES_MAX);

	notes->answer = g_bytes_ref(answer);
	if (is_sound)
		notes->all = g_new0(struct usdt_note, n);
	for (; is_sound && notes->n < n; notes->n++) {
		const struct vprof_parse_note *row = &rows[notes->n];

		is_sound = row->provider < text_bytes && row->name < text_bytes && row->operands < text_bytes;
		if (is_sound)
			notes->all[notes->n] =
				(struct usdt_note){text + row->provider, text + row->name, text + row->operands,
			                           row->address, row->has_semaphore != 0};
	}
	if (is_sound)
		return notes;
	usdt_notes_free(notes);
	return NULL;
}

struct usdt_notes *usdt_notes_load(const struct image *image, GError **error)
{
	g_autoptr(GBytes) answer = image_ask(image, VPROF_PARSE_NOTES, ANSWER_BYTES_MAX, error);
	struct usdt_notes *notes = answer ? usdt_notes_decode(answer) : NULL;

	if (!answer)
		g_prefix_error(error, "the static probes of %s ", image->path);
	else if (!notes)
		g_set_error(error, IMAGE_ERROR, IMAGE_ERROR_FORMAT,
		            "the static probes of %s cannot be read: what vprof-parse says of them contradicts itself",
		            image->path);
	return notes;
}

void usdt_notes_free(struct usdt_notes *notes)
{
	if (!notes)
		return;
	g_free(notes->all);
	g_bytes_unref(notes->answer);
	g_free(notes);
}
