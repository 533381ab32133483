#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The demonstration guest's functions take known shares of its time: the profile has to say so."""
import math

import harness
from harness import VPROF

SHARES = {"render_page": 0.50, "tcp_checksum": 0.30, "parse_request": 0.15, "copy_page": 0.05}
KERNEL = {"tcp_checksum", "copy_page"}
FREQUENCIES_HZ = (100, 1000, 5000)
SECONDS = 5
VCPUS = 2

# A right profile may fail here in fewer than 1 of 10,000 runs of the suite. Every share at every frequency is one
# two-sided interval; by Bonferroni's inequality each gets its part of that chance, half of it at either end. Samples of
# a clock are spread more evenly than independent ones, so the true chance is smaller.
FALSE_ALARMS = 1e-4
INTERVALS = len(SHARES) * len(FREQUENCIES_HZ)
TAIL = FALSE_ALARMS / INTERVALS / 2


def binomial_interval(n, p, tail):
    """The smallest [low, high] with P(X < low) <= tail and P(X > high) <= tail for X ~ Binomial(n, p), exactly."""
    def probability(k):
        return math.exp(math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + k * math.log(p) +
                        (n - k) * math.log1p(-p))

    def first_above(ks):
        total = 0.0
        for k in ks:
            total += probability(k)
            if total > tail:
                return k
        return n
    return first_above(range(n + 1)), first_above(range(n, -1, -1))


class Shares(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def profile(self, hz):
        recording = self.folder / "recording"
        out, _ = self.run_program(VPROF, "run", "--demo", "--append", f"seconds={SECONDS}", "--vcpus", VCPUS, "-F", hz,
                                  "--no-report", "-o", recording, timeout=SECONDS * 8)
        self.assertIn(f"demo: {VCPUS} vCPUs", out)
        self.assertIn("demo: done", out)
        return self.report(recording)

    def check_shares(self, rows):
        samples = {row["symbol"]: row["samples"] for row in rows if row["symbol"] in SHARES}
        n = sum(samples.values())
        for symbol, share in SHARES.items():
            low, high = binomial_interval(n, share, TAIL)
            found = f"{symbol}: {samples[symbol]} of {n}, {100 * samples[symbol] / n:.2f} %, expected {low}..{high}"
            print(found, flush=True)
            self.assertTrue(low <= samples[symbol] <= high, found)

    def check_modes(self, rows):
        for row in rows:
            if row["symbol"] in SHARES:
                self.assertEqual(row["mode"], "kernel" if row["symbol"] in KERNEL else "user", row)

    def check_sum(self, recording, rows, hz):
        """Every sample is in one row, and every overflow has become something."""
        total = recording["statistics"]["total"]
        samples = sum(row["samples"] for row in rows)
        self.assertEqual(samples, recording["samples"])
        self.assertEqual(samples, total["sample"])
        self.assertEqual(samples + total["quirk"] + total["dropbuf-sample"], total["overflow"])
        self.assertEqual(total["dropbuf-sample"], 0)
        # What the clock amounts to: at most all of both vCPUs' time, and the overflows are nearly that many, with those
        # that came as one because another process had the processor.
        self.assertLess(total["expected"], 1.2 * hz * SECONDS * VCPUS)
        overflows = total["overflow"] + total["throttled"]
        self.assertAlmostEqual(overflows / total["expected"], 1, delta=0.02 + 10 / total["expected"])

    def check(self, hz):
        report, rows = self.profile(hz)
        self.check_shares(rows)
        self.check_modes(rows)
        self.check_sum(report["recording"], rows, hz)

    def test_shares(self):
        for hz in FREQUENCIES_HZ:
            with self.subTest(hz=hz):
                self.check(hz)

    def test_exits_are_named(self):
        """Most of this guest's time is the VMM's."""
        recording = self.folder / "recording"
        self.run_program(VPROF, "run", "--kernel", harness.guest("console_flood"), "-F", 1000, "--console", "none",
                         "--no-report", "-o", recording)
        _, rows = self.report(recording)
        outside = {row["symbol"]: row["samples"] for row in rows if row["mode"] == "vmm"}
        self.assertTrue(all(name.startswith("exit:") for name in outside), outside)
        self.assertGreater(outside.get("exit:io:0x3f8", 0), 0)


if __name__ == "__main__":
    harness.main()
