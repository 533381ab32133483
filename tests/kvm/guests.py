#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The guests of this host, as `attach --list` and `top` find them; engines of ours are processes with vCPUs like others."""
import json
import os
import pathlib

import harness
import json_schemas
from harness import VMM, VPROF


class Guests(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.name = f"listed{os.getpid()}"
        self.engines = [self.start_engine(guest) for guest in ("hang", "halt")]

    def start_engine(self, guest):
        socket = self.folder / f"{guest}.sock"
        engine = self.start(VMM, "--kernel", harness.guest(guest), "--console", "none", "--name", self.name,
                            "--control", socket)
        harness.wait_for_socket(socket)
        return engine

    def tearDown(self):
        for engine in self.engines:
            engine.terminate()
            self.finish(engine, status=None)
        super().tearDown()

    def vprof(self, *arguments):
        """To examine all guests of a slow machine takes a while."""
        return self.run_program(VPROF, *arguments, timeout=200)[0]

    def listed(self):
        """Ours among the others that the machine may have, in order."""
        guests = json_schemas.check(self, "attach-list", json.loads(self.vprof("attach", "--list", "--json")))
        pids = [engine.pid for engine in self.engines]
        return [guest for guest in guests if guest.get("pid") in pids]

    def test_names(self):
        """Two of the same name have different ones; each is known by its program and its vCPU."""
        first, second = self.listed()
        self.assertEqual([first["name"], second["name"]], [self.name, f"{self.name}-{second['pid']}"])
        for guest in first, second:
            self.assertEqual((guest["vmm"], guest["vcpus"]), ("vprof", 1))
            self.assertIn("why" if "why" in guest else "routes", guest)
        json_schemas.check(self, "doctor", json.loads(self.vprof("doctor", "--json")))
        text = self.vprof("attach", "--list")
        self.assertRegex(text, r"^GUEST +VMM +PID +STATE +ACCEL +VCPUS +KERNEL +ROUTES\n")
        self.assertRegex(text, rf"(?m)^{self.name} +vprof +{first['pid']} +- +\S+ +1 ")

    def test_load(self):
        """One guest spins and is first, the other one is halted; KVM's statistics are read where they can be."""
        document = json_schemas.check(self, "top-guests", json.loads(self.vprof("top", "--json", "-d", "2")))
        self.assertEqual((document["format"], document["version"]), ("vprof-top-guests", 1))
        pids = [engine.pid for engine in self.engines]
        spins, halted = (guest for guest in document["guests"] if guest["pid"] in pids)
        self.assertEqual([spins["pid"], halted["pid"]], pids)
        self.assertGreater(spins["cpus"], 0.1)
        self.assertLess(spins["cpus"], 2)
        known = os.access("/sys/kernel/debug/kvm", os.R_OK) and any(pathlib.Path("/sys/kernel/debug/kvm").iterdir())
        for guest in spins, halted:
            self.assertEqual(guest["exits-per-second"] is not None, known)
        cpus = [guest["cpus"] for guest in document["guests"] if guest["cpus"] is not None]
        self.assertEqual(cpus, sorted(cpus, reverse=True))
        text = self.vprof("top", "--once", "-d", "1")
        self.assertRegex(text, r"^vprof top: \d+ guests, \d+\.\d\d of \d+ CPUs")
        self.assertRegex(text, rf"(?m)^{self.name} +vprof +\d+ +1 +\d+\.\d +(\d+|-)  ")

    def test_files_go(self):
        """A guest that has ended is no longer listed."""
        gone = self.engines.pop(0)
        gone.terminate()
        self.finish(gone, status=None)
        (only,) = self.listed()
        self.assertEqual((only["pid"], only["name"]), (self.engines[0].pid, self.name))


if __name__ == "__main__":
    harness.main()
