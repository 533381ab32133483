#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What sampling costs a guest: the built-in guest's work at several rates, under vprof and under `perf kvm record`.

usage: bench_slowdown.py [-n RUNS] [-s SECONDS] BIN_FOLDER

The guest counts how often its programs look at the clock; what is missing against a run without sampling is the cost.
Runs of all ways alternate, so that what else the host does falls on all of them. Prints medians.
"""
import argparse
import os
import re
import statistics
import subprocess
import sys
import tempfile

RATES_HZ = [100, 1000, 10000]


def looks(console):
    with open(console, encoding="ascii") as file:
        found = re.search(r"demo: done, (\d+) looks", file.read())
    if not found:
        sys.exit(f"bench_slowdown: the guest did not finish; see {console}")
    return int(found.group(1))


def run(argv):
    done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"bench_slowdown: {' '.join(argv)} failed ({done.returncode}):\n{done.stderr}")


class Bench:
    def __init__(self, folder, seconds, work):
        self.work = work
        self.guest = ["--kernel", os.path.join(folder, "demo-guest.elf"), "--vcpus", "1", "--memory", "128M",
                      "--append", f"seconds={seconds}", "--console", os.path.join(work, "console")]
        self.vmm = [os.path.join(folder, "vprof-vmm"), "--control", "none"] + self.guest
        self.vprof = [os.path.join(folder, "vprof"), "run", "--no-report"] + self.guest

    def path(self, name):
        return os.path.join(self.work, name)

    def plain(self):
        run(self.vmm)
        return looks(self.path("console"))

    def with_vprof(self, hz, chains):
        run(self.vprof + ["-F", str(hz), "-o", self.path("vprof.data")] + (["-g"] if chains else []))
        return looks(self.path("console"))

    def with_perf(self, hz):
        run(["perf", "kvm", "--host", "--guest", "record", "-q", "-e", "cpu-clock", "-F", str(hz), "-o",
             self.path("perf.data"), "--"] + self.vmm)
        return looks(self.path("console"))


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("-n", type=int, default=5)
    parser.add_argument("-s", type=int, default=2)
    parser.add_argument("folder")
    options = parser.parse_args()
    ways = {("none", 0): lambda bench: bench.plain()}
    for hz in RATES_HZ:
        ways["vprof run", hz] = lambda bench, hz=hz: bench.with_vprof(hz, False)
        ways["vprof run -g", hz] = lambda bench, hz=hz: bench.with_vprof(hz, True)
        ways["perf kvm record", hz] = lambda bench, hz=hz: bench.with_perf(hz)
    results = {way: [] for way in ways}
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options.folder, options.s, work)
        for _ in range(options.n):
            for way, measure in ways.items():
                results[way].append(measure(bench))
    base = statistics.median(results["none", 0])
    print(f"guest work against a run without sampling, medians of {options.n} runs of {options.s} s")
    print(f"{'Hz':>6}  {'vprof run':>12}  {'vprof run -g':>12}  {'perf kvm record':>15}")
    for hz in RATES_HZ:
        shares = [statistics.median(results[way, hz]) / base * 100
                  for way in ("vprof run", "vprof run -g", "perf kvm record")]
        print(f"{hz:>6}  {shares[0]:>11.1f}%  {shares[1]:>11.1f}%  {shares[2]:>14.1f}%")


if __name__ == "__main__":
    main()
