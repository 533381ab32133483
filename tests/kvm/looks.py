#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Guests that make a search for their kernel as long as they can: nobody who looks at them, or at another guest, waits for it."""
import json
import signal
import subprocess
import time

import harness
import host_daemon
import json_schemas
from harness import BIN, VMM, VPROF

HEALTHY = "user_shares"
WHYS = {"top_page": "no kernel image in the guest's memory", "look_alikes": "was given up"}
PROMPT = 1  # seconds in which a signal ends an engine
LOOK_SECONDS = 200  # all guests of a slow machine


class Looks(host_daemon.DaemonTest):
    def setUp(self):
        super().setUp()
        self.guests = {name: self.guest(name) for name in [HEALTHY, *WHYS]}

    def guest(self, name):
        """Once it has done what it does to be looked at."""
        guest = self.start(VMM, "--kernel", harness.guest(name), "--control", "none", "--memory", "128M", "--name", f"{self.name}-{name}",
                           "--console", "stdio")
        self.addCleanup(self.finish, guest, status=None)
        self.addCleanup(guest.terminate)
        self.assertIn(name, guest.stdout.readline())
        return guest

    def attach(self, name):
        recording = self.folder / name
        _, err = self.run_program(VPROF, "attach", "--pid", self.guests[name].pid, "--duration", "1s", "--no-report", "-o", recording,
                                  timeout=LOOK_SECONDS)
        self.assertIn("the time asked for is over", err)
        return err, self.report(recording)[0]

    def engine(self, name):
        """One without an owner, which serves clients."""
        path = self.folder / f"{name}.sock"
        engine = self.start(BIN / "vprof-attach", "--pid", self.guests[name].pid, "--control", path)
        self.addCleanup(harness.ProgramTest.finish, self, engine, status=None)
        harness.wait_for_socket(path)
        return engine, path

    def why(self, path):
        return json.loads(self.run_program(VPROF, "ctl", "--compact", path, "query-status")[0]).get("kernel-why", "")

    def check_signal(self, engine, number=signal.SIGTERM):
        begin = time.monotonic()
        engine.send_signal(number)
        _, err = self.finish(engine, status=None)
        self.assertLess(time.monotonic() - begin, PROMPT * max(harness.SLOWNESS, 1))
        self.assertIn(engine.returncode, (0, -number))  # -number: it came before there was anything to finish
        return err

    def check_attach(self):
        for name in WHYS:
            err, report = self.attach(name)
            self.assertIn(WHYS[name], err)
            self.assertGreater(sum(table["samples"] for table in report["tables"]), 0)

    def check_signals(self):
        """While it searches, and when it has; the reason is said once."""
        for name in WHYS:
            self.check_signal(self.engine(name)[0])
        engine, path = self.engine("look_alikes")
        harness.wait_until(lambda: WHYS["look_alikes"] in self.why(path), "the end of the search", LOOK_SECONDS)
        self.assertEqual(self.check_signal(engine).count("the search for the guest's kernel was given up"), 1)

    def check_owner(self):
        """The engine of a client that was killed ends; the harness checks that nothing is left."""
        vprof = self.start(VPROF, "attach", "--pid", self.guests["look_alikes"].pid, "-o", self.folder / "killed")
        harness.wait_until(lambda: subprocess.run(["pgrep", "-P", str(vprof.pid), "vprof-attach"], check=False,
                                                  stdout=subprocess.DEVNULL).returncode == 0, "an engine")
        vprof.kill()
        self.finish(vprof, status=None)

    def check_lists(self):
        listed = json.loads(self.run_program(VPROF, "attach", "--list", "--json", timeout=LOOK_SECONDS)[0])
        pids = {guest.pid: name for name, guest in self.guests.items()}
        whys = {pids[guest["pid"]]: guest["kernel"].get("why", "") for guest in listed if guest.get("pid") in pids}
        self.assertEqual(whys.keys(), self.guests.keys())
        for name, why in WHYS.items():
            self.assertIn(why, whys[name])
        doctor = json.loads(self.run_program(VPROF, "doctor", "--pid", self.guests["look_alikes"].pid, "--json", timeout=LOOK_SECONDS)[0])
        self.assertIn(WHYS["look_alikes"], json_schemas.check(self, "doctor", doctor)["kernel"]["why"])
        top = json.loads(self.run_program(VPROF, "top", "--json", "-d", "1", timeout=LOOK_SECONDS)[0])
        self.assertLessEqual(pids.keys(), {guest["pid"] for guest in top["guests"]})

    def check_daemon(self):
        """Each guest is sampled, though none has the tables that are asked for, and the daemon ends."""
        self.configure("first", call_graph="orc")
        daemon = self.begin()

        def sampled():
            guests = {guest["pid"]: guest for guest in self.status()["guests"]}
            return all(guests.get(guest.pid, {}).get("profiles", 0) > 0 for guest in self.guests.values())
        self.wait(sampled, "a profile of each guest")
        self.end(daemon)

    def run_checks(self, *checks):
        for check in checks:
            with self.subTest(check.__name__):
                begin = time.monotonic()
                check()
                print(f"{check.__name__}: {time.monotonic() - begin:.1f} s", flush=True)

    def test_engines(self):
        self.run_checks(self.check_attach, self.check_signals, self.check_owner, self.check_daemon)

    def test_lists(self):
        self.run_checks(self.check_lists)


if __name__ == "__main__":
    harness.main()
