// SPDX-License-Identifier: BSD-2-Clause
/* How probes are written. */
#include <asm/unistd.h>
#include <check.h>
#include <vprof/probe.h>

#include "lib/probe_name/probe_name.h"
#include "lib/probe_name/probe_spec.h"
#include "run_suite.h"

START_TEST(probes_have_one_name)
{
	static const struct {
		const char *text, *name;
	} cases[] = {
		{"profile:hz:97", "profile:hz:97"}, /* which no number of microseconds is */
		{"profile:hz:0x3e8", "profile:hz:1000"},
		{"profile:ms:10", "profile:ms:10"},
		{"interval:s:3600", "interval:s:3600"},
		{"interval:us:1000", "interval:us:1000"},
		{"exit:hlt", "exit:hlt"},
		{"exit:*", "exit:*"},
		{"io:0x3f8", "io:0x3f8"},
		{"io:1016-1023:out", "io:0x3f8-0x3ff:out"},
		{"io:0-65535", "io:*"},
		{"io:*:in", "io:*:in"},
		{"mmio:0xfee00000-0xfee00fff:write", "mmio:0xfee00000-0xfee00fff:write"},
		{"mmio:0-18446744073709551615", "mmio:*"},
		{"msr:0x174:read", "msr:0x174:read"},
		{"syscall:read", "syscall:read"},
		{"syscall:" G_STRINGIFY(__NR_read), "syscall:read"},
		{"syscall:mseal", "syscall:mseal"},
		{"syscall:451", "syscall:cachestat"},
		{"syscall:*", "syscall:*"},
		{"syscall:16-19", "syscall:0x10-0x13"},
		{"syscall:" G_STRINGIFY(__NR_read) ":return", "syscall:read:return"},
		{"syscall:*:return", "syscall:*:return"},
		{"return:vfs_read", "return:vfs_read"},
		{"tracepoint:sched:sched_switch", "tracepoint:sched:sched_switch"},
		{"tracepoint:syscalls:sys_enter_openat", "tracepoint:syscalls:sys_enter_openat"},
		{"syscalls:sys_exit_newstat", "tracepoint:syscalls:sys_exit_newstat"},
		{"raw_syscalls:sys_enter", "tracepoint:raw_syscalls:sys_enter"},
		{"function:vfs_read", "function:vfs_read"},
		{"function:vmlinux:vfs_read", "function:vfs_read"},
		{"function:nf_tables:nft_do_chain", "function:nf_tables:nft_do_chain"},
		{"function:virtio-blk:virtio_queue_rq", "function:virtio_blk:virtio_queue_rq"},
		{"function:8021q:vlan_dev_init", "function:8021q:vlan_dev_init"},
		{"return:vmlinux:vfs_read", "return:vfs_read"},
		{"return:virtio-blk:virtio_queue_rq", "return:virtio_blk:virtio_queue_rq"},
		{"return:8021q:vlan_dev_init", "return:8021q:vlan_dev_init"},
		{"user:/bin/sh:main", "user:/bin/sh:main"},
		{"user:/lib/a:b/libc.so.6:malloc+4", "user:/lib/a:b/libc.so.6:malloc+0x4"},
		{"user:/bin/sh:main:return", "user:/bin/sh:main:return"},
		{"user:/bin/sh:return", "user:/bin/sh:return"},
		{"usdt:/lib/a:b/libc.so.6:libc:setjmp", "usdt:/lib/a:b/libc.so.6:libc:setjmp"},
		{"function:vfs_read+16", "function:vfs_read+0x10"},
		{"function:vfs_read+0", "function:vfs_read"},
		{"function:0xffffffff81000000", "function:0xffffffff81000000"},
		{"marker:0x40-0x60", "marker:0x40-0x60"},
		{"marker:*", "marker:*"},
		{"marker:parse-*", "marker:parse-*"},
	};
	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct probe_spec spec;
		GError *error = NULL;

		ck_assert_msg(probe_spec_parse(cases[i].text, &spec, &error), "%s: %s", cases[i].text,
		              error ? error->message : "");
		ck_assert_str_eq(spec.name, cases[i].name);
	}
}
END_TEST

START_TEST(other_texts_are_refused)
{
	static const char *const texts[] = {
		"",
		":",
		"profile",
		"profile:",
		"profile:99",
		"profile:hz:0",
		"profile:hz:1001",
		"profile:hz:-1",
		"profile:us:999",
		"profile:s:3601",
		"profile:s:18446744073709551615",
		"profile:hz:99:1",
		"exit:",
		"exit:nothing",
		"io:",
		"io:65536",
		"io:0x",
		"io:9-8",
		"io:1-2-3",
		"io:1:read",
		"io:1:in:out",
		"mmio: 1",
		"mmio:0x10000000000000000",
		"msr:0x100000000",
		"syscall:no_such_call",
		"function:fs/open.c:1000",
		"syscall:1024",
		"syscall::return",
		"syscall:read:return:return",
		"return:",
		"return:vfs_read+1",
		"return:0xffffffff81000000",
		"tracepoint:",
		"tracepoint:sched_switch",
		"tracepoint:sched:",
		"tracepoint:sched:sched:switch",
		"tracepoint:sched:sched_*",
		"function:",
		"function:+1",
		"function:a+",
		"function:a+65536",
		"function:0xg",
		"function:1+1",
		"function::vfs_read",
		"user:sh:main",
		"user:/bin/sh",
		"user:/bin/sh:",
		"user:/bin/sh:+1",
		"user:/bin/sh:main+",
		"user:/bin/sh:main+4:return",
		"user:/bin/sh::return",
		"usdt:sh:sh:start",
		"usdt:/bin/sh:start",
		"usdt:/bin/sh::start",
		"usdt:/bin/sh:sh:",
		"function:vmlinux:",
		"function:virtio_blk:virtio_queue_rq+4",
		"return:",
		"return::vfs_read",
		"return:virtio_blk:",
		"return:virtio_blk:virtio_queue_rq+4",
		"return:virtio_blk:virtio_queue_rq:end",
		"return:0x1000",
		"marker:256",
		"marker:",
		"marker:0x40-",
		"markers:*",
		"kprobe:vfs_read",
	};

	for (size_t i = 0; i < G_N_ELEMENTS(texts); i++) {
		struct probe_spec spec;
		GError *error = NULL;

		ck_assert_msg(!probe_spec_parse(texts[i], &spec, &error), "%s", texts[i]);
		ck_assert(error->domain == PROBE_ERROR);
		g_error_free(error);
	}
	struct probe_spec spec;
	g_autofree char *text = g_strnfill(300, 'a');
	memcpy(text, "function:", 9);
	ck_assert(!probe_spec_parse(text, &spec, NULL));
}
END_TEST

