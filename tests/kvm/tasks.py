#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The programs of the demonstration guest are its tasks: in lists, in stacks and in profiles."""
import json

import harness
from engine import Engine
from harness import VPROF

VCPUS = 2
SHARE_MIN = 0.2  # of the samples in the guest: half of them but those of its boot, on a host that is busy


class Tasks(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def test_lists_and_stacks(self):
        engine = Engine(self, harness.BIN / "demo-guest.elf", "--vcpus", VCPUS, "--append", "seconds=120")
        engine.execute("guest-start")
        harness.wait_until(lambda: engine.ask("query-tasks").get("return", {}).get("total") == VCPUS, "both programs")
        tasks = json.loads(self.run_program(VPROF, "ps", "--json", engine.path)[0])["tasks"]
        self.assertEqual(sorted((task["pid"], task["tid"], task["comm"], task["state"]) for task in tasks),
                         [(1, 1, "demo", "R"), (2, 2, "demo", "R")])
        out, _ = self.run_program(VPROF, "stack", engine.path)
        self.assertRegex(out, "user_main|system_call")

    def test_profile(self):
        recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--demo", "--append", "seconds=2", "--vcpus", VCPUS, "-F", 500, "--no-report", "-o", recording)
        rows = self.report(recording, "--sort", "comm,pid,sym", "--mode", "kernel,user", "--limit", 1000)[1]
        total = sum(row["samples"] for row in rows)
        for pid in (1, 2):
            samples = {row["symbol"]: row["samples"] for row in rows if (row["comm"], row["pid"]) == ("demo", pid)}
            self.assertGreater(sum(samples.values()), SHARE_MIN * total, rows)
            self.assertLessEqual({"render_page", "tcp_checksum"}, set(samples))


if __name__ == "__main__":
    harness.main()
