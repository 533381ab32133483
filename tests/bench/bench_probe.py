#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What a probe with a script costs a guest, in round trips of an exit.

usage: bench_probe.py [-n ROUNDS] BIN_FOLDER

The guest (guest-calls.elf) writes to a port that is nothing, and calls a function, 2000 times each, over and over. Markers say when. A
port access is a round trip to the VMM. A call with a probe takes longer than one without by what the probe costs. Prints medians.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

TIMES = 2000
START_SECONDS = 30
SCRIPTS = {"a false predicate": "function:called /arg0 > 1000000/ { @ = count(); }",
           "counted by its argument": "function:called { @[arg0 / 100] = count(); }",
           "printed": 'function:called { printf("%d\\n", arg0); }'}
MEANS = ["processor", "patch"]


def fail(text):
    sys.exit(f"bench_probe: {text}")


class Guest:
    def __init__(self, folder, work):
        self.vprof, self.engine = folder / "vprof", work / "engine"
        self.process = subprocess.Popen([folder / "vprof-vmm", "--kernel", folder / "guest-calls.elf", "--console", "none", "--control",
                                         self.engine])
        end = time.monotonic() + START_SECONDS
        while not self.engine.exists():
            if time.monotonic() > end or self.process.poll() is not None:
                fail("the guest did not start")
            time.sleep(0.01)

    def times(self, rounds):
        """Microseconds of a port access and of a call, medians."""
        command = [self.vprof, "trace", self.engine, "-j", "-e", "marker:*", "-n", str(3 * rounds + 3)]
        lines = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=True, text=True).stdout.splitlines()
        events = [json.loads(line) for line in lines[:-1]]
        taken = collections.defaultdict(list)
        for before, after in zip(events, events[1:]):
            taken[int(before["fields"]["value"], 16)].append((after["time-ns"] - before["time-ns"]) / TIMES / 1000)
        return statistics.median(taken[1]), statistics.median(taken[2])

    def traced(self, script, means, rounds):
        """The same while a script runs; and what it said in the end."""
        command = [self.vprof, "trace", self.engine, "--breakpoints", means, "-o", os.devnull, "-e", "BEGIN { } " + script]
        trace = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        time.sleep(0.5)
        taken = self.times(rounds)
        trace.send_signal(2)
        said = trace.communicate()[1].strip().splitlines()[-1]
        return *taken, said


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=15, dest="rounds")
    parser.add_argument("folder", type=pathlib.Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        guest = Guest(given.folder.resolve(), pathlib.Path(work))
        try:
            access, call = guest.times(given.rounds)
            print(f"without a probe: a port access {access:.2f} us, a call {call:.2f} us")
            for means in MEANS:
                for name, script in SCRIPTS.items():
                    access, probed, said = guest.traced(script, means, given.rounds)
                    print(f"{means:9} {name:24} {probed - call:7.2f} us, {(probed - call) / access:.2f} port accesses of {access:.2f} us; {said}",
                          flush=True)
        finally:
            guest.process.terminate()
            guest.process.wait()


if __name__ == "__main__":
    main()
