// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/comparison.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POWER 0.8 /* of what a judgement promises */

static struct shift shift_exact(double difference)
{
	return (struct shift){
		.estimate = difference, .low = difference, .high = difference, .p = difference != 0 ? 0 : 1};
}

static double median_of(const struct measurements *measurements, const struct series *series)
{
	return series ? shift_median(series->values, measurements->n_repetitions) : 0;
}

/* One of the two may be NULL. */
static struct change change_between(const struct measurements *base_set, const struct series *base,
                                    const struct measurements *now_set, const struct series *now, double alpha)
{
	struct change change = {
		.base = base,
		.now = now,
		.base_median = median_of(base_set, base),
		.now_median = median_of(now_set, now),
	};

	change.exact = base && now && measurements_exact(base_set, base) && measurements_exact(now_set, now);
	if (change.exact)
		change.shift = shift_exact(change.now_median - change.base_median);
	else if (base && now)
		change.shift = shift_between(base->values, base_set->n_repetitions, now->values, now_set->n_repetitions,
		                             alpha);
	else
		change.shift = (struct shift){
			.estimate = change.now_median - change.base_median, .low = -INFINITY, .high = INFINITY, .p = 1};
	return change;
}

/* By fate, where it is known. */
static int changes_compare(gconstpointer a, gconstpointer b)
{
	const struct change *left = a, *right = b;
	double left_size = fabs(left->shift.estimate), right_size = fabs(right->shift.estimate);

	if (left->fate != right->fate)
		return left->fate < right->fate ? -1 : 1;
	if (left_size != right_size)
		return left_size > right_size ? -1 : 1;
	return strcmp(change_series(left)->name, change_series(right)->name);
}

/* What comparison_new gathers before it knows how many there are. */
struct gathering {
	const struct measurements *base, *now;
	double base_weight, now_weight; /* below these a function is small */
	double alpha;
	GArray *both, *only; /* of struct change */
	size_t n_small;
};

static void gather(struct gathering *in, const struct series *base, const struct series *now)
{
	struct change change;

	if (median_of(in->base, base) < in->base_weight && median_of(in->now, now) < in->now_weight) {
		in->n_small++;
		return;
	}
	change = change_between(in->base, base, in->now, now, in->alpha);
	g_array_append_val(base && now ? in->both : in->only, change);
}

/* Two that are one under two names become one change. */
static void join_renamed(struct gathering *in)
{
	g_autoptr(GArray) pairs = fate_find_renamed((const struct change *)(void *)in->only->data, in->only->len);

	for (guint i = 0; i < pairs->len; i++) {
		const struct fate_pair *pair = &g_array_index(pairs, struct fate_pair, i);
		struct change *gone = &g_array_index(in->only, struct change, pair->left);
		struct change *new = &g_array_index(in->only, struct change, pair->right);

		*gone = change_between(in->base, gone->base, in->now, new->now, in->alpha);
		new->now = NULL;
	}
	for (guint i = in->only->len; i-- > 0;)
		if (!change_series(&g_array_index(in->only, struct change, i)))
			g_array_remove_index(in->only, i);
}

static void gather_functions(struct gathering *in)
{
	for (guint i = 0; i < in->base->functions->len; i++) {
		const struct series *base = g_ptr_array_index(in->base->functions, i);

		gather(in, base, g_hash_table_lookup(in->now->index, base));
	}
	for (guint i = 0; i < in->now->functions->len; i++) {
		const struct series *now = g_ptr_array_index(in->now->functions, i);

		if (!g_hash_table_contains(in->base->index, now))
			gather(in, NULL, now);
	}
	join_renamed(in);
	g_array_sort(in->both, changes_compare);
	g_array_sort(in->only, changes_compare);
}

static void decide_which_stand(struct comparison *comparison, double rate)
{
	size_t n = comparison->n_functions;
	g_autofree double *p = g_new(double, n);
	g_autofree bool *stands = g_new(bool, n);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		p[i] = comparison->functions[i].shift.p;
	shift_discoveries(p, n, rate, stands);
	for (size_t i = 0; i < n; i++) {
		comparison->functions[i].stands = stands[i];
		comparison->n_standing += stands[i];
		sum += stands[i] ? comparison->functions[i].shift.estimate : 0;
	}
	if (comparison->n_metrics != 0 && comparison->metrics[0].shift.estimate != 0)
		comparison->explained = sum / comparison->metrics[0].shift.estimate;
}

static bool measure_alike(const struct series *base, const struct series *now)
{
	return base && now && strcmp(base->unit, now->unit) == 0;
}

