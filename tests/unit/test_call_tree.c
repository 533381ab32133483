// SPDX-License-Identifier: BSD-2-Clause
/* Call trees: which function a sample's number leads to, addresses in it, and a node with more children than a list can
 * be searched. */
#include <check.h>

#include "lib/profile/call_tree.h"
#include "lib/profile/chain.h"
#include "recording_resolver.h"
#include "run_suite.h"

static uint32_t add(struct call_tree *tree, uint16_t misc, uint64_t ip)
{
	return call_tree_add(tree, &(struct record_sample){.misc = misc, .ip = ip, .period = 1});
}

START_TEST(a_number_leads_to_the_function)
{
	struct call_tree_room room = {0};
	struct call_tree *tree = call_tree_new(NULL, &room);
	uint32_t first = add(tree, PERF_RECORD_MISC_KERNEL, TEXT + 0x20);
	uint32_t other = add(tree, PERF_RECORD_MISC_KERNEL, TEXT + 0x100);
	uint32_t again = add(tree, PERF_RECORD_MISC_KERNEL, TEXT + 0x3f);
	size_t n, *node_of;
	struct call_node *nodes = call_tree_resolve_numbers(tree, resolver, &n, &node_of);

	ck_assert_uint_ne(first, again);
	ck_assert_uint_eq(node_of[first], node_of[again]);
	ck_assert_str_eq(nodes[node_of[first]].symbol, "second");
	ck_assert_uint_eq(nodes[node_of[first]].samples, 2);
	ck_assert_str_eq(nodes[node_of[other]].symbol, "in_module");
	ck_assert_uint_eq(nodes[0].samples, 3);
	ck_assert_uint_eq(n, 3);
	g_free(node_of);
	g_free(nodes);
	call_tree_free(tree);
}
END_TEST

/* The first byte of `second` interrupted, and a call that is the last thing that `first` does: one address, two frames.
 */
START_TEST(what_was_interrupted_is_no_call)
{
	static const uint64_t chain[] = {
		(uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x100, (uint64_t)PERF_CONTEXT_KERNEL, TEXT + 0x20, TEXT + 0x20,
		(uint64_t)PERF_CONTEXT_USER,   TEXT + 0x20};

	static const struct {
		const char *symbol;
		uint64_t ip;
	} want[] = {
		{"in_module", TEXT + 0x100}, {"second", TEXT + 0x20}, {"first", TEXT + 0x1f}, {"second", TEXT + 0x20}};
	const struct record_sample sample = {
		.misc = PERF_RECORD_MISC_KERNEL, .chain = chain, .n_chain = G_N_ELEMENTS(chain)};
	struct chain_frame frames[CHAIN_FRAMES_MAX];
	struct place place;

	ck_assert_uint_eq(chain_frames(&sample, frames), G_N_ELEMENTS(want));
	for (size_t i = 0; i < G_N_ELEMENTS(want); i++) {
		ck_assert_uint_eq(frames[i].ip, want[i].ip);
		resolver_find(resolver, PROFILE_KERNEL, frames[i].ip, NULL, &place);
		ck_assert_str_eq(place.symbol, want[i].symbol);
	}
	ck_assert_uint_eq(frames[2].misc, PERF_RECORD_MISC_KERNEL);
	ck_assert_uint_eq(frames[3].misc, PERF_RECORD_MISC_USER);
}
END_TEST

START_TEST(an_address_is_a_node_of_its_own)
{
	struct call_tree_room room = {0};
	struct call_tree *tree = call_tree_new(NULL, &room);
	size_t n;

	add(tree, PERF_RECORD_MISC_KERNEL, TEXT + 0x3f);
	add(tree, PERF_RECORD_MISC_KERNEL, TEXT + 0x20);
	add(tree, PERF_RECORD_MISC_KERNEL, TEXT + 0x20);
	struct call_node *nodes = call_tree_resolve_addresses(tree, resolver, &n);
	const struct call_node *often = &nodes[nodes[0].first_child], *seldom = &nodes[often->next_sibling];

	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(often->ip, TEXT + 0x20);
	ck_assert_uint_eq(often->self_samples, 2);
	ck_assert_uint_eq(seldom->ip, TEXT + 0x3f);
	ck_assert_str_eq(often->symbol, "second");
	ck_assert_str_eq(seldom->symbol, "second");
	ck_assert_uint_eq(nodes[0].period, 3);
	g_free(nodes);
	call_tree_free(tree);
}
END_TEST

/* Exits of as many ports as there are: quadratic time would be noticed. */
START_TEST(a_node_may_have_many_children)
{
	struct call_tree_room room = {0};
	struct call_tree *tree = call_tree_new(NULL, &room);
	size_t n, children = 0;

	for (uint64_t i = 0; i < 200000; i++)
		add(tree, PERF_RECORD_MISC_HYPERVISOR, UINT64_C(6) << 56 | i << 12);
	struct call_node *nodes = call_tree_resolve(tree, resolver, &n);

	for (size_t i = nodes[0].first_child; i != 0; i = nodes[i].next_sibling)
		children++;
	ck_assert_uint_eq(children, 200000);
	ck_assert_uint_eq(nodes[0].period, 200000);
	g_free(nodes);
	call_tree_free(tree);
}
END_TEST

/* Of chains that share nothing, whatever is beyond the limit counts at the caller that was the last to find room. */
START_TEST(places_are_limited)
{
	struct call_tree_room room = {.places = CALL_TREE_PLACES_MAX - 3};
	struct call_tree *tree = call_tree_new(NULL, &room), *other = call_tree_new(NULL, &room);
	const uint64_t chain[] = {PERF_CONTEXT_KERNEL, 0x104, 0x204};
	struct record_sample sample = {.period = 1, .misc = PERF_RECORD_MISC_KERNEL, .chain = chain, .n_chain = 3};
	size_t n, n_other;

	call_tree_add(tree, &sample);
	call_tree_add(other, &sample);
	call_tree_add(tree, &sample);
	ck_assert_uint_eq(room.places, CALL_TREE_PLACES_MAX);
	ck_assert_uint_eq(room.cut, 1);
	struct call_node *nodes = call_tree_resolve(tree, resolver, &n);
	struct call_node *others = call_tree_resolve(other, resolver, &n_other);

	ck_assert_uint_eq(n, 3);
	ck_assert_uint_eq(nodes[2].self_samples, 2);
	ck_assert_uint_eq(n_other, 2);
	ck_assert_uint_eq(others[1].self_samples, 1);
	g_free(nodes);
	g_free(others);
	call_tree_free(tree);
	call_tree_free(other);
}
END_TEST

int main(void)
{
	TCase *tests = tcase_create("call_tree");
	Suite *suite = suite_create("call_tree");

	tcase_add_checked_fixture(tests, resolver_setup, resolver_teardown);
	tcase_add_test(tests, a_number_leads_to_the_function);
	tcase_add_test(tests, what_was_interrupted_is_no_call);
	tcase_add_test(tests, an_address_is_a_node_of_its_own);
	tcase_add_test(tests, a_node_may_have_many_children);
	tcase_add_test(tests, places_are_limited);
	tcase_set_timeout(tests, 60);
	suite_add_tcase(suite, tests);
	return run_suite(suite);
}
