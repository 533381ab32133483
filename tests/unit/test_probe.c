// SPDX-License-Identifier: BSD-2-Clause
/* Sets of probes on a guest without KVM. */
#include <asm/unistd.h>
#include <linux/kvm.h>
#include <vprof/probe.h>
#include <vprof/ring.h>

#include "elf_builder.h"
#include "fake_debug.h"
#include "lib/record/ring_reader.h"
#include "probe/probe.h"
#include "run_suite.h"

static struct fake_guest fake;
static struct session *session;
static struct probe_hub *hub;
static struct probe_set *set;

static void setup(void)
{
	memset(&fake_debug, 0, sizeof(fake_debug));
	fake_debug.regs = (struct guest_regs){.rip = 0xffffffff81000010, .rsp = 0x1000, .valid = true};
	fake_debug.gprs = (struct guest_gprs){.rdi = 11, .rsi = 12, .r8 = 15, .r15 = 77, .rip = 0xffffffff81000010};
	fake_guest_init(&fake, 2);
	fake.guest.name = (char *)"fake";
	fake.guest.debug = &fake_debug_ops;
	session = session_new(&fake.guest, NULL);
	fake_guest_start(&fake);
	hub = probe_hub_new(&fake.guest, session);
	set = probe_set_new(hub);
}

static void teardown(void)
{
	probe_set_free(set);
	ck_assert_uint_eq(fake_debug.n_breakpoints, 0);
	ck_assert_uint_eq(fake_debug.n_observers, 0);
	ck_assert_uint_eq(fake_debug.n_msrs, 0);
	probe_hub_free(hub);
	fake_guest_end(&fake);
	session_free(session);
}

static unsigned add(const char *text)
{
	const struct probe_options options = {.registers = 0};
	struct probe_info info;
	GError *error = NULL;

	ck_assert_msg(probe_set_add(set, text, &options, &info, &error), "%s", error ? error->message : "");
	return info.id;
}

static void refuse(const char *text, GQuark domain, int code)
{
	const struct probe_options options = {.registers = 0};
	struct probe_info info;
	GError *error = NULL;

	ck_assert(!probe_set_add(set, text, &options, &info, &error));
	ck_assert_msg(g_error_matches(error, domain, code), "%s", error->message);
	g_error_free(error);
}

static void record(size_t ring_bytes)
{
	GError *error = NULL;

	ck_assert_msg(probe_set_record(set, ring_bytes, &error), "%s", error ? error->message : "");
}

START_TEST(probes_are_added_and_removed)
{
	GError *error = NULL;
	unsigned first = add("function:0x1000");

	refuse("function:4096", PROBE_ERROR, PROBE_ERROR_EXISTS);
	refuse("function:vfs_read", PROBE_ERROR, PROBE_ERROR_UNSUPPORTED); /* no kernel image */
	refuse("syscall:read", PROBE_ERROR, PROBE_ERROR_UNSUPPORTED);
	refuse("nothing", PROBE_ERROR, PROBE_ERROR_SYNTAX);
	add("function:0x2000");
	add("function:0x3000");
	add("function:0x4000");
	refuse("function:0x5000", GUEST_ERROR, GUEST_ERROR_TAKEN);
	ck_assert_uint_eq(probe_set_count(set), 4);
	ck_assert(probe_set_remove(set, first, &error));
	unsigned last = add("function:0x5000");
	ck_assert_uint_gt(last, first + 3);
	ck_assert(!probe_set_remove(set, first, &error));
	ck_assert(g_error_matches(error, PROBE_ERROR, PROBE_ERROR_UNKNOWN));
	g_clear_error(&error);
	/* Another client has its own. */
	struct probe_set *other = probe_set_new(hub);
	ck_assert_uint_eq(probe_set_count(other), 0);
	ck_assert(!probe_set_remove(other, last, NULL));
	probe_set_free(other);
	ck_assert_uint_eq(fake_debug.n_breakpoints, 4);
}
END_TEST

