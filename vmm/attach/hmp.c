// SPDX-License-Identifier: BSD-2-Clause
/* QEMU: softmmu/memory.c (mtree_print_flatview), monitor/misc.c (gpa2hva). */
#include "attach/hmp_priv.h"

#include <stdlib.h>
#include <string.h>

bool hmp_line_next(const char **text, struct hmp_line *line)
{
	if (**text == '\0')
		return false;
	line->text = *text;
	line->n = strcspn(*text, "\n");
	*text += line->n + ((*text)[line->n] == '\n');
	return true;
}

const char *hmp_line_find(struct hmp_line line, const char *word)
{
	return memmem(line.text, line.n, word, strlen(word));
}

const char *hmp_hex(const char *at, uint64_t *value)
{
	unsigned digits = 0;

	*value = 0;
	for (int digit; digits < 16 && (digit = g_ascii_xdigit_value(at[digits])) >= 0; digits++)
		*value = *value << 4 | (uint64_t)digit;
	return digits > 0 && !g_ascii_isxdigit(at[digits]) ? at + digits : NULL;
}

/* ---- info mtree -f ---- */

/* "... (prio 0, ram): pc.ram @0000000000100000 KVM" */
static bool range_parse(struct hmp_line line, struct hmp_ram_range *range)
{
	const char *at = line.text + strspn(line.text, " ");
	const char *kind = hmp_line_find(line, ", ram): ");
	uint64_t last;

	if (!kind)
		kind = hmp_line_find(line, ", rom): ");
	if (!kind || !(at = hmp_hex(at, &range->gpa)) || *at != '-' || !hmp_hex(at + 1, &last) || last < range->gpa ||
	    __builtin_add_overflow(last - range->gpa, 1, &range->bytes))
		return false;
	kind += strlen(", ram): ");
	size_t left = line.n - (size_t)(kind - line.text);
	size_t name = MIN(strcspn(kind, " \r\n"), left);

	if (name == 0 || name >= sizeof(range->block))
		return false;
	memcpy(range->block, kind, name);
	range->block[name] = '\0';
	range->offset = 0;
	return name + 2 >= left || kind[name + 1] != '@' || hmp_hex(kind + name + 2, &range->offset);
}

/* Sorted ones, and none that reaches into the next: QEMU prints a flat view so. */
static bool range_follows(const struct hmp_ram_range *ranges, size_t n, const struct hmp_ram_range *range)
{
	uint64_t end;

	return !__builtin_add_overflow(range->gpa, range->bytes, &end) &&
	       (n == 0 || range->gpa - ranges[n - 1].gpa >= ranges[n - 1].bytes) &&
	       (n == 0 || range->gpa > ranges[n - 1].gpa);
}

/* The vCPUs' own address space; by KVM they have the machine's. */
static bool is_vcpu_view(struct hmp_line line)
{
	return hmp_line_find(line, " AS \"cpu-memory-0\"") || hmp_line_find(line, " AS \"memory\"");
}

size_t hmp_parse_mtree(const char *text, struct hmp_ram_range ranges[HMP_RAM_RANGES_MAX])
{
	struct hmp_ram_range range;
	struct hmp_line line;
	bool wanted = false;
	size_t n = 0;

	while (hmp_line_next(&text, &line)) {
		if (hmp_line_find(line, "FlatView #") == line.text) {
			if (n > 0)
				break;
			wanted = false;
		} else if (is_vcpu_view(line)) {
			wanted = true;
		} else if (wanted && n < HMP_RAM_RANGES_MAX && range_parse(line, &range) &&
		           range_follows(ranges, n, &range)) {
			ranges[n++] = range;
		}
	}
	return n;
}

bool hmp_parse_gpa2hva(const char *text, uint64_t *hva)
{
	static const char words[] = " is 0x";
	const char *at = strstr(text, words);

	return at && hmp_hex(at + strlen(words), hva) && *hva != 0;
}
