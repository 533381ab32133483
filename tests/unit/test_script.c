// SPDX-License-Identifier: BSD-2-Clause
/* The language: what scripts compute when their programs run, and where they are refused. */
#include <check.h>
#include <inttypes.h>
#include <string.h>

#include "lib/script/script_tree.h"
#include "probe/program.h"
#include "run_suite.h"

#define NAMES(...) ((const char *const[]){__VA_ARGS__ __VA_OPT__(, ) NULL})

static struct script *script;
static struct program_map *maps[VPROF_MAPS_MAX];
static GString *output;
static bool exited;
static uint64_t arguments[4];

static const char *const path[] = {"tests", "7", "-2", NULL};

/* ---- where programs run ---- */

static uint64_t number(struct program_place *place G_GNUC_UNUSED, enum vprof_program_number which)
{
	return 100 + which;
}

static void comm(struct program_place *place G_GNUC_UNUSED, uint64_t *words)
{
	memcpy(words, "init", 4);
}

static void stack(struct program_place *place G_GNUC_UNUSED, bool user, unsigned frames, uint64_t *words)
{
	words[0] = user;
	for (unsigned i = 0; i < MIN(frames, 3); i++)
		words[1 + i] = 0x1000 + i;
}

static bool field(struct program_place *place G_GNUC_UNUSED, unsigned which, uint64_t *words)
{
	const bool is_text = which == 1 || which == 2;

	memcpy(words, is_text ? "swapper" : "\x05", is_text ? 7 : 1);
	return true;
}

static bool read_memory(struct program_place *place G_GNUC_UNUSED, uint64_t address, void *bytes, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		((char *)bytes)[i] = "/etc/passwd\0------------------"[(address + i) % 16];
	return true;
}

static void send(struct program_place *place G_GNUC_UNUSED, uint32_t which, const uint64_t *words, size_t n)
{
	const struct script_action *action = script_action(script, which);

	ck_assert_ptr_nonnull(action);
	g_string_append_printf(output, "%s%d", output->len > 0 ? " " : "", (int)action->kind);
	for (unsigned i = 0; i < action->n_sent; i++) {
		ck_assert_uint_ge(n, script_type_words(action->sent[i]));
		if (action->sent[i] == SCRIPT_TEXT)
			g_string_append_printf(output, ",%.64s", (const char *)words);
		else
			g_string_append_printf(output, ",%" PRId64, (int64_t)*words);
		words += script_type_words(action->sent[i]);
	}
}

static void leave(struct program_place *place G_GNUC_UNUSED)
{
	exited = true;
}

static void event(struct program_place *place G_GNUC_UNUSED)
{
	g_string_append(output, "event;");
}

static const struct program_place_calls calls = {number, comm, stack, field, read_memory, send, leave, event};

static void setup(void)
{
	output = g_string_new(NULL);
	exited = false;
	arguments[0] = 11;
	arguments[1] = (uint64_t)-22;
	arguments[2] = 0x1000;
}

static void clear(void)
{
	for (size_t i = 0; i < G_N_ELEMENTS(maps); i++)
		program_map_free(g_steal_pointer(&maps[i]));
	g_clear_pointer(&script, script_free);
	g_string_truncate(output, 0);
}

static void teardown(void)
{
	clear();
	g_string_free(output, TRUE);
}

static bool compile(const char *text, GError **error)
{
	script = script_parse(text, path, error);
	if (!script)
		return false;
	const struct script_probe probe = {
		.written = script_probes(script),
		.name = "tracepoint:sched:sched_switch",
		.arguments = NAMES("count", "delta", "filename", "prev"),
		.types = NAMES("unsigned int", "long int", "const char *", "struct task_struct *"),
		.fields = NAMES("prev->pid", "str(prev->comm)", "prev->comm", "curtask->cred->uid.val",
	                        "((struct task_struct *)curtask)->pid", "prev->sums[2]"),
		.texts = 2 | 4,
	};
	return script_compile(script, &probe, 1, error);
}