START_TEST(recording_refuses_changes)
{
	GError *error = NULL;

	ck_assert(!probe_set_record(set, 0, &error));
	ck_assert(g_error_matches(error, PROBE_ERROR, PROBE_ERROR_STATE));
	g_clear_error(&error);
	unsigned id = add("io:*");
	ck_assert(!probe_set_record(set, 4095, &error)); /* no ring of that size */
	g_clear_error(&error);
	ck_assert(!probe_set_recording(set));
	record(0);
	ck_assert(!probe_set_record(set, 0, &error));
	ck_assert(g_error_matches(error, PROBE_ERROR, PROBE_ERROR_STATE));
	g_clear_error(&error);
	refuse("mmio:*", PROBE_ERROR, PROBE_ERROR_STATE);
	ck_assert(!probe_set_remove(set, id, &error));
	ck_assert(g_error_matches(error, PROBE_ERROR, PROBE_ERROR_STATE));
	g_clear_error(&error);
	probe_set_pause(set);
	probe_set_pause(set);
	ck_assert(probe_set_remove(set, id, &error));
}
END_TEST

/* ---- where a kernel's code is ---- */

#define TEXT UINT64_C(0xffffffff81000000)
#define TEXT_GPA UINT64_C(0x41000000) /* by the tables below */
#define RODATA (TEXT + 0x1000)
#define JUMP_TABLE (TEXT + 0x2000)
#define MODULES UINT64_C(0xffffffffc0000000)
#define ENTRY_NX (UINT64_C(1) << 63)

/* At 0 the PML4, at 0x1000 its last PDPT, with GiB pages: 510 for the kernel, 511 for modules. */
static uint64_t tables[2 * 512];

static const uint8_t linux_code[0x80] = {
	[0x00] = 0x0f,
	0x1f,
	0x44,
	0x00,
	0x00,
	0xc3, /* with_nop: ftrace's nop */
	[0x10] = 0xf3,
	0x0f,
	0x1e,
	0xfa,
	0x0f,
	0x1f,
	0x44,
	0x00,
	0x00,
	0xc3, /* with_endbr: behind endbr64 */
	[0x20] = 0x55,
	0xc3, /* without */
	[0x30] = 0xe8,
	0x1b,
	0x00,
	0x00,
	0x00,
	0xc3, /* with_call: of __fentry__ */
	[0x40] = 0xe8,
	0xdb,
	0xff,
	0xff,
	0xff,
	0xc3,          /* with_other_call: of without */
	[0x50] = 0xc3, /* __fentry__ */
	/* with_int3: mov $0xcccccccc, %rax; ret; int3, as compilers put it there; a jump label's nop; ret */
	[0x60] = 0x48,
	0xc7,
	0xc0,
	0xcc,
	0xcc,
	0xcc,
	0xcc,
	0xc3,
	0xcc,
	0x66,
	0x90,
	0xc3,
};

/* The code as it is in the guest's memory. */
static uint8_t linux_memory[sizeof(linux_code)];

static bool read_linux(struct guest *guest G_GNUC_UNUSED, gpa_t from, void *to, size_t bytes)
{
	const uint64_t in_code = from.value - TEXT_GPA;

	if (from.value < sizeof(tables) && bytes <= sizeof(tables) - from.value)
		memcpy(to, (const uint8_t *)tables + from.value, bytes);
	else if (in_code < sizeof(linux_memory) && bytes <= sizeof(linux_memory) - in_code)
		memcpy(to, linux_memory + in_code, bytes);
	else
		return false;
	return true;
}

static const struct guest_ops linux_ops = {.run_on_vcpu = fake_run_on_vcpu, .memory_read = read_linux};

static void linux_symbol(struct elf_builder *elf, const char *name, uint64_t address, unsigned type, uint16_t section)
{
	elf_builder_symbol(elf, name, address, 16, ELF64_ST_INFO(STB_GLOBAL, type), section);
}

static struct image *linux_make(void)
{
	static const char banner[] = "Linux version 6.1.0-1-amd64 (x@y) (gcc) #1 SMP\n";
	/* struct jump_entry of linux/jump_label.h: the code, the target, relative to themselves; the key. */
	const struct {
		int32_t code, target;
		int64_t key;
	} label = {(int32_t)(TEXT + 0x69 - JUMP_TABLE), 0, 0};
	struct elf_builder elf;

