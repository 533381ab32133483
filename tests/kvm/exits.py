#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""KVM's exits by its trace points: a guest that makes a known number of them, counted by vprof and by perf kvm stat."""
import functools
import json
import os
import pathlib
import re
import signal
import subprocess

import harness
from engine import Client
from harness import VMM, VPROF, guest
from other_vmm import OtherVmm

CPUIDS, READS, MMIO_READS, HALTS, WRITES = 4000, 500, 300, 20, 700  # tests/guests/known_exits
READ, WRITE, MMIO = "0x71:PIN", "0xed:POUT", "0xd0001000:R"
# By vendor.
NAMES = {"cpuid": ("cpuid", "CPUID"), "io": ("io", "IO_INSTRUCTION"), "hlt": ("hlt", "HLT"), "mmio": ("npf", "EPT_MISCONFIG")}
# perf's account of an exit and ours each have in them what the other's record of its start or end costs: some microseconds, and ten to
# twenty where the processor is emulated, as much as a CPUID itself takes. So times are compared of exits that take milliseconds, because
# the VMM takes four to answer or the guest sleeps. Of a CPUID, the two accounts differ by no more than such a cost; a machine that is busy
# makes both longer, and neither is twice the other.
TIMES_APART, RECORD_US = 0.02, 15 * harness.SLOWNESS
RECORDS = 3  # as long as at a CPUID, at most, does a record take at another exit, after which the reader of perf's ring may run first
VMM_TIMES = 2  # as long as at a CPUID, at least, is the VMM busy with an access to a port
RESIDUAL = 0.01
HALTED_NS = 800_000_000
# An account that may open perf events of trace points, and load no BPF program.
PERFMON = "setpriv", "--bounding-set=-all,+perfmon"
# A row of perf kvm stat report: name, samples, their share, the time's share, shortest, longest, mean.
ROW = re.compile(r"^ *(\S.*?) +(\d+) +[\d.]+% +[\d.]+% +[\d.]+us +[\d.]+us +([\d.]+)us ", re.MULTILINE)


