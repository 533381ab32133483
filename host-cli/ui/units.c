// SPDX-License-Identifier: BSD-2-Clause
#include "ui/units.h"

#include <string.h>

#define YEAR_SECONDS (UINT64_C(365) * 24 * 3600)

G_DEFINE_QUARK(vprof_units_error, units_error)

static bool is_negative(const char *text)
{
	return text[0] == '-' && text[1] != '\0' && text[1 + strspn(text + 1, "0123456789")] == '\0';
}

bool units_parse_number(const char *what, const char *text, uint64_t min, uint64_t max, uint64_t *number,
                        GError **error)
{
	g_autoptr(GError) why = NULL;

	if (g_ascii_string_to_unsigned(text, 10, min, max, number, &why))
		return true;
	if (g_error_matches(why, G_NUMBER_PARSER_ERROR, G_NUMBER_PARSER_ERROR_INVALID) && !is_negative(text))
		g_set_error(error, UNITS_ERROR, UNITS_ERROR_FORMAT, "%s takes a number, not \"%s\"", what, text);
	else if (max >= INT64_MAX)
		g_set_error(error, UNITS_ERROR, UNITS_ERROR_RANGE, "%s takes %" G_GUINT64_FORMAT " or more, not %s",
		            what, min, text);
	else
		g_set_error(error, UNITS_ERROR, UNITS_ERROR_RANGE,
		            "%s takes %" G_GUINT64_FORMAT " to %" G_GUINT64_FORMAT ", not %s", what, min, max, text);
	return false;
}

static uint64_t unit_seconds(char unit)
{
	switch (unit) {
	case 's':
		return 1;
	case 'm':
		return 60;
	case 'h':
		return 3600;
	default:
		return 0;
	}
}

bool units_parse_duration(const char *what, const char *text, uint64_t max, uint64_t *seconds, GError **error)
{
	size_t n = strlen(text);
	uint64_t unit = n > 1 ? unit_seconds(text[n - 1]) : 0;
	g_autofree char *digits = g_strndup(text, unit != 0 ? n - 1 : n);
	uint64_t number;

	if (unit == 0)
		unit = 1;
	if (digits[strspn(digits, "0123456789")] != '\0' || digits[0] == '\0') {
		g_set_error(error, UNITS_ERROR, UNITS_ERROR_FORMAT,
		            "%s takes seconds, or a number followed by s, m or h, not \"%s\"", what, text);
		return false;
	}
	max = MIN(max, YEAR_SECONDS);
	if (!g_ascii_string_to_unsigned(digits, 10, 1, max / unit, &number, NULL)) {
		g_set_error(error, UNITS_ERROR, UNITS_ERROR_RANGE, "%s takes 1s to %" G_GUINT64_FORMAT "s, not %s",
		            what, max, text);
		return false;
	}
	*seconds = number * unit;
	return true;
}

char *units_format_bytes(uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	unsigned unit = 0;
	uint64_t scale = 1;

	while (unit + 1 < G_N_ELEMENTS(units) && bytes / scale >= 1024) {
		scale *= 1024;
		unit++;
	}
	if (bytes % scale == 0)
		return g_strdup_printf("%" G_GUINT64_FORMAT " %s", bytes / scale, units[unit]);
	return g_strdup_printf("%.1f %s", (double)bytes / (double)scale, units[unit]);
}