	elf_builder_init(&elf);
	uint16_t text =
		elf_builder_section(&elf, (struct elf_section){".text", SHT_PROGBITS, SHF_ALLOC | SHF_EXECINSTR, TEXT,
	                                                       0x1000000, linux_code, sizeof(linux_code), 0});
	uint16_t data = elf_builder_section(&elf, (struct elf_section){".rodata", SHT_PROGBITS, SHF_ALLOC, RODATA,
	                                                               0x1001000, banner, sizeof(banner), 0});
	uint16_t table =
		elf_builder_section(&elf, (struct elf_section){"__jump_table", SHT_PROGBITS, SHF_ALLOC, JUMP_TABLE,
	                                                       0x1002000, &label, sizeof(label), 0});
	linux_symbol(&elf, "with_nop", TEXT, STT_FUNC, text);
	linux_symbol(&elf, "with_endbr", TEXT + 0x10, STT_FUNC, text);
	linux_symbol(&elf, "without", TEXT + 0x20, STT_FUNC, text);
	linux_symbol(&elf, "with_call", TEXT + 0x30, STT_FUNC, text);
	linux_symbol(&elf, "with_other_call", TEXT + 0x40, STT_FUNC, text);
	linux_symbol(&elf, "__fentry__", TEXT + 0x50, STT_FUNC, text);
	linux_symbol(&elf, "with_int3", TEXT + 0x60, STT_FUNC, text);
	linux_symbol(&elf, "linux_proc_banner", RODATA, STT_OBJECT, data);
	linux_symbol(&elf, "__start___jump_table", JUMP_TABLE, STT_OBJECT, table);
	linux_symbol(&elf, "__stop___jump_table", JUMP_TABLE + sizeof(label), STT_OBJECT, table);
	g_autoptr(GBytes) bytes = g_byte_array_free_to_bytes(elf_builder_finish(&elf));
	struct image *image = image_new("vmlinux", bytes, NULL);
	elf_builder_deinit(&elf);
	ck_assert_ptr_nonnull(image);
	return image;
}

static void linux_setup(void)
{
	setup();
	memset(tables, 0, sizeof(tables));
	tables[511] = 0x1007;
	tables[512 + 510] = 0x40000087;
	memcpy(linux_memory, linux_code, sizeof(linux_memory));
	fake.guest.ops = &linux_ops;
	fake.guest.kernel_image = linux_make();
}

static void linux_teardown(void)
{
	teardown();
	image_free(fake.guest.kernel_image);
}

static void refuse_with(const char *text, enum probe_error code, const char *why)
{
	const struct probe_options options = {.breakpoint = GUEST_BREAKPOINT_PATCH};
	struct probe_info info;
	GError *error = NULL;

	ck_assert_msg(!probe_set_add(set, text, &options, &info, &error), "%s", text);
	ck_assert_msg(g_error_matches(error, PROBE_ERROR, (gint)code) && strstr(error->message, why), "%s",
	              error->message);
	g_error_free(error);
}

static void refuse_place(const char *text, const char *why)
{
	refuse_with(text, PROBE_ERROR_UNKNOWN, why);
}

START_TEST(places_without_an_instruction_are_refused)
{
	refuse_place("function:0x4000000000000000", "no canonical address");
	refuse_place("function:0x401000", "in user space");
	refuse_place("function:linux_proc_banner", "has no function");
	refuse_place("function:0xffffffff81001000", "not in its code");
	refuse_place("function:with_call+0xff0", "not in its code");
	refuse_place("function:with_nop+1", "in the middle of an instruction");
	refuse_place("function:with_endbr+3", "in the middle of an instruction");
	refuse_place("function:with_endbr+5", "in the middle of an instruction");
	ck_assert_uint_eq(fake_debug.n_breakpoints, 0);
}
END_TEST

START_TEST(code_of_modules_is_what_the_guest_maps_as_code)
{
	refuse_place("function:0xffffffffc0000100", "no code mapped there now");
	tables[512 + 511] = 0x80000087 | ENTRY_NX;
	refuse_place("function:0xffffffffc0000100", "mapped as data");
	tables[512 + 511] = 0x80000087;
	refuse_with("function:0xffffffffc0000100", PROBE_ERROR_UNSUPPORTED, "where instructions begin is not known");
	add("function:0xffffffffc0000100");
	ck_assert_uint_eq(fake_debug.breakpoints[0]->at.value, MODULES + 0x100);
	/* Code of the image that the kernel has freed, and uses for something else. */
	tables[512 + 510] |= ENTRY_NX;
	refuse_place("function:without", "mapped as data");
}
END_TEST

