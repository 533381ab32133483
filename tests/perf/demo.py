#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf reads a recording of the demonstration guest, and agrees with us to the sample."""
import collections
import os
import re
import subprocess

import demo_shares
import harness
import perf
from harness import BIN, VPROF

STACK = re.compile(r"^(\d+) (\S.*)$", re.MULTILINE)
CODE = re.compile(r"^([0-9a-f]+) [tT] (\S+)$", re.MULTILINE)
UPPER_HALF = 1 << 63


class Demo(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def record(self, *options):
        self.run_program(VPROF, "run", "--demo", "--append", "seconds=2", "-o", self.recording, "--no-report", *options)

    def test_samples_and_symbols(self):
        self.record("-F", 1000)
        perf.check_agreement(self, self.recording)

    def test_two_events(self):
        self.record("-F", 500, "-e", "task-clock", "-e", "cpu-clock")
        events = {sample["event"] for sample in perf.vprof_samples(self.recording)}
        self.assertEqual(events, {"task-clock", "cpu-clock"})
        for event in events:
            self.assertIn(f"of event '{event}'", perf.perf("report", "--stdio", "-i", self.recording))

    def test_call_tree(self):
        """Each stack of the kernel has as many samples in perf's tree as in ours."""
        self.record("-F", 1000, "-g", "--no-call-user")
        report, _ = self.report(self.recording, "-g", "--percent-limit", "0")
        kallsyms = self.folder / "kallsyms"
        symbols = [(address, name) for address, name in CODE.findall(subprocess.run(
            ["nm", BIN / "demo-guest.elf"], capture_output=True, text=True, check=True).stdout)
                   if int(address, 16) >= UPPER_HALF]
        kallsyms.write_text("".join(f"{address} T {name}\n" for address, name in sorted(symbols)))
        names = {name for _, name in symbols}
        kernel = [node for node in report["tables"][0]["calls"] if node["mode"] == "kernel"]
        ours = collections.Counter()
        for path, samples in demo_shares.stacks(kernel):
            # Before its entry has cleared rbp, the kernel seems to be called by user space, which kallsyms do not have.
            if names.issuperset(path):
                ours[path] += samples
        self.assertGreater(ours["syscall_entry", "system_call", "tcp_checksum"], 100)

        theirs = collections.Counter()
        for samples, path in STACK.findall(perf.perf("report", "--stdio", "-i", self.recording, "--kallsyms", kallsyms,
                                                     "--no-children", "--sort", "sym", "--percent-limit", "0",
                                                     "-g", "folded,0,caller,function,count")):
            theirs[tuple(path.split(";"))] += int(samples)
        self.assertEqual({path: theirs[path] for path in ours}, dict(ours))

    def test_buildid_cache(self):
        """Plain perf report names the kernel's functions, and as many samples in them as vprof does."""
        self.record("-F", 1000)
        report, rows = self.report(self.recording, "--mode", "kernel", "--sort", "sym")
        cache = self.folder / ".debug"
        environment = os.environ | {"HOME": str(self.folder)}
        self.run_program(VPROF, "export", "--to", "buildid-cache", "-i", self.recording, env=environment)
        # The only length that Hotspot knows.
        self.assertEqual(len(report["recording"]["build-id"]), 40)
        lists = list(cache.glob("*/*/kallsyms"))
        self.assertEqual([str(file.relative_to(cache)) for file in lists], [f"[kernel.kallsyms]/{report['recording']['build-id']}/kallsyms"])
        text, _ = self.run_program("perf", "report", "--stdio", "-n", "--sort", "sym", "-i", self.recording, env=environment)
        theirs = {name: int(samples) for samples, name in re.findall(r"(?m)^ +[0-9.]+% +(\d+) +\[k\] (\S+) *$", text)}
        named = {row["symbol"]: row["samples"] for row in rows if row["symbol"] != "[unknown]"}
        self.assertGreater(named["tcp_checksum"], 100)
        self.assertEqual({name: theirs.get(name) for name in named}, named)
        # Written again, and not over a list of perf's.
        self.run_program(VPROF, "export", "--to", "buildid-cache", "-o", cache, self.recording)
        lists[0].write_text("ffffffff81000000 T _text\n")
        self.refused(VPROF, "export", "--to", "buildid-cache", "-o", cache, self.recording, message="is a list that vprof has not made")
        self.assertEqual(lists[0].read_text(), "ffffffff81000000 T _text\n")

    def test_header(self):
        """What perf says of the machine is the guest's."""
        self.record("-F", 1000)
        header = perf.perf("report", "--header-only", "-i", self.recording)
        self.assertRegex(header, r"# nrcpus online : 2\b")
        self.assertRegex(header, r"# cmdline : .*vprof run --demo")


if __name__ == "__main__":
    harness.main()