static unsigned key_words(const struct script_map *map)
{
	unsigned n = 0;

	for (unsigned i = 0; i < map->n_keys; i++)
		n += script_type_words(map->keys[i]);
	return n;
}

/* Compiles it, and runs it so often, as an engine does. */
static const char *run(const char *text, unsigned times)
{
	g_autoptr(GError) error = NULL;
	struct program_place place = {.calls = &calls, .arguments = arguments, .maps = maps};
	const struct program_facts facts = {.n_arguments = 4, .n_fields = 6, .texts = 2 | 4, .maps = maps};
	struct program_facts all = facts;
	size_t n;

	clear();
	ck_assert_msg(compile(text, &error), "%s: %s", text, error ? error->message : "");
	for (size_t i = 0; i < script_map_count(script); i++) {
		const struct script_map *map = script_map(script, i);

		maps[all.n_maps++] = program_map_new(&(const struct program_map_spec){map->kind, key_words(map), 100,
		                                                                      map->low, map->high, map->range},
		                                     &error);
		ck_assert_msg(maps[i] != NULL, "%s", error ? error->message : "");
	}
	const struct vprof_instruction *program = script_program(script, 0, &n);
	ck_assert_msg(program_check(program, n, &all, &error), "%s: %s", text, error ? error->message : "");
	for (unsigned i = 0; i < times; i++)
		program_run(program, n, &place);
	return output->str;
}

/* The only entry of the i-th map: its key and value. */
static void get(size_t i, uint64_t *words)
{
	size_t at = 0;

	ck_assert(program_map_next(maps[i], &at, words));
	ck_assert(!program_map_next(maps[i], &at, words + 128));
}

#define IN(body) "tracepoint:sched:sched_switch { " body " }"

START_TEST(expressions)
{
	static const struct {
		const char *text;
		int64_t value;
	} cases[] = {
		{"1 + 2 * 3", 7},
		{"(1 + 2) * 3", 9},
		{"-7 / 2", -3},
		{"7 - 2 - 1", 4},
		{"1 << 4 | 3", 19},
		{"5 & 3 == 1", 0},
		{"~0", -1},
		{"!5", 0},
		{"!0", 1},
		{"1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2", 1},
		{"0 || 0", 0},
		{"0 || 7", 1},
		{"3 && 0", 0},
		{"3 && 4", 1},
		{"1 ? 10 : 20", 10},
		{"0 ? 10 : 0 ? 20 : 30", 30},
		{"0xff_ff", 0xffff},
		{"1e3", 1000},
		{"2ms", 2000000},
		{"(uint8)0x1ff", 255},
		{"(int8)255", -1},
		{"args.count", 11},
		{"args->delta", -22},
		{"args.delta < 0", 1},
		{"args.prev->pid", 5},
		{"args.prev_pid", 5},
		{"pid * 1000 + tid", 100101},
		{"cpu", 102},
		{"cgroup", 106},
		{"curtask", 105},
		{"nsecs", 103},
		{"comm == \"init\"", 1},
		{"comm != \"init\"", 0},
		{"comm == \"ini\"", 0},
		{"strncmp(comm, \"inode\", 2)", 0},
		{"strncmp(comm, \"inode\", 3)", 1},
		{"str(args.filename) == \"/etc/passwd\"", 1},
		{"str(args.filename, 4) == \"/etc\"", 1},
		{"args.prev_comm == \"swapper\"", 1},
		{"str(args.prev->comm) == args.prev_comm", 1},
		{"(struct file *)args.count", 11},
		{"uid", 5},
		{"curtask->cred->uid.val + 1", 6},
		{"((struct task_struct *)curtask)->pid", 5},
		{"args.prev->sums[2]", 5},
		{"$2 + $3", 5},
		{"$1 == \"tests\"", 1},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *text = g_strdup_printf(IN("@ = %s;"), cases[i].text);
		uint64_t value;

		run(text, 1);
		get(0, &value);
		ck_assert_msg((int64_t)value == cases[i].value, "%s: %" PRId64, cases[i].text, (int64_t)value);
	}
}
END_TEST

