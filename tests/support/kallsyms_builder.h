// SPDX-License-Identifier: BSD-2-Clause
/*
 * Linux's kallsyms tables made by code, in every layout that kernels have had (vmm/lib/symbol/kallsyms.h).
 */
#ifndef VPROF_TEST_SUPPORT_KALLSYMS_BUILDER_H
#define VPROF_TEST_SUPPORT_KALLSYMS_BUILDER_H

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct kallsyms_symbol {
	uint64_t address;
	const char *text; /* the type letter and the name */
};

enum kallsyms_addresses {
	KALLSYMS_ABSOLUTE,
	KALLSYMS_RELATIVE,
	KALLSYMS_ABSOLUTE_PERCPU,
	KALLSYMS_PLACE_RELATIVE,
};

struct kallsyms_layout {
	const char *name;
	bool addresses_last; /* from 6.4 on */
	bool seqs;           /* kallsyms_seqs_of_names */
	enum kallsyms_addresses addresses;
	unsigned marker_bytes; /* 8 before 4.20 */
	unsigned alignment;    /* 4 in the place-relative layout */
};

static const struct kallsyms_layout KALLSYMS_LAYOUTS[] = {
	{"4.5", false, false, KALLSYMS_ABSOLUTE, 8, 8},
	{"4.19", false, false, KALLSYMS_ABSOLUTE_PERCPU, 8, 8},
	{"5.10", false, false, KALLSYMS_ABSOLUTE_PERCPU, 4, 8},
	{"5.10 for one CPU", false, false, KALLSYMS_RELATIVE, 4, 8},
	{"6.2", false, true, KALLSYMS_ABSOLUTE_PERCPU, 4, 8},
	{"6.4", true, true, KALLSYMS_ABSOLUTE_PERCPU, 4, 8},
	{"6.4 without BASE_RELATIVE", true, true, KALLSYMS_ABSOLUTE, 4, 8},
	{"6.15", true, true, KALLSYMS_RELATIVE, 4, 8},
	{"2026", true, true, KALLSYMS_PLACE_RELATIVE, 4, 4},
};

/* Bytes below this are per-CPU offsets, not addresses. */
#define KALLSYMS_PERCPU_END UINT64_C(0x100000)

/* Codes no name uses stand for these, as scripts/kallsyms.c gives them to frequent pairs. */
static const char *const KALLSYMS_TOKENS[] = {"symbol", "_", "Tdo_", "tsys_", "__", "00", "11"};
#define KALLSYMS_FIRST_TOKEN 0xa0u

static inline void kallsyms_align(GByteArray *out, unsigned alignment)
{
	static const uint8_t zeros[8];

	g_byte_array_append(out, zeros, -out->len & (alignment - 1));
}

static inline void kallsyms_put(GByteArray *out, uint64_t value, unsigned bytes)
{
	g_byte_array_append(out, (const uint8_t *)&value, bytes);
}

static inline void kallsyms_put_name(GByteArray *out, const char *text)
{
	g_autoptr(GByteArray) codes = g_byte_array_new();

	while (*text) {
		uint8_t code = (uint8_t)*text;
		size_t length = 1;

		for (unsigned i = 0; i < G_N_ELEMENTS(KALLSYMS_TOKENS); i++)
			if (strlen(KALLSYMS_TOKENS[i]) > length &&
			    strncmp(text, KALLSYMS_TOKENS[i], strlen(KALLSYMS_TOKENS[i])) == 0) {
				code = (uint8_t)(KALLSYMS_FIRST_TOKEN + i);
				length = strlen(KALLSYMS_TOKENS[i]);
			}
		g_byte_array_append(codes, &code, 1);
		text += length;
	}
	if (codes->len < 128) {
		kallsyms_put(out, codes->len, 1);
	} else {
		kallsyms_put(out, (codes->len & 0x7f) | 0x80, 1);
		kallsyms_put(out, codes->len >> 7, 1);
	}
	g_byte_array_append(out, codes->data, codes->len);
}

