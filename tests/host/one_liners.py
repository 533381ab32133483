#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The twelve lessons of bpftrace's tutorial of one-liners, by vprof, on Debian's kernel with a workload of known counts. One boot does
the workload three times: each time as many lessons look at it as the processor has breakpoints for. Another boot compares them with
Debian's bpftrace in the guest."""
import json
import lzma
import math
import pathlib
import re
import shutil
import signal

import harness
from engine import Engine
from harness import VPROF

# A byte to the console is two exits, and all messages are half of a boot's time.
QUIET = "--append", "quiet"
MODULES = ("drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_mmio", "drivers/block/virtio_blk",
           "arch/x86/kernel/cpuid")
# The end of a mount gives the kernel's thread for RCU work something to do: its trace points are the scheduler's first.
START = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
for name in virtio virtio_ring virtio_mmio virtio_blk; do [ ! -e /bin/$name.ko ] || busybox insmod /bin/$name.ko; done
until_told() { until [ "$(busybox dd if=/dev/vda bs=512 count=1 iflag=direct 2>/dev/null | busybox tr -d '\\0')" = "$1" ]; do $2; busybox usleep 300000; done; }
work() { (until_told "$1"; busybox grep ctxt /proc/stat; exec known_calls) & echo "init: $1 $!"; wait $!; }
"""
INIT = START + """remount() { busybox mount -t tmpfs none /mnt; busybox umount /mnt; }
work events
work calls
busybox mkdir /mnt
known_calls ticker & known_calls ticker &
busybox insmod /bin/cpuid.ko; echo "init: loaded"
until_told open
for name in 1 2 3; do : </dev/cpu/0/cpuid; done; echo "init: opened"
until_told unload
busybox rmmod cpuid; echo "init: unloaded"
until_told later
known_calls later &
until_told "go on" remount
busybox killall known_calls
exec known_calls
"""
# bpftrace and its libraries on the second disk.
WITH_BPFTRACE = START + """busybox mount -t sysfs sys /sys
busybox mount -t debugfs debug /sys/kernel/debug
busybox mkdir /usr /bpftrace
busybox mount -o ro /dev/vdb /bpftrace
for name in lib lib64 usr/lib; do [ ! -e /bpftrace/$name ] || busybox ln -s /bpftrace/$name /$name; done
both() { busybox grep -q "beat 1" "$1" && busybox grep -q "beat 2" "$1"; }
"""
# bpftrace sees the work by each lesson, whose number and last line of output are on the console; afterwards vprof does.
BESIDE = WITH_BPFTRACE + """for lesson in /bin/*.bt; do
	out=/out-${lesson##*/}
	(until [ -e /go ]; do busybox usleep 100000; done; exec known_calls) & worker=$!
	/bpftrace/bin/bpftrace -B none -f json $lesson $worker >$out 2>&1 & tracer=$!
	until both $out || [ ! -e /proc/$tracer ]; do busybox usleep 200000; done
	: >/go
	wait $worker
	busybox kill -INT $tracer
	wait $tracer
	busybox rm /go
	echo "init: lesson $lesson"
	busybox grep -v beat $out
	echo "init: end"
done
/bpftrace/bin/bpftrace -l 'tracepoint:syscalls:sys_enter_*'
echo "init: lessons"
work 1
work 2
work 3
until_told 4
exec known_calls
"""
CALLS, OPENS, FORKS, BLOCKS = 300, 25, 20, 16  # known_calls.c
SIZES = {1: 10, 70: 13, 450: 7, 1500: 11, 1900: 5}
READS = sum(SIZES.values())
PATH = """#ifndef BPFTRACE_HAVE_BTF
#include <linux/path.h>
#include <linux/dcache.h>
#endif