static void patched_at(const char *text, uint64_t address)
{
	const struct probe_options options = {.breakpoint = GUEST_BREAKPOINT_PATCH};
	struct probe_info info;
	GError *error = NULL;

	ck_assert_msg(probe_set_add(set, text, &options, &info, &error), "%s", error ? error->message : "");
	ck_assert_uint_eq(fake_debug.breakpoints[0]->at.value, address);
	ck_assert(probe_set_remove(set, info.id, NULL));
}

START_TEST(patches_leave_the_bytes_of_ftrace_alone)
{
	patched_at("function:with_nop", TEXT + 5);
	patched_at("function:with_nop+5", TEXT + 5);
	patched_at("function:with_endbr", TEXT + 0x19);
	patched_at("function:with_endbr+4", TEXT + 0x19);
	patched_at("function:without", TEXT + 0x20);
	patched_at("function:with_call", TEXT + 0x35);
	patched_at("function:with_other_call", TEXT + 0x40);
	patched_at("function:__fentry__", TEXT + 0x50);
}
END_TEST

START_TEST(instructions_are_decoded_from_their_functions_start)
{
	for (unsigned i = 1; i < 7; i++) {
		g_autofree char *text = g_strdup_printf("function:with_int3+%u", i);

		refuse_place(text, "in the middle of an instruction");
	}
	patched_at("function:with_int3+7", TEXT + 0x67);
	patched_at("function:with_int3+11", TEXT + 0x6b);
	refuse_place("function:with_int3+10", "in the middle of an instruction");
	/* What the guest has made of its code counts; a kprobe hides what was there. */
	linux_memory[0x60] = 0xcc;
	refuse_place("function:with_int3+7", "an INT3 of the guest's own");
	memcpy(linux_memory + 0x60, "\xe9\0\0\0\0\x90\x90", 7);
	patched_at("function:with_int3+6", TEXT + 0x66);
	refuse_place("function:with_int3+3", "in the middle of an instruction");
	memcpy(linux_memory + 0x60, "\xf3\xc3\xcc\x90\x90\x90\x90", 7); /* REP RET; INT3 */
	patched_at("function:with_int3+6", TEXT + 0x66);
	linux_memory[0x60] = 0x06;
	refuse_place("function:with_int3+7", "bytes that are no instruction");
}
END_TEST

START_TEST(what_the_kernel_changes_is_not_patched)
{
	const struct probe_options processor = {.breakpoint = GUEST_BREAKPOINT_PROCESSOR};
	struct probe_info info;

	refuse_with("function:with_int3+9", PROBE_ERROR_UNSUPPORTED,
	            "is a jump label, which the guest's kernel changes");
	ck_assert(probe_set_add(set, "function:with_int3+9", &processor, &info, NULL));
	ck_assert_uint_eq(fake_debug.breakpoints[0]->at.value, TEXT + 0x69);
}
END_TEST

/* A breakpoint of the processor changes no bytes, and goes where it was asked for while one is free. */
START_TEST(only_patches_are_moved)
{
	const struct probe_options processor = {.breakpoint = GUEST_BREAKPOINT_PROCESSOR};
	struct probe_info info;

	add("function:with_nop");
	ck_assert_uint_eq(fake_debug.breakpoints[0]->at.value, TEXT);
	ck_assert(probe_set_add(set, "function:with_endbr", &processor, &info, NULL));
	ck_assert_uint_eq(fake_debug.breakpoints[1]->at.value, TEXT + 0x10);
	fake_debug.no_register = true;
	ck_assert(probe_set_add(set, "function:with_call", &(struct probe_options){.registers = 0}, &info, NULL));
	ck_assert_int_eq(info.breakpoint, GUEST_BREAKPOINT_PATCH);
	ck_assert_uint_eq(fake_debug.breakpoints[2]->at.value, TEXT + 0x35);
}
END_TEST

