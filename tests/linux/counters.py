# SPDX-License-Identifier: BSD-2-Clause
"""Counters limited to tasks of the tiny kernel while it runs: by pid, by name, and with what those have made. probes.py boots it."""
import collections
import json
import re

import perf
from harness import VPROF

PERF_SLICE = re.compile(r"^\s*(-?\d+)/(-?\d+)\s+(\d+)\s*$", re.MULTILINE)
PERF_TOTAL = re.compile(r"^\s*(\d+)\s+(\d+)\s+(\d+)\s*$", re.MULTILINE)

SECONDS = 1

# For /init: it shares its processor with a shell that never waits and is in a cgroup of its own.
BESIDE = """busybox mknod /dev/null c 1 3
busybox mkdir /cgroups
busybox mount -t cgroup2 cgroup2 /cgroups
busybox mkdir /cgroups/busy
/bin/sh -c 'echo 0 >/cgroups/busy/cgroup.procs; while :; do :; done' &
busy=$!
"""


class CounterChecks:
    """Of a ProgramTest, with an engine whose guest does something else, BESIDE."""

    def vcpu_ns(self):
        return json.loads(self.run_program(VPROF, "mpstat", "--json", self.engine)[0])["total"]["clocks-ns"]["cpu"]

    def counted(self, *tasks):
        """What was counted, and its share of what the vCPU's thread ran meanwhile."""
        before = self.vcpu_ns()
        out, _ = self.run_program(VPROF, "counter", "count", self.engine, "--duration", SECONDS, "--json", *tasks)
        counted, = json.loads(out)
        share = counted["value"] / (self.vcpu_ns() - before)
        print(f"  {tasks}: {counted['value']} ns, {share:.2f} of the time", flush=True)
        return counted, share

    def sampled(self, *tasks, least=1):
        """Of at least ten samples and `least` tasks, for which a guest that gets little of its processor needs longer."""
        recording = self.folder / "recording"
        for seconds in SECONDS, 4 * SECONDS, 16 * SECONDS:
            self.run_program(VPROF, "counter", "record", self.engine, "--duration", seconds, "-o", recording, "--no-report", *tasks)
            out, _ = self.run_program(VPROF, "script", "-i", recording, "--json")
            samples = [json.loads(line) for line in out.splitlines()]
            if len(samples) > 10 and len({sample["pid"] for sample in samples}) >= least:
                break
        self.assertGreater(len(samples), 10)
        return {(sample["pid"], sample["comm"], sample["cgroup"]) for sample in samples}

    def check_exact(self):
        _, one = self.counted("--pid", 1)
        _, shell = self.counted("--comm", "s?")
        _, family = self.counted("--pid", 1, "--descendants")
        # The shell is one of process 1's children, and neither of the two has the processor for itself.
        self.assertLess(0, min(one, shell))
        self.assertLess(max(one, shell), min(family, 0.9))
        self.assertLessEqual(family, 1.02)  # the engine looks at its clocks a moment before and after
        self.assertEqual(self.counted("--comm", "no-such*")[0]["value"], 0)
        self.assertEqual(self.counted("--pid", 4_000_000)[0]["value"], 0)

    def check_per_switch(self):
        """The slices of each task that has ended are its total, and those of all tasks what ran of them; perf sees the same."""
        recording = self.folder / "per-switch"
        for seconds in 2 * SECONDS, 8 * SECONDS:
            before = self.vcpu_ns()
            out, said = self.run_program(VPROF, "counter", "record", self.engine, "--pid", 1, "--descendants", "--per-switch",
                                         "--duration", seconds, "-o", recording)
            ran = self.vcpu_ns() - before
            lines = perf.vprof_script(recording, "--switch-events")
            if any("total" in line for line in lines):
                break
        slices, totals = collections.Counter(), collections.Counter()
        for line in lines:
            if "total" in line:
                totals[line["pid"], line["tid"]] += line["total"]
                self.assertEqual(line["event"], "task-clock")
                self.assertLessEqual(line["running-ns"], line["enabled-ns"])
                self.assertEqual(line["comm"], "busybox")
            else:
                slices[line["pid"], line["tid"]] += line["period"]
                self.assertTrue(line["symbol"] == "__switch_to" or line["mode"] == "vmm", line)
        print(f"  {len(lines) - len(totals)} slices of {len(slices)} tasks, {len(totals)} totals, {sum(slices.values()) / ran:.2f} of the time",
              flush=True)
        self.assertIn(f"{len(lines) - len(totals)} samples in", said)
        self.assertRegex(out, r"(?m)^# event +task-clock, every switch")
        # The shells go on; all others have ended, but for one.
        self.assertGreater(len(totals), 0)
        self.assertGreaterEqual(len(totals), len(slices) - 4)
        self.assertEqual({task: slices[task] for task in totals}, dict(totals))
        self.assertNotIn((1, 1), totals)
        self.assertGreater(slices[1, 1], 0)
        self.assertLess(0.2 * ran, sum(slices.values()))
        self.assertLessEqual(sum(slices.values()), 1.02 * ran)
        theirs = collections.Counter()
        for pid, tid, period in PERF_SLICE.findall(perf.perf("script", "-F", "pid,tid,period", "-i", recording)):
            theirs[int(pid), int(tid)] += int(period)
        self.assertEqual(theirs, slices)
        report = perf.perf("report", "--stdio", "-T", "-i", recording)
        self.assertEqual({(int(pid), int(tid)): int(total) for pid, tid, total in PERF_TOTAL.findall(report)}, dict(totals))
        self.refused(VPROF, "counter", "record", self.engine, "--per-switch", status=2, message="name them with --pid")
        self.refused(VPROF, "counter", "record", self.engine, "--per-switch", "-p", 1, "-F", 99, status=2, message="takes no samples")

    def check_estimate(self):
        counted, share = self.counted("--comm", "sh", "--estimate")
        self.assertLess(0, share)
        self.assertLess(share, 0.9)
        self.assertGreater(counted["modes"]["user"], 0)

    def check_counters(self):
        self.check_exact()
        self.check_per_switch()
        self.check_estimate()
        self.assertEqual({(pid, cgroup) for pid, _, cgroup in self.sampled("--pid", 1)}, {(1, "/")})
        shells = self.sampled("--comm", "sh")
        self.assertEqual({(comm, cgroup) for _, comm, cgroup in shells}, {("sh", "/busy")})
        pid, = {pid for pid, _, _ in shells}
        self.assertEqual(self.sampled("--pid", pid), {(pid, "sh", "/busy")})
        self.assertGreater(len({pid for pid, _, _ in self.sampled("--pid", 1, "--descendants", least=3)}), 2)