START_TEST(statements)
{
	uint64_t words[256];

	ck_assert_str_eq(run(IN("$a = 1; $a += 4; $a++; --$a; $b = comm; printf(\"%d %s\\n\", $a, $b)"), 1),
	                 "0,5,init");
	ck_assert_str_eq(
		run(IN("if (pid == 100) { print(1) } else { print(2) } if (pid == 1) { print(3) } else if (1) { "
	               "print(4); }"),
	            1),
		"1,1 1,4");
	ck_assert_str_eq(run(IN("print(1); return; print(2);"), 1), "1,1");
	/* One program for both clauses; a predicate ends its own only. */
	ck_assert_str_eq(run("t:sched:sched_switch / args.count / 2 == 6 / { print(1) } // no\n"
	                     "/* yes */ tracepoint:sched:sched_switch /args.count == 11/ { print(2) }",
	                     1),
	                 "1,2");
	/* A variable stands for the path that it is set to. */
	ck_assert_str_eq(run(IN("$p = args.prev; $n = $p->pid; print($n); print($p->comm);"), 1), "1,5 1,swapper");
	ck_assert_str_eq(run(IN("$t = curtask; print($t); $u = (struct task_struct *)curtask; print($u->pid)"), 1),
	                 "1,105 1,5");
	ck_assert_str_eq(
		run("#!/usr/bin/vprof\n#include <linux/path.h>\n#ifndef BPFTRACE_HAVE_BTF\nstruct { }\n#endif\n" IN(
			    "print(usym(7)); printf(\"%s\", usym(args.count))"),
	            1),
		"1,107 0,107");
	ck_assert_str_eq(run(IN("exit(); print(1)"), 1), "5");
	ck_assert(exited);
	ck_assert_str_eq(
		run(IN("$x = 1; if (0) { $y = 5; } print($y); print(@a); clear(@a); zero(@a); @a = 1; print(@a, 3, 10)"),
	            1),
		"1,0 2 3 4 2");
	ck_assert_uint_eq(script_action(script, 4)->top, 3);
	ck_assert_uint_eq(script_action(script, 4)->div, 10);

	run(IN("@x[comm, pid]++; @x[comm, pid] += 2; @x[comm, pid] -= 1; @x[comm, pid] *= 3;"), 2);
	get(0, words);
	ck_assert_str_eq((const char *)words, "init");
	ck_assert_uint_eq(words[8], 100);
	ck_assert_uint_eq(words[9], 24);
	run(IN("@start[tid] = nsecs; @ns = hist(nsecs - @start[tid]); @n = count(); delete(@start[tid])"), 5);
	ck_assert_str_eq(script_map(script, 0)->name, "@start");
	ck_assert(!program_map_next(maps[0], &(size_t){0}, words));
	get(1, words);
	ck_assert_uint_eq(words[1], 5);
	get(2, words);
	ck_assert_uint_eq(words[0], 5);
	run(IN("@t = comm; @s = sum(2); @m = min(args.delta); @M = max(args.delta); @a = avg(3); @l = lhist(25, 0, 100, 10); "
	       "@st = stats(4); @late = @later; @later = @t"),
	    2);
	get(0, words);
	ck_assert_str_eq((const char *)words, "init");
	get(1, words);
	ck_assert_uint_eq(words[0], 4);
	get(5, words);
	ck_assert_uint_eq(words[1 + 2], 2);
}
END_TEST

START_TEST(stacks_are_keys)
{
	uint64_t words[256];

	run(IN("@[kstack, ustack(2), comm] = count()"), 3);
	get(0, words);
	ck_assert_uint_eq(words[0], 0);
	ck_assert_uint_eq(words[3], 0x1002);
	ck_assert_uint_eq(words[VPROF_PROGRAM_STACK_WORDS], 1);
	ck_assert_uint_eq(words[VPROF_PROGRAM_STACK_WORDS + 3], 0);
	ck_assert_uint_eq(words[2 * VPROF_PROGRAM_STACK_WORDS + 8], 3);
}
END_TEST