START_TEST(a_text_of_a_program_has_parts)
{
	static const struct {
		const char *text, *path, *name, *offset;
		bool is_note, returns;
	} cases[] = {
		{"user:/bin/sh:main", "/bin/sh", "main", NULL, false, false},
		{"user:/bin/a:b:main+0x4", "/bin/a:b", "main", "0x4", false, false},
		{"user:sh:ma*:return", "sh", "ma*", NULL, false, true},
		{"user:/bin/sh:return", "/bin/sh", "return", NULL, false, false},
		{"usdt:/bin/a:b:sh:*", "/bin/a:b", "sh:*", NULL, true, false},
	};
	static const char *const others[] = {"user:/bin/sh", "usdt:/bin/sh:start", "function:a:b", "user"};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct probe_in_program program;

		ck_assert_msg(probe_in_program_parse(cases[i].text, &program), "%s", cases[i].text);
		ck_assert_str_eq(program.path, cases[i].path);
		ck_assert_str_eq(program.name, cases[i].name);
		ck_assert_pstr_eq(program.offset, cases[i].offset);
		ck_assert(program.is_note == cases[i].is_note && program.returns == cases[i].returns);
		probe_in_program_clear(&program);
	}
	for (size_t i = 0; i < G_N_ELEMENTS(others); i++)
		ck_assert_msg(!probe_in_program_parse(others[i], &(struct probe_in_program){NULL}), "%s", others[i]);
}
END_TEST

START_TEST(patterns_are_told_from_probes)
{
	static const char *const patterns[] = {"function:vfs_*",   "tracepoint:sched:*",    "user:/bin/sh:*",
	                                       "usdt:/bin/sh:*:*", "function:fs/open.c:12", "function:open.c:*"};
	static const char *const probes[] = {"function:vfs_read", "user:/bin/[:main",   "user:/bin/sh:main",
	                                     "syscall:*",         "function:open_c:12", "io:*"};

	for (size_t i = 0; i < G_N_ELEMENTS(patterns); i++)
		ck_assert_msg(probe_name_is_pattern(patterns[i]), "%s", patterns[i]);
	for (size_t i = 0; i < G_N_ELEMENTS(probes); i++)
		ck_assert_msg(!probe_name_is_pattern(probes[i]), "%s", probes[i]);
	ck_assert_str_eq(probe_name_line("function:fs/open.c:12"), "12");
	ck_assert_ptr_null(probe_name_line("function:nf_tables:nft_do_chain"));
}
END_TEST

START_TEST(scripts_have_names_of_bpftrace)
{
	static const struct {
		const char *text, *name, *shown, *end;
	} cases[] = {
		{"BEGIN {", "recording:start", "BEGIN", ""},
		{"kprobe:vfs_read/pid/{", "function:vfs_read", "kprobe", ""},
		{"uretprobe:/bin/sh:main{", "user:/bin/sh:main:return", "uretprobe", ":return"},
		{"t:sched:sched_switch,", "tracepoint:sched:sched_switch", NULL, ""},
		{"syscalls:sys_enter_read {", "tracepoint:syscalls:sys_enter_read", NULL, ""},
		{"function:fs/open.c:12 {", "function:fs/open.c:12", NULL, ""},
		{"io:0x70{", "io:0x70", NULL, ""},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		struct probe_written written;

		probe_written_parse(cases[i].text, probe_written_length(cases[i].text), &written);
		ck_assert_str_eq(written.name, cases[i].name);
		ck_assert_pstr_eq(written.shown, cases[i].shown);
		ck_assert_str_eq(written.end, cases[i].end);
		probe_written_clear(&written);
	}
	ck_assert_str_eq(probe_written_elsewhere("hardware:cycles:1000 {"), "hardware:");
	ck_assert_ptr_null(probe_written_elsewhere("kprobe:hardware {"));
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("probe_name");
	TCase *specs = tcase_create("probe_name");

	tcase_add_test(specs, probes_have_one_name);
	tcase_add_test(specs, other_texts_are_refused);
	tcase_add_test(specs, a_text_of_a_program_has_parts);
	tcase_add_test(specs, patterns_are_told_from_probes);
	tcase_add_test(specs, scripts_have_names_of_bpftrace);
	suite_add_tcase(suite, specs);
	return run_suite(suite);
}
