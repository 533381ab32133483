#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An engine or a client that dies in mid-run takes the other with it, and the recording is readable up to there."""
import os
import pathlib
import signal
import time

import harness
from harness import VPROF, guest


class Killed(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def started(self):
        """A run with a guest that computes, and the pid of its engine."""
        process = self.start(VPROF, "run", "--kernel", guest("hang"), "-F", 1000, "-o", self.recording)
        self.assertIn("hang: ", process.stdout.readline())
        engines = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        self.assertEqual(len(engines), 1, engines)
        time.sleep(2)
        return process, int(engines[0])

    def check_recording(self):
        # The symbols go into a recording at its end, so one without an end needs the image.
        report, rows = self.report(self.recording, "--kernel", guest("hang"))
        self.assertEqual(rows[0]["symbol"], "hang_here")
        self.assertGreater(report["recording"]["samples"], 100)

    def test_engine(self):
        process, engine = self.started()
        os.kill(engine, signal.SIGKILL)
        _, err = self.finish(process, status=1, timeout=20)
        self.assertRegex(err, "vprof: the engine was killed by signal 9")
        self.check_recording()

    def test_sandbox(self):
        """Every thread of the engine is in it, and the client says so when it ends the engine."""
        process, engine = self.started()
        threads = list(pathlib.Path(f"/proc/{engine}/task").iterdir())
        self.assertGreater(len(threads), 2)
        for thread in threads:
            status = (thread / "status").read_text()
            self.assertRegex(status, r"NoNewPrivs:\t1\n(.*\n)*?Seccomp:\t2\n(.*\n)*?Seccomp_filters:\t1\n")
        os.kill(engine, signal.SIGSYS)
        _, err = self.finish(process, status=1, timeout=20)
        self.assertRegex(err, "vprof: the engine was ended by its sandbox")
        self.check_recording()

    def test_client(self):
        process, _ = self.started()
        process.kill()
        self.finish(process, status=-signal.SIGKILL)
        self.check_nothing_left()
        self.check_recording()

    def test_client_terminated(self):
        """SIGTERM, as a shutdown or a CI job's end sends it, finishes the recording like Ctrl-C."""
        process, _ = self.started()
        process.terminate()
        self.finish(process, status=None, timeout=20)
        self.check_recording()


if __name__ == "__main__":
    harness.main()
