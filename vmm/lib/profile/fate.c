// SPDX-License-Identifier: BSD-2-Clause
#include "lib/profile/fate.h"

#include <math.h>
#include <string.h>

#define ALIKE_MIN (2.0 / 3) /* the part of a name that is the same */
#define WORDS_MIN 0.5       /* where that is whole words */
#define RENAMED_FACTOR 2.0  /* how much more or less time it takes under another name */
#define MOVED_MAX 0.25      /* how far from a function's time another may have grown by, as a part of it */

const char *fate_name(enum fate fate)
{
	static const char *const names[] = {
		[FATE_KEPT] = "kept",   [FATE_RENAMED] = "renamed", [FATE_INLINED] = "inlined",
		[FATE_SPLIT] = "split", [FATE_NEW] = "new",         [FATE_GONE] = "gone",
	};

	return names[fate];
}

static bool starts_word(const char *name, const char *at)
{
	return at == name || !g_ascii_isalnum(at[-1]);
}

static bool has_words(const char *name, const char *words)
{
	size_t n = strlen(words);

	for (const char *at = strstr(name, words); at; at = strstr(at + 1, words))
		if (starts_word(name, at) && !g_ascii_isalnum(at[n]))
			return true;
	return false;
}

/* The part of the longer name that both have; 0 if that is too little. */
static double likeness(const char *a, const char *b)
{
	const char *longer = strlen(a) >= strlen(b) ? a : b, *shorter = longer == a ? b : a;
	size_t n = strlen(longer), m = strlen(shorter), front = 0, back = 0;
	double part;

	if ((double)m < WORDS_MIN * (double)n)
		return 0;
	if (has_words(longer, shorter))
		return (double)m / (double)n;
	while (front < m && longer[front] == shorter[front])
		front++;
	while (back < m - front && longer[n - 1 - back] == shorter[m - 1 - back])
		back++;
	part = (double)(front + back) / (double)n;
	return part >= ALIKE_MIN ? part : 0;
}

static int pairs_compare(gconstpointer a, gconstpointer b)
{
	const struct fate_pair *one = a, *other = b;

	if (one->distance != other->distance)
		return one->distance < other->distance ? -1 : 1;
	if (one->left != other->left)
		return one->left < other->left ? -1 : 1;
	return one->right < other->right ? -1 : one->right > other->right;
}

/* Leaves those of which neither side is in a nearer one. */
static void pairs_choose(GArray *pairs, size_t n_left, size_t n_right)
{
	g_autofree bool *left_taken = g_new0(bool, n_left), *right_taken = g_new0(bool, n_right);
	guint n = 0;

	g_array_sort(pairs, pairs_compare);
	for (guint i = 0; i < pairs->len; i++) {
		const struct fate_pair pair = g_array_index(pairs, struct fate_pair, i);

		if (left_taken[pair.left] || right_taken[pair.right])
			continue;
		left_taken[pair.left] = right_taken[pair.right] = true;
		g_array_index(pairs, struct fate_pair, n++) = pair;
	}
	g_array_set_size(pairs, n);
}

static bool same_module(const struct series *a, const struct series *b)
{
	return strcmp(a->module, b->module) == 0;
}

static bool may_be_renamed(const struct change *gone, const struct change *added, double *distance)
{
	const struct series *base = gone->base, *now = added->now;
	double part;

	if (base->mode != now->mode || added->now_median > RENAMED_FACTOR * gone->base_median ||
	    gone->base_median > RENAMED_FACTOR * added->now_median)
		return false;
	if (strcmp(base->name, now->name) == 0)
		part = 1;
	else
		part = same_module(base, now) ? likeness(base->name, now->name) : 0;
	*distance = 1 - part;
	return part > 0;
}

GArray *fate_find_renamed(const struct change *only, size_t n)
{
	GArray *pairs = g_array_new(FALSE, FALSE, sizeof(struct fate_pair));

	for (guint gone = 0; gone < n; gone++)
		for (guint added = 0; only[gone].base && added < n; added++) {
			struct fate_pair pair = {.left = gone, .right = added};

			if (!only[added].base && may_be_renamed(&only[gone], &only[added], &pair.distance))
				g_array_append_val(pairs, pair);
		}
	pairs_choose(pairs, n, n);
	return pairs;
}

/* Whether `other` has taken the time of `change`, or has given it. */
static bool may_be_moved(const struct change *change, const struct change *other, double *distance)
{
	const struct series *series = change_series(change);

	if (change->fate == FATE_RENAMED || !other->stands || other->base->mode != series->mode ||
	    !same_module(other->base, series))
		return false;
	*distance = fabs(other->shift.estimate / (change->base_median - change->now_median) - 1);
	return *distance <= MOVED_MAX;
}

void fate_decide(struct change *only, size_t n_only, const struct change *functions, size_t n_functions)
{
	g_autoptr(GArray) pairs = g_array_new(FALSE, FALSE, sizeof(struct fate_pair));

	for (guint i = 0; i < n_only; i++) {
		only[i].fate = !only[i].now ? FATE_GONE : !only[i].base ? FATE_NEW : FATE_RENAMED;
		for (guint j = 0; j < n_functions; j++) {
			struct fate_pair pair = {.left = i, .right = j};

			if (may_be_moved(&only[i], &functions[j], &pair.distance))
				g_array_append_val(pairs, pair);
		}
	}
	pairs_choose(pairs, n_only, n_functions);
	for (guint i = 0; i < pairs->len; i++) {
		const struct fate_pair *pair = &g_array_index(pairs, struct fate_pair, i);
		struct change *change = &only[pair->left];

		change->fate = change->fate == FATE_GONE ? FATE_INLINED : FATE_SPLIT;
		change->other = functions[pair->right].base;
	}
}
