#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Trace points of Debian's kernel while it boots and works, against the kernel's own counts of the same."""
import collections
import json
import re

import harness
from engine import Engine
from harness import VPROF

FORKS = 40
EXECVE = 59
INIT = f"""#!/bin/sh
busybox mount -t proc proc /proc
i=0
while [ $i -lt {FORKS} ]; do i=$((i + 1)); busybox true; done
while read -r word number rest; do
	case $word in ctxt | processes) echo "init: $word $number" ;; esac
done </proc/stat
exec busybox poweroff -f
"""
FIELDS = ["prev->pid", "next->pid", "str(prev->comm)", "str(filename)"]  # of sched_switch; of sys_enter_execve
SWITCH, FORK, EXEC = "tracepoint:sched:sched_switch", "tracepoint:sched:sched_process_fork", "tracepoint:syscalls:sys_enter_execve"
# Beside the events, in fields of the records that bpftrace has.
SCRIPT = """
BEGIN { printf("ready"); }
t:sched:sched_switch { @switches[args.prev_comm, args.prev_pid] = count(); }
t:sched:sched_process_fork { @forks[args.parent_comm] = count(); }
syscalls:sys_enter_execve { @execs[str(args.filename)] = count(); }
"""
COUNTED = "function:show_stat"  # adds the kernel's counts up for /proc/stat