START_TEST(a_guest_that_cannot_be_probed)
{
	fake.guest.debug = NULL;
	refuse("io:*", PROBE_ERROR, PROBE_ERROR_UNSUPPORTED);
	fake.guest.debug = &fake_debug_ops;
}
END_TEST

static const uint64_t *next_event(struct ring_reader *reader, struct record_sample *sample)
{
	size_t bytes;
	const struct perf_event_header *event = ring_reader_next(reader, &bytes);

	ck_assert_ptr_nonnull(event);
	ck_assert(record_sample_decode(event, bytes, VPROF_PROBE_SAMPLE_TYPE, sample));
	static uint64_t values[VPROF_PROBE_VALUES_MAX];
	memcpy(values, sample->raw, MIN(sample->raw_bytes, sizeof(values)));
	return values;
}

START_TEST(events_say_what_happened)
{
	const struct probe_options options = {.registers = 1u << 15 | 1u << 5}; /* r15 and rdi */
	const struct guest_access out = {
		.reason = KVM_EXIT_IO, .write = true, .bytes = 1, .count = 1, .address = 0x3f8, .value = 'x'};
	const struct guest_access in = {.reason = KVM_EXIT_IO, .bytes = 1, .count = 1, .address = 0x3fd, .value = 0x60};
	const struct guest_access mark = {
		.reason = KVM_EXIT_IO, .write = true, .bytes = 1, .count = 1, .address = 0x80, .value = 0x40};
	struct probe_info info;
	struct record_sample sample;
	struct probe_statistics statistics;

	ck_assert(probe_set_add(set, "function:0x1000", &options, &info, NULL));
	unsigned io = add("io:0x3f8-0x3ff:out"), marker = add("marker:*"), exits = add("exit:hlt");
	fake_hit(&fake, 0, fake_debug.breakpoints[0]); /* before recording */
	record(0);
	fake_hit(&fake, 1, fake_debug.breakpoints[0]);
	fake_access(&fake, 0, &out);
	fake_access(&fake, 0, &in);
	fake_access(&fake, 0, &mark);
	probe_set_pause(set);
	fake_hit(&fake, 0, fake_debug.breakpoints[0]); /* and after it */

	struct ring_reader *reader = ring_reader_open(ring_memfd(probe_set_ring(set, 1)), NULL);
	const uint64_t *values = next_event(reader, &sample);
	ck_assert_uint_eq(sample.id, info.id);
	ck_assert_uint_eq(sample.cpu, 1);
	ck_assert_uint_eq(sample.ip, fake_debug.regs.rip);
	ck_assert_uint_eq(sample.n_chain, 0);
	ck_assert_uint_ge(sample.raw_bytes, 8 * sizeof(uint64_t));
	const uint64_t expected[] = {11, 12, 0, 0, 15, 0, 11, 77}; /* the registers in the order of GUEST_GPRS */
	ck_assert_mem_eq(values, expected, sizeof(expected));
	ring_reader_free(reader);

	reader = ring_reader_open(ring_memfd(probe_set_ring(set, 0)), NULL);
	values = next_event(reader, &sample);
	ck_assert_uint_eq(sample.id, io);
	const uint64_t port[] = {0x3f8, 'x', 1, 1};
	ck_assert_mem_eq(values, port, sizeof(port));
	values = next_event(reader, &sample);
	ck_assert_uint_eq(sample.id, marker);
	ck_assert_uint_eq(values[0], 0x40);
	ring_reader_release(reader);
	ring_reader_free(reader);

	probe_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.event, 3);
	ck_assert_uint_eq(statistics.readevt, 2);
	ck_assert_uint_eq(statistics.dropevt, 0);
	probe_set_info(set, 3, &info);
	ck_assert_uint_eq(info.id, exits);
	ck_assert_uint_eq(info.events, 0);
}
END_TEST

