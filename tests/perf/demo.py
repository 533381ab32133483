#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""perf reads a recording of the demonstration guest, and agrees with us to the sample."""
import collections
import re
import subprocess

import harness
import perf
from harness import BIN, VPROF

STACK = re.compile(r"^(\d+) (\S.*)$", re.MULTILINE)
CODE = re.compile(r"^([0-9a-f]+) [tT] (\S+)$", re.MULTILINE)
UPPER_HALF = 1 << 63


def stacks(nodes, above=()):
    """(names from the root, samples that end there) of a call tree."""
    for node in nodes:
        path = above + (node["symbol"],)
        if node["self-samples"]:
            yield path, node["self-samples"]
        yield from stacks(node["calls"], path)


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
        for path, samples in stacks(kernel):
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

    def test_header(self):
        """What perf says of the machine is the guest's."""
        self.record("-F", 1000)
        header = perf.perf("report", "--header-only", "-i", self.recording)
        self.assertRegex(header, r"# nrcpus online : 2\b")
        self.assertRegex(header, r"# cmdline : .*vprof run --demo")


if __name__ == "__main__":
    harness.main()
