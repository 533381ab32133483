// SPDX-License-Identifier: BSD-2-Clause
/* Finding a kernel in a guest's memory: where it is, whether it is the one given, and what is no kernel. */
#include <check.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/kernel_search.h"
#include "fake_kernel.h"
#include "guest/kernel_find.h"
#include "linux/kernel_memory.h"
#include "run_suite.h"

#define SLIDE UINT64_C(0x12600000)
#define BUILD_ID 0x5a
#define BUILD_ID_TEXT "5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a5a"

static struct fake_guest fake;

static struct kernel_found find(const struct seen_vcpu *registers, const char *path)
{
	struct kernel_found found;
	GError *error = NULL;
	struct look look;
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	look_init(&look, &fake.guest);
	ck_assert_msg(kernel_find(&look, registers, path, file, &found, &error), "%s", error ? error->message : "");
	if (file >= 0)
		close(file);
	return found;
}

static void assert_none(const struct seen_vcpu *registers, const char *path, const char *text)
{
	g_autoptr(GError) error = NULL;
	struct kernel_found found;
	struct look look;
	int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;

	look_init(&look, &fake.guest);
	ck_assert(!kernel_find(&look, registers, path, file, &found, &error));
	if (file >= 0)
		close(file);
	ck_assert_msg(strstr(error->message, text), "%s", error->message);
}

static uint64_t address_of(const struct image *image, const char *name)
{
	struct symtab *symtab = symtab_load(image, NULL);
	const struct symbol *symbol = symtab ? symtab_find_name(symtab, name) : NULL;
	uint64_t address = symbol ? symbol->address : 0;

	symtab_free(symtab);
	return address;
}

static void assert_is_at(struct kernel_found *found, uint64_t at)
{
	g_autofree char *id = image_build_id_text(found->image);

	ck_assert_str_eq(id, BUILD_ID_TEXT);
	ck_assert_str_eq(image_release(found->image), "6.1.0-fake");
	ck_assert_uint_eq(address_of(found->image, "asm_exc_divide_error"), at + FAKE_KERNEL_DIVIDE_ERROR);
	ck_assert_uint_eq(address_of(found->image, "function_7"), at + FAKE_KERNEL_FUNCTIONS + 16 * 7);
	kernel_found_clear(found);
}

START_TEST(it_is_where_the_descriptor_table_leads)
{
	const struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);
	struct kernel_found found = find(&registers, NULL);

	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
}
END_TEST

/* Of the mapping, few pages have anything in them. */
START_TEST(pages_of_zeros_take_no_memory)
{
	const struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);
	struct kernel_found found = find(&registers, NULL);
	struct stat status;

	ck_assert_int_eq(fstat(found.fd, &status), 0);
	ck_assert_int_ge(status.st_size, (off_t)FAKE_KERNEL_BYTES);
	ck_assert_int_gt(status.st_blocks, 0);
	ck_assert_int_lt(status.st_blocks * 512, (off_t)FAKE_KERNEL_BYTES / 2);
	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
}
END_TEST

START_TEST(early_handlers_are_handlers)
{
	const struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);

	fake_kernel_gate(&fake, FAKE_KERNEL_LINKED + SLIDE + FAKE_KERNEL_EARLY_HANDLER);
	struct kernel_found found = find(&registers, NULL);

	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
}
END_TEST

/* The last resort: whatever the table says, the page tables map a kernel. */
START_TEST(without_a_descriptor_table_its_mapping_is_searched)
{
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);
	struct kernel_found found;

	registers.vectors = 0x1000; /* not mapped */
	found = find(&registers, NULL);
	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
	registers.vectors = FAKE_KERNEL_IDT_GVA;
	fake_kernel_gate(&fake, FAKE_KERNEL_LINKED + SLIDE + 0x333); /* in it, and no handler */
	found = find(&registers, NULL);
	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
}
END_TEST

/* After a reset it is elsewhere, or not there at all. */
START_TEST(a_kernel_is_found_again_where_it_was)
{
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);
	struct kernel_found found = find(&registers, NULL);

	ck_assert(kernel_find_again(&fake.guest, &registers, &found));
	registers.regs.cr3 = FAKE_KERNEL_ROOT | 1 << 12;
	ck_assert(kernel_find_again(&fake.guest, &registers, &found));
	registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID + 1);
	ck_assert(!kernel_find_again(&fake.guest, &registers, &found));
	registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + 2 * SLIDE, BUILD_ID);
	ck_assert(!kernel_find_again(&fake.guest, &registers, &found));
	registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);
	registers.long_mode = false;
	ck_assert(!kernel_find_again(&fake.guest, &registers, &found));
	kernel_found_clear(&found);
}
END_TEST

