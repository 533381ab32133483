// SPDX-License-Identifier: BSD-2-Clause
/* How probes are written. */
#include <asm/unistd.h>
#include <check.h>
#include <vprof/probe.h>

#include "probe/probe.h"
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

int main(void)
{
	Suite *suite = suite_create("probe_name");
	TCase *specs = tcase_create("probe_name");

	tcase_add_test(specs, probes_have_one_name);
	tcase_add_test(specs, other_texts_are_refused);
	suite_add_tcase(suite, specs);
	return run_suite(suite);
}
