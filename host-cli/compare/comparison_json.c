// SPDX-License-Identifier: BSD-2-Clause
#include <math.h>

#include "compare/comparison_output.h"
#include "ui/text.h"

/* JSON has no infinity: a missing bound is null. */
static json_t *number_json(double number)
{
	return isfinite(number) ? json_real(number) : json_null();
}

static json_t *change_json(const struct change *change)
{
	const struct series *series = change_series(change);
	json_t *object = json_pack("{s:o, s:o, s:s, s:o, s:f, s:f, s:f, s:b, s:o, s:o, s:f, s:b}", "name",
	                           text_json(series->name), "module", text_json(series->module), "mode",
	                           profile_mode_name(series->mode), "unit", text_json(series->unit), "base",
	                           change->base_median, "now", change->now_median, "change", change->shift.estimate,
	                           "exact", change->exact, "low", number_json(change->shift.low), "high",
	                           number_json(change->shift.high), "p", change->shift.p, "stands", change->stands);

	if (change->fate == FATE_RENAMED) {
		json_object_set_new(object, "now-name", text_json(change->now->name));
		json_object_set_new(object, "now-module", text_json(change->now->module));
	}
	if (change->other)
		json_object_set_new(object, change->fate == FATE_INLINED ? "into" : "off",
		                    text_json(change->other->name));
	return object;
}

static json_t *changes_json(const struct change *changes, size_t n)
{
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		json_array_append_new(list, change_json(&changes[i]));
	return list;
}

static json_t *apart_json(const struct comparison *comparison)
{
	json_t *list = json_array();

	for (guint i = 0; i < comparison->apart->len; i++)
		json_array_append_new(
			list, text_json(((const struct series *)g_ptr_array_index(comparison->apart, i))->name));
	return list;
}

static json_t *set_json(const struct measured *measured)
{
	return json_pack("{s:o, s:I, s:O}", "file", text_json(measured->path), "repetitions",
	                 (json_int_t)measured->measurements->n_repetitions, "conditions", measured->conditions);
}

json_t *compared_json(const struct compared *compared)
{
	const struct comparison *comparison = compared->comparison;
	json_t *object = json_pack(
		"{s:o, s:o, s:f, s:f, s:o, s:o, s:o, s:I, s:f}", "base", set_json(compared->base), "now",
		set_json(compared->now), "alpha", compared->options.alpha, "min-share", compared->options.min_share,
		"metrics", changes_json(comparison->metrics, comparison->n_metrics), "metrics-apart",
		apart_json(comparison), "functions", changes_json(comparison->functions, comparison->n_functions),
		"not-tested", (json_int_t)comparison->n_small, "explained", comparison->explained);

	for (enum fate fate = FATE_RENAMED; fate <= FATE_GONE; fate++) {
		size_t n;
		const struct change *changes = comparison_only(comparison, fate, &n);

		json_object_set_new(object, fate_name(fate), changes_json(changes, n));
	}
	return object;
}

static json_t *watched_json(const struct watched *watched)
{
	const struct judgement *judgement = &watched->judgement;

	return json_pack(
		"{s:o, s:o, s:s, s:b, s:f, s:f, s:o, s:o, s:o, s:o, s:o}", "name", text_json(watched->name), "unit",
		text_json(watched->unit), "verdict", verdict_name(judgement->verdict), "exact", judgement->exact,
		"base", watched->base_median, "now", watched->now_median, "ratio", number_json(judgement->ratio),
		"ratio-low", number_json(judgement->ratio_low), "ratio-high", number_json(judgement->ratio_high),
		"detectable", number_json(judgement->detectable), "repetitions-wanted",
		judgement->repetitions_wanted != SIZE_MAX ? json_integer((json_int_t)judgement->repetitions_wanted)
							  : json_null());
}

void gate_print_json(const struct gate_result *result, FILE *to)
{
	json_t *metrics = json_array(), *document;

	for (size_t i = 0; i < result->n_watched; i++)
		json_array_append_new(metrics, watched_json(&result->watched[i]));
	document = json_pack("{s:s, s:i, s:s, s:f, s:f, s:o, s:o}", "format", "vprof-gate", "version",
	                     COMPARED_JSON_VERSION, "verdict", verdict_name(result->verdict), "max-regression",
	                     result->max_regression, "alpha", result->alpha, "metrics", metrics, "comparison",
	                     compared_json(&result->compared));
	text_print_json(document, 9, to);
	json_decref(document);
}
