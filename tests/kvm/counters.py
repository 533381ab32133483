#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Counters on a running guest of our own, beside a session, by `vprof counter`."""
import json
import re
import signal
import time

import harness
import json_schemas
from harness import VMM, VPROF, guest

SECONDS = 1  # at first: longer where a vCPU gets less of a processor
RAN_MIN_NS = 50_000_000
SAMPLES_MIN = 25


class Counters(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.path = self.folder / "engine.sock"

    def engine(self, kernel):
        engine = self.start(VMM, "--kernel", kernel, "--vcpus", "2", "--console", "none", "--control", self.path)
        harness.wait_for_socket(self.path)
        return engine

    def end(self, engine):
        engine.terminate()
        self.finish(engine, status=None)

    def counter(self, *arguments):
        return json_schemas.check(self, "counter", json.loads(self.run_program(VPROF, "counter", *arguments, "--json")[0]))

    def count(self, *arguments, guest=None):
        """Until the guest has run for a while."""
        return harness.longer_until(lambda counted: max(counter.get("value", 0) for counter in counted) > RAN_MIN_NS,
                                    lambda seconds: self.counter("count", guest or self.path, "--duration", seconds, *arguments), SECONDS)[0]

    def cpu_ns(self):
        return json.loads(self.run_program(VPROF, "mpstat", "--json", self.path)[0])["total"]["clocks-ns"]["cpu"]

    def test_counts_agree_with_the_engines_clocks(self):
        engine = self.engine(guest("hang"))

        def count(seconds):
            """The count, the CPU time by the clocks, and how much of that may be uncounted: they are read earlier and later."""
            before, began = self.cpu_ns(), time.monotonic_ns()
            counted, = self.counter("count", self.path, "--duration", seconds, "-e", "task-clock")
            return counted, self.cpu_ns() - before, time.monotonic_ns() - began - seconds * 10**9
        (counted, ran, uncounted), _ = harness.longer_until(lambda answer: answer[0]["value"] > max(RAN_MIN_NS, answer[2]), count, SECONDS)
        self.assertLessEqual(counted["value"], ran)
        self.assertGreaterEqual(counted["value"], ran - uncounted)  # one vCPU runs
        self.assertEqual(counted["value"], sum(vcpu["value"] for vcpu in counted["vcpus"]))
        self.end(engine)

    def test_estimates_find_the_mode(self):
        engine = self.engine(guest("hang"))
        estimate = self.count("-e", "task-clock", "--estimate")
        modes = estimate[0]["modes"]
        self.assertEqual(modes["user"], 0)
        self.assertGreater(modes["kernel"], 0.9 * estimate[0]["value"])
        self.end(engine)

    def record(self, *arguments):
        """The samples, as `vprof script` has them, and what was said."""
        recording = self.folder / "recording"
        _, said = self.run_program(VPROF, "counter", "record", self.path, "-o", recording, "--no-report", *arguments)
        out, _ = self.run_program(VPROF, "script", "-i", recording, "--json")
        samples = [json.loads(line) for line in out.splitlines()]
        self.assertIn(f"{len(samples)} samples in", said)
        return samples

    def hang_here(self, samples, event="task-clock"):
        return [sample for sample in samples if sample["event"] == event and sample["symbol"] == "hang_here" and sample["mode"] == "kernel"]

    def record_enough(self, *arguments, events=("task-clock",)):
        """Until each of the events has enough samples in the guest's function."""
        return harness.longer_until(lambda samples: min(len(self.hang_here(samples, event)) for event in events) > SAMPLES_MIN,
                                    lambda seconds: self.record(*arguments, "--duration", seconds), SECONDS)[0]

    def test_samples_are_recorded(self):
        engine = self.engine(guest("hang"))
        events = "task-clock", "timer"
        samples = self.record_enough("-e", "task-clock", "-e", "timer", "-F", 100, events=events)
        for event in events:
            of = [sample for sample in samples if sample["event"] == event]
            there = self.hang_here(samples, event)
            # The clocks go on in the VMM, which a slow host is in for more than a tenth of the time at each sample.
            self.assertGreater(len(there), 0.7 * len(of))
            self.assertEqual({sample["vcpu"] for sample in there}, {0})  # the other is never started
        # By a period: each sample stands for that, or for several of them.
        samples = self.record_enough("-c", 5_000_000)
        # The first one, and one after a pause, have the rest of a period, by whatever the clock began with.
        self.assertEqual({sample["event"] for sample in samples}, {"task-clock"})
        self.assertGreaterEqual(sum(sample["period"] for sample in samples), 0.99 * 5_000_000 * (len(samples) - 1))
        self.assertEqual(self.record("--cr3", "0x1000", "--duration", 1), [])
        symbols = self.run_program("nm", guest("hang"))[0]
        page_tables, = re.findall(r"^([0-9a-f]+) D pml4$", symbols, re.MULTILINE)
        self.record_enough("--cr3", f"0x{page_tables}")
        self.assertFalse(self.counter("list", self.path))
        self.refused(VPROF, "counter", "record", self.path, "-F", 1, "-c", 1, status=2, message="exclude each other")
        self.refused(VPROF, "counter", "record", self.path, "-p", 1, message="cannot tell the guest's tasks apart")
        self.refused(VPROF, "counter", "record", self.path, "-o", "/nowhere/at/all", message="cannot write /nowhere/at/all")
        self.end(engine)

    def test_call_chains(self):
        """Of a guest that `run` serves, beside its session, with what this host cannot count left out."""
        name = f"g{id(self)}"
        run = self.start(VPROF, "run", "--demo", "--append", "seconds=600", "--no-report", "--name", name, "-o", self.folder / "session")
        harness.wait_until(lambda: name in self.run_program(VPROF, "list")[0], "the engine")
        recording = self.folder / "chains"

        def record(seconds):
            _, said = self.run_program(VPROF, "counter", "record", name, "-e", "cylces,timer", "-g", "--vcpu", 1, "--duration", seconds,
                                       "-o", recording)
            self.assertIn('warning: unknown event "cylces"', said)
            table, = json.loads(self.run_program(VPROF, "report", "--json", "-g", "-i", recording)[0])["tables"]
            return table
        table, _ = harness.longer_until(lambda table: table["samples"] > SAMPLES_MIN, record, SECONDS)
        self.assertEqual(table["event"], "timer")
        mains = [path for path in table["calls"] if path["symbol"] == "user_main"]
        rounds = [called for path in mains for called in path["calls"] if called["symbol"] == "round_run"]
        self.assertGreater(sum(called["samples"] for called in rounds), 0.4 * table["samples"], table["calls"])
        out, _ = self.run_program(VPROF, "script", "-i", recording, "--json")
        self.assertEqual({json.loads(line)["vcpu"] for line in out.splitlines()}, {1})
        counted = self.count("-e", "steps,timer", "-C", 1, guest=name)
        self.assertIn("cannot count steps", counted[0]["error"])
        self.assertEqual(counted[1]["vcpus"][0]["value"], 0)
        run.send_signal(signal.SIGINT)
        self.finish(run, status=None)

    def test_a_recording_outlives_the_guest(self):
        engine = self.engine(guest("hang"))
        recording = self.folder / "recording"
        vprof = self.start(VPROF, "counter", "record", self.path, "-o", recording, "--duration", "1h")
        harness.wait_until(lambda: [counter for counter in self.counter("list", self.path)
                                    if counter["state"] == "running"], "the counter")
        self.end(engine)
        _, said = self.finish(vprof)
        self.assertIn("the guest has ended", said)
        samples, = re.findall(r"(\d+) samples in", said)
        out, _ = self.run_program(VPROF, "script", "-i", recording, "--json")
        self.assertEqual(len(out.splitlines()), int(samples))

    def test_holders_are_listed_and_let_go(self):
        engine = self.engine(guest("hang"))
        holder = self.start(VPROF, "counter", "count", self.path, "-e", "task-clock", "-e", "timer", "--duration", 60)
        harness.wait_until(lambda: len(self.counter("list", self.path)) == 2, "the counters")
        first, second = self.counter("list", self.path)
        self.assertEqual((first["pid"], first["state"], first["event"]), (holder.pid, "running", "task-clock"))
        self.assertEqual((second["disposition"], second["mode"]), ("standalone", "guest-counting"))
        self.refused(VPROF, "counter", "disable", self.path, 1, message=f"it belongs to a client \\(pid {holder.pid}")
        holder.kill()
        self.finish(holder, status=None)
        harness.wait_until(lambda: not self.counter("list", self.path), "their release")
        self.run_program(VPROF, "counter", "disable", self.path, 0)
        disabled, = self.counter("list", self.path)
        self.assertEqual((disabled["counter"], disabled["state"]), (0, "disabled"))
        self.run_program(VPROF, "counter", "enable", self.path, 0)
        self.end(engine)

    def test_a_session_is_not_disturbed(self):
        recording = self.folder / "recording"
        run = self.start(VPROF, "run", "--kernel", guest("hang"), "--console", "none", "--name", f"c{id(self)}", "-e",
                         "task-clock", "-F", 1000, "-o", recording)
        harness.wait_until(lambda: f"c{id(self)}" in self.run_program(VPROF, "list")[0], "the engine")
        self.count("-e", "task-clock", "-e", "cpu-clock", "--estimate", guest=f"c{id(self)}")
        run.send_signal(signal.SIGINT)
        self.finish(run, status=130)
        report, rows = self.report(recording)
        statistics = report["recording"].get("statistics", {})
        self.assertEqual(report["recording"]["lost"], 0)
        self.assertGreater(sum(row["samples"] for row in rows), 0)
        self.assertEqual(statistics.get("total", {}).get("dropbuf-sample", 0), 0)

    def test_refusals(self):
        engine = self.engine(guest("hang"))
        self.refused(VPROF, "counter", "count", self.path, "-e", "task-clock:u", message="whatever the guest's mode")
        self.refused(VPROF, "counter", "count", self.path, "-p", 1, message="cannot tell the guest's tasks apart")
        self.refused(VPROF, "counter", "count", self.path, "--cr3", "0x1000", message="cannot see context switches")
        self.refused(VPROF, "counter", "count", self.path, "--descendants", status=2, message="only in a task mode")
        self.refused(VPROF, "counter", "count", self.path, "-e", "steps", message="use vprof run --exact")
        # One that is refused does not take the others along.
        refused, counted = self.count("-e", "steps", "-e", "task-clock")
        self.assertIn("use vprof run --exact", refused["error"])
        self.assertGreater(counted["value"], 0)
        self.refused(VPROF, "counter", "count", self.path, "-C", 2, status=2, message="there is no vCPU 2")
        self.refused(VPROF, "counter", "count", self.path, "-e", "cylces", status=2, message="near names: cycles")
        self.end(engine)
        self.refused(VPROF, "counter", "list", self.path, message="vprof list")

    def test_the_host_is_described(self):
        engine = self.engine(guest("hang"))
        host = self.counter("host", self.path)
        usable = {event["name"] for event in host["events"] if event["usable"]}
        self.assertIn("timer", usable)
        text = self.run_program(VPROF, "counter", "host", self.path)[0]
        self.assertRegex(text, r"(?m)^PMU: ")
        self.assertRegex(text, r"(?m)^timer +timer +a POSIX timer")
        self.end(engine)


if __name__ == "__main__":
    harness.main()
