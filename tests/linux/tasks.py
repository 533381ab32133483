#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Samples of the tiny kernel name the task that ran, with nothing in the guest that helps; perf reads the same names."""
import collections
import re

import harness
import perf
from harness import VPROF

BOOT_SECONDS = 500
UNKNOWN_MAX = 0.001  # before the kernel's first instruction that sets up its per-CPU data
PERF_ROW = re.compile(r"^\s*[\d.]+%\s+(\d+)\s+(\S.*?)\s*$", re.MULTILINE)

FORK = re.compile(r"PERF_RECORD_FORK\((\d+):\d+\):\((\d+):")
EXIT = re.compile(r"PERF_RECORD_EXIT\((\d+):")
SWITCH = re.compile(r"PERF_RECORD_SWITCH_CPU_WIDE (OUT|IN) ")

# /init, and what its shell runs: busybox starts its own commands from /proc/self/exe.
PROGRAMS = {"init", "busybox", "exe"}


class Tasks(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def boot(self):
        kernel = harness.script("kernel-tiny.sh", "orc")
        initrd = self.folder / "initramfs"
        harness.script("initramfs.sh", initrd)
        vprof = self.start(VPROF, "run", "--kernel", kernel, "--initrd", initrd, "--vcpus", 2, "-F", 200, "-v",
                           "--console", self.folder / "console", "-o", self.recording, "--no-report",
                           "--switch-events")
        # The tiny kernel has no ACPI to power off by: its /init reboots.
        return self.finish(vprof, status=90, timeout=BOOT_SECONDS)

    def check_task_events(self, tasks):
        """Every sampled task was announced once, under its parent; those that have ended were seen to."""
        script = perf.perf("script", "--show-task-events", "-i", self.recording)
        forks, exits = FORK.findall(script), EXIT.findall(script)
        parents = {int(pid): int(parent) for pid, parent in forks}
        print(f"  {len(forks)} forks, {len(exits)} exits", flush=True)
        self.assertEqual(len(parents), len(forks))
        self.assertEqual({pid for _, pid in tasks if pid > 0} - set(parents), set())
        self.assertEqual({parents[pid] for comm, pid in tasks if comm.startswith(("kworker/", "rcu_"))}, {2})
        self.assertEqual({parents[pid] for comm, pid in tasks if comm in PROGRAMS and pid != 1}, {1})
        self.assertEqual({int(pid) for pid in exits} - set(parents), set())

    def check_switches(self):
        """On each vCPU, who takes over is whom the last one gave way to, and is the next to leave; perf sees as many."""
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

    def test_names_and_pids(self):
        harness.need_fast_guests()
        _, messages = self.boot()
        self.assertNotIn("no name of a task", messages)
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
        report = perf.perf("report", "--stdio", "-n", "--sort", "comm", "--percent-limit", "0", "-i", self.recording)
        self.assertEqual({comm: int(count) for count, comm in PERF_ROW.findall(report)},
                         dict(collections.Counter(sample["comm"] for sample in samples)))


if __name__ == "__main__":
    harness.main()
