#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""An engine or a client that dies in mid-run takes the other with it, and the recording is readable up to there."""
import os
import pathlib
import random
import re
import signal
import time

import harness
from harness import VPROF, guest

ESCAPE = harness.BIN / "escape"
OWN_USERS = 0x76000000
SEED = 20261126
SAMPLES_MIN = 100


class Killed(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"
        self.name = f"killed-{os.getpid()}"

    def started(self):
        """A run with a guest that computes and has samples, and the pid of its engine."""
        process = self.start(VPROF, "run", "--kernel", guest("hang"), "-F", 1000, "--name", self.name, "-o", self.recording)
        self.assertIn("hang: ", process.stdout.readline())
        engine = harness.child(process.pid, "vprof-vmm")
        self.wait_for_samples(self.name, 2 * SAMPLES_MIN)
        return process, engine

    def check_recording(self):
        # The symbols go into a recording at its end, so one without an end needs the image.
        report, rows = self.report(self.recording, "--kernel", guest("hang"))
        self.assertEqual(rows[0]["symbol"], "hang_here")
        self.assertGreater(report["recording"]["samples"], SAMPLES_MIN)

    def test_engine(self):
        process, engine = self.started()
        os.kill(engine, signal.SIGKILL)
        _, err = self.finish(process, status=1, timeout=20)
        self.assertRegex(err, "vprof: the engine was killed by signal 9")
        self.check_recording()

    def test_random_points(self):
        """Whenever it is, also at the start: the other one ends, and what there is of a recording can be read, or has a message."""
        points = random.Random(SEED)
        for i in range(10):
            process = self.start(VPROF, "run", "--kernel", guest("hang"), "-F", 1000, "--console", "none", "--no-report", "-o", self.recording)
            delay = points.uniform(0, 0.5)
            with self.subTest(i=i, delay=delay):
                time.sleep(delay)  # what is tested: any moment
                engines = [pid for pid in harness.children_of(process.pid) if "vprof-vmm" in harness.command_line(pid)]
                os.kill(engines[0] if engines and i % 2 else process.pid, signal.SIGKILL)
                self.finish(process, status=None, timeout=20)
                self.assertIn(process.returncode, (1, -signal.SIGKILL))
                self.check_nothing_left()
                if self.recording.exists():
                    report = self.start(VPROF, "report", "-i", self.recording)
                    _, err = self.finish(report, status=None)
                    self.assertIn(report.returncode, (0, 1))
                    self.assertTrue(report.returncode == 0 or err.startswith("vprof: "), err)
                    self.recording.unlink()

    def test_stopped(self):
        """A client or an engine that is stopped for a while loses samples at most."""
        process, engine = self.started()
        os.kill(process.pid, signal.SIGSTOP)
        self.wait_for_state(process.pid, "T")
        harness.wait_for_work(engine, seconds=1)  # more samples than there is room for
        os.kill(process.pid, signal.SIGCONT)
        os.kill(engine, signal.SIGSTOP)
        self.wait_for_state(engine, "T")
        stopped = time.monotonic_ns()
        os.kill(engine, signal.SIGCONT)
        self.wait_for_samples(self.name, SAMPLES_MIN)
        process.terminate()
        self.finish(process, status=None, timeout=20)
        self.check_recording()
        ends = self.report(self.recording)[0]["recording"]
        self.assertLess(ends["first-ns"], stopped)
        self.assertGreater(ends["last-ns"], stopped)

    def wait_for_state(self, pid, state):
        harness.wait_until(lambda: pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == state, f"the state {state}")

    def check_rights(self, status):
        """Of a thread, by its /proc/.../status: a list of system calls, no capabilities; root's are a user of its own."""
        self.assertRegex(status, r"NoNewPrivs:\t1\n(.*\n)*?Seccomp:\t2\n(.*\n)*?Seccomp_filters:\t[12]\n")
        self.assertRegex(status, r"CapPrm:\t0+\nCapEff:\t0+\n")
        if os.geteuid() == 0:
            uid = re.search(r"Uid:\t(\d+)\t\1\t\1\t\1\n", status)
            self.assertTrue(uid and int(uid[1]) >= OWN_USERS, status)

    def threads(self, engine):
        """Without those that KVM makes in the process, which execute nothing of it."""
        threads = pathlib.Path(f"/proc/{engine}/task").iterdir()
        return [thread for thread in threads if not (thread / "comm").read_text().startswith("kvm-")]

    def check_escape(self, thread, *fates):
        """Code that controls a thread gets none of this by a system call, and the guest goes on."""
        out = self.run_program(ESCAPE, thread, os.getpid())[0]
        found = dict(line.split(": ") for line in out.splitlines())
        self.assertGreater(len(found), 10)
        for call, fate in found.items():
            self.assertIn(fate, fates, call)

    def test_sandbox(self):
        """Every thread of the engine is in it, and the client says so when it ends the engine."""
        process, engine = self.started()
        threads = self.threads(engine)
        self.assertGreater(len(threads), 1)
        for thread in threads:
            self.check_rights((thread / "status").read_text())
        self.check_namespaces(engine)
        for thread in threads:
            self.check_escape(thread.name, "SIGSYS", "EACCES")
        os.kill(engine, signal.SIGSYS)
        _, err = self.finish(process, status=1, timeout=20)
        self.assertRegex(err, "vprof: the engine was ended by its sandbox")
        self.check_recording()

    def test_no_other_user(self):
        """Root that may become no other user, as in some containers, is said to stay root, and has no capability."""
        harness.need(os.geteuid() == 0, "of root only")
        without = "setpriv", "--bounding-set=-setuid,-setgid"
        engine = self.start(*without, harness.VMM, "--kernel", guest("hang"), "--control", "none")
        self.assertRegex(engine.stderr.readline(), "this host refuses the sandbox: a user of its own;")
        self.assertEqual(engine.stdout.readline(), "hang: computing\n")
        for thread in self.threads(engine.pid):
            self.assertRegex((thread / "status").read_text(), r"Uid:\t0\t0\t0\t0\n(.*\n)*?CapPrm:\t0+\nCapEff:\t0+\n(.*\n)*?Seccomp_filters:\t2\n")
        engine.terminate()
        self.finish(engine, status=130)

    def test_attach(self):
        """The other engine's threads have given up as much."""
        harness.need(os.geteuid() == 0, "only root may load the BPF program that looks at KVM")
        harness.need((harness.BIN / "vprof-attach").exists(), "vprof-attach is not built: libvirt-dev is missing")
        vmm = self.start(harness.VMM, "--kernel", guest("hang"), "--console", "none", "--control", "none")
        self.addCleanup(self.finish, vmm, status=130)
        self.addCleanup(vmm.terminate)
        harness.wait_for_work(vmm.pid)
        process = self.start(VPROF, "attach", "--pid", vmm.pid, "--kernel", guest("hang"), "-o", self.recording)
        harness.wait_until(self.recording.exists, "recording")
        self.wait_for_samples(f"vprof-vmm-{vmm.pid}", 2 * SAMPLES_MIN)
        engine = harness.child(process.pid, "vprof-attach")
        threads = list(pathlib.Path(f"/proc/{engine}/task").iterdir())
        self.assertGreater(len(threads), 1)
        for thread in threads:
            self.check_rights((thread / "status").read_text())
        self.check_namespaces(engine)
        for thread in threads:
            self.check_escape(thread.name, "EPERM", "EACCES", "ENOENT")
        os.kill(process.pid, signal.SIGINT)
        self.finish(process)
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
