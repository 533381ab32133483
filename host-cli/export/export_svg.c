// SPDX-License-Identifier: BSD-2-Clause
/*
 * A flame graph as one SVG file without a script, for mail and job summaries: callers below, a frame's width its share
 * of the whole, its title (shown by browsers on hovering) the figures.
 */
#include <math.h>

#include "export/export.h"
#include "ui/text.h"

#define WIDTH 1200.0
#define MARGIN 10.0
#define HEAD 42.0 /* above the flames */
#define ROW 17.0
#define LETTER 6.6       /* of the 11 px monospace that labels are set in */
#define WIDTH_MIN 0.3    /* frames narrower than this cannot be seen */
#define LABEL_LETTERS 3u /* shorter labels say nothing */
#define DEPTH_MAX 512u

struct flames {
	const struct export_profile *profile;
	FILE *to;
	double per_period; /* width */
	unsigned depth;    /* rows */
};

/* Warm for the kernel, green for user space, blue for time outside the guest, violet for waits; lighter and darker by
 * the name. */
static void colour_of(enum profile_mode mode, const char *name, char colour[static 8])
{
	static const uint8_t bases[][3] = {
		[PROFILE_KERNEL] = {225, 110, 50},     [PROFILE_USER] = {95, 175, 90},
		[PROFILE_HYPERVISOR] = {90, 140, 210}, [PROFILE_OTHER] = {170, 170, 170},
		[PROFILE_WAITING] = {150, 125, 205},
	};
	unsigned shade = g_str_hash(name) % 30;

	g_snprintf(colour, 8, "#%02x%02x%02x", bases[mode][0] + shade, bases[mode][1] + shade, bases[mode][2] + shade);
}

static unsigned nodes_depth(const struct call_node *nodes, size_t first, double per_period)
{
	unsigned deepest = 0;

	for (size_t i = first; i != 0; i = nodes[i].next_sibling) {
		if ((double)nodes[i].period * per_period < WIDTH_MIN)
			continue;
		unsigned below = nodes_depth(nodes, nodes[i].first_child, per_period);

		deepest = MAX(deepest, below + 1);
	}
	return MIN(deepest, DEPTH_MAX);
}

/* As much of the name as there is room for. New string, markup escaped. */
static char *label_text(const char *name, double width)
{
	glong letters = (glong)((width - 4) / LETTER);
	g_autofree char *part = NULL;

	if (letters < (glong)LABEL_LETTERS)
		return g_strdup("");
	part = g_utf8_strlen(name, -1) <= letters ? g_strdup(name) : g_utf8_substring(name, 0, letters - 1);
	g_autofree char *cut =
		g_utf8_strlen(name, -1) <= letters ? g_steal_pointer(&part) : g_strconcat(part, "…", NULL);

	return text_markup(cut);
}

static void frame_draw(const struct flames *flames, const char *name, enum profile_mode mode, uint64_t period,
                       uint64_t samples, double x, unsigned row)
{
	double width = (double)period * flames->per_period;
	double y = HEAD + (double)(flames->depth - 1 - row) * ROW;
	g_autofree char *title = text_markup(name), *label = label_text(name, width);
	char colour[8];

	colour_of(mode, name, colour);
	fprintf(flames->to,
	        "<g><title>%s (%s): %.2f %%, %" G_GUINT64_FORMAT " samples</title>"
	        "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\" rx=\"1\"/>",
	        title, profile_mode_name(mode), 100.0 * (double)period / (double)flames->profile->period, samples, x, y,
	        MAX(width - 0.2, 0.1), ROW - 1, colour);
	if (*label != '\0')
		fprintf(flames->to, "<text x=\"%.1f\" y=\"%.1f\">%s</text>", x + 2, y + ROW - 5, label);
	fputs("</g>\n", flames->to);
}

static void nodes_draw(const struct flames *flames, const struct call_node *nodes, size_t first, double x, unsigned row)
{
	for (size_t i = first; i != 0 && row < flames->depth; i = nodes[i].next_sibling) {
		double width = (double)nodes[i].period * flames->per_period;

		if (width >= WIDTH_MIN) {
			frame_draw(flames, nodes[i].symbol, nodes[i].mode, nodes[i].period, nodes[i].samples, x, row);
			nodes_draw(flames, nodes, nodes[i].first_child, x, row + 1);
		}
		x += width;
	}
}

static void head_draw(const struct flames *flames, double height)
{
	const struct export_profile *profile = flames->profile;
	g_autofree char *events = profile->waits ? g_strdup_printf("%s and %s", profile->event, profile->waits)
	                                         : g_strdup(profile->event);
	g_autofree char *path = text_markup(profile->path), *event = text_markup(events);

	fprintf(flames->to,
	        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" font-family=\"monospace\" font-size=\"11\">\n"
	        "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
	        "<text x=\"%.0f\" y=\"20\" font-size=\"14\">%s: %s, %" G_GUINT64_FORMAT " samples</text>\n"
	        "<text x=\"%.0f\" y=\"35\" fill=\"#555\">orange: kernel; green: user; blue: outside the guest%s</text>\n",
	        WIDTH, height, MARGIN, path, event, profile->samples, MARGIN,
	        profile->waits ? "; violet: waiting" : "");
}

static bool svg_write(const struct export_profile *profile, FILE *to, GError **error)
{
	struct flames flames = {
		.profile = profile,
		.to = to,
		.per_period = profile->period != 0 ? (WIDTH - 2 * MARGIN) / (double)profile->period : 0,
	};
	double x = MARGIN;

	(void)error;
	for (size_t i = 0; i < profile->n_tasks; i++) {
		const struct call_node *nodes = profile->tasks[i].nodes;

		unsigned below = nodes_depth(nodes, nodes[0].first_child, flames.per_period);

		flames.depth = MAX(flames.depth, below + 1);
	}
	head_draw(&flames, HEAD + (double)flames.depth * ROW + MARGIN);
	for (size_t i = 0; i < profile->n_tasks; i++) {
		const struct call_node *nodes = profile->tasks[i].nodes;

		if ((double)nodes[0].period * flames.per_period >= WIDTH_MIN) {
			frame_draw(&flames, profile->tasks[i].comm, PROFILE_OTHER, nodes[0].period, nodes[0].samples, x,
			           0);
			nodes_draw(&flames, nodes, nodes[0].first_child, x, 1);
		}
		x += (double)nodes[0].period * flames.per_period;
	}
	fputs("</svg>\n", to);
	return true;
}

const struct exporter export_svg = {
	.name = "svg",
	.summary = "a flame graph: browsers, mail, job summaries",
	.write = svg_write,
};