START_TEST(probes)
{
	g_autoptr(GError) error = NULL;

	script = script_parse(
		"#!/usr/bin/vprof\nBEGIN { } kprobe:vfs_*,kr:vfs_read,profile:hz:99 /pid/ { @[probe] = count() }\n"
		"syscalls:sys_enter_openat { } END { } kprobe:vfs_* { print(arg0); print(args.path) } i:s:1{exit()}\n"
		"ur:/bin/a:f* /1/ { print(probe) } usdt:/bin/a:b:c /1/ { }",
		NULL, &error);
	ck_assert_msg(script != NULL, "%s", error ? error->message : "");
	const char *const expected[] = {"recording:start",
	                                "function:vfs_*",
	                                "return:vfs_read",
	                                "profile:hz:99",
	                                "tracepoint:syscalls:sys_enter_openat",
	                                "recording:end",
	                                "interval:s:1",
	                                "user:/bin/a:f*:return",
	                                "usdt:/bin/a:b:c",
	                                NULL};
	ck_assert(g_strv_equal(script_probes(script), expected));
	const struct script_probe both[] = {
		{NAMES("function:vfs_*"), "function:vfs_open", NAMES("arg0", "arg1"), NAMES("struct path *path"),
	         NAMES(), 0},
		{NAMES("recording:start"), "recording:start", NAMES(), NAMES(), NAMES(), 0},
		{NAMES("profile:hz:99"), "profile:hz:99", NAMES(), NAMES(), NAMES(), 0},
		{NAMES("user:/bin/a:f*:return"), "user:/bin/a:fun:return", NAMES("retval"), NAMES(), NAMES(), 0},
	};
	ck_assert_msg(script_compile(script, both, 4, &error), "%s", error ? error->message : "");
	g_autofree char *first = script_probe_shown(script, 0), *second = script_probe_shown(script, 1),
			*third = script_probe_shown(script, 2), *fourth = script_probe_shown(script, 3);
	ck_assert_str_eq(first, "kprobe:vfs_open");
	ck_assert_str_eq(second, "BEGIN");
	ck_assert_str_eq(third, "profile:hz:99");
	ck_assert_str_eq(fourth, "uretprobe:/bin/a:fun");
}
END_TEST

START_TEST(fields)
{
	g_autoptr(GError) error = NULL;

	script = script_parse(
		"k:vfs_open /arg1 > 0/ { printf(\"%s %d\", str(((struct path *)arg0)->dentry->d_name.name), "
		"arg0->mnt->mnt_flags) } t:sched:sched_switch { @[args.prev_comm, args.next->pid] = sum(args.prev->pid) }"
		"t:block:block_rq_issue { @ = hist(args.bytes) } k:vfs_read { print(str(arg0)) }",
		NULL, &error);
	ck_assert_msg(script != NULL, "%s", error ? error->message : "");
	g_auto(GStrv) open = script_fields(script, NAMES("function:vfs_open"), "function:vfs_open");
	ck_assert(g_strv_equal((const char *const *)open,
	                       NAMES("str(((struct path *)arg0)->dentry->d_name.name)", "arg0->mnt->mnt_flags")));
	g_auto(GStrv) sched =
		script_fields(script, NAMES("tracepoint:sched:sched_switch"), "tracepoint:sched:sched_switch");
	ck_assert(g_strv_equal((const char *const *)sched, NAMES("str(prev->comm)", "next->pid", "prev->pid")));
	g_auto(GStrv) block =
		script_fields(script, NAMES("tracepoint:block:block_rq_issue"), "tracepoint:block:block_rq_issue");
	ck_assert(g_strv_equal((const char *const *)block, NAMES("rq->__data_len")));
	g_auto(GStrv) none = script_fields(script, NAMES("function:vfs_read"), "function:vfs_read");
	ck_assert(g_strv_equal((const char *const *)none, NAMES()));
}
END_TEST