class Exits(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.path = self.folder / "engine.sock"

    def engine(self, *options, name="known_exits", before=()):
        engine = self.start(*before, VMM, "--kernel", guest(name), "--console", "none", "--control", self.path, *options)
        self.addCleanup(lambda: engine.poll() is None and engine.kill())
        harness.wait_for_socket(self.path)
        client = Client.connect(self.path)
        self.addCleanup(client.close)
        client.execute("control-take")
        return engine, client

    def probe(self, *before):
        exits = json.loads(self.run_program(*before, VMM, "--probe")[0])["exits"]
        print(exits, flush=True)
        return exits

    def end(self, engine, client):
        client.close()
        engine.terminate()
        self.finish(engine, status=None)

    def is_untraced(self, engine, client):
        """Where KVM's trace points cannot be read, the answer and mpstat say why. There is no more to see, and the engine ends."""
        why = client.execute("query-vcpu-time", vcpu=0)["untraced"]
        if why:
            self.assertRegex(why, "kvm_pvm|permission|built without|tracefs|PID namespace")
            out = self.run_program(VPROF, "mpstat", self.path)[0]
            self.assertEqual(out.splitlines()[0], f"# %GUEST includes the exits that KVM handles by itself: {why}")
            self.end(engine, client)
        return bool(why)

    def exit_named(self, answer, what):
        found = [row for row in answer["kvm-exits"] if row["name"] in NAMES[what]]
        self.assertEqual(len(found), 1, answer["kvm-exits"])
        return found[0]

    def run_to_halt(self, client):
        client.execute("guest-start")
        writes = {"space": "ioport", "address": 0xed, "write": True}

        def done():
            accesses = client.execute("query-vcpu-time", vcpu=0)["accesses"]
            return [row["count"] for row in accesses if writes.items() <= row.items()] == [WRITES]
        harness.wait_until(done, "the guest's last write", 60)

        def halted():
            answer = client.execute("query-vcpu-time", vcpu=0)
            return any(row["halt-ns"] > HALTED_NS for row in answer["kvm-exits"] if row["name"] in NAMES["hlt"])
        harness.wait_until(halted, "the time of its halt, which does not end", 60)

    def check_sums(self, row):
        """Each ns of an exit is in one of its parts."""
        parts = sum(row[name] for name in ("kvm-ns", "vmm-ns", "poll-ns", "halt-ns", "waiting-ns"))
        self.assertAlmostEqual(parts, row["ns"], delta=0.001 * row["ns"] + 1000, msg=row)

    def test_known_numbers(self):
        self.check_known_numbers()

    def test_without_bpf(self):
        """perf's records of the trace points give the same account."""
        harness.need(os.geteuid() == 0 and int(pathlib.Path("/proc/sys/kernel/perf_event_paranoid").read_text()) <= 2,
                     "only root may take all rights but one, and above level 2, Debian's kernels ask for more than CAP_PERFMON")
        exits = self.probe(*PERFMON)
        if exits["usable"]:
            self.assertRegex(exits["without-bpf"], "no permission to|built without")
        self.check_known_numbers(before=PERFMON)

    def check_known_numbers(self, before=()):
        engine, client = self.engine("--paused", before=before)
        if self.is_untraced(engine, client):
            return
        self.run_to_halt(client)
        answer = client.execute("query-vcpu-time", vcpu=0)
        self.assertEqual(answer["lost"], 0)
        self.assertEqual(self.exit_named(answer, "cpuid")["count"], CPUIDS)
        self.assertEqual(sum(self.exit_named(answer, "cpuid")["histogram"]), CPUIDS)
        self.assertGreaterEqual(self.exit_named(answer, "io")["count"], READS + WRITES)
        # An exit that has not ended has its time.
        halt = self.exit_named(answer, "hlt")
        self.assertGreater(halt["halt-ns"], HALTED_NS)
        self.assertGreater(halt["halt-ns"], 0.8 * answer["ns"]["halt-wait"])
        for row in answer["kvm-exits"]:
            self.check_sums(row)
        # KVM handles each CPUID, and the VMM has the few that a signal comes to; the VMM has each access to a port.
        cpuid, io = ((row["vmm-ns"] / row["count"], row["vmm-ns"] / row["ns"]) for row in map(functools.partial(self.exit_named, answer), ("cpuid", "io")))
        print(f"  of the VMM, ns each and of the whole: CPUID {cpuid}, ports {io}", flush=True)
        self.assertGreater(io[0], VMM_TIMES * cpuid[0])
        self.assertGreater(io[1], cpuid[1])
        report = json.loads(self.run_program(VPROF, "mpstat", "--json", self.path)[0])
        for vcpu in report["vcpus"]:
            parts = vcpu["parts-ns"]
            self.assertLess(abs(parts["residual"]), RESIDUAL * parts["wall"])
        client.execute("vcpu-time-reset")
        self.assertEqual([row["name"] for row in client.execute("query-vcpu-time", vcpu=0)["kvm-exits"]
                          if row["name"] in NAMES["cpuid"]], [])
        self.end(engine, client)

    def perf_report(self, recording, event):
        """How often and how long on average, by name."""
        result = subprocess.run(["perf", "kvm", "--host", "-i", str(recording), "stat", "report", "--event", event], capture_output=True,
                                text=True, check=False)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertNotIn("lost", result.stderr.lower())
        rows = {name: (int(count), float(mean)) for name, count, mean in ROW.findall(result.stdout + result.stderr)}
        self.assertTrue(rows, result.stdout + result.stderr)
        return rows

    def start_perf(self, pid, recording):
        """perf records when it answers."""
        commands, to_perf = os.pipe()
        from_perf, answers = os.pipe()
        perf = self.start("perf", "kvm", "--host", "stat", "record", "-p", str(pid), "-o", str(recording),
                          "--control", f"fd:{commands},{answers}", pass_fds=(commands, answers))
        os.close(commands)
        os.close(answers)
        os.write(to_perf, b"ping\n")
        self.assertEqual(os.read(from_perf, 5), b"ack\n\0")
        for pipe in to_perf, from_perf:
            self.addCleanup(os.close, pipe)
        return perf

    @staticmethod
    def add_counts(sums, document):
        """To how often and how many ns, by name."""
        for table in "kvm-exits", "mmio", "ioports":
            for row in document[table]:
                count, ns = sums.get(row["name"], (0, 0))
                sums[row["name"]] = count + row["count"], ns + row["ns"]

    def test_perf_counts_the_same(self):
        """Both begin before the guest does, and end after its last exit."""
        if not self.probe()["usable"]:
            return
        harness.need(os.geteuid() == 0, "only root may attach")
        harness.need_program("perf", "linux-perf")
        vmm = OtherVmm(self, guest("known_exits"), options=["--slow"])
        vmm.say("hold")
        recording = self.folder / "kvm.data"
        perf = self.start_perf(vmm.pid, recording)
        vprof = self.start(VPROF, "stat", "--pid", vmm.pid, "--json", "--interval", "1", "-e", "mmio", "-e", "ioport")
        self.assertRegex(vprof.stderr.readline(), "counting other_vmm")
        vmm.say("continue")
        ours = {}
        while ours.get(WRITE, (0, 0))[0] < WRITES:
            # The last one has no end, but its time is counted. It begins after the writes, which take more than two intervals.
            halts = next((ours[name] for name in NAMES["hlt"] if name in ours), None)
            self.add_counts(ours, json.loads(vprof.stdout.readline()))
        perf.send_signal(signal.SIGINT)
        vprof.send_signal(signal.SIGINT)
        perf.communicate(timeout=60 * harness.SLOWNESS)
        self.add_counts(ours, json.loads(self.finish(vprof)[0].splitlines()[-1]))
        ours |= {name: halts for name in NAMES["hlt"] if name in ours}
        self.compare(ours, self.perf_report(recording, "vmexit"))
        for event, names in ("mmio", {MMIO: MMIO_READS}), ("ioport", {READ: READS, WRITE: WRITES}):
            theirs = self.perf_report(recording, event)
            for name, count in names.items():
                self.assertEqual((ours[name][0], theirs[name][0]), (count, count), name)

    def compare(self, ours, theirs):
        """By reason; page faults beside the known ones have the reason of MMIO on some processors."""
        for what, known in ("cpuid", CPUIDS), ("io", READS + WRITES), ("hlt", HALTS), ("mmio", None):
            (name,) = [name for name in NAMES[what] if name in theirs]
            count, ns = ours[name]
            their_count, their_us = theirs[name]
            us = ns / 1e3 / count
            print(f"{name}: perf {their_count} times {their_us} us, vprof {count} times {us:.2f} us", flush=True)
            self.assertEqual((count, their_count), (known or their_count,) * 2, name)
            if what == "cpuid":
                record_us = abs(us - their_us)
                self.assertLess(record_us, max(RECORD_US, min(us, their_us)), name)
            else:
                self.assertAlmostEqual(us, their_us, delta=TIMES_APART * their_us + RECORDS * record_us, msg=name)
        self.assertGreaterEqual(theirs[name][0], MMIO_READS)

    def test_ports_and_intervals(self):
        engine, client = self.engine("--paused")
        if self.is_untraced(engine, client):
            return
        self.end(engine, client)

        def count(seconds):
            return self.run_program(VPROF, "stat", "--kernel", guest("known_exits"), "--console", "none", "--duration", seconds,
                                    "--interval", "1", "-e", "ioport", "-e", "mmio", timeout=60 + seconds)[0]
        text, _ = harness.longer_until(lambda text: self.sum_of(text, WRITE) == WRITES, count, 4)
        self.assertGreaterEqual(text.count("VCPU"), 3)
        self.assertEqual(self.sum_of(text, READ), READS)
        self.assertEqual(self.sum_of(text, WRITE), WRITES)
        self.assertRegex(text, r"(?m)^ *EXITS +%TIME +MS +MS IN KVM +MS IN VMM +MS HALTED +MS WAITING +US EACH +US P99 +US MAX +REASON$")

    def test_recording(self):
        """A recording has the same account of time, of its own duration: all of it, here."""
        recording = self.folder / "recording"

        def record(seconds):
            text = self.run_program(VPROF, "run", "--kernel", guest("known_exits"), "--console", "none", "--duration", seconds,
                                    "-o", recording, timeout=60 + seconds)[0]
            return text, self.report(recording)[0]["recording"]["time"]

        def has_all(answer):
            counts = {row["name"]: row["count"] for row in answer[1]["kvm-exits"]}
            return answer[1]["untraced"] or sum(counts.get(name, 0) for name in NAMES["io"]) >= READS + WRITES
        (text, time_spent), _ = harness.longer_until(has_all, record, 4)
        parts = time_spent["total"]["parts-ns"]
        self.assertGreater(parts["wall"], 3e9)
        self.assertLess(abs(parts["residual"]), RESIDUAL * parts["wall"])
        self.assertEqual(parts["wall"], sum(parts[name] for name in (
            "guest", "kvm", "vmm", "halted", "waiting", "offline", "residual")))
        why = time_spent["untraced"]
        if why:
            self.assertIn(f"# %GUEST includes the exits that KVM handles by itself: {why}\n", text)
            self.assertEqual((parts["kvm"], time_spent["kvm-exits"]), (0, []))
            return
        self.assertEqual(self.exit_named(time_spent, "cpuid")["count"], CPUIDS)
        self.assertGreaterEqual(self.exit_named(time_spent, "io")["count"], READS + WRITES)
        for row in time_spent["kvm-exits"]:
            self.check_sums(row)
        self.assertRegex(text, rf"(?m)^# +{CPUIDS} .* (cpuid|CPUID)$")

    @staticmethod
    def sum_of(text, name):
        """Of all intervals."""
        return sum(int(line.split()[0]) for line in text.splitlines() if line.endswith(f"  {name}"))


if __name__ == "__main__":
    harness.main()
