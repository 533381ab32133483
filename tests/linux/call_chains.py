#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Call chains of the tiny kernel reach the first frame of their stack, of boots in tiny.py; by ORC and by frame pointers, they are the same."""
import re

import harness
from linux_guest import ROOTS, LinuxTest


ROOTS_MIN = 0.95
WHOLE_MIN = 0.99


class ChainChecks:
    """Of a LinuxTest, with a recording of a boot to its end."""

    def check_chains(self):
        report, _ = self.report(self.recording, "-g", "--percent-limit", "0.001")
        total = report["recording"]["statistics"]["total"]
        ends = {name: count for name, count in total.items() if name.startswith("chain-")}
        print(f"  {ends}", flush=True)
        calls = report["tables"][0]["calls"]
        # A chain that came out of the kernel is whole; busybox, where it goes on, has no frame pointers.
        reached_user = sum(node["samples"] for node in calls if node["mode"] == "user")
        self.assertGreater(total["chain-end"] + reached_user, WHOLE_MIN * sum(ends.values()))
        self.check_roots([node for node in calls if node["mode"] == "kernel"])

    def check_roots(self, nodes):
        samples = sum(node["samples"] for node in nodes)
        rooted = [node for node in nodes if re.search(ROOTS, node["symbol"])]
        others = {node["symbol"]: node["samples"] for node in nodes if node not in rooted}
        self.assertGreater(sum(node["samples"] for node in rooted), ROOTS_MIN * samples, others)


class CallChains(LinuxTest, ChainChecks):
    def test_unwinders_agree(self):
        """Of the callers that either finds, the other has at least 99 %."""
        harness.need_fast_guests()
        print(self.run_program(harness.BIN / "unwinders_agree", harness.script("kernel-tiny.sh"), self.initrd,
                               timeout=300)[0], flush=True)


if __name__ == "__main__":
    harness.main()
