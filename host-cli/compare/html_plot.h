// SPDX-License-Identifier: BSD-2-Clause
/* Pages for people, without scripts and without anything from elsewhere: their head, and what their plots consist of.
 */
#ifndef VPROF_CLI_COMPARE_HTML_PLOT_H
#define VPROF_CLI_COMPARE_HTML_PLOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Up to <body>; title: markup. Classes of text: good, regression, undecided, dim. */
void html_page_begin(const char *title, FILE *to);
void html_page_end(FILE *to);

/* From values low..high to pixels first..last. */
struct plot_scale {
	double low, high;
	double first, last;
};

/* Without values as yet. */
struct plot_scale plot_scale_new(double first, double last);
/* Makes room for a value; one that is not finite is ignored. */
void plot_scale_take(struct plot_scale *scale, double value);
/* Makes room on both sides: a share of all, and at least `least`. */
void plot_scale_pad(struct plot_scale *scale, double share, double least);
/* Values beyond the scale are at its end. */
double plot_place(const struct plot_scale *scale, double value);

#define PLOT_TICKS_MAX 12u
/* Round values within the scale, about `wanted` of them. Returns how many. */
size_t plot_ticks(const struct plot_scale *scale, unsigned wanted, double ticks[PLOT_TICKS_MAX]);

/* label: markup, what the plot is for those who do not see it. */
void plot_begin(const char *label, double width, double height, FILE *to);
void plot_end(FILE *to);
void plot_line(const char *class, double x1, double y1, double x2, double y2, FILE *to);
/* text: any; anchor: start, middle or end. */
void plot_words(double x, double y, const char *anchor, const char *text, FILE *to);
/* title: any text, which is shown where the pointer is. */
void plot_dot(const char *class, double x, double y, double radius, const char *title, FILE *to);

#endif
