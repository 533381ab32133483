// SPDX-License-Identifier: BSD-2-Clause
#include "lib/agent/metrics.h"

#include <glib.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

#define PREFIX "vprof: metric "
#define LINE_BYTES_MAX 200u
#define NAME_CHARACTERS G_CSET_A_2_Z G_CSET_a_2_z G_CSET_DIGITS "_-./:"

_Static_assert(sizeof(PREFIX) + METRIC_NAME_BYTES_MAX + METRIC_UNIT_BYTES_MAX + 32 < LINE_BYTES_MAX,
               "a metric and a number of 32 digits fit into a line");

struct line {
	char text[LINE_BYTES_MAX + 1];
	size_t n;
	bool cut; /* it is longer than that */
};

struct metrics {
	struct line lines[METRIC_STREAMS];
	struct metric all[METRICS_MAX];
	size_t n;
	const char *problem;
};

struct metrics *metrics_new(void)
{
	return g_new0(struct metrics, 1);
}

void metrics_free(struct metrics *metrics)
{
	g_free(metrics);
}

size_t metrics_count(const struct metrics *metrics)
{
	return metrics->n;
}

const struct metric *metrics_get(const struct metrics *metrics, size_t i)
{
	return &metrics->all[i];
}

const char *metrics_problem(const struct metrics *metrics)
{
	return metrics->problem;
}

/* NULL, or why the text behind the prefix is not a metric. */
static const char *metric_parse(const char *text, struct metric *metric)
{
	size_t name = strspn(text, NAME_CHARACTERS), unit;
	char *end;

	if (name == 0 || name > METRIC_NAME_BYTES_MAX || text[name] != '=')
		return "NAME=VALUE is needed, NAME of up to 63 letters, digits and \"_-./:\"";
	memcpy(metric->name, text, name);
	text += name + 1;
	/* g_ascii_strtod reads blanks, signs, hexadecimal and "nan" as well. */
	if (!strchr("0123456789.", *text) || *text == '\0' || g_ascii_tolower(text[1]) == 'x')
		return "the value is not a decimal number of 0 or more";
	metric->value = g_ascii_strtod(text, &end);
	if (end == text || (*end != '\0' && *end != ' ') || !isfinite(metric->value))
		return "the value is not a decimal number of 0 or more";
	text = end + strspn(end, " ");
	for (unit = 0; g_ascii_isgraph(text[unit]); unit++)
		;
	if (unit > METRIC_UNIT_BYTES_MAX || text[unit + strspn(text + unit, " ")] != '\0')
		return "the unit is not one word of up to 15 printable characters";
	memcpy(metric->unit, text, unit);
	return NULL;
}

static const char *metrics_take(struct metrics *metrics, const struct metric *metric)
{
	size_t i = 0;

	while (i < metrics->n && strcmp(metrics->all[i].name, metric->name) != 0)
		i++;
	if (i == METRICS_MAX)
		return "it exceeds the limit of 64 metrics";
	metrics->all[i] = *metric;
	metrics->n = MAX(metrics->n, i + 1);
	return NULL;
}

static void line_add(struct line *line, const uint8_t *bytes, size_t n)
{
	size_t room = LINE_BYTES_MAX - line->n;

	line->cut |= n > room;
	memcpy(line->text + line->n, bytes, MIN(n, room));
	line->n += MIN(n, room);
}

static const char *line_take(struct metrics *metrics, struct line *line)
{
	struct metric metric = {.name = ""};
	const char *problem;

	line->text[line->n] = '\0';
	if (!g_str_has_prefix(line->text, PREFIX))
		return NULL;
	if (line->cut)
		return "the line is longer than 200 bytes";
	if (line->text[line->n - 1] == '\r')
		line->text[line->n - 1] = '\0';
	problem = metric_parse(line->text + strlen(PREFIX), &metric);
	return problem ? problem : metrics_take(metrics, &metric);
}

static void line_end(struct metrics *metrics, struct line *line)
{
	const char *problem = line_take(metrics, line);

	if (!metrics->problem)
		metrics->problem = problem;
	line->n = 0;
	line->cut = false;
}

void metrics_put(struct metrics *metrics, unsigned stream, const uint8_t *bytes, size_t n)
{
	struct line *line = &metrics->lines[stream];
	const uint8_t *newline;

	for (; (newline = memchr(bytes, '\n', n)) != NULL; bytes = newline + 1) {
		line_add(line, bytes, (size_t)(newline - bytes));
		line_end(metrics, line);
		n -= (size_t)(newline - bytes) + 1;
	}
	line_add(line, bytes, n);
}

void metrics_end(struct metrics *metrics)
{
	for (size_t i = 0; i < METRIC_STREAMS; i++)
		if (metrics->lines[i].n != 0)
			line_end(metrics, &metrics->lines[i]);
}
