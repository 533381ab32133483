#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demonstration guest's call chains are known: nearly every sample of its functions has exactly that one."""
import re
import struct

import harness
from harness import VPROF

# Callers first. The kernel's chains end at its system call entry, which clears the frame pointer.
CHAINS = {
    "render_page": ["user_main", "round_run", "render_page"],
    "parse_request": ["user_main", "round_run", "parse_request"],
    "tcp_checksum": ["syscall_entry", "system_call", "tcp_checksum"],
    "copy_page": ["syscall_entry", "system_call", "copy_page"],
}
# A sample in a function's first or last instructions, where its frame is not set up, lacks the caller.
WHOLE_MIN = 0.99
SAMPLES_MIN = 20  # of each function


def paths(nodes, above=()):
    """(path, samples in its last function itself) for every node of a call tree."""
    for node in nodes:
        path = above + (node["symbol"],)
        yield path, node["self-samples"]
        yield from paths(node["calls"], path)


def deepest(nodes):
    """Guest frames on the longest path; an exit that was being handled for the guest is not one of its frames."""
    return max(((node["mode"] != "vmm") + deepest(node["calls"]) for node in nodes), default=0)


class CallChains(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def record(self, seconds):
        """The report of so many seconds of the demonstration, and its paths."""
        recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--demo", "--append", f"seconds={seconds}", "-g", "-F", 1000, "--no-report", "-o", recording)
        report, _ = self.report(recording, "-g", "--percent-limit", "0.0001")
        return report, list(paths(report["tables"][0]["calls"]))

    @staticmethod
    def numbers(found):
        """How many samples each of the functions has."""
        return {function: sum(samples for path, samples in found if path[-1] == function) for function in CHAINS}

    def test_demonstration(self):
        (report, found), _ = harness.longer_until(lambda answer: min(self.numbers(answer[1]).values()) > SAMPLES_MIN, self.record, 5)
        for function, chain in CHAINS.items():
            total = self.numbers(found)[function]
            whole = sum(samples for path, samples in found if list(path) == chain)
            print(f"{function}: {whole} of {total} chains whole", flush=True)
            self.assertLessEqual(total - whole, harness.most(1 - WHOLE_MIN, total))
        total = report["recording"]["statistics"]["total"]
        self.assertEqual(total["chain-unreadable"], 0)
        self.assertEqual(total["chain-depth"], 0)

    def test_depth(self):
        recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--demo", "-g", "--call-depth", 2, "--no-report", "-o", recording)
        report, _ = self.report(recording, "-g", "--percent-limit", "0.0001")
        self.assertEqual(deepest(report["tables"][0]["calls"]), 2)
        self.assertGreater(report["recording"]["statistics"]["total"]["chain-depth"], 0)

    def test_orc_without_tables(self):
        self.refused(VPROF, "run", "--demo", "--call-graph", "orc", "--no-report", "-o", self.folder / "recording",
                     message="cannot unwind by ORC: .*demo-guest.elf has no ORC tables")

    def test_bad_orc_tables(self):
        """Tables that are not understood, and damaged ones: frame pointers do, and everyone is told why."""
        harness.need_program("objcopy", "binutils")
        entries = 4
        places = b"".join(struct.pack("<i", 0x1000 * i) for i in range(entries))
        for header, places, why in ((bytes(range(20)), places, r"its \.orc_header is of an ORC layout that this vprof does not know"),
                                    (None, places[:-4], r"\.orc_unwind_ip has 12 bytes and \.orc_unwind 24")):
            kernel, recording = self.folder / "kernel.elf", self.folder / "recording"
            sections = {".orc_unwind_ip": places, ".orc_unwind": bytes(6 * entries), ".orc_header": header}
            options = []
            for name, content in sections.items():
                if content:
                    (self.folder / name).write_bytes(content)
                    options += ["--add-section", f"{name}={self.folder / name}"]
            self.run_program("objcopy", *options, harness.BIN / "demo-guest.elf", kernel)
            _, err = self.run_program(VPROF, "run", "--kernel", kernel, "--console", "none", "-g", "-F", 1000, "--no-report", "-o",
                                      recording)
            self.assertRegex(err, "the kernel's call chains follow frame pointers, without ORC: .*" + why)
            report, _ = self.report(recording, "-g", "--percent-limit", "0.0001")
            found = dict(paths(report["tables"][0]["calls"]))
            self.assertGreater(found[tuple(CHAINS["copy_page"])], 20)
            missing = report["recording"]["missing"]
            self.assertTrue(any(re.search("^ORC: .*" + why, sentence) for sentence in missing), missing)
            recording.unlink()


if __name__ == "__main__":
    harness.main()