static void compare_metrics(struct comparison *comparison, const struct measurements *base,
                            const struct measurements *now, double alpha)
{
	comparison->metrics = g_new(struct change, base->metrics->len);
	comparison->apart = g_ptr_array_new();
	for (guint i = 0; i < base->metrics->len; i++) {
		const struct series *series = g_ptr_array_index(base->metrics, i);
		const struct series *other = measurements_metric(now, series->name);
		struct change *change = &comparison->metrics[comparison->n_metrics];

		if (!measure_alike(series, other)) {
			g_ptr_array_add(comparison->apart, (void *)series);
			continue;
		}
		*change = change_between(base, series, now, other, alpha);
		change->stands = change->shift.p <= 2 * alpha;
		comparison->n_metrics++;
	}
	for (guint i = 0; i < now->metrics->len; i++) {
		const struct series *series = g_ptr_array_index(now->metrics, i);

		if (!measure_alike(measurements_metric(base, series->name), series))
			g_ptr_array_add(comparison->apart, (void *)series);
	}
}

struct comparison *comparison_new(const struct measurements *base, const struct measurements *now,
                                  const struct comparison_options *options)
{
	struct comparison *comparison = g_new0(struct comparison, 1);
	struct gathering in = {
		.base = base,
		.now = now,
		.alpha = options->alpha,
		.both = g_array_new(FALSE, FALSE, sizeof(struct change)),
		.only = g_array_new(FALSE, FALSE, sizeof(struct change)),
	};

	compare_metrics(comparison, base, now, options->alpha);
	if (comparison->n_metrics != 0) {
		in.base_weight = options->min_share * comparison->metrics[0].base_median;
		in.now_weight = options->min_share * comparison->metrics[0].now_median;
	}
	gather_functions(&in);
	comparison->n_small = in.n_small;
	comparison->n_functions = in.both->len;
	comparison->n_only = in.only->len;
	comparison->functions = (struct change *)(void *)g_array_free(in.both, FALSE);
	comparison->only = (struct change *)(void *)g_array_free(in.only, FALSE);
	decide_which_stand(comparison, options->alpha);
	fate_decide(comparison->only, comparison->n_only, comparison->functions, comparison->n_functions);
	if (comparison->n_only > 0)
		qsort(comparison->only, comparison->n_only, sizeof(struct change), changes_compare);
	return comparison;
}

void comparison_free(struct comparison *comparison)
{
	if (!comparison)
		return;
	g_free(comparison->metrics);
	g_ptr_array_unref(comparison->apart);
	g_free(comparison->functions);
	g_free(comparison->only);
	g_free(comparison);
}

const struct change *comparison_only(const struct comparison *comparison, enum fate fate, size_t *n)
{
	size_t from = 0, to;

	while (from < comparison->n_only && comparison->only[from].fate < fate)
		from++;
	for (to = from; to < comparison->n_only && comparison->only[to].fate == fate;)
		to++;
	*n = to - from;
	return *n > 0 ? &comparison->only[from] : NULL;
}

const char *verdict_name(enum verdict verdict)
{
	static const char *const names[] = {
		[VERDICT_GOOD] = "good",
		[VERDICT_REGRESSED] = "regression",
		[VERDICT_UNDECIDED] = "undecided",
	};

	return names[verdict];
}

static double *logarithms(const double *values, size_t n)
{
	double *logs = g_new(double, n);

	for (size_t i = 0; i < n; i++)
		logs[i] = log(values[i]);
	return logs;
}

struct judgement judge_exact(double base, double now, double max_regression)
{
	double ratio = now / base;

	return (struct judgement){
		.verdict = ratio > 1 + max_regression ? VERDICT_REGRESSED : VERDICT_GOOD,
		.exact = true,
		.ratio = ratio,
		.ratio_low = ratio,
		.ratio_high = ratio,
		.repetitions_wanted = 1,
	};
}

struct judgement judge(const double *base, size_t n_base, const double *now, size_t n_now, double max_regression,
                       double alpha)
{
	g_autofree double *base_logs = logarithms(base, n_base), *now_logs = logarithms(now, n_now);
	struct shift shift = shift_between(base_logs, n_base, now_logs, n_now, alpha);
	double limit = log1p(max_regression), sd = shift_scatter(base_logs, n_base, now_logs, n_now);
	struct judgement judgement = {
		.verdict = VERDICT_UNDECIDED,
		.ratio = exp(shift.estimate),
		.ratio_low = exp(shift.low),
		.ratio_high = exp(shift.high),
		.detectable = expm1(shift_detectable(sd, n_base, n_now, alpha, POWER)),
		.repetitions_wanted = shift_repetitions(limit, sd, alpha, POWER),
	};

	if (shift.low > limit)
		judgement.verdict = VERDICT_REGRESSED;
	else if (shift.high <= limit)
		judgement.verdict = VERDICT_GOOD;
	return judgement;
}