/* With page table isolation, a vCPU in user space has tables with a little of the kernel. */
START_TEST(tables_of_user_space_lead_to_the_kernels)
{
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);

	fake_kernel_map(&fake, FAKE_KERNEL_USER_ROOT, FAKE_KERNEL_LINKED + SLIDE, 4096);
	registers.regs.cr3 = FAKE_KERNEL_USER_ROOT;
	struct kernel_found found = find(&registers, NULL);

	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
}
END_TEST

/* The kernel of one guest as a file, for others. */
static char *kernel_file(struct kernel_found *found)
{
	const struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, BUILD_ID);

	*found = find(&registers, NULL);
	return g_strdup_printf("/proc/self/fd/%d", found->fd);
}

START_TEST(an_image_is_slid_to_where_the_guest_has_it)
{
	struct kernel_found file;
	g_autofree char *path = kernel_file(&file);
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);
	struct kernel_found found = find(&registers, path);

	ck_assert_uint_eq(image_slide(found.image), SLIDE);
	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
	fake_kernel_gate(&fake, FAKE_KERNEL_LINKED + SLIDE + FAKE_KERNEL_EARLY_HANDLER);
	found = find(&registers, path);
	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
	registers.vectors = 0x1000;
	found = find(&registers, path);
	assert_is_at(&found, FAKE_KERNEL_LINKED + SLIDE);
	kernel_found_clear(&file);
}
END_TEST

START_TEST(another_image_is_refused_by_its_build_id)
{
	struct kernel_found file;
	g_autofree char *path = kernel_file(&file);
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID + 1);

	assert_none(&registers, path, "its build-id is not in the guest's memory");
	fake_kernel_gate(&fake, FAKE_KERNEL_LINKED + SLIDE + FAKE_KERNEL_DIVIDE_ERROR + 1);
	assert_none(&registers, path, "no kernel slides by the 0x");
	kernel_found_clear(&file);
}
END_TEST

START_TEST(what_is_no_kernel_is_none)
{
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, BUILD_ID);

	registers.long_mode = false;
	assert_none(&registers, NULL, "still in its firmware or boot loader");
	registers.long_mode = true;
	memset(fake.ram + FAKE_KERNEL_GPA + FAKE_KERNEL_BANNER, 0, 32);
	assert_none(&registers, NULL, "no Linux banner");
	registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, BUILD_ID);
	memset(fake.ram + FAKE_KERNEL_GPA + FAKE_KERNEL_KALLSYMS, 0, 0x8000);
	assert_none(&registers, NULL, "no kernel image in the guest's memory");
	registers.regs.cr3 = 0x7f000; /* tables that map nothing */
	assert_none(&registers, NULL, "descriptor table cannot be read");
}
END_TEST

/* ---- its limits ---- */

/* A page of each size is the last of the address space, and has the code. It is copied once, as far as it is RAM. */
START_TEST(a_kernel_may_end_with_the_address_space)
{
	const unsigned levels = 4 + (unsigned)_i / 3, size = 1 + (unsigned)_i % 3;
	const uint64_t page_bytes = UINT64_C(4096) << 9 * (size - 1), code = -page_bytes + 0x100;
	struct seen_vcpu registers = {
		.regs = {.cr3 = FAKE_KERNEL_ROOT, .la57 = levels == 5, .valid = true},
		.vectors = FAKE_KERNEL_IDT_GVA,
		.long_mode = true,
	};

	fake_guest_init(&fake);
	fake.guest.searches = fake_searches;
	fake.next_table = 0x20000;
	fake_map(&fake, FAKE_KERNEL_ROOT, levels, code, 0, size);
	fake_map(&fake, FAKE_KERNEL_ROOT, levels, 0, 0, size);
	fake_map(&fake, FAKE_KERNEL_ROOT, levels, FAKE_KERNEL_IDT_GVA, FAKE_KERNEL_IDT, 1);
	fake_kernel_gate(&fake, code);
	assert_none(&registers, NULL, "no kernel image in the guest's memory");
	ck_assert_uint_lt(fake.reads, 10000);
}
END_TEST

START_TEST(what_is_too_much_is_given_up)
{
	const struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID);
	struct kernel_found found;
	struct look look;

	look_init(&look, &fake.guest);
	look.bytes_left = FAKE_KERNEL_BYTES;
	ck_assert(!kernel_find(&look, &registers, NULL, -1, &found, NULL));
	ck_assert(look_gave_up(&look));
	look_init(&look, &fake.guest);
	look.steps_left = 1000;
	ck_assert(!kernel_find(&look, &registers, NULL, -1, &found, NULL));
	ck_assert(look_gave_up(&look));
	look_init(&look, &fake.guest);
	look.kernels_left = 0;
	ck_assert(!kernel_find(&look, &registers, NULL, -1, &found, NULL));
	ck_assert(look_gave_up(&look));
	look_init(&look, &fake.guest);
	look_cancel(&look);
	ck_assert(!kernel_find(&look, &registers, NULL, -1, &found, NULL));
	ck_assert(look_gave_up(&look));
}
END_TEST

