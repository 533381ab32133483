// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>
#include <string.h>

#include "compare/comparison_output.h"
#include "ui/text.h"

#define SCALES 4u

/* With the largest unit that leaves 1 or more. */
static char *scaled_text(double value, const char *const units[SCALES])
{
	unsigned scale = 0;

	for (; scale + 1 < SCALES && fabs(value) >= 1000; scale++)
		value /= 1000;
	return g_strdup_printf("%.*f %s", scale != 0 ? 2 : 0, value, units[scale]);
}

char *value_text(double value, const char *unit)
{
	static const char *const times[] = {"ns", "us", "ms", "s"}, *const sizes[] = {"bytes", "kB", "MB", "GB"},
				 *const counts[] = {"", "k", "M", "G"};

	if (strcmp(unit, "instructions") == 0)
		return g_strdup_printf("%.0f", value); /* exact, and what else would they be */
	if (strcmp(unit, "ns") == 0)
		return scaled_text(value, times);
	if (strcmp(unit, "bytes") == 0)
		return scaled_text(value, sizes);
	if (fabs(value) >= 1e5) {
		g_autofree char *text = scaled_text(value, counts);

		return g_strdup_printf("%s%s%s", text, *unit != '\0' ? " " : "", unit);
	}
	return g_strdup_printf("%.4g%s%s", value, *unit != '\0' ? " " : "", unit);
}

char *ratio_text(double ratio)
{
	return isfinite(ratio) && ratio > 0 ? g_strdup_printf("%+.1f %%", (ratio - 1) * 100) : g_strdup("?");
}

/* A bound of a shift; "?" where there is none. New string. */
static char *bound_text(double bound, const char *unit)
{
	g_autofree char *size = value_text(fabs(bound), unit);

	return isfinite(bound) ? g_strdup_printf("%c%s", bound < 0 ? '-' : '+', size) : g_strdup("?");
}

/* "+1.20 ms [+0.90 ms, +1.50 ms]"; "+40 exactly". New string. */
static char *shift_text(const struct change *change, const char *unit)
{
	const struct shift *shift = &change->shift;
	g_autofree char *estimate = bound_text(shift->estimate, unit), *low = bound_text(shift->low, unit),
			*high = bound_text(shift->high, unit);

	if (change->exact)
		return g_strdup_printf("%s exactly", estimate);
	return g_strdup_printf("%s [%s, %s]", estimate, low, high);
}

static void set_print(const char *role, const struct measured *measured, FILE *to)
{
	g_autofree char *path = text_printable(measured->path);

	fprintf(to, "# %-8s %s, repetitions: %zu\n", role, path, measured->measurements->n_repetitions);
}

/* As wide as most names are: a workload's own may be longer. */
static int name_width(const struct comparison *comparison)
{
	size_t width = 12;

	for (size_t i = 0; i < comparison->n_metrics; i++)
		width = MAX(width, strlen(comparison->metrics[i].base->name));
	return (int)MIN(width, 24);
}

static void metric_print(const struct change *change, int width, FILE *to)
{
	const char *unit = change->base->unit;
	g_autofree char *base = value_text(change->base_median, unit), *now = value_text(change->now_median, unit),
			*shift = shift_text(change, unit), *name = text_printable(change->base->name);

	fprintf(to, "  %-*s %14s %14s  %s%s\n", width, name, base, now, shift,
	        change->stands || change->exact ? "" : "  may be chance");
}

char *change_name(const struct change *change)
{
	const struct series *base = change->base, *now = change->now;
	g_autofree char *text = NULL;

	if (change->other)
		text = g_strdup_printf("%s, %s %s", change_series(change)->name,
		                       change->fate == FATE_INLINED ? "into" : "off", change->other->name);
	else if (change->fate != FATE_RENAMED)
		text = g_strdup(change_series(change)->name);
	else if (strcmp(base->module, now->module) == 0)
		text = g_strdup_printf("%s -> %s", base->name, now->name);
	else
		text = g_strdup_printf("%s of %s -> %s of %s", base->name, base->module, now->name, now->module);
	return text_printable(text);
}

static void function_print(const struct change *change, FILE *to)
{
	const struct series *series = change_series(change);
	g_autofree char *base = value_text(change->base_median, series->unit),
			*now = value_text(change->now_median, series->unit), *shift = shift_text(change, series->unit),
			*name = change_name(change);

	fprintf(to, "  %12s %12s  %-36s %-6s  %s\n", base, now, shift, profile_mode_name(series->mode), name);
}

static void functions_print(const char *title, const struct change *changes, size_t n, bool only_standing, FILE *to)
{
	bool titled = false;

	for (size_t i = 0; i < n; i++) {
		if (only_standing && !changes[i].stands)
			continue;
		if (!titled)
			fprintf(to, "#\n# %s\n# %12s %12s  %-36s %-6s  %s\n", title, "Base", "Now", "Change", "Mode",
			        "Function");
		titled = true;
		function_print(&changes[i], to);
	}
}

