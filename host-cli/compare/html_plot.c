// SPDX-License-Identifier: BSD-2-Clause
#include "compare/html_plot.h"

#include <math.h>

#include "ui/text.h"

static const char head[] =
	"<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
	"<meta name=\"viewport\" content=\"width=device-width\"><title>%s</title>\n<style>\n"
	":root{color-scheme:light dark;--good:#14692c;--bad:#b3261e;--open:#805600;--dim:#595959;--line:#999;--base:#595959;"
	"--now:#0b57a4;--grid:#e3e3e3}\n"
	"@media(prefers-color-scheme:dark){:root{--good:#7fd898;--bad:#ffb4ab;--open:#f2c05c;--dim:#b0b0b0;--line:#777;"
	"--base:#b0b0b0;--now:#8ec2ff;--grid:#3a3a3a}}\n"
	"body{font:15px/1.5 system-ui,sans-serif;max-width:78rem;margin:2rem auto;padding:0 1rem}\n"
	"table{border-collapse:collapse}td,th{padding:.15rem .8rem;text-align:right;border-bottom:1px solid var(--line)}\n"
	"td:first-child,th:first-child{text-align:left}h2{margin-top:2.5rem}svg{max-width:100%%;height:auto}\n"
	".good{color:var(--good)}.regression{color:var(--bad)}.undecided{color:var(--open)}.dim{color:var(--dim)}\n"
	".plot text{fill:currentColor;font-size:12px}.plot line,.plot path{stroke:var(--line)}\n"
	".base{fill:var(--base)}.now{fill:var(--now)}.plot .median{stroke:currentColor;stroke-width:2}\n"
	".plot .bounds{stroke:var(--now);stroke-width:6;stroke-opacity:.55}.plot .limit{stroke:var(--bad);stroke-dasharray:4 3}\n"
	".plot .grid{stroke:var(--grid)}.plot .better{stroke:var(--good)}.plot .worse{stroke:var(--bad)}.plot .changed{stroke:var(--open)}\n"
	".plot .better,.plot .worse,.plot .changed{stroke-dasharray:4 3}\n"
	"</style></head><body>\n";

void html_page_begin(const char *title, FILE *to)
{
	fprintf(to, head, title);
}

void html_page_end(FILE *to)
{
	fputs("</body></html>\n", to);
}

/* ---- scales ---- */

struct plot_scale plot_scale_new(double first, double last)
{
	return (struct plot_scale){.low = INFINITY, .high = -INFINITY, .first = first, .last = last};
}

void plot_scale_take(struct plot_scale *scale, double value)
{
	if (!isfinite(value))
		return;
	scale->low = fmin(scale->low, value);
	scale->high = fmax(scale->high, value);
}

void plot_scale_pad(struct plot_scale *scale, double share, double least)
{
	const double pad = (scale->high - scale->low) * share + least;

	scale->low -= pad;
	scale->high += pad;
}

double plot_place(const struct plot_scale *scale, double value)
{
	const double part = scale->high > scale->low ? (value - scale->low) / (scale->high - scale->low) : 0.5;

	return scale->first + fmin(fmax(part, 0), 1) * (scale->last - scale->first);
}

/* 1, 2 or 5 times a power of ten, not below `step`. */
static double round_step(double step)
{
	const double power = pow(10, floor(log10(step)));
	const double digits = step / power;

	return power * (digits <= 1 ? 1 : digits <= 2 ? 2 : digits <= 5 ? 5 : 10);
}

size_t plot_ticks(const struct plot_scale *scale, unsigned wanted, double ticks[PLOT_TICKS_MAX])
{
	const double range = scale->high - scale->low;
	size_t n = 0;

	if (!(range > 0) || !isfinite(range) || wanted == 0)
		return 0;
	const double step = round_step(range / wanted);

	if (!(step > 0) || !isfinite(step))
		return 0;
	for (double i = ceil(scale->low / step); i * step <= scale->high && n < PLOT_TICKS_MAX; i++)
		ticks[n++] = i * step;
	return n;
}

/* ---- marks ---- */

void plot_begin(const char *label, double width, double height, FILE *to)
{
	fprintf(to,
	        "<svg class=\"plot\" role=\"img\" aria-label=\"%s\" viewBox=\"0 0 %.0f %.0f\""
	        " width=\"%.0f\">",
	        label, width, height, width);
}

void plot_end(FILE *to)
{
	fputs("</svg>\n", to);
}

void plot_line(const char *class, double x1, double y1, double x2, double y2, FILE *to)
{
	fprintf(to, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", class, x1, y1, x2, y2);
}

void plot_words(double x, double y, const char *anchor, const char *text, FILE *to)
{
	g_autofree char *markup = text_markup(text);

	fprintf(to, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">%s</text>", x, y, anchor, markup);
}

void plot_dot(const char *class, double x, double y, double radius, const char *title, FILE *to)
{
	g_autofree char *markup = text_markup(title);

	fprintf(to, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"><title>%s</title></circle>", class, x, y,
	        radius, markup);
}