/* ---- on a thread ---- */

static void quit(void *loop)
{
	g_main_loop_quit(loop);
}

static struct kernel_search *search_new(const struct seen_vcpu *registers, size_t n)
{
	const struct kernel_search_config config = {
		.guest = &fake.guest, .registers = registers, .n = n, .kernel_file = -1};

	return kernel_search_new(&config);
}

/* Of two vCPUs, one has not been started yet. */
START_TEST(a_thread_finds_it_by_any_vcpu)
{
	struct seen_vcpu registers[2] = {[1] = fake_kernel_make(&fake, FAKE_KERNEL_LINKED + SLIDE, BUILD_ID)};
	GMainLoop *loop = g_main_loop_new(NULL, FALSE);
	struct kernel_search *search = search_new(registers, 2);

	kernel_search_begin(search, quit, loop);
	g_main_loop_run(loop);
	struct kernel_search_result *result = kernel_search_result(search);

	ck_assert_ptr_null(result->why);
	ck_assert(!result->gave_up);
	assert_is_at(&result->found, FAKE_KERNEL_LINKED + SLIDE);
	kernel_search_free(search);

	registers[1].vectors = 0;
	registers[1].regs.cr3 = 0x7f000;
	search = search_new(registers, 2);
	kernel_search_run(search);
	result = kernel_search_result(search);
	ck_assert_msg(strstr(result->why->message, "descriptor table cannot be read"), "%s", result->why->message);
	kernel_search_free(search);
	g_main_loop_unref(loop);
}
END_TEST

static atomic_bool reading;

/* Any memory is a kernel's, for ever; the first read tells that the search goes on. */
static bool read_for_ever(struct guest *guest G_GNUC_UNUSED, gpa_t from G_GNUC_UNUSED, void *to, size_t bytes)
{
	atomic_store(&reading, true);
	memset(to, 0x83, bytes);
	return true;
}

START_TEST(a_search_ends_when_it_is_freed)
{
	const struct guest_ops ops = {.memory_read = read_for_ever};
	const struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, BUILD_ID);
	struct kernel_search *search;

	fake.guest.ops = &ops;
	search = search_new(&registers, 1);
	kernel_search_begin(search, quit, NULL);
	while (!atomic_load(&reading))
		g_usleep(100);
	kernel_search_free(search); /* `quit` would not survive being called */
	while (g_main_context_iteration(NULL, FALSE))
		;
}
END_TEST

/* What is new is told from what is not: the processor's notes in the tables are not new. */
START_TEST(a_mark_stays_until_the_kernels_half_changes)
{
	struct seen_vcpu registers = fake_kernel_make(&fake, FAKE_KERNEL_LINKED, BUILD_ID);
	const uint64_t mark = kernel_find_mark(&fake.guest, &registers), last = FAKE_KERNEL_ROOT + 511 * 8;

	fake.reads = 0;
	ck_assert_uint_eq(kernel_find_mark(&fake.guest, &registers), mark);
	ck_assert_uint_le(fake.reads, 10);
	registers.regs.rip += 8;
	fake_write(&fake, last, fake_read(&fake, last) | 1 << 5); /* accessed */
	ck_assert_uint_eq(kernel_find_mark(&fake.guest, &registers), mark);
	fake_write(&fake, last, fake_read(&fake, last) ^ 1);
	ck_assert_uint_ne(kernel_find_mark(&fake.guest, &registers), mark);
	fake_write(&fake, last, fake_read(&fake, last) ^ 1);
	fake_kernel_gate(&fake, FAKE_KERNEL_LINKED);
	ck_assert_uint_ne(kernel_find_mark(&fake.guest, &registers), mark);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("kernel_find");
	TCase *tc = tcase_create("kernel_find");

	tcase_add_test(tc, it_is_where_the_descriptor_table_leads);
	tcase_add_test(tc, pages_of_zeros_take_no_memory);
	tcase_add_test(tc, early_handlers_are_handlers);
	tcase_add_test(tc, without_a_descriptor_table_its_mapping_is_searched);
	tcase_add_test(tc, a_kernel_is_found_again_where_it_was);
	tcase_add_test(tc, tables_of_user_space_lead_to_the_kernels);
	tcase_add_test(tc, an_image_is_slid_to_where_the_guest_has_it);
	tcase_add_test(tc, another_image_is_refused_by_its_build_id);
	tcase_add_test(tc, what_is_no_kernel_is_none);
	tcase_add_loop_test(tc, a_kernel_may_end_with_the_address_space, 0, 6);
	tcase_add_test(tc, what_is_too_much_is_given_up);
	tcase_add_test(tc, a_thread_finds_it_by_any_vcpu);
	tcase_add_test(tc, a_search_ends_when_it_is_freed);
	tcase_add_test(tc, a_mark_stays_until_the_kernels_half_changes);
	suite_add_tcase(suite, tc);
	return run_suite(suite);
}
