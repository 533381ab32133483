# SPDX-License-Identifier: BSD-2-Clause
"""Samples of the tiny kernel name the task that ran and its cgroup, with nothing in the guest that helps; perf reads the
same. tiny.py boots it."""
import collections
import itertools
import re

import perf

UNKNOWN_MAX = 0.001  # before the kernel's first instruction that sets up its per-CPU data
PERF_ROW = re.compile(r"^\s*[\d.]+%\s+(\d+)\s+(\S.*?)\s*$", re.MULTILINE)

FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):")
EXIT = re.compile(r"PERF_RECORD_EXIT\((\d+):")
EXEC = re.compile(r"PERF_RECORD_COMM exec: (.*):(\d+)/")
SWITCH = re.compile(r"PERF_RECORD_SWITCH_CPU_WIDE (OUT|IN) ")

# Counts as itself, while another of it counts in one cgroup, then in one below that. There is no ACPI to power off by.
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t sysfs sysfs /sys
busybox mount -t devtmpfs devtmpfs /dev
busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
busybox mkdir -p /sys/fs/cgroup/a/b
echo "init: processors $(busybox cat /sys/devices/system/cpu/online) online, Linux $(busybox uname -r)"
count() {
	i=0
	while [ $i -lt 200000 ]; do i=$((i + 1)); done
}
(for group in a a/b; do echo 0 >/sys/fs/cgroup/$group/cgroup.procs && count; done) &
count
wait
echo "init: counted to $i"
exec busybox reboot -f
"""

# /init, and what its shell runs: busybox starts its own commands from /proc/self/exe.
PROGRAMS = {"init", "busybox", "exe"}


class TaskChecks:
    """Of a LinuxTest, with a recording of INIT on two vCPUs, with --switch-events."""

    def check_task_events(self, tasks):
        """Every task was announced once, under its parent, with each program that it has executed and its end: none is missed."""
        script = perf.perf("script", "--show-task-events", "-i", self.recording)
        forks, exits = FORK.findall(script), EXIT.findall(script)
        parents = {int(pid): int(parent) for pid, parent in forks}
        execs = EXEC.findall(script)
        print(f"  {len(forks)} forks, {len(exits)} exits, {len(execs)} execs", flush=True)
        self.assertEqual(len(parents), len(forks))
        # All tasks have the next number, and the last ones of INIT's are awaited, but for what the end of the kernel makes.
        self.assertEqual(set(parents), set(range(1, len(parents) + 1)))
        children = sorted(pid for pid, parent in parents.items() if parent == 1)
        self.assertEqual(sorted(int(pid) for pid in exits if int(pid) in children), children)
        # Each but the subshell has executed busybox; init was executed itself, and has executed the last one.
        executed = collections.Counter(int(pid) for _, pid in execs)
        self.assertEqual(executed[1], 2)
        self.assertEqual(len(set(children) - set(executed)), 1)
        self.assertEqual(max(executed[pid] for pid in children), 1)
        self.assertEqual({pid for _, pid in tasks if pid > 0} - set(parents), set())
        self.assertEqual({parents[pid] for comm, pid in tasks if comm.startswith(("kworker/", "rcu_"))}, {2})
        self.assertEqual({parents[pid] for comm, pid in tasks if comm in PROGRAMS and pid != 1}, {1})
        self.assertEqual({int(pid) for pid in exits} - set(parents), set())

    def check_switches(self):
        """On each vCPU, a task takes over from the one that named it as its successor; perf sees as many."""
        text = perf.vprof_script(self.recording, "--switch-events")
        runs, switches, breaks = {}, 0, 0
        for switch in (line for line in text if "switch" in line):
            vcpu, of = switch["vcpu"], (switch["pid"], switch["tid"])
            switches += 1
            if switch["switch"] == "out":
                breaks += runs.get(vcpu, of) != of
                runs[vcpu] = switch["next"]["pid"], switch["next"]["tid"]
            else:
                self.assertEqual(runs[vcpu], of)
        print(f"  {switches} records of switches, {breaks} breaks", flush=True)
        self.assertGreater(switches, 200)
        # Without KVM_GUESTDBG_BLOCKIRQ, an interrupt in the middle of the step over the breakpoint makes one count twice.
        self.assertLessEqual(breaks, 0.01 * switches)
        self.assertEqual(len(SWITCH.findall(perf.perf("script", "--show-switch-events", "-i", self.recording))), switches)

    def check_cgroups(self, samples):
        """A task is in its cgroup from its next sample on, in its mother's before; all others are in the root. perf agrees."""
        groups = collections.Counter(sample["cgroup"] for sample in samples)
        print(f"  {dict(groups)}", flush=True)
        (moved,) = {sample["pid"] for sample in samples if sample["cgroup"] not in ("/", "[unknown]")}
        way = [group for group, _ in itertools.groupby(sample["cgroup"] for sample in samples if sample["pid"] == moved)]
        self.assertEqual([group for group in way if group != "/"], ["/a", "/a/b"])
        self.assertIn(way[0], ("/", "/a"))
        self.assertGreater(min(groups["/a"], groups["/a/b"]), 5)
        # The first ones are of a kernel that has not set its cgroups up yet.
        of_tasks = [sample for sample in samples if sample["pid"] != -1]
        unset = [sample["time-ns"] for sample in of_tasks if sample["cgroup"] == "[unknown]"]
        self.assertLess(max(unset, default=0), min(sample["time-ns"] for sample in of_tasks if sample["cgroup"] == "/"))
        theirs = perf.cgroups(self.recording)
        self.assertEqual({"[unknown]" if group == "N/A" else group: count for group, count in theirs.items()}, dict(groups))
        rows = self.report(self.recording, "--sort", "comm,cgroup")[1]
        self.assertEqual({row["comm"] for row in rows if row["cgroup"] in ("/a", "/a/b")}, {"init"})

    def check_tasks(self, messages):
        self.assertNotIn("no task name", messages)
        samples = perf.vprof_samples(self.recording)
        tasks = collections.Counter((sample["comm"], sample["pid"]) for sample in samples)
        print(tasks.most_common(12), flush=True)

        # /init counts in a loop; until it starts, its thread has the kernel's name.
        self.assertGreater(tasks["init", 1], 20)
        self.assertGreater(tasks["swapper/0", 1], 20)
        self.assertGreater(tasks["swapper", 0], 20)
        self.assertGreater(tasks["kthreadd", 2], 0)
        self.assertTrue(any(comm.startswith("kworker/") for comm, _ in tasks))
        self.assertEqual({sample["comm"] for sample in samples if sample["mode"] == "user"} - PROGRAMS, set())
        self.assertLessEqual(tasks["[unknown]", -1], max(UNKNOWN_MAX * len(samples), 2))

        self.check_task_events(tasks)
        self.check_switches()
        self.check_cgroups(samples)
        report = perf.perf("report", "--stdio", "-g", "none", "--no-children", "-n", "--sort", "comm", "--percent-limit", "0", "-i", self.recording)
        self.assertEqual({comm: int(count) for count, comm in PERF_ROW.findall(report)},
                         dict(collections.Counter(sample["comm"] for sample in samples)))
