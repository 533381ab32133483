#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Call chains of two of Debian's own programs, which have no frame pointers, up to their _start."""
import random

import harness
from harness import VPROF
from linux_guest import LinuxTest

COMMAND = "sort -o /tmp/sorted {lines}; perl -e '{script}'"
SCRIPT = "for my $i (1 .. 20000) { push @x, sprintf q(%x), $i * 7919 % 65537 } print scalar(grep { /^a.*f/ } sort @x)"
PROGRAMS = "sort", "perl"
LINES = 15_000
SAMPLES_MIN = 100
# By frame pointers it would be a half. Some 2 % are taken while execve(2) or exit(2) has taken the stack away already; more on a slow host.
WHOLE_MIN = 0.9
SECONDS = 120


class Programs(LinuxTest):
    def test_chains_are_whole(self):
        numbers = random.Random(1)
        lines, command = self.folder / "lines", self.folder / "command"
        lines.write_text("".join(f"{numbers.random()} line\n" for _ in range(LINES)))
        command.write_text(COMMAND.format(lines=lines, script=SCRIPT))
        kernel = harness.script("kernel-debian.sh", "6.12", "cloud")
        files = lines, command, "/usr/bin/sort", "/usr/bin/perl"
        self.run_program(VPROF, "run", "--kernel", kernel, "--memory", "512M", "-F", 500, "-g", "--call-depth", 127,
                         "-o", self.recording, "--no-report", *(word for file in files for word in ("--add", file)),
                         "--exec", f"/bin/sh {command}", timeout=SECONDS)
        # What a task runs before its execve(2) is over, it runs under another name.
        report, rows = self.report(self.recording, "--comm", ",".join(PROGRAMS), "--sort", "comm")
        self.assertEqual({row["comm"] for row in rows}, set(PROGRAMS))
        ends = report["recording"]["chain-ends"]["user"]
        total = sum(ends.values())
        print(f"  {total} samples with a chain of user space: {ends}", flush=True)
        self.assertGreater(total, SAMPLES_MIN, ends)
        self.assertGreater(ends.get("whole", 0), WHOLE_MIN * total, ends)
        self.assertNotIn("unwind tables", "".join(report["recording"].get("missing") or []))


if __name__ == "__main__":
    harness.main()