kprobe:vfs_open
{
	printf("open path: %s\\n", str(((struct path *)arg0)->dentry->d_name.name));
}
"""
HELLO = 'BEGIN { printf("hello world\\n"); }'
OPENED = 'tracepoint:syscalls:sys_enter_openat { printf("%s %s\\n", comm, str(args.filename)); }'
BY_PROCESS = "tracepoint:raw_syscalls:sys_enter { @[comm] = count(); }"
READ_BYTES = "tracepoint:syscalls:sys_exit_read /pid == $1/ { @bytes = hist(args.ret); }"
VFS_BYTES = "kretprobe:vfs_read { @bytes = lhist(retval, 0, 2000, 200); }"
TIMES = ("kprobe:vfs_read { @start[tid] = nsecs; } "
         "kretprobe:vfs_read /@start[tid]/ { @ns[comm] = hist(nsecs - @start[tid]); delete(@start[tid]); }")
EVENTS = "tracepoint:sched:sched* { @[probe] = count(); } interval:s:3 { exit(); }"
ON_CPU = "profile:hz:99 { @[kstack] = count(); }"
SWITCHES = "tracepoint:sched:sched_switch { @[kstack] = count(); }"
TICK = "user:/bin/known_calls:tick"
STEPS = "user:/bin/known_calls:steps"
NOTE = "usdt:/bin/known_calls:known:tick"
READY = 'BEGIN { printf("ready\\n"); }\n'
BLOCK = "tracepoint:block:block_rq_issue { @ = hist(args.bytes); }"
# The events that the work makes a known number of.
EVENTS_OF_PARENT = """tracepoint:sched:sched_process_fork, tracepoint:sched:sched_process_exit, tracepoint:sched:sched_process_wait,
tracepoint:sched:sched_wakeup_new /comm == "parent"/ { @[probe] = count(); }"""
SWITCHES_OF_PARENT = 'tracepoint:sched:sched_switch /comm == "parent"/ { @[kstack] = count(); }'
LESSONS = {2: HELLO, 3: OPENED, 4: BY_PROCESS, 5: READ_BYTES, 6: VFS_BYTES, 7: TIMES, 8: EVENTS_OF_PARENT, 9: ON_CPU, 10: SWITCHES_OF_PARENT,
           11: BLOCK, 12: PATH}
ROUNDS = (2, 3, 4, 5, 9, 12), (6, 7), (10, 11), (8,)
WHOLE_EVENTS = 'tracepoint:sched:sched* /comm == "parent"/ { @[probe] = count(); }'
BEAT = 'interval:s:1 {{ printf("beat {}\\n"); }}\n'
# What the lessons do not have, of the same events.
MORE = """
tracepoint:block:block_rq_issue { @io[args.nr_sector, args.dev >> 20, comm] = count(); @last = max(args.sector); @rwbs[args.rwbs] = count(); }
tracepoint:sched:sched_process_fork /comm == "parent"/ { $task = curtask; @pid[$task->pid, uid, curtask->real_parent->pid] = count(); @cgroup[cgroup]++; }
"""


class Lessons(harness.ProgramTest):
    def boot(self, script, more=(), options=()):
        """The guest waits for its start; `more` files are beside its programs."""
        harness.need_kvm()
        harness.need_feature("breakpoint")
        self.kernel = pathlib.Path(harness.script("unpacked-kernel.sh", "6.12", "cloud"))
        initrd, init, self.disk = self.folder / "initrd", self.folder / "init", self.folder / "disk"
        init.write_text(script)
        self.disk.write_bytes(bytes(4 << 20))
        self.works = 0
        files = [harness.BIN / "known_calls", *more]
        folder, = (self.kernel.parent / "lib" / "modules").glob("*/kernel")
        for name in MODULES:
            for packed in folder.glob(f"{name}.ko*"):
                files.append(self.folder / f"{packed.name.split('.')[0]}.ko")
                files[-1].write_bytes(lzma.decompress(packed.read_bytes()) if packed.suffix == ".xz" else packed.read_bytes())
        harness.script("initramfs.sh", initrd, init, *files)
        self.console = self.folder / "console"
        self.engine = Engine(self, self.kernel, "--initrd", initrd, "--console", self.console, "--disk", self.disk, *options, *QUIET)
        # Reads the kernel, which takes longer on an emulated host than the program waits.
        self.engine.execute("probe-add", probe="tracepoint:sched:sched_switch", stack=True)
        self.engine.execute("probe-record", on=True)
        self.engine.execute("probe-record", on=False)
        self.engine.execute("probe-remove", id=1)

    def trace(self, *lessons, begin, last=False, faults=0):
        """Has the guest do its work, by `begin`, with all of them: what each has printed, its maps with the parts of keys as texts, and
        what it said. The guest ends with its `last` work. `faults`: of how many names the page was not there yet, at most."""
        traces = []
        for lesson, *parameters in lessons:
            path = self.folder / f"lesson-{len(traces)}.bt"
            path.write_text(READY + lesson)
            traces.append(self.start(VPROF, "trace", "-j", "--breakpoints", "processor", "--script", path, self.engine.path, *parameters))
            self.wait_for_line(traces[-1])
        begin()
        self.works += 1
        if not last:
            harness.wait_until(lambda: self.said().count("known calls: done") == self.works, "the guest's work", 120)
            for trace in traces:
                trace.send_signal(signal.SIGINT)
        results = []
        for (lesson, *_), trace in zip(lessons, traces):
            out, err = self.finish(trace, timeout=120)
            lines = [json.loads(line) for line in out.splitlines()]
            statistics = lines[-1]["end"]["statistics"]
            self.assertEqual([statistics[name] for name in ("dropevt", "map-full")], [0, 0], lesson)
            self.assertLessEqual(statistics["fault"], faults, lesson)
            maps = {line["map"]: {tuple(map(str, entry["key"])): entry["value"] for entry in line["entries"]} for line in lines if "map" in line}
            results.append(("".join(line.get("text", "") for line in lines), maps, err))
        ended = self.engine.process.poll()
        said = [said for *_, said in results] + ([] if ended is None else [ended, self.engine.process.stderr.read()])
        self.assertEqual(self.said().count("known calls: done"), self.works, said)
        return results

    def said(self):
        """The guest's console."""
        return self.console.read_text(errors="replace")

    def process_of(self, work):
        """The number of the process in the guest that does it."""
        return re.search(rf"^init: {work} (\d+)", self.said(), re.MULTILINE)[1]

    def test_lessons(self):
        self.boot(INIT)
        self.tell("events")
        self.refused(VPROF, "trace", self.engine.path, "-e", "kprobe:cpuid:cpuid_open { @ = count(); }",
                     message="cannot read the guest's modules")
        self.check_events()
        self.check_system_calls()
        self.check_modules()
        self.check_programs()
        self.check_scheduler()
        self.check_functions()

    def test_beside_bpftrace(self):
        """Each lesson by Debian's bpftrace in the guest, and then by vprof, of the same work."""
        harness.need_program("bpftrace", "bpftrace")
        scripts = []
        for number, lesson in LESSONS.items():
            scripts.append(self.folder / f"{number:02}.bt")
            head, rest = re.fullmatch(r"(#ifndef.*#endif\n)?(.*)", WHOLE_EVENTS if number == 8 else lesson, re.DOTALL).groups()
            # bpftrace 0.17 has "args" as a pointer only.
            scripts[-1].write_text((head or "") + BEAT.format(1) + rest.replace("args.", "args->") + "\n" + BEAT.format(2))
        self.boot(BESIDE, scripts, self.bpftrace())
        self.engine.execute("guest-start")
        harness.wait_until(lambda: "init: 1 " in self.said() or self.engine.process.poll() is not None, "bpftrace", 900)
        self.works = len(LESSONS)
        listed, _ = self.run_program(VPROF, "probe", "list", "tracepoint:syscalls:sys_enter_*", "--engine", self.engine.path)
        theirs = dict(self.lessons_of_bpftrace())
        self.assertEqual(set(theirs), set(LESSONS))
        ours = {}
        for i, numbers in enumerate(ROUNDS, 1):
            lessons = [[LESSONS[number], *([self.process_of("1")] if number == 5 else [])] for number in numbers]
            results = self.trace(*lessons, begin=lambda: self.tell(str(i)), last=i == len(ROUNDS), faults=10)
            ours |= {number: (text.removeprefix("ready\n"), maps) for number, (text, maps, _) in zip(numbers, results)}
        for number in LESSONS:
            with self.subTest(lesson=number):
                one, other = self.essence(number, *ours[number]), self.essence(number, *theirs[number])
                print(f"  lesson {number}: {one}", flush=True)
                self.assertEqual(one, other)
                self.assertTrue(one)
        # uretprobe(2) is the kernel's own business.
        names = set(re.findall("^tracepoint:syscalls:.*$", self.said(), re.MULTILINE))
        self.assertEqual(set(listed.splitlines()) ^ names, {"tracepoint:syscalls:sys_enter_uretprobe"})

    def bpftrace(self):
        """Options for a guest with it."""
        image = self.folder / "bpftrace.img"
        harness.script("root_image.sh", image, shutil.which("bpftrace"))
        return "--disk", f"{image},ro", "--memory", "1G"

    def essence(self, number, text, maps):
        """What the work causes, and nothing else in the guest, as both have it."""
        def low(range_):
            """Where it begins."""
            if "range" not in range_:
                return range_.get("min", -1)
            digits, unit = re.match(r"[\[(](\d+|\.\.\.)([KMGTPE]?)", range_["range"]).groups()
            return -1 if digits == "..." else int(digits) << 10 * " KMGTPE".index(unit or " ")

        def histogram(ranges, least=0, most=math.inf):
            return {low(range_): range_["count"] for range_ in ranges if range_["count"] > 0 and least <= low(range_) <= most}

        if number in (2, 3, 12):
            return re.findall("^(hello world|opener .*|open path: known-file)$", text, re.MULTILINE)
        if number == 4:
            return {key: maps["@"][key,] for key in ("caller", "opener", "reader", "parent", "driver", "between")}
        if number == 5:  # its process also looks into /proc, a byte at a time, until it is told to work
            return histogram(maps["@bytes"][()], 64)
        if number == 6:  # others read less than its largest pieces, or more
            return histogram(maps["@bytes"][()], 1400, 1800)
        if number == 7:
            return sum(histogram(maps["@ns"]["reader",]).values())
        if number == 8:
            return {key: count for (key,), count in maps["@"].items() if key in re.findall(r"tracepoint:[\w:]+", EVENTS_OF_PARENT)}
        # Functions of stacks, without places in them.
        stacks = [tuple(re.findall(r"(\w[\w.]*?)\+?(?:0x)?[0-9a-f]*(?:['\n]|$)", stack)) for (stack,) in maps["@"]] if number in (9, 10) else []
        if number == 9:
            return sorted({stack[-4:] for stack in stacks if "do_idle" in stack})
        if number == 10:
            return sorted({stack for stack in stacks if "do_wait" in stack})
        return histogram(maps["@"][()], 4096, 8192)

    def lessons_of_bpftrace(self):
        """The number, what was printed and the maps of each, as trace() has those of vprof."""
        for number, output in re.findall(r"^init: lesson /bin/(\d+)\.bt\n(.*?)^init: end", self.said(), re.DOTALL | re.MULTILINE):
            lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
            maps = {}
            for line in lines:
                if line["type"] in ("map", "hist"):
                    (name, value), = line["data"].items()
                    maps[name] = {(key,): one for key, one in value.items()} if isinstance(value, dict) else {(): value}
            yield int(number), ("".join(line["data"] for line in lines if line["type"] == "printf"), maps)

    def counts(self, ranges):
        return {range_["range"]: range_["count"] for range_ in ranges}

    def check_system_calls(self):
        """Lessons 1 to 5, 9 and 12."""
        listed, _ = self.run_program(VPROF, "probe", "list", "tracepoint:syscalls:sys_enter_*", "--engine", self.engine.path)
        self.assertIn("tracepoint:syscalls:sys_enter_openat", listed.splitlines())
        self.assertGreater(len(listed.splitlines()), 300)
        self.wait_for("init: calls")
        on_cpu, hello, opened, by_process, read_bytes, path = self.trace(
            [ON_CPU], [HELLO], [OPENED], [BY_PROCESS], [READ_BYTES, self.process_of("calls")], [PATH], begin=lambda: self.tell("calls"))
        self.assertEqual(hello[0], "hello world\n")
        self.assertEqual(re.findall("^opener (.*)$", opened[0], re.MULTILINE), ["/known-file"] * OPENS)
        self.assertRegex(opened[0], "(?m)^(busybox|exe) /proc/stat$")
        counts = by_process[1]["@"]
        print(f"  system calls: {counts}", flush=True)
        # Each with the call that takes the name away; a file is opened and closed; fork(3) of the C library is clone(2) and, in the
        # child, set_robust_list(2).
        self.assertEqual([counts[name,] for name in ("caller", "opener", "reader", "parent", "driver")],
                         [CALLS + 1, 2 * OPENS + 1, READS + 1, 4 * FORKS + 1, BLOCKS + BLOCKS // 2 + 1])
        ranges = self.counts(read_bytes[1]["@bytes"][()])
        print(f"  bytes of read(): {ranges}", flush=True)
        self.assertEqual(ranges["[1K, 2K)"], SIZES[1500] + SIZES[1900])
        self.assertGreaterEqual(ranges["[64, 128)"], SIZES[70])
        stacks = on_cpu[1]["@"]
        print(f"  {sum(stacks.values())} samples with {len(stacks)} stacks of the kernel", flush=True)
        self.assertGreater(sum(stacks.values()), 99)
        self.assertTrue([stack for stack in stacks if "do_idle" in stack[0]], list(stacks)[:5])
        self.assertEqual(path[0].count("open path: known-file\n"), OPENS + 1)

    def check_functions(self):
        """Lessons 6 and 7, to the guest's end."""
        vfs_bytes, times = self.trace([VFS_BYTES], [TIMES], begin=lambda: self.tell("go on"), last=True)
        ranges = self.counts(vfs_bytes[1]["@bytes"][()])
        print(f"  bytes of vfs_read(): {ranges}", flush=True)
        # The guest reads, too, until it is told to go on.
        self.assertEqual([ranges[name] for name in ("[1400, 1600)", "[1800, 2000)")], [SIZES[1500], SIZES[1900]])
        self.assertGreaterEqual(ranges["[400, 600)"], SIZES[450])
        self.assertGreaterEqual(ranges["[0, 200)"], SIZES[1] + SIZES[70])
        of_reader = self.counts(times[1]["@ns"]["reader",])
        print(f"  its times: {of_reader}", flush=True)
        self.assertEqual(sum(of_reader.values()), READS)
        self.assertEqual(times[1]["@start"], {})

    def check_events(self):
        """Lessons 10 and 11, and more fields of records and tasks, from the boot on."""
        switches, block, more = self.trace([SWITCHES], [BLOCK], [MORE], begin=lambda: self.engine.execute("guest-start"))
        stacks = switches[1]["@"]
        ctxt = int(re.search(r"^ctxt (\d+)", self.said(), re.MULTILINE)[1])
        print(f"  {sum(stacks.values())} switches with {len(stacks)} stacks; {ctxt} before the workload", flush=True)
        self.assertGreaterEqual(sum(stacks.values()), ctxt + FORKS)
        self.assertEqual([stack for stack in stacks if "__schedule" not in stack[0]], [])
        ranges = self.counts(block[1]["@"][()])
        print(f"  bytes of requests: {ranges}", flush=True)
        maps = more[1]
        print(f"  more: {maps}", flush=True)
        requests = {(key[0], key[2]): value for key, value in maps["@io"].items()}
        # The kernel looks for partitions, too.
        self.assertEqual(ranges["[4K, 8K)"], sum(value for (sectors, _), value in requests.items() if sectors == "8"))
        self.assertEqual(ranges["[8K, 16K)"], BLOCKS // 2)
        self.assertEqual({key: requests[key] for key in (("8", "driver"), ("16", "driver"))},
                         {("8", "driver"): BLOCKS, ("16", "driver"): BLOCKS // 2})
        self.assertGreaterEqual(sum(maps["@rwbs"].get((name,), 0) for name in ("R", "RS")), BLOCKS + BLOCKS // 2)
        self.assertEqual(maps["@pid"], {(self.process_of("events"), "0", "1"): FORKS})
        self.assertEqual(sum(maps["@cgroup"].values()), FORKS)

    def check_scheduler(self):
        """Lesson 8: as many trace points as the processor has breakpoints. It ends by itself."""
        out, said = self.run_program(VPROF, "trace", "-j", "--breakpoints", "processor", self.engine.path, "-e", EVENTS)
        maps = {line["map"]: {entry["key"][0]: entry["value"] for entry in line["entries"]} for line in map(json.loads, out.splitlines())
                if "map" in line}
        print(f"  {maps['@']}; {said}", flush=True)
        self.assertGreater(sum(maps["@"].values()), 0)
        self.assertEqual([key for key in maps["@"] if not re.fullmatch(r"tracepoint:sched:sched_\w+", key)], [])

    def wait_for(self, text):
        harness.wait_until(lambda: text in self.said(), text, 60)

    def tell(self, text):
        with self.disk.open("r+b") as file:
            file.write(text.encode().ljust(512, b"\0"))

    def events_of(self, trace):
        """Its events, and what it said, once it has been told to end."""
        trace.send_signal(signal.SIGINT)
        out, said = self.finish(trace)
        return [json.loads(line) for line in out.splitlines()], said

    def check_modules(self):
        self.wait_for("init: loaded")
        listed, _ = self.run_program(VPROF, "probe", "list", "function:cpuid:*", "--engine", self.engine.path)
        self.assertIn("function:cpuid:cpuid_open", listed.splitlines())
        self.assertNotIn("function:cpuid:cpuid_init", listed.splitlines())
        listed, _ = self.run_program(VPROF, "probe", "list", "function:vmlinux:vfs_rea*", "--engine", self.engine.path)
        self.assertIn("function:vfs_read", listed.splitlines())
        for probe, message in (("function:cpuid:cpuid_opened", r'module cpuid has no function "cpuid_opened".*there is cpuid_open\.'),
                               ("function:cpuidle:cpuid_open", r'no module "cpuidle" loaded now; it has cpuid\.'),
                               ("function:cpuid:cpuid_open+4", "function:MODULE:NAME")):
            self.refused(VPROF, "trace", self.engine.path, "-e", probe, message=message, status=2)

        # By a pattern, and with a program.
        events = self.start(VPROF, "trace", "-j", self.engine.path, "-e", "recording:start", "-e", "function:cpuid:cpuid_op*",
                            "-e", "function:vmlinux:chrdev_open")
        script = self.start(VPROF, "trace", "-j", self.engine.path, "-e", READY + "kretprobe:cpuid:cpuid_open { @[comm, retval] = count(); }")
        self.wait_for_line(script)
        self.wait_for_line(events)
        self.tell("open")
        self.wait_for("init: opened")
        lines, _ = self.events_of(events)
        print(f"  {lines[0]}", flush=True)
        self.assertEqual([line.get("func") for line in lines if line.get("probe") == "function:cpuid:cpuid_open"], ["cpuid_open"] * 3)
        self.assertGreaterEqual(len([line for line in lines if line.get("probe") == "function:chrdev_open"]), 3)

        self.tell("unload")
        self.wait_for("init: unloaded")
        lines, said = self.events_of(script)
        print(f"  {said}", flush=True)
        self.assertIn("the guest has unloaded the module of return:cpuid:cpuid_open", said)
        self.assertEqual([entry for line in lines for entry in line.get("entries", [])], [{"key": ["init", 0], "value": 3}])
        self.refused(VPROF, "trace", self.engine.path, "-e", "function:cpuid:cpuid_open", message='no module "cpuid" loaded now', status=2)

    def check_programs(self):
        """Two processes have the program at addresses of their own, and each call has the next number."""
        tickers = []

        def are_alone():
            tickers[:] = [task["pid"] for task in self.engine.execute("query-tasks", comm="ticker")["tasks"]]
            return len(tickers) == 2
        harness.wait_until(are_alone, "the end of a ticker's child")
        out, _ = self.run_program(VPROF, "trace", "-j", self.engine.path, "--pid", tickers[0], "-e", TICK, "-n", 20)
        *events, _ = map(json.loads, out.splitlines())
        numbers = [int(event["fields"]["arg1"], 16) for event in events]
        print(f"  {events[0]}; {numbers}", flush=True)
        self.assertEqual({(event["pid"], event["comm"], event["func"], event["fields"]["arg0"]) for event in events},
                         {(tickers[0], "ticker", "tick", "0x7")})
        self.assertEqual(numbers, list(range(numbers[0], numbers[0] + 20)))

        script = TICK.replace("user", "uprobe") + " /arg0 == 7/ { @[pid] = count(); } interval:s:3 { exit(); }"
        out, _ = self.run_program(VPROF, "trace", "-j", "--comm", "tick*", self.engine.path, "-e", script)
        counts = {entry["key"][0]: entry["value"] for line in map(json.loads, out.splitlines()) for entry in line.get("entries", [])}
        print(f"  {counts}", flush=True)
        self.assertEqual(sorted(counts), sorted(tickers))
        self.assertGreater(min(counts.values()), 5)

        self.check_program_returns(tickers)
        self.check_programs_later()
        for arguments, status, message in ((("-e", TICK + "ing"), 1, 'known_calls has no function "ticking"'),
                                           (("-e", NOTE + "ing"), 1, 'no static probe "known:ticking"'),
                                           (("-e", "user:/bin/nothing:main"), 1, "no copy of that file"),
                                           (("-e", STEPS + ":return", "-e", TICK, "--comm", "ticker"), 1,
                                            "cannot place .*tick: the processor has 4 breakpoints")):
            self.refused(VPROF, "trace", self.engine.path, *arguments, status=status, message=message)

    def list_probes(self, *arguments):
        return self.run_program(VPROF, "probe", *arguments, "--engine", self.engine.path)[0]

    def check_program_returns(self, tickers):
        """A ticker passes a static probe, with a register, a constant, a number in memory and its last byte. Then a function calls itself
        three times and returns, leaves by longjmp(), and now and then ends a child."""
        self.assertIn(NOTE, self.list_probes("list", "usdt:/bin/known_calls:*:*").splitlines())
        self.assertRegex(self.list_probes("args", NOTE), r"^arg0 +8@%r\w+\narg1 +-4@\$-5\narg2 +8@-?\d+\(%r\w+\)\narg3 +1@%\w+\n$")
        self.assertEqual(self.list_probes("list", "user:/bin/known_calls:st[e]ps:return"), STEPS + ":return\n")
        out, _ = self.run_program(VPROF, "trace", "-j", self.engine.path, "--pid", tickers[0], "-e", STEPS + ":return",
                                  "-e", NOTE.replace("known:tick", "kn*:t*"), "-n", 45)
        *events, end = map(json.loads, out.splitlines())
        # Of eight whole ticks: it may have begun in one.
        begin = [event["probe"] for event in events].index(NOTE)
        events = events[begin:begin + 40]
        notes = [event for event in events if event["probe"] == NOTE]
        returns = [event for event in events if event["probe"] == STEPS + ":return"]
        values = [[int(event["fields"][f"arg{i}"], 16) for i in range(4)] for event in notes]
        results = [int(event["fields"]["retval"], 16) for event in returns]
        times = [int(event["fields"]["ns"], 16) for event in returns]
        print(f"  {notes[0]}; {values}; {returns[0]}; {results}; {times}", flush=True)
        self.assertEqual({(event["pid"], event["func"]) for event in events}, {(tickers[0], "steps"), (tickers[0], "known:tick")})
        self.assertEqual(values, [[7, 2 ** 64 - 5, n, n & 0xff] for n in range(values[0][2], values[0][2] + 8)])
        self.assertEqual(results, [0, 1, 2, 3] * 8)
        for (result, ns), longer in zip(zip(results, times), times[1:]):
            self.assertTrue(result == 3 or ns < longer, times)
        # A tick lasts longer: none begins in one and ends in another.
        self.assertLess(sorted(times)[16], 100000000)
        self.assertEqual([end["end"]["statistics"][name] for name in ("forgotten", "fault")], [0, 0])

        script = STEPS.replace("user", "uretprobe") + " { @[probe, pid, retval] = count(); } interval:s:2 { exit(); }"
        out, _ = self.run_program(VPROF, "trace", "-j", "--comm", "tick*", self.engine.path, "-e", script)
        counts = {tuple(entry["key"]): entry["value"] for line in map(json.loads, out.splitlines()) for entry in line.get("entries", [])}
        print(f"  {counts}", flush=True)
        name = STEPS.replace("user", "uretprobe")
        self.assertEqual(sorted(counts), sorted((name, ticker, n) for ticker in tickers for n in range(4)))
        for ticker in tickers:
            of = [counts[name, ticker, n] for n in range(4)]
            self.assertGreater(min(of), 5)
            self.assertLessEqual(max(of) - min(of), 1)

    def check_programs_later(self):
        """A process that begins while it is waited for."""
        trace = self.start(VPROF, "trace", "-j", "--comm", "later", self.engine.path, "-e", TICK, "-n", 5)
        self.assertIn("waits for a process", trace.stderr.readline())
        self.tell("later")
        out, said = self.finish(trace)
        *events, _ = map(json.loads, out.splitlines())
        print(f"  {events[0]}; {said}", flush=True)
        self.assertEqual({(event["comm"], event["fields"]["arg0"]) for event in events}, {("later", "0x7")})
        # It began within some ticks.
        self.assertLess(int(events[0]["fields"]["arg1"], 16), 20)


if __name__ == "__main__":
    harness.main()