START_TEST(returns_have_a_result_and_a_time)
{
	struct record_sample sample;
	struct probe_statistics statistics;
	unsigned id = add("return:with_nop");

	ck_assert_uint_eq(fake_debug.n_breakpoints, 2);
	struct guest_breakpoint *leaves = fake_debug.breakpoints[0], *enters = fake_debug.breakpoints[1];
	ck_assert_uint_eq(leaves->at.value, TEXT + 5);
	ck_assert_uint_eq(enters->at.value, TEXT);
	record(0);
	fake_debug.gprs.rsp = 0x1000;
	fake_debug.gprs.rax = 99;
	fake_hit(&fake, 0, leaves); /* its call began before the recording */
	fake_hit(&fake, 0, enters);
	fake_debug.gprs.rsp = 0x900;
	fake_hit(&fake, 0, enters); /* the function calls itself */
	fake_hit(&fake, 0, leaves);
	fake_debug.gprs.rsp = 0x1000;
	fake_debug.gprs.rax = 7;
	g_usleep(2000);
	fake_hit(&fake, 0, leaves);
	fake_hit(&fake, 0, leaves); /* once only */
	/* Calls of tasks that end. */
	for (unsigned i = 0; i < 20000; i++) {
		fake_debug.gprs.rsp = 0x10000 + i * 64;
		enters->hit(enters, 0, &fake_debug.regs, &fake_debug.gprs);
	}
	fake_hit(&fake, 0, leaves);
	probe_set_pause(set);

	struct ring_reader *reader = ring_reader_open(ring_memfd(probe_set_ring(set, 0)), NULL);
	const uint64_t *values = next_event(reader, &sample);
	ck_assert_uint_eq(sample.id, id);
	ck_assert_uint_eq(values[0], 99);
	uint64_t inner_ns = values[1];
	values = next_event(reader, &sample);
	ck_assert_uint_eq(values[0], 7);
	ck_assert_uint_ge(values[1], 2000000 + inner_ns);
	next_event(reader, &sample); /* the last of the many */
	ring_reader_free(reader);
	probe_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.event, 3);
	ck_assert_uint_ge(statistics.forgotten, 20000 - 1024);
	refuse_with("return:linux_proc_banner", PROBE_ERROR_UNKNOWN, "no function");
	ck_assert_uint_eq(fake_debug.n_breakpoints, 2);
}
END_TEST

/* All breakpoints of a probe go if one of them cannot be had. */
START_TEST(a_return_probe_is_placed_as_a_whole)
{
	add("function:with_endbr");
	add("function:with_nop");
	add("function:without");
	refuse("return:with_nop", GUEST_ERROR, GUEST_ERROR_TAKEN);
	ck_assert_uint_eq(fake_debug.n_breakpoints, 3);
}
END_TEST

START_TEST(marks_of_clients_are_events)
{
	const struct guest_access mark = {
		.reason = KVM_EXIT_IO, .write = true, .bytes = 1, .count = 1, .address = 0x80, .value = 0x40};
	struct record_sample sample;
	unsigned all = add("marker:*"), named = add("marker:lo?d"), range = add("marker:0-0x7f");

	ck_assert_uint_eq(probe_hub_add_marker(hub, "load", false), 1); /* before recording */
	record(0);
	ck_assert_uint_eq(probe_hub_add_marker(hub, "load", false), 2);
	ck_assert_uint_eq(probe_hub_add_marker(hub, "other", true), 3);
	fake_access(&fake, 0, &mark);
	probe_set_pause(set);
	const uint64_t expected[][3] = {{all, 2, PROBE_MARKER_BEGIN},
	                                {named, 2, PROBE_MARKER_BEGIN},
	                                {all, 3, PROBE_MARKER_END},
	                                {all, 0x40, PROBE_MARKER_PORT},
	                                {range, 0x40, PROBE_MARKER_PORT}};
	struct ring_reader *reader = ring_reader_open(ring_memfd(probe_set_ring(set, 0)), NULL);
	for (size_t i = 0; i < G_N_ELEMENTS(expected); i++) {
		const uint64_t *values = next_event(reader, &sample);

		ck_assert_uint_eq(sample.id, expected[i][0]);
		ck_assert_uint_eq(values[0], expected[i][1]);
		ck_assert_uint_eq(values[1], expected[i][2]);
	}
	size_t bytes;
	ck_assert_ptr_null(ring_reader_next(reader, &bytes));
	ring_reader_free(reader);
}
END_TEST