class Tracepoints(harness.ProgramTest):
    def boot(self):
        """An engine, and the guest's console."""
        harness.need_kvm()
        harness.need_feature("breakpoint")
        initrd, init, console = self.folder / "initrd", self.folder / "init", self.folder / "console"
        init.write_text(INIT)
        harness.script("initramfs.sh", initrd, init)
        engine = Engine(self, harness.script("unpacked-kernel.sh", "6.12", "cloud"), "--initrd", initrd, "--console", console, "--append", "quiet")
        return engine, console

    def test_counts_are_the_kernels(self):
        engine, console = self.boot()
        engine.execute("probe-args", probe=SWITCH)  # reads the kernel, which takes longer on an emulated host than the program waits
        listed, _ = self.run_program(VPROF, "probe", "list", "tracepoint:*", "--engine", engine.path)
        lines = listed.splitlines()
        self.assertGreater(len(lines), 700)
        self.assertIn(SWITCH, lines)
        self.assertLess(sum("(without arguments)" in line for line in lines), 0.05 * len(lines))
        arguments, _ = self.run_program(VPROF, "probe", "args", SWITCH, "--engine", engine.path)
        self.assertEqual([line.split(maxsplit=1) for line in arguments.splitlines()],
                         [["preempt", "bool"], ["prev", "struct task_struct *"], ["next", "struct task_struct *"],
                          ["prev_state", "unsigned int"]])
        arguments, _ = self.run_program(VPROF, "probe", "args", "syscalls:sys_enter_openat", "--engine", engine.path)
        self.assertEqual([line.split(maxsplit=1) for line in arguments.splitlines()],
                         [["nr", "int"], ["dfd", "int"], ["filename", "const char *"], ["flags", "int"], ["mode", "umode_t"]])
        for call in ("raw_syscalls:sys_enter", "syscalls:sys_enter_newstat", "syscalls:sys_exit_openat"):
            self.assertIn(f"tracepoint:{call}", lines)
        for probe, why in (("tracepoint:syscalls:sys_enter_nothing", "a system call that x86-64 does not have"),
                           ("tracepoint:sched:nothing", "is not in the guest's kernel image")):
            self.assertIn(why, engine.ask("probe-add", probe=probe)["error"]["desc"])
        self.assertIn("no member nothing", engine.ask("probe-add", probe=SWITCH, fields=["prev->nothing"])["error"]["desc"])
        probes = {name: engine.execute("probe-add", probe=name, fields=FIELDS)["id"] for name in (SWITCH, FORK, EXEC, COUNTED)}
        engine.execute("probe-record", on=True, **{"ring-bytes": 1 << 24})
        script = self.start(VPROF, "trace", engine.path, "-j", "-e", SCRIPT)
        self.assertEqual(json.loads(script.stdout.readline()), {"text": "ready"})
        engine.execute("guest-start")
        events = []
        while not engine.ended:
            events += engine.execute("probe-read", **{"timeout-ms": 100})["events"]
        engine.execute("probe-record", on=False)
        more = True
        while more:
            answer = engine.execute("probe-read")
            events += answer["events"]
            more = answer["more"]
        statistics = engine.execute("query-probes")["statistics"]
        self.assertEqual([statistics[name] for name in ("dropevt", "no-arguments", "fault")], [0, 0, 0])
        self.check_script(script, events, probes)
        self.check(events, probes, dict(re.findall(r"init: (\w+) (\d+)", console.read_text(errors="replace"))))

    def check_script(self, script, events, probes):
        """It has counted in the engine what the events are, to the guest's end."""
        out, _ = self.finish(script, timeout=120)
        lines = [json.loads(line) for line in out.splitlines()]
        maps = {line["map"]: {tuple(entry["key"]): entry["value"] for entry in line["entries"]} for line in lines if "map" in line}
        of = {name: [[int(value, 16) for value in event["values"]] for event in events if event["probe"] == probe]
              for name, probe in probes.items()}
        print(f"  a script's counts: {sum(maps['@switches'].values())} switches, {maps['@forks']}", flush=True)
        self.assertEqual(maps["@switches"], collections.Counter((self.text(values[7:]), values[5]) for values in of[SWITCH]))
        self.assertEqual(sum(maps["@forks"].values()), len(of[FORK]))
        self.assertEqual(maps["@forks"]["init",], FORKS + 1)
        self.assertEqual(maps["@execs"], collections.Counter((self.text(values[5:]),) for values in of[EXEC]))
        self.assertEqual([lines[-1]["end"]["statistics"][name] for name in ("dropevt", "map-full", "fault")], [0, 0, 0])

    def text(self, values):
        return b"".join(value.to_bytes(8, "little") for value in values).split(b"\0")[0].decode()

    def check(self, events, probes, counts):
        end = next(event["time-ns"] for event in events if event["probe"] == probes[COUNTED])
        of = {name: [event for event in events if event["probe"] == probe] for name, probe in probes.items()}
        switches = [event for event in of[SWITCH] if event["time-ns"] < end]
        print(f"  the kernel: {counts}; {len(switches)} switches, {len(of[FORK])} forks, {len(of[EXEC])} execs", flush=True)
        # One processor: nothing is between the event and the sum. The idle task was made without kernel_clone().
        self.assertEqual(len(switches), int(counts["ctxt"]))
        self.assertEqual(len(of[FORK]), int(counts["processes"]))
        self.assertEqual(len([event for event in of[FORK] if event["comm"] == "init"]), FORKS + 1)
        # Each task that was switched to is the one that is switched from next.
        tasks = [[int(value, 16) for value in event["values"]] for event in switches]
        self.assertEqual([after[1] for after in tasks[1:]], [before[2] for before in tasks[:-1]])
        # Behind the arguments: which fields could be read, and these. A task is known when the kernel has its tasks.
        self.assertEqual({after[4] for after in tasks}, {0b111})
        self.assertEqual([after[5] for after in tasks[1:]], [before[6] for before in tasks[:-1]])
        known = [(event, task) for event, task in zip(switches, tasks) if event["pid"] >= 0 and event["comm"]]
        self.assertEqual({(event["tid"], event["comm"]) for event, _ in known},
                         {(task[5], self.text(task[7:])) for _, task in known})
        self.assertLessEqual({preempt for preempt, *_ in tasks}, {0, 1})
        # busybox finds itself by /proc, and tries to before that is mounted, too, as all folders of PATH. The kernel itself executes
        # /init, without a system call.
        calls = [[int(value, 16) for value in event["values"]] for event in of[EXEC]]
        self.assertEqual({number for number, *_ in calls}, {EXECVE})
        names = collections.Counter(self.text(call[5:]) for call in calls)
        self.assertEqual(names.pop("/proc/self/exe"), FORKS + 2)
        self.assertEqual(names["/bin/busybox"], 1)
        self.assertEqual([name for name in names if not name.endswith("busybox")], [])


if __name__ == "__main__":
    harness.main()