static inline void kallsyms_put_addresses(GByteArray *out, const struct kallsyms_layout *layout, uint64_t gva,
                                          const struct kallsyms_symbol *symbols, uint32_t n)
{
	uint64_t base = 0;

	for (uint32_t i = 0; i < n && base < KALLSYMS_PERCPU_END; i++)
		base = symbols[i].address;
	kallsyms_align(out, layout->alignment);
	for (uint32_t i = 0; i < n; i++) {
		uint64_t address = symbols[i].address;

		if (layout->addresses == KALLSYMS_ABSOLUTE)
			kallsyms_put(out, address, 8);
		else if (layout->addresses == KALLSYMS_RELATIVE)
			kallsyms_put(out, address - base, 4);
		else if (layout->addresses == KALLSYMS_PLACE_RELATIVE)
			kallsyms_put(out, address - (gva + out->len), 4);
		else
			kallsyms_put(out, address < KALLSYMS_PERCPU_END ? address : base - address - 1, 4);
	}
	if (layout->addresses == KALLSYMS_RELATIVE || layout->addresses == KALLSYMS_ABSOLUTE_PERCPU) {
		kallsyms_align(out, 8);
		kallsyms_put(out, base, 8);
	}
}

static inline void kallsyms_put_names(GByteArray *out, const struct kallsyms_layout *layout,
                                      const struct kallsyms_symbol *symbols, uint32_t n)
{
	g_autofree uint32_t *markers = g_new0(uint32_t, n / 256 + 1);
	uint32_t names;

	kallsyms_align(out, layout->alignment);
	kallsyms_put(out, n, 4);
	kallsyms_align(out, layout->alignment);
	names = out->len;
	for (uint32_t i = 0; i < n; i++) {
		if (i % 256 == 0)
			markers[i / 256] = out->len - names;
		kallsyms_put_name(out, symbols[i].text);
	}
	kallsyms_align(out, layout->alignment);
	for (uint32_t i = 0; i < n; i += 256)
		kallsyms_put(out, markers[i / 256], layout->marker_bytes);
}

/* The numbers are not in the order of the names; nothing reads them. */
static inline void kallsyms_put_seqs(GByteArray *out, const struct kallsyms_layout *layout, uint32_t n)
{
	kallsyms_align(out, layout->alignment);
	for (uint32_t i = n; layout->seqs && i-- > 0;)
		g_byte_array_append(out, (const uint8_t[]){(uint8_t)(i >> 16), (uint8_t)(i >> 8), (uint8_t)i}, 3);
}

static inline void kallsyms_put_tokens(GByteArray *out, const struct kallsyms_layout *layout)
{
	uint16_t index[256];
	uint32_t table;

	kallsyms_align(out, layout->alignment);
	table = out->len;
	for (unsigned i = 0; i < 256; i++) {
		unsigned token = i - KALLSYMS_FIRST_TOKEN;

		index[i] = (uint16_t)(out->len - table);
		if (i >= KALLSYMS_FIRST_TOKEN && token < G_N_ELEMENTS(KALLSYMS_TOKENS))
			g_byte_array_append(out, (const uint8_t *)KALLSYMS_TOKENS[token],
			                    (guint)strlen(KALLSYMS_TOKENS[token]));
		else if (i > ' ' && i < 0x7f)
			kallsyms_put(out, i, 1);
		kallsyms_put(out, 0, 1);
	}
	kallsyms_align(out, layout->alignment);
	g_byte_array_append(out, (const uint8_t *)index, sizeof(index));
}

/* Appends the tables; `gva`: of out's first byte, a multiple of 8. The symbols are in order of their addresses. */
static inline void kallsyms_build(GByteArray *out, const struct kallsyms_layout *layout, uint64_t gva,
                                  const struct kallsyms_symbol *symbols, uint32_t n)
{
	if (!layout->addresses_last)
		kallsyms_put_addresses(out, layout, gva, symbols, n);
	kallsyms_put_names(out, layout, symbols, n);
	if (!layout->addresses_last)
		kallsyms_put_seqs(out, layout, n);
	kallsyms_put_tokens(out, layout);
	if (layout->addresses_last) {
		kallsyms_put_addresses(out, layout, gva, symbols, n);
		kallsyms_put_seqs(out, layout, n);
	}
}

#endif
