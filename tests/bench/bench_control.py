#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""How long each control method keeps an engine's main loop from its other clients, with 64 of them connected.

usage: bench_control.py [-r ROUNDS] BIN_FOLDER [KERNEL]

The guest is the demonstration, or KERNEL (a vmlinux or bzImage that need not come far). One client executes each method; 63 others
are connected, of which 7 ask query-status all the time and one does not read its answers. For each method: the longest CPU time of the
main thread over one request, that of the others' requests beside it included, and the median; then how long query-status of
another client took at most meanwhile.
"""
import argparse
import json
import pathlib
import socket
import statistics
import subprocess
import tempfile
import threading
import time

CLIENTS, ASKING = 64, 7
BAR_MS = 5
# What some arguments are for the demonstration, and for a Linux kernel.
DEMO = {"address": "0xffffffff80100000", "probe": "function:tcp_checksum"}
KERNEL = {"address": "0xffffffff81000000", "probe": "function:kfree"}

# In an order in which they succeed; the first of a name is the dearest use of it.
METHODS = [
    ("query-schema", {}), ("query-host", {}), ("query-guest", {}), ("query-status", {}), ("query-clients", {}), ("query-configuration", {}),
    ("query-counters", {}), ("query-probes", {}), ("session-configure", {"ring-bytes": 4 << 20}),
    ("session-start", {"events": ["task-clock"], "frequency-hz": 999, "call-graph": "auto"}), ("query-session", {}), ("query-stats", {}),
    ("session-flush", {}), ("samples-read", {"timeout-ms": 0}), ("rings", {}), ("query-vcpu-time", {"vcpu": 0}), ("vcpu-time-reset", {}),
    ("reset", {"what": "statistics"}), ("marker-add", {"name": "x" * 30, "kind": "begin"}), ("trace-set", {"what": "requests", "state": "on"}),
    ("trace-write", {"text": "x\n" * 1500, "stack": True, "vcpu": 0}), ("trace-read", {}), ("mapping-read", {"address": ""}),
    ("probe-list", {"match": "function:*"}), ("probe-add", {"probe": ""}), ("probe-remove", {"id": 1}), ("query-tasks", {}),
    ("counter-allocate", {"event": "task-clock", "mode": "guest-counting"}), ("counter-start", {"counter": 0}), ("counter-read", {"counter": 0}),
    ("counter-descriptors", {"counter": 0}), ("counter-stop", {"counter": 0}), ("counter-release", {"counter": 0}),
    ("session-stop", {}), ("reset", {"what": "session"}), ("reset", {"what": "configuration"}), ("control-release", {}), ("control-take", {}),
]


class Client:
    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rwb")
        self.file.readline()
        self.ask("negotiate", {"protocol": 1})

    def ask(self, method, arguments):
        self.file.write(json.dumps({"execute": method, "arguments": arguments, "id": 1}).encode() + b"\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if "id" in answer and not answer.get("more"):
                return answer


class Asker(threading.Thread):
    """Asks query-status all the time; `slowest`: the longest wait since it was last set."""

    def __init__(self, path):
        super().__init__(daemon=True)
        self.client, self.slowest, self.stops = Client(path), 0, False

    def run(self):
        while not self.stops:
            begin = time.monotonic()
            self.client.ask("query-status", {})
            self.slowest = max(self.slowest, time.monotonic() - begin)
            time.sleep(0.01)


def cpu_ns(pid):
    """Of the main thread (Documentation/scheduler/sched-stats.rst)."""
    return int(pathlib.Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0])


def measure(client, pid, method, arguments, asker):
    asker.slowest = 0
    before = cpu_ns(pid)
    client.answer = answer = client.ask(method, arguments)
    return (cpu_ns(pid) - before) / 1e6, asker.slowest * 1e3, answer.get("error", {}).get("class")


def run(options, path, pid):
    askers = [Asker(path) for _ in range(ASKING)]
    idle = [Client(path) for _ in range(CLIENTS - ASKING - 2)]
    deaf = Client(path)
    deaf.socket.setblocking(False)
    client = Client(path)
    client.ask("control-take", {})
    client.ask("guest-start", {})
    for asker in askers:
        asker.start()
    of_kernel = KERNEL if options.kernel else DEMO
    found, probe = {}, 1
    for _ in range(options.rounds):
        try:
            deaf.socket.send(b'{"execute":"query-schema"}\n' * 10)
        except OSError:
            pass
        for method, given in METHODS:
            arguments = {name: of_kernel.get(name, value) for name, value in given.items()}
            if method == "probe-remove":
                arguments["id"] = probe
            found.setdefault((method, given.get("what", "")), []).append(measure(client, pid, method, arguments, askers[0]))
            probe = client.answer.get("return", {}).get("id", probe) if method == "probe-add" else probe
    for asker in askers:
        asker.stops = True
        asker.join()
    print(f"{len(idle) + ASKING + 2} clients, {options.rounds} rounds; ms of the main thread: longest, median; another client's query-status: longest")
    for (method, what), rows in found.items():
        longest = max(row[0] for row in rows)
        print(f"{method + ' ' + what:32} {longest:8.2f} {statistics.median(row[0] for row in rows):8.2f} {max(row[1] for row in rows):8.2f}"
              f"{'  above ' + str(BAR_MS) + ' ms' if longest > BAR_MS else ''}{'  ' + rows[0][2] if rows[0][2] else ''}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-r", "--rounds", type=int, default=10)
    parser.add_argument("bin", type=pathlib.Path)
    parser.add_argument("kernel", nargs="?")
    options = parser.parse_args()
    kernel = options.kernel or options.bin / "demo-guest.elf"
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "bench.sock"
        guest = [] if options.kernel else ["--append", "seconds=600"]
        with subprocess.Popen([options.bin / "vprof-vmm", "--kernel", kernel, "--console", "none", "--control", path, "--paused", *guest]) as vmm:
            try:
                while not path.exists():
                    time.sleep(0.05)
                time.sleep(0.5)
                run(options, path, vmm.pid)
            finally:
                vmm.terminate()


if __name__ == "__main__":
    main()
