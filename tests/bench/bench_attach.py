#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What sampling from outside costs a guest: its work under `vprof attach` by each route, and under `perf kvm record`.

usage: bench_attach.py [-n RUNS] [-s SECONDS] BIN_FOLDER

The guest, one vCPU of QEMU's with KVM, counts the rounds of its work in its memory. What it does in a second of its
vCPU thread's CPU time, against the same without sampling, is what sampling leaves of it: samples are taken on that
thread. Runs of all ways alternate, so that what else the host does falls on all of them. Prints medians.
"""
import argparse
import json
import os
import pathlib
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time

RATES_HZ = [100, 1000, 4000]
WAYS = {"route perf": ["--route", "perf"], "route bpf": ["--route", "bpf"], "route bpf, -g": ["--route", "bpf", "-g"],
        "perf kvm record": None}
START_SECONDS = 30


def fail(text):
    sys.exit(f"bench_attach: {text}")


def wait_until(condition, what):
    end = time.monotonic() + START_SECONDS
    while not condition():
        if time.monotonic() > end:
            fail(f"waited {START_SECONDS} s for {what}")
        time.sleep(0.01)


class Guest:
    """QEMU, its monitor, and the guest's counter."""

    def __init__(self, folder, work):
        self.image = os.path.join(folder, "guest-user_shares.elf")
        self.qmp = os.path.join(work, "qmp")
        console, ours = os.path.join(work, "console"), os.path.join(work, "ours")
        self.process = subprocess.Popen(
            ["qemu-system-x86_64", "-accel", "kvm", "-m", "128", "-display", "none", "-nodefaults", "-name",
             "bench,debug-threads=on", "-kernel", self.image, "-serial", f"file:{console}", "-qmp",
             f"unix:{self.qmp},server=on,wait=off", "-qmp", f"unix:{ours},server=on,wait=off"],
            stdin=subprocess.DEVNULL)
        wait_until(lambda: os.path.exists(ours), "QEMU")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(ours)
        self.lines = self.socket.makefile("r", encoding="utf-8")
        self.lines.readline()
        self.execute("qmp_capabilities")
        wait_until(lambda: "one_quarter" in pathlib.Path(console).read_text(errors="replace"), "the guest")
        self.address = self.symbol("rounds")
        self.thread = self.execute("query-cpus-fast")[0]["thread-id"]

    def symbol(self, name):
        listing = subprocess.run(["nm", self.image], capture_output=True, text=True, check=True).stdout
        return int(re.search(rf"^([0-9a-f]+) \w {name}$", listing, re.MULTILINE).group(1), 16)

    def execute(self, command, **arguments):
        self.socket.sendall(json.dumps({"execute": command, "arguments": arguments}).encode() + b"\n")
        while True:
            answer = json.loads(self.lines.readline())
            if "event" not in answer:
                return answer["return"]

    def rounds(self):
        text = self.execute("human-monitor-command", **{"command-line": f"xp /1gx {self.address:#x}"})
        return int(re.search(r": 0x([0-9a-f]+)", text).group(1), 16)

    def cpu_ns(self):
        return int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.thread}/schedstat").read_text().split()[0])

    def speed(self, seconds):
        """Rounds in a second of CPU time."""
        cpu_ns, rounds = self.cpu_ns(), self.rounds()
        time.sleep(seconds)
        cpu_ns, rounds = self.cpu_ns() - cpu_ns, self.rounds() - rounds
        return rounds / cpu_ns * 1e9

    def end(self):
        self.process.kill()
        self.process.wait()


class Bench:
    def __init__(self, options, work):
        self.options, self.work = options, work
        self.guest = Guest(options.folder, work)

    def sampler(self, way, hz):
        recording = os.path.join(self.work, "recording")
        if WAYS[way] is None:
            return ["perf", "kvm", "--host", "--guest", "record", "-q", "-e", "cpu-clock", "-F", str(hz), "-p",
                    str(self.guest.process.pid), "-o", recording]
        return [os.path.join(self.options.folder, "vprof"), "attach", "--pid", str(self.guest.process.pid), "--qmp",
                self.guest.qmp, "--kernel", self.guest.image, "--no-report", "-F", str(hz), "-o", recording, *WAYS[way]]

    def started(self, process, argv):
        """vprof says when it samples, perf makes its file first."""
        if argv[0] == "perf":
            wait_until(lambda: os.path.exists(argv[-1]), "perf")
            time.sleep(0.5)
        elif not any("Ctrl-C detaches" in line for line in iter(process.stderr.readline, "")):
            fail(f"{' '.join(argv)} does not sample")

    def measure(self, way, hz):
        recording = pathlib.Path(self.work, "recording")
        recording.unlink(missing_ok=True)
        argv = self.sampler(way, hz)
        with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                              text=True) as process:
            self.started(process, argv)
            speed = self.guest.speed(self.options.s)
            process.send_signal(signal.SIGINT)
            said = process.communicate()[1]
        if not recording.exists():
            fail(f"{' '.join(argv)} has recorded nothing:\n{said}")
        return speed


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("-n", type=int, default=5)
    parser.add_argument("-s", type=float, default=3)
    parser.add_argument("folder")
    options = parser.parse_args()
    none = []
    results = {(way, hz): [] for hz in RATES_HZ for way in WAYS}
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options, work)
        try:
            none.append(bench.guest.speed(options.s / 2))
            for _ in range(options.n):
                for way, hz in results:
                    speed = bench.measure(way, hz)
                    none.append(bench.guest.speed(options.s / 2))
                    results[way, hz].append(speed / statistics.mean(none[-2:]))
        finally:
            bench.guest.end()
    print(f"guest work against that without sampling before and after, medians of {options.n} runs of {options.s:g} s;"
          f" without sampling {statistics.median(none):.0f} rounds a second, {min(none):.0f} to {max(none):.0f}")
    print("    Hz" + "".join(f"  {way:>15}" for way in WAYS))
    for hz in RATES_HZ:
        print(f"{hz:>6}" + "".join(f"  {statistics.median(results[way, hz]) * 100:>14.1f}%" for way in WAYS))


if __name__ == "__main__":
    main()