START_TEST(a_full_ring_drops_and_counts)
{
	struct probe_statistics statistics;

	add("function:0x1000");
	record(VPROF_RING_DATA_BYTES_MIN);
	for (unsigned i = 0; i < 100; i++)
		fake_hit(&fake, 0, fake_debug.breakpoints[0]);
	probe_set_pause(set);
	probe_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.event, 100);
	ck_assert_uint_gt(statistics.dropevt, 50); /* of 120 bytes each, in 4096 */
	ck_assert_uint_lt(statistics.dropevt, 100);
	ck_assert_uint_eq(statistics.readevt, 0);
	/* A new recording starts from 0. */
	record(VPROF_RING_DATA_BYTES_MIN);
	probe_set_statistics(set, &statistics);
	ck_assert_uint_eq(statistics.event, 0);
	ck_assert_uint_eq(statistics.dropevt, 0);
}
END_TEST

START_TEST(msrs_of_all_sets_are_watched)
{
	struct probe_set *mine = set;

	add("msr:0x10");
	set = probe_set_new(hub);
	add("msr:0x174-0x176:write");
	ck_assert_uint_eq(fake_debug.n_msrs, 2);
	ck_assert_uint_eq(fake_debug.msrs[1].first, 0x174);
	ck_assert_uint_eq(fake_debug.msrs[1].last, 0x176);
	ck_assert(!fake_debug.msrs[1].read && fake_debug.msrs[1].write);
	for (unsigned i = 0; i < GUEST_MSR_RANGES_MAX - 2; i++) {
		g_autofree char *text = g_strdup_printf("msr:%u", i);

		add(text);
	}
	refuse("msr:0x20", GUEST_ERROR, GUEST_ERROR_TAKEN);
	probe_set_free(set);
	set = mine;
	ck_assert_uint_eq(fake_debug.n_msrs, 1);
}
END_TEST

START_TEST(timers_tick_on_the_vcpus_they_should)
{
	struct probe_info info;

	add("profile:hz:100");
	add("interval:ms:10");
	record(0);
	int64_t end = g_get_monotonic_time() + 10 * G_USEC_PER_SEC;
	do {
		g_main_context_iteration(NULL, TRUE);
		probe_set_info(set, 1, &info);
	} while (info.events < 5 && g_get_monotonic_time() < end);
	ck_assert_uint_ge(info.events, 5);
	probe_set_pause(set);
	probe_set_info(set, 0, &info);
	ck_assert_uint_ge(info.events, 2 * 4);
	ck_assert_uint_eq(info.events % 2, 0); /* each tick on both vCPUs */
	uint64_t before = info.events;
	g_usleep(30000);
	while (g_main_context_iteration(NULL, FALSE))
		;
	probe_set_info(set, 0, &info);
	ck_assert_uint_eq(info.events, before);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probe");
	TCase *sets = tcase_create("set");
	tcase_add_checked_fixture(sets, setup, teardown);
	tcase_set_timeout(sets, 60);
	tcase_add_test(sets, probes_are_added_and_removed);
	tcase_add_test(sets, recording_refuses_changes);
	tcase_add_test(sets, a_guest_that_cannot_be_probed);
	tcase_add_test(sets, events_say_what_happened);
	tcase_add_test(sets, marks_of_clients_are_events);
	tcase_add_test(sets, a_full_ring_drops_and_counts);
	tcase_add_test(sets, msrs_of_all_sets_are_watched);
	tcase_add_test(sets, timers_tick_on_the_vcpus_they_should);
	suite_add_tcase(suite, sets);
	TCase *places = tcase_create("place");
	tcase_add_checked_fixture(places, linux_setup, linux_teardown);
	tcase_add_test(places, places_without_an_instruction_are_refused);
	tcase_add_test(places, code_of_modules_is_what_the_guest_maps_as_code);
	tcase_add_test(places, patches_leave_the_bytes_of_ftrace_alone);
	tcase_add_test(places, instructions_are_decoded_from_their_functions_start);
	tcase_add_test(places, what_the_kernel_changes_is_not_patched);
	tcase_add_test(places, returns_have_a_result_and_a_time);
	tcase_add_test(places, a_return_probe_is_placed_as_a_whole);
	tcase_add_test(places, only_patches_are_moved);
	suite_add_tcase(suite, places);
	return run_suite(suite);
}
