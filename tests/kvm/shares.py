#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demonstration guest's functions take known shares of its time: the profile has to say so."""
import time

import demo_shares
import harness
from demo_shares import SHARES
from harness import VPROF

FREQUENCIES_HZ = (100, 1000, 5000)
# Where many overflows come as one, the samples are those of the moments at which the host was slow.
ARRIVED_MIN = 0.8
SECONDS = 2
VCPUS = 2
REAL_MODE_MIN = 200  # samples in two seconds at 999 Hz

# A right profile may fail here in fewer than 1 of 10,000 runs of the suite. Every share at every frequency is one
# two-sided interval; by Bonferroni's inequality each gets its part of that chance, half of it at either end. Samples of
# a clock are spread more evenly than independent ones, so the true chance is smaller.
FALSE_ALARMS = 1e-4
INTERVALS = len(SHARES) * len(FREQUENCIES_HZ)
TAIL = FALSE_ALARMS / INTERVALS / 2


class Shares(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def profile(self, hz):
        recording = self.folder / "recording"
        begun = time.monotonic()
        out, _ = self.run_program(VPROF, "run", "--demo", "--append", f"seconds={SECONDS}", "--vcpus", VCPUS, "-F", hz,
                                  "--no-report", "-o", recording, timeout=SECONDS * 8)
        self.taken = time.monotonic() - begun
        self.assertIn(f"demo: {VCPUS} vCPUs", out)
        self.assertIn("demo: done", out)
        return self.report(recording)

    def check_sum(self, recording, rows, hz, arrived):
        """Every sample is in one row, and every overflow has become something."""
        total = recording["statistics"]["total"]
        samples = sum(row["samples"] for row in rows)
        self.assertEqual(samples, recording["samples"])
        self.assertEqual(samples, total["sample"])
        self.assertEqual(samples + total["quirk"] + total["dropbuf-sample"], total["overflow"])
        self.assertEqual(total["dropbuf-sample"], 0)
        # What the clock amounts to: at most all of both vCPUs' time, and the overflows are nearly that many, with those
        # that came as one because another process had the processor: of most of them the clock says only how many they were.
        self.assertLess(total["expected"], hz * self.taken * VCPUS)
        overflows = total["overflow"] + total["throttled"]
        slack = 0.02 if arrived > ARRIVED_MIN else 0.05
        self.assertAlmostEqual(overflows / total["expected"], 1, delta=slack + 10 / total["expected"])

    def check(self, hz):
        report, rows = self.profile(hz)
        total = report["recording"]["statistics"]["total"]
        arrived = total["overflow"] / total["expected"]
        if hz == FREQUENCIES_HZ[0] or arrived > ARRIVED_MIN:
            demo_shares.check(self, rows, TAIL)
        else:
            print(f"{hz} Hz is too fast for this host: {100 * arrived:.0f} % of the overflows arrive one by one", flush=True)
        self.check_sum(report["recording"], rows, hz, arrived)

    def test_shares(self):
        for hz in FREQUENCIES_HZ:
            with self.subTest(hz=hz):
                self.check(hz)

    def test_exits_are_named(self):
        """An exit takes the VMM a microsecond or two and the guest's program far longer on a host that emulates it: a
        rate that still finds dozens."""
        recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--kernel", harness.guest("console_flood"), "-F", 10000, "--console", "none",
                         "--no-report", "-o", recording)
        _, rows = self.report(recording)
        outside = {row["symbol"]: row["samples"] for row in rows if row["mode"] == "vmm"}
        self.assertTrue(all(name.startswith("exit:") for name in outside), outside)
        self.assertGreater(outside.get("exit:io:0x3f8", 0) + outside.get("exit:io:0x3fd", 0), 0, outside)

    def test_real_mode_is_named(self):
        """What a processor runs before it has page tables is in no function of the kernel."""
        recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--kernel", harness.guest("real_mode"), "--vcpus", 2, "--duration", "2s", "-g", "--console", "none",
                         "--no-report", "-o", recording)
        _, rows = self.report(recording, "--sort", "cpu,mode,sym,dso")
        found = {(row["mode"], row["symbol"], row["module"]): row["samples"] for row in rows if row["vcpu"] == 1 and row["mode"] != "vmm"}
        self.assertEqual(list(found), [("kernel", "real mode", "[real mode]")])
        self.assertGreater(sum(found.values()), REAL_MODE_MIN)


if __name__ == "__main__":
    harness.main()