START_TEST(what_requests_of_the_block_layer_do)
{
	static const struct {
		uint64_t flags;
		const char *text;
	} cases[] = {{0, "R"},
	             {1, "W"},
	             {1 | 1 << 11, "WS"},
	             {1 << 19 | 1 << 12, "RAM"},
	             {1 | 1 << 17 | 1 << 18, "FWF"},
	             {2 | 1 << 18, "FF"},
	             {3, "D"},
	             {5, "DE"},
	             {34, "N"},
	             {4, "N"},
	             {0xff, "N"}};
	g_autoptr(GError) error = NULL;
	struct script_probe probe = {.name = "tracepoint:block:block_rq_issue",
	                             .arguments = NAMES("rq"),
	                             .types = NAMES("struct request *"),
	                             .fields = NAMES("rq->cmd_flags", "rq->__data_len")};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autofree char *text = script_rwbs(cases[i].flags & SCRIPT_RWBS_MASK);

		ck_assert_str_eq(text, cases[i].text);
	}
	script = script_parse(
		"t:block:block_rq_issue { @[args.rwbs] = sum(args.nr_sector); printf(\"%s %d\", args.rwbs, args.rwbs); }",
		NULL, &error);
	ck_assert_ptr_nonnull(script);
	probe.written = script_probes(script);
	ck_assert_msg(script_compile(script, &probe, 1, &error), "%s", error ? error->message : "");
	ck_assert_int_eq(script_map(script, 0)->keys[0], SCRIPT_RWBS);
}
END_TEST

static struct script_node *name_of(const char *name)
{
	return script_node_text(NODE_NAME, name);
}

/* Built node by node, it becomes the program of its text. */
START_TEST(a_tree_is_a_script)
{
	static const char text[] = "exit:hlt /(uint32)pid == 5 && strncmp(comm, \"sh\", 2) == 0/ { $r = args.reason; "
				   "@x[comm, $r] = count(); if ($r < 3) { exit(); } }";
	g_autoptr(GError) error = NULL;
	const struct script_probe probe = {.written = NAMES("exit:hlt"),
	                                   .name = "exit:hlt",
	                                   .arguments = NAMES("reason"),
	                                   .types = NAMES(NULL),
	                                   .fields = NAMES(NULL)};
	struct script_node *texts = name_of("comm"), *key = name_of("comm"), *body;
	struct script *read;
	size_t n, n_read;

	script_node_append(texts, script_node_text(NODE_STRING, "sh"));
	script_node_append(texts, script_node_number(2));
	script_node_append(key, script_node_text(NODE_VARIABLE, "$r"));
	body = script_node_pair(NODE_ASSIGN, "=", script_node_text(NODE_VARIABLE, "$r"),
	                        script_node_text(NODE_PATH, "reason"));
	script_node_append(body, script_node_pair(NODE_ASSIGN, "=", script_node_list(NODE_MAP, "@x", key),
	                                          script_node_list(NODE_CALL, "count", NULL)));
	script_node_append(body,
	                   script_node_if(script_node_pair(NODE_BINARY, "<", script_node_text(NODE_VARIABLE, "$r"),
	                                                   script_node_number(3)),
	                                  script_node_list(NODE_CALL, "exit", NULL)));
	script = script_new();
	script_add_clause(
		script, "exit:hlt",
		script_node_pair(NODE_BINARY, "&&",
	                         script_node_pair(NODE_BINARY, "==", script_node_cast(32, name_of("pid")),
	                                          script_node_number(5)),
	                         script_node_pair(NODE_BINARY, "==", script_node_list(NODE_CALL, "strncmp", texts),
	                                          script_node_number(0))),
		body);
	ck_assert_str_eq(script_probes(script)[0], "exit:hlt");
	ck_assert_ptr_null(script_probes(script)[1]);
	ck_assert_msg(script_compile(script, &probe, 1, &error), "%s", error ? error->message : "");
	read = script_parse(text, NAMES(NULL), &error);
	ck_assert_msg(read && script_compile(read, &probe, 1, &error), "%s", error ? error->message : "");
	const struct vprof_instruction *built = script_program(script, 0, &n),
				       *of_text = script_program(read, 0, &n_read);
	ck_assert_uint_eq(n, n_read);
	ck_assert_mem_eq(built, of_text, n * sizeof(*built));
	script_free(read);
}
END_TEST

