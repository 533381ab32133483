// SPDX-License-Identifier: BSD-2-Clause
/* A kernel's page tables in memory of which nothing is known, and what only looks like them. */
#include <check.h>

#include "fake_kernel.h"
#include "guest/kernel_find.h"
#include "linux/kernel_scan.h"
#include "run_suite.h"

#define AT (FAKE_KERNEL_LINKED + (UINT64_C(0x12) << 24))
#define MIDDLE UINT64_C(0x20000) /* the first table that fake_map makes: here for the last 512 GiB */
#define PAGE UINT64_C(4096)
#define ENTRY(n) ((n)*UINT64_C(8))
#define PRESENT UINT64_C(0x63)

static struct fake_guest fake;
static struct os_scan_run runs[3];
static size_t n_runs, n_asked;

static bool next_run(void *data G_GNUC_UNUSED, uint64_t from, struct os_scan_run *run)
{
	n_asked++;
	for (size_t i = 0; i < n_runs; i++)
		if (runs[i].gpa >= from) {
			*run = runs[i];
			return true;
		}
	return false;
}

/* A kernel of which the tables are as Linux has them: entry 511 of the last one is the fixed mappings. */
static void setup(void)
{
	fake_kernel_make(&fake, AT, 0x5a);
	fake_write(&fake, MIDDLE + ENTRY(511), (MIDDLE + 64 * PAGE) | PRESENT);
	fake_write(&fake, FAKE_KERNEL_ROOT + ENTRY(273), (MIDDLE + 65 * PAGE) | PRESENT); /* all memory */
	runs[0] = (struct os_scan_run){0, 16 * PAGE};
	runs[1] = (struct os_scan_run){FAKE_KERNEL_ROOT, 128 * PAGE};
	n_runs = 2;
}

static uint64_t scan(bool la57)
{
	struct os_scan state = {0};
	struct look look;

	look_init(&look, &fake.guest);
	uint64_t top = kernel_tables_scan(&state, &look, next_run, NULL, la57);

	ck_assert_uint_eq(state.from, 0); /* it has looked at all */
	return top;
}

START_TEST(the_tables_lead_to_the_kernel)
{
	struct seen_vcpu registers = {.regs = {.cr3 = scan(false)}, .long_mode = true};
	g_autoptr(GError) error = NULL;
	struct kernel_found found;
	struct look look;

	look_init(&look, &fake.guest);
	ck_assert_uint_eq(registers.regs.cr3, FAKE_KERNEL_ROOT);
	ck_assert_msg(kernel_find(&look, &registers, NULL, -1, &found, &error), "%s", error ? error->message : "");
	ck_assert_str_eq(image_release(found.image), "6.1.0-fake");
	kernel_found_clear(&found);
}
END_TEST

START_TEST(five_levels_have_one_more_in_between)
{
	const uint64_t level4 = MIDDLE + 20 * PAGE, top = MIDDLE + 21 * PAGE;

	fake_write(&fake, FAKE_KERNEL_ROOT + ENTRY(511), 0);
	ck_assert_uint_eq(scan(true), 0);
	fake_write(&fake, level4 + ENTRY(511), MIDDLE | PRESENT);
	fake_write(&fake, top + ENTRY(511), level4 | PRESENT);
	ck_assert_uint_eq(scan(true), 0); /* of the early boot: it maps nothing else */
	fake_write(&fake, top + ENTRY(273), (MIDDLE + 65 * PAGE) | PRESENT);
	ck_assert_uint_eq(scan(true), top);
}
END_TEST

START_TEST(what_only_looks_like_it_is_none)
{
	fake_write(&fake, MIDDLE + ENTRY(7), 1); /* more than two entries */
	ck_assert_uint_eq(scan(false), 0);
	fake_write(&fake, MIDDLE + ENTRY(7), 0);
	fake_write(&fake, FAKE_KERNEL_ROOT + ENTRY(273), 0);
	fake_write(&fake, FAKE_KERNEL_ROOT + ENTRY(508), 0); /* the descriptor table's */
	ck_assert_uint_eq(scan(false), 0);
	fake_write(&fake, FAKE_KERNEL_ROOT + ENTRY(273), PRESENT);
	ck_assert_uint_eq(scan(false), FAKE_KERNEL_ROOT);
	fake_write(&fake, MIDDLE + ENTRY(511), 0);
	ck_assert_uint_eq(scan(false), 0);
}
END_TEST

