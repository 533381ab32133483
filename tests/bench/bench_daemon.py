#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What `vprof daemon` costs the host: CPU time and memory of each of its processes while it samples guests with call chains.

usage: bench_daemon.py [-n GUESTS] [-s SECONDS] [-w SECONDS] [-f SECONDS] [-o SECONDS [-m MIB]] BIN_FOLDER [ARGUMENT...]

The guests are of the tests' own, or `vprof-vmm ARGUMENT...`; the daemon has its default configuration: 19 Hz, a profile each
15 s, sent to a server here that takes everything. After a time to warm up (-w), prints for each kind of process the CPU time in
percent of a core and, at the end, PSS (memory, what is shared counted in parts) with what of it is private, on the average; then the
sum for a guest, its share of the daemon's own processes not counted, and the sealed memory with the guest's kernel that its engine
keeps, which no process has mapped. Last comes the CPU time of a fixed loop; on an emulated host, -f says what it takes on the machine
below, and by how much that host is slower is printed, with the CPU time of a guest divided by it.

With -o, the server is out of order for that long, with a spool of -m MiB; afterwards the guests are stopped, and what was made is
compared with what was sent and what was dropped.
"""
import argparse
import collections
import http.server
import json
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))

from daemon_cost import OF_A_GUEST, cpu_s, kinds, memory_kib, sealed_kib  # noqa: E402

START_SECONDS = 300
LOOP_ROUNDS = 2_000_000


class Sink(http.server.BaseHTTPRequestHandler):
    profiles, works = 0, True

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        Sink.profiles += Sink.works
        self.send_response(200 if Sink.works else 503)
        self.end_headers()

    def log_message(self, *arguments):
        pass


class Bench:
    def __init__(self, options, work):
        self.folder, self.work = pathlib.Path(options.folder), pathlib.Path(work)
        arguments = options.arguments or ["--kernel", self.folder / "guest-user_shares.elf"]
        self.guests = [subprocess.Popen([self.folder / "vprof-vmm", *arguments, "--control", "none", "--name", f"bench{i}"],
                                        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) for i in range(options.n)]
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Sink)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.config = self.work / "daemon.conf"
        self.config.write_text(f"[daemon]\nsocket={self.work}/status.sock\nspool={self.work}/spool\nspool-mib={options.m}\n[guests]\ninclude=bench*\n"
                               f"[push]\nurl=http://127.0.0.1:{self.server.server_address[1]}\n[metrics]\naddress=off\n")
        self.daemon = subprocess.Popen([self.folder / "vprof", "daemon", "--config", self.config])

    def status(self):
        return json.loads(subprocess.run([self.folder / "vprof", "daemon", "--config", self.config, "status", "--json"],
                                         capture_output=True, check=True).stdout)

    def wait(self):
        end = time.monotonic() + START_SECONDS
        while time.monotonic() < end:
            time.sleep(1)
            if not (self.work / "status.sock").exists():
                continue
            guests = self.status()["guests"]
            if len(guests) == len(self.guests) and all(guest["state"] == "sampling" for guest in guests):
                return
        sys.exit(f"bench_daemon: waited {START_SECONDS} s for all guests to be sampled")

    def end(self):
        for process in self.daemon, *self.guests:
            process.terminate()
        for process in self.daemon, *self.guests:
            process.wait()
        self.server.shutdown()


def loop_s():
    began, value = time.process_time(), 1
    for i in range(LOOP_ROUNDS):
        value = value * 31 + i & 0xffffffff
    return time.process_time() - began


def measure(bench, options):
    found = kinds(bench.daemon.pid)
    before, began = {pid: cpu_s(pid) for pid in found}, time.monotonic()
    samples = sum(guest["samples"] for guest in bench.status()["guests"])
    time.sleep(options.s)
    passed = time.monotonic() - began
    samples = sum(guest["samples"] for guest in bench.status()["guests"]) - samples
    rows = collections.defaultdict(list)
    for pid, kind in found.items():
        if pathlib.Path(f"/proc/{pid}").exists():
            rows[kind].append(((cpu_s(pid) - before[pid]) / passed * 100, *memory_kib(pid)))
    print(f"{options.n} guests, {passed:.0f} s, {samples / passed / options.n:.1f} samples a second each, {Sink.profiles} profiles sent")
    print(f"{'process':<10} {'n':>3} {'CPU %':>7} {'PSS MiB':>8} {'private':>8}")
    sums = [0.0, 0.0]
    for kind, values in sorted(rows.items()):
        cpu, pss, private = (statistics.mean(column) for column in zip(*values))
        print(f"{kind:<10} {len(values):>3} {cpu:>7.3f} {pss / 1024:>8.2f} {private / 1024:>8.2f}")
        if kind in OF_A_GUEST:
            sums = [sums[0] + cpu * len(values) / options.n, sums[1] + pss * len(values) / options.n]
    sealed = statistics.mean([sealed_kib(pid) for pid, kind in found.items() if kind == "engine"])
    print(f"a guest        {sums[0]:>7.3f} {sums[1] / 1024:>8.2f}; its kernel in sealed memory {sealed / 1024:.1f} MiB")
    loop = min(loop_s() for _ in range(3))
    print(f"fixed loop: {loop:.3f} s", end="\n" if not options.f else
          f", {loop / options.f:.1f} times what it takes below; a guest's CPU time by that: {sums[0] * options.f / loop:.3f} %\n")


def outage(bench, options):
    Sink.works = False
    began = time.monotonic()
    while time.monotonic() - began < options.o:
        time.sleep(min(60, options.o))
        push = bench.status()["push"]
        print(f"{time.monotonic() - began:.0f} s:", *(f"{push[name]} {name}" for name in ("sent", "spooled", "spooled-bytes", "dropped")),
              flush=True)
    Sink.works = True
    for guest in bench.guests:
        guest.send_signal(signal.SIGSTOP)
    time.sleep(45)  # two intervals, and what waits is sent
    status = bench.status()
    push, made = status["push"], sum(guest["profiles"] for guest in status["guests"])
    lost = sum(sum(guest["lost"].values()) for guest in status["guests"])
    print(f"{made} profiles made = {push['sent']} sent + {push['spooled']} waiting + {push['dropped']} dropped,"
          f" and {made - push['sent'] - push['spooled'] - push['dropped']} not accounted for; the server has {Sink.profiles};"
          f" {lost} samples lost, {sum(guest['restarts'] for guest in status['guests'])} engines restarted")
    for guest in bench.guests:
        guest.send_signal(signal.SIGCONT)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("\n\n")[1].removeprefix("usage: "))
    parser.add_argument("-n", type=int, default=1)
    parser.add_argument("-s", type=float, default=60)
    parser.add_argument("-w", type=float, default=40)
    parser.add_argument("-f", type=float, default=0)
    parser.add_argument("-o", type=float, default=0)
    parser.add_argument("-m", type=int, default=256)
    parser.add_argument("folder")
    parser.add_argument("arguments", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        bench = Bench(options, work)
        try:
            bench.wait()
            time.sleep(options.w)
            measure(bench, options)
            if options.o:
                outage(bench, options)
        finally:
            bench.end()


if __name__ == "__main__":
    main()
