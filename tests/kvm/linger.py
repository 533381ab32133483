#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An engine after the end of its guest, and the clients that have not read all."""
import base64
import json
import os
import pathlib
import signal
import struct
import time

import harness
from engine import Client
import json_schemas
from harness import VMM, VPROF, guest

SAMPLES_READ_BYTES_MAX = 45056
PERF_RECORD_SAMPLE = 9
DURATION, INTERRUPTED = 124, 130  # exit statuses
LONG_MS = 60000
SAMPLES_MIN = 300


def samples_in(data):
    """How many samples there are among these records."""
    at, samples = 0, 0
    while at < len(data):
        kind, _, size = struct.unpack_from("<IHH", data, at)
        samples += kind == PERF_RECORD_SAMPLE
        at += size
    return samples


class Linger(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.name = f"linger-{os.getpid()}"
        runtime = "/run" if os.geteuid() == 0 else os.environ.get("XDG_RUNTIME_DIR")
        harness.need(runtime, "XDG_RUNTIME_DIR is not set")
        self.path = pathlib.Path(runtime) / "vprof" / f"{self.name}.sock"

    def engine(self, *options):
        """One without an owner, with a guest that runs."""
        engine = self.start(VMM, "--kernel", guest("hang"), "--console", "none", "--name", self.name, *options)
        harness.wait_until(lambda: self.pid_at_socket() == engine.pid, "the engine at its socket")
        return engine

    def pid_at_socket(self):
        if not harness.accepts(self.path):
            return None
        client = Client.connect(self.path)
        pid = client.execute("query-status")["pid"]
        client.close()
        return pid

    def client(self, *, control=False):
        client = Client.connect(self.path)
        self.addCleanup(client.close)
        if control:
            client.execute("control-take")
        return client

    def listed(self):
        """The state that `vprof list` shows, as text and as JSON; None: the engine is not listed. It must not change now."""
        text = self.run_program(VPROF, "list")[0].splitlines()
        engines = json_schemas.check(self, "list", json.loads(self.run_program(VPROF, "list", "--json")[0]))
        states = [row.split()[2] for row in text if row.split()[0] == self.name]
        self.assertEqual(states, [engine["status"]["state"] for engine in engines
                                  if engine["guest"]["name"] == self.name])
        return states[0] if states else None

    def wait_for_end(self, client):
        harness.wait_until(lambda: client.execute("query-status")["state"] == "ended", "the guest's end")

    def read_samples(self, client, offset=None, least=SAMPLES_READ_BYTES_MAX):
        """(samples, next offset, whether these were the last)."""
        where = {} if offset is None else {"offset": offset}
        answer = client.execute("samples-read", **where,
                                **{"min-bytes": least, "timeout-ms": LONG_MS})
        self.assertEqual(answer["missed"], 0)
        return samples_in(base64.b64decode(answer["data"])), answer["next"], answer["end"]

    def test_all_samples_arrive(self):
        run = self.start(VPROF, "run", "--kernel", guest("hang"), "--name", self.name, "-F", "1000",
                         "--no-report", "-o", self.folder / "recording")
        harness.wait_for_socket(self.path)
        client = self.client()
        harness.wait_until(lambda: client.execute("query-status")["session"] == "running", "the session")
        samples, offset, end = self.read_samples(client, 0, least=1)
        self.assertFalse(end)

        # The command returns although the client is not done, and holds on to nothing that a pipe would wait for.
        self.wait_for_samples(self.name, SAMPLES_MIN)
        run.send_signal(signal.SIGINT)
        self.finish(run, status=INTERRUPTED)
        self.assertEqual(self.listed(), "ended")
        recorded = self.report(self.folder / "recording")[0]["recording"]["statistics"]["total"]["sample"]
        self.assertEqual(client.execute("query-stats")["total"]["sample"], recorded)
        while not end:  # after the last answer, the engine ends
            some, offset, end = self.read_samples(client, offset)
            samples += some
        self.assertEqual(samples, recorded)
        self.assertGreater(samples, SAMPLES_MIN)
        harness.wait_until(lambda: not harness.accepts(self.path), "the engine's end", seconds=10)
        self.assertIsNone(self.listed())

    def test_a_waiting_reader_gets_what_there_is(self):
        engine = self.engine("--duration", "2")
        client = self.client(control=True)
        client.execute("session-start", **{"events": ["task-clock"], "frequency-hz": 50})
        client.execute("control-release")
        samples, offset, end = self.read_samples(client)  # less than the minimum, at the guest's end
        while not end:
            some, offset, end = self.read_samples(client, offset)
            samples += some
        self.assertGreater(samples, 0)
        self.finish(engine, status=DURATION, timeout=10)

    def test_unread_rings(self):
        engine = self.engine("--duration", "1")
        client = self.client(control=True)
        client.execute("session-start", **{"events": ["task-clock"], "frequency-hz": 100})
        client.execute("rings")
        client.execute("control-release")
        self.wait_for_end(client)
        harness.wait_until(lambda: "waiting up to 30 s for clients" in engine.stderr.readline(), "what the engine says")
        self.assertEqual(self.listed(), "ended")
        client.close()
        self.finish(engine, status=DURATION, timeout=10)

    def test_a_newcomer_takes_the_name(self):
        disk = self.folder / "disk"
        disk.write_bytes(bytes(1 << 20))
        first = self.engine("--duration", "1", "--disk", disk)
        holder = self.client(control=True)
        self.wait_for_end(holder)
        self.assertEqual(self.listed(), "ended")

        second = self.engine("--disk", disk)
        self.assertEqual(self.listed(), "running")
        self.assertEqual(holder.execute("query-status")["state"], "ended")
        holder.close()
        self.finish(first, status=DURATION, timeout=10)
        # It has not taken the newcomer's socket away.
        self.run_program(VPROF, "ctl", self.name, "quit")
        self.finish(second, status=INTERRUPTED)

    def test_a_running_guest_keeps_its_name(self):
        engine = self.engine()
        self.refused(VMM, "--kernel", guest("hang"), "--console", "none", "--name", self.name,
                     message=rf"it is in use by process {engine.pid} \(vprof-vmm\)")
        self.run_program(VPROF, "ctl", self.name, "quit")
        self.finish(engine, status=INTERRUPTED)

    def test_quit_ends_it(self):
        engine = self.engine("--duration", "1")
        waiting = self.client()
        waiting.send("trace-read", **{"timeout-ms": LONG_MS})
        self.wait_for_end(self.client())
        self.assertEqual(self.listed(), "ended")
        self.run_program(VPROF, "ctl", self.name, "quit")
        self.assertEqual(waiting.answer()["return"]["text"], "")
        with self.assertRaises(EOFError):
            waiting.answer()
        self.finish(engine, status=DURATION, timeout=10)

    def test_a_signal_ends_it(self):
        engine = self.engine("--duration", "1")
        self.wait_for_end(self.client(control=True))
        engine.send_signal(signal.SIGINT)
        _, err = self.finish(engine, status=DURATION, timeout=10)
        self.assertIn("vprof-vmm: waiting up to 30 s for clients that have not read all; a signal ends that", err)

    def test_not_longer_than_configured(self):
        engine = self.engine("--duration", "1")
        holder = self.client(control=True)
        keys = holder.execute("session-configure", **{"linger-ms": 1500})
        self.assertEqual((keys["linger-ms"]["value"], keys["linger-ms"]["default"]), (1500, 30000))
        began = time.monotonic()
        while holder.execute("query-status")["state"] != "ended":
            began = time.monotonic()  # it has not ended before
        self.finish(engine, status=DURATION, timeout=20)
        self.assertGreaterEqual(time.monotonic() - began, 1.5)

    def test_not_at_all(self):
        engine = self.engine("--duration", "1")
        holder = self.client(control=True)
        holder.execute("session-configure", **{"linger-ms": 0})
        _, err = self.finish(engine, status=DURATION, timeout=10)
        self.assertNotIn("waiting", err)


if __name__ == "__main__":
    harness.main()
