// SPDX-License-Identifier: BSD-2-Clause
/*
 * Text that a guest, a file or another program has chosen, and what may be shown of it. A terminal obeys control
 * characters, and lays out lines by bidirectional ones: neither gets out of here.
 */
#ifndef VPROF_RECORD_TEXT_H
#define VPROF_RECORD_TEXT_H

#include <glib.h>
#include <stdbool.h>

/* As it came, ended by NUL. It is a type of its own, so that it is compared or opened as a file, but not printed. */
struct untrusted_text {
	const char *raw;
};

static inline struct untrusted_text untrusted(const char *text)
{
	return (struct untrusted_text){text};
}

#define PRINTABLE_BYTES_MAX 4096u /* of one name; the rest is left out */

/*
 * What is never shown: control characters of ASCII and of ISO 6429 (U+0080 to U+009F, where U+009B begins a terminal's
 * commands), characters without a shape (bidirectional marks and overrides, joiners, tags), and what ends a line.
 */
bool text_is_control(gunichar c);

#define TEXT_CHARACTER_BYTES_MAX 4u

/* How many of the first n bytes end between characters: n, or up to three less. A byte outside UTF-8 is one. */
size_t text_whole_characters(const char *text, size_t n);

/* Puts "?" in the place of each byte of these and of what is not UTF-8; cuts after PRINTABLE_BYTES_MAX bytes. */
void text_make_printable(char *text);
/* The same as a new string; NULL gives "". */
char *text_printable(const char *text);
char *untrusted_printable(struct untrusted_text text);
/* The same of each line, which "\n" or "\r\n" ends; the last one, too, if there is any. */
char *text_lines_printable(const char *text);

#endif