const char *fate_title(enum fate fate)
{
	static const char *const titles[] = {
		[FATE_RENAMED] = "renamed, by name and time",
		[FATE_INLINED] = "inlined, it seems: gone, and another has grown by about as much",
		[FATE_SPLIT] = "split off, it seems: new, and another has shrunk by about as much",
		[FATE_NEW] = "new",
		[FATE_GONE] = "gone",
	};

	return titles[fate];
}

#define CHANCE_ROWS_MAX 10u

/* Where nothing can be told from chance, what moved most is where to look with more repetitions. */
static void chance_print(const struct comparison *comparison, FILE *to)
{
	size_t n = 0;

	while (n < MIN(comparison->n_functions, CHANCE_ROWS_MAX) && comparison->functions[n].shift.estimate != 0)
		n++;
	functions_print("the largest moves; each of them may be chance", comparison->functions, n, false, to);
}

void compared_print_functions(const struct compared *compared, FILE *to)
{
	const struct comparison *comparison = compared->comparison;
	g_autofree char *title =
		compared->now->measurements->counted
			? g_strdup("functions that changed, instructions of their own")
			: g_strdup_printf(
				  "functions that changed, time of their own; at most %g %% of them may be chance",
				  compared->options.alpha * 100);

	functions_print(title, comparison->functions, comparison->n_functions, true, to);
	if (comparison->n_standing == 0)
		chance_print(comparison, to);
	if (comparison->n_standing != 0 && comparison->explained != 0)
		fprintf(to, "# together they make %.0f %% of the change of %s\n", comparison->explained * 100,
		        comparison->metrics[0].base->name);
	for (enum fate fate = FATE_RENAMED; fate <= FATE_GONE; fate++) {
		size_t n;
		const struct change *changes = comparison_only(comparison, fate, &n);

		functions_print(fate_title(fate), changes, n, false, to);
	}
}

static void apart_print(const struct series *series, FILE *to)
{
	g_autofree char *name = text_printable(series->name), *unit = text_printable(series->unit);

	fprintf(to, "# not compared, only one of the two has it: %s%s%s\n", name, *unit != '\0' ? " in " : "", unit);
}

void compared_print_text(const struct compared *compared, FILE *to)
{
	const struct comparison *comparison = compared->comparison;
	int width = name_width(comparison);

	set_print("base", compared->base, to);
	set_print("now", compared->now, to);
	fprintf(to, "#\n# %-*s %14s %14s  %s\n", width, "Metric", "Base", "Now", "Change [bounds]");
	for (size_t i = 0; i < comparison->n_metrics; i++)
		metric_print(&comparison->metrics[i], width, to);
	for (guint i = 0; i < comparison->apart->len; i++)
		apart_print(g_ptr_array_index(comparison->apart, i), to);
	compared_print_functions(compared, to);
	fprintf(to, "#\n# tested: %zu functions; not tested: %zu of less than %g %% of the time\n",
	        comparison->n_functions, comparison->n_small, compared->options.min_share * 100);
}

char *watched_sentence(const struct watched *watched, const struct gate_result *result)
{
	const struct judgement *judgement = &watched->judgement;
	g_autofree char *ratio = ratio_text(judgement->ratio), *low = ratio_text(judgement->ratio_low),
			*high = ratio_text(judgement->ratio_high);
	GString *text = g_string_new(NULL);

	g_string_append_printf(text, "%s: %s ", watched->name, ratio);
	if (judgement->exact)
		g_string_append_printf(text, "exactly (%.0f, was %.0f)", watched->now_median, watched->base_median);
	else
		g_string_append_printf(text, "[%s, %s]", low, high);
	g_string_append_printf(text, ", %g %% allowed: %s", result->max_regression * 100,
	                       verdict_name(judgement->verdict));
	if (judgement->verdict != VERDICT_UNDECIDED)
		return g_string_free(text, FALSE);
	if (isfinite(judgement->detectable))
		g_string_append_printf(text, "; the smallest regression that these repetitions could show is +%.1f %%",
		                       100 * ((1 + result->max_regression) * (1 + judgement->detectable) - 1));
	else
		g_string_append(text, "; so few repetitions can show nothing");
	if (judgement->repetitions_wanted != SIZE_MAX)
		g_string_append_printf(text, "; if nothing changed, %zu on each side are enough to show it",
		                       judgement->repetitions_wanted);
	return g_string_free(text, FALSE);
}

void gate_print_text(const struct gate_result *result, FILE *to)
{
	set_print("baseline", result->compared.base, to);
	set_print("now", result->compared.now, to);
	for (size_t i = 0; i < result->n_watched; i++) {
		g_autofree char *sentence = watched_sentence(&result->watched[i], result);

		fprintf(to, "%s\n", sentence);
	}
	if (result->verdict == VERDICT_REGRESSED)
		compared_print_functions(&result->compared, to);
}