/* Pieces that cannot be read are passed over, and one that leads back ends it. */
START_TEST(any_list_of_pieces_ends)
{
	runs[0] = (struct os_scan_run){UINT64_C(1) << 50, 16 * PAGE};
	n_runs = 1;
	ck_assert_uint_eq(scan(false), 0);
	runs[0] = (struct os_scan_run){UINT64_MAX - PAGE + 1, 2 * PAGE};
	n_asked = 0;
	ck_assert_uint_eq(scan(false), 0);
	ck_assert_uint_eq(n_asked, 1);
	runs[0].bytes = 0;
	ck_assert_uint_eq(scan(false), 0);
}
END_TEST

/* Memory of terabytes, none of which is the guest's; then the tables. */
static bool next_of_much(void *data G_GNUC_UNUSED, uint64_t from, struct os_scan_run *run)
{
	const uint64_t much = UINT64_C(1) << 40;

	n_asked++;
	*run = from < much ? (struct os_scan_run){.gpa = from + (UINT64_C(2) << 20)}
	                   : (struct os_scan_run){from, 2 * PAGE};
	return from <= much;
}

START_TEST(a_scan_goes_on_where_a_look_has_ended)
{
	struct os_scan state = {0};
	uint64_t before;
	unsigned looks = 0;

	n_asked = 0;
	do {
		struct look look;

		look_init(&look, &fake.guest);
		look.bytes_left = 1 << 20;
		before = state.from;
		ck_assert_uint_eq(kernel_tables_scan(&state, &look, next_of_much, NULL, false), 0);
		ck_assert(state.from == 0 || state.from > before);
		ck_assert_uint_lt(n_asked, ++looks * ((1 << 20) / LOOK_READ_BYTES + 1));
	} while (state.from != 0);
	ck_assert_uint_gt(looks, 1);
}
END_TEST

/* Each page of all memory looks like the kernel's table, and none leads to it. */
static bool read_look_alikes(struct guest *guest, gpa_t from, void *to, size_t bytes)
{
	uint64_t *words = to;

	((struct fake_guest *)guest)->reads++;
	for (size_t i = 0; i < bytes / sizeof(*words); i++) {
		const uint64_t at = from.value + i * sizeof(*words);

		words[i] = at % PAGE >= ENTRY(510)
		                   ? (at % PAGE == ENTRY(511) ? UINT64_C(2) << 48 : UINT64_C(1) << 48) | PRESENT
		                   : 0;
	}
	return true;
}

static bool next_of_all(void *data G_GNUC_UNUSED, uint64_t from, struct os_scan_run *run)
{
	*run = (struct os_scan_run){from, 64 * PAGE};
	return true;
}

START_TEST(look_alikes_are_not_tried_for_ever)
{
	const struct guest_ops ops = {.memory_read = read_look_alikes};
	struct os_scan state = {0};
	struct look look;

	fake.guest.ops = &ops;
	fake.reads = 0;
	look_init(&look, &fake.guest);
	ck_assert_uint_eq(kernel_tables_scan(&state, &look, next_of_all, NULL, false), 0);
	ck_assert_uint_eq(state.from, 0);
	ck_assert_uint_le(fake.reads, 256 * 128 + 256 / 64);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel_scan");
	TCase *cases = tcase_create("memory");

	tcase_add_checked_fixture(cases, setup, NULL);
	tcase_add_test(cases, the_tables_lead_to_the_kernel);
	tcase_add_test(cases, five_levels_have_one_more_in_between);
	tcase_add_test(cases, what_only_looks_like_it_is_none);
	tcase_add_test(cases, any_list_of_pieces_ends);
	tcase_add_test(cases, a_scan_goes_on_where_a_look_has_ended);
	tcase_add_test(cases, look_alikes_are_not_tried_for_ever);
	suite_add_tcase(suite, cases);
	return run_suite(suite);
}