START_TEST(events_have_to_be_allowed)
{
	g_autoptr(GError) error = NULL;
	const struct script_probe probe = {.written = NAMES("exit:hlt"),
	                                   .name = "exit:hlt",
	                                   .arguments = NAMES("reason"),
	                                   .types = NAMES(NULL),
	                                   .fields = NAMES(NULL)};
	struct script *read =
		script_parse("exit:hlt /args.reason == 5 && faults == 0/ { event(); }", NAMES(NULL), &error);
	size_t n;

	ck_assert_msg(read != NULL, "%s", error ? error->message : "");
	ck_assert(!script_compile(read, &probe, 1, &error));
	ck_assert_msg(g_str_has_prefix(error->message, "1:46: there is no statement event()"), "%s", error->message);
	g_clear_error(&error);
	script_free(read);
	script = script_new();
	script_add_clause(script, "exit:hlt", NULL, script_node_list(NODE_CALL, "event", NULL));
	ck_assert_msg(script_compile(script, &probe, 1, &error), "%s", error ? error->message : "");
	ck_assert_uint_eq(script_program(script, 0, &n)[n - 1].operation, VPROF_PROGRAM_EVENT);
	/* Without a text, an error has no place in one. */
	script_add_clause(script, "exit:hlt", name_of("who"), script_node_list(NODE_CALL, "event", NULL));
	ck_assert(!script_compile(script, &probe, 1, &error));
	ck_assert_msg(g_str_has_prefix(error->message, "there is no \"who\""), "%s", error->message);
}
END_TEST

START_TEST(refusals)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{"", "1:1: the script ends where a probe should follow"},
		{"BEGIN", "1:6: the script ends where a { should follow"},
		{"BEGIN { @x = }", "1:14: here is \"}\", where a value should be"},
		{"BEGIN {\n  @x = 1 +\n}", "3:1: here is \"}\""},
		{"BEGIN { printf(\"a }", "1:16: this text has no \""},
		{"BEGIN { printf(\"\\q\") }", "stands for nothing"},
		{"BEGIN { /* }", "1:9: this comment has no end"},
		{"BEGIN { @x = 99999999999999999999 }", "more than 64 bits"},
		{"BEGIN { @x = 12q }", "1:14: this is no number"},
		{"BEGIN { @x = 1 # }", "1:16: this character means nothing"},
		{"BEGIN { @x = $9 }", "1:14: there is no parameter $9; 3 are given"},
		{"BEGIN { x = 1 }", "1:9: this is no statement"},
		{"BEGIN { @x }", "1:12: here is \"}\", where =, ++"},
		{"BEGIN / pid == 1 { }", "1:18: here is \"{\", where the / at the end"},
		{"watchpoint:/bin/sh:main { }", "1:1: watchpoint: is not available"},
		{IN("@x = who"), "1:38: there is no \"who\"; there are pid"},
		{IN("@x = args.what"), "has no argument that \"what\" begins with; it has count, delta, filename"},
		{IN("@x = args.next->pid"), "\"next->pid\""},
		{IN("@x = 1; @x = comm"), "1:44: @x is a text here, and a number elsewhere"},
		{IN("@x = count(); @x++"), "@x is a number here, and a count elsewhere"},
		{IN("@x[1] = 1; @x[1, 2] = 1"), "the key of @x has 2 parts here, and 1 elsewhere"},
		{IN("@x[1] = 1; @x[comm] = 1"), "part 1 of the key of @x is a text here, and a number elsewhere"},
		{IN("print(@x)  print(1)"), "here is \"print\", where a ; or a }"},
		{IN("@y = @x"), "this map is never set"},
		{IN("@x = hist(1); @y = @x"), "no single value"},
		{IN("@x = lhist(1, 5, 5, 1)"), "up to a higher one"},
		{IN("@x = lhist(1, 0, 5000, 1)"), "at most 1000 ranges"},
		{IN("@x = lhist(1, 0, pid, 1)"), "has to stand here"},
		{IN("@x = count(1)"), "count is written count()"},
		{IN("@x = kstack"), "a part of a key"},
		{IN("@x = comm + 1"), "texts can be compared with texts"},
		{IN("@x = comm < \"a\""), "by == and !="},
		{IN("if (comm) { }"), "a number has to stand here"},
		{IN("$x = 1; $x = comm"), "a number here and a text elsewhere"},
		{IN("@x = usym(1)"), "a part of a key"},
		{IN("$x = usym(1)"), "a part of a key"},
		{IN("@x[usym(1)] = 1; @x[1] = 1"), "part 1 of the key of @x is a number here, and a usym() elsewhere"},
		{IN("@x = str(usym(1))"), "no text and no address"},
		{IN("$p = args.count; $p = 1; @x = $p->pid"), "what $p points to is not known"},
		{IN("if (1) { $p = args.prev; } @x = $p->pid"), "what $p points to is not known"},
		{IN("$p = 5; @x = $p->pid"), "what $p points to is not known"},
		{IN("@x = args.prev->sums[pid]"), "here is \"pid\", where the number of an element"},
		{IN("@x = args.prev->sums[2"), "the ] of an element"},
		{IN("@x = ((struct task_struct *)pid)->pid"), "where curtask or an argument"},
		{"#ifndef BPFTRACE_HAVE_BTF\n", "1:1: this #ifndef has no #endif"},
		{IN("@x = $y"), "this variable has not been set"},
		{IN("printf(\"%d\")"), "more conversions than there are values"},
		{IN("printf(\"%d\", 1, 2)"), "more values than conversions"},
		{IN("printf(\"%s\", 1)"), "%s is for a text"},
		{IN("printf(\"%d\", comm)"), "which only %s prints"},
		{IN("printf(\"%n\", 1)"), "after a % there has to be"},
		{IN("printf(1)"), "a format in quotes"},
		{IN("system(\"x\")"), "there is no statement system()"},
		{IN("@x = system(1)"), "system() gives no value"},
		{IN("clear(@x[1])"), "a map, without a key"},
		{IN("delete(1)"), "delete is written"},
		{IN("@x[kstack, ustack, kstack] = 1"), "this key is too long"},
		{IN("@x = \"0123456789012345678901234567890123456789012345678901234567890123\""), "more than 63 bytes"},
	};

	for (size_t i = 0; i < G_N_ELEMENTS(cases); i++) {
		g_autoptr(GError) error = NULL;

		clear();
		ck_assert_msg(!compile(cases[i].text, &error), "%s", cases[i].text);
		ck_assert_msg(strstr(error->message, cases[i].why), "%s: %s", cases[i].text, error->message);
	}
	g_autofree char *deep = g_strnfill(100, '('), *nested = g_strdup_printf(IN("@x = %s1"), deep);
	g_autoptr(GError) error = NULL;
	clear();
	ck_assert(!compile(nested, &error));
	ck_assert_msg(strstr(error->message, "nested too deeply"), "%s", error->message);
	g_autoptr(GString) many = g_string_new("BEGIN { ");
	for (unsigned i = 0; i < 1000; i++)
		g_string_append_printf(many, "@x = %u;", i);
	g_string_append(many, " }");
	g_clear_error(&error);
	clear();
	ck_assert(!compile(many->str, &error));
	ck_assert_msg(strstr(error->message, "program of its probe too long"), "%s", error->message);
}
END_TEST

int main(void)
{
	Suite *suite = suite_create("script");
	TCase *all = tcase_create("script");

	tcase_add_checked_fixture(all, setup, teardown);
	tcase_add_test(all, expressions);
	tcase_add_test(all, statements);
	tcase_add_test(all, stacks_are_keys);
	tcase_add_test(all, probes);
	tcase_add_test(all, fields);
	tcase_add_test(all, what_requests_of_the_block_layer_do);
	tcase_add_test(all, a_tree_is_a_script);
	tcase_add_test(all, events_have_to_be_allowed);
	tcase_add_test(all, refusals);
	suite_add_tcase(suite, all);
	return run_suite(suite);
}
