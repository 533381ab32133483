#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof-vmm and vprof daemon as services of Debian's systemd, by their units: as installed, in a container with a systemd of its
own."""
import json
import os
import pathlib
import re
import shutil
import subprocess

import container
import debian_root
import harness

SERVICE, SOCKET = "vprof-guest@guest.service", "vprof-guest@guest.socket"
DAEMON = "vprofd.service"
DAEMON_CONF = "[push]\\nurl = http://127.0.0.1:1\\n[sampling]\\ninterval = 5s\\n"  # where no server is
OPTIONS = "etc/vprof/guest.conf", "VPROF_VMM_OPTIONS=--kernel /srv/vmlinuz --console none\n"
CONTROL = "/run/vprof/guest.sock"
STRANGER = "daemon"
DYNAMIC_USER_MIN = 61184  # systemd.exec(5), DynamicUser=
EXPOSURE_MAX = 9.0  # systemd's figure for a service of root's without any restriction is 9.6
DAEMON_SECONDS = 25
TRIPLE_FAULT = "92"  # the exit status


class VmmService(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need(os.geteuid() == 0, "a container with systemd needs root")
        harness.need_program("systemd-nspawn", "systemd-container")
        self.root = self.folder / "changed" / "root"
        container.mount(self, self.root, debian_root.tree())
        self.install()
        self.container = container.Container(self, self.root)
        self.container.add_kvm()

    def install(self):
        """The programs, their units, and the libraries that they need."""
        subprocess.run(["cmake", "--install", os.environ["VPROF_BUILD"], "--prefix", "/usr"], check=True,
                       env=os.environ | {"DESTDIR": str(self.root)}, stdout=subprocess.DEVNULL)
        for program in harness.VPROF, harness.VMM, *(harness.BIN / name for name in ("vprof-attach", "vprof-parse")), *self.loaded():
            text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, text=True, check=True).stdout
            for library in map(pathlib.Path, re.findall(r"=> (/\S+) \(0x", text)):
                place = self.root / "usr" / "lib" / "x86_64-linux-gnu" / library.name
                if not place.exists():
                    shutil.copy(library, place)
            if ".so" in program.name:
                shutil.copy(program, self.root / "usr" / "lib" / "x86_64-linux-gnu")
        options = self.root / OPTIONS[0]
        options.parent.mkdir()
        options.write_text(OPTIONS[1])
        self.set_guest("hang")

    def loaded(self):
        """The libraries that the daemon loads when it needs them."""
        note = harness.VPROF.read_bytes()
        names = re.findall(rb'"soname":\["(lib(?:curl|microhttpd)\.[^"]*)"', note)
        return [pathlib.Path("/usr/lib/x86_64-linux-gnu") / name.decode() for name in names]

    def set_guest(self, name):
        """What the unit boots."""
        image = re.search(r"--kernel (\S+)", OPTIONS[1])[1]
        place = self.root / image.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(harness.guest(name), place)

    def systemctl(self, *words, status=0):
        got, out = self.container.run("systemctl " + " ".join(words))
        self.assertEqual(got, status, f"systemctl {words}: {out}")
        return out

    def properties(self, unit=SERVICE):
        return dict(line.split("=", 1) for line in self.systemctl("show", unit).splitlines() if "=" in line)

    def wait_state(self, state, unit=SERVICE):
        harness.wait_until(lambda: self.properties(unit)["ActiveState"] == state,
                           f"{unit} to be {state}: {self.container.run(f'systemctl status {unit}')}", 30)
        return self.properties(unit)

    def journal(self):
        return self.container.run(f"journalctl --no-pager -o cat -u {SERVICE}")[1]

    def ask(self, method):
        status, out = self.container.run(f"vprof ctl --compact {CONTROL} {method}")
        self.assertEqual(status, 0, out)
        return json.loads(out)

    def check_units(self):
        self.assertEqual(self.container.run(f"systemd-analyze verify --man=no {SOCKET} {SERVICE}"), (0, ""))
        out = self.container.run(f"systemd-analyze security --no-pager {SERVICE} | tail -n 1")[1]
        print(out, flush=True)
        self.assertLess(float(re.search(r"Overall exposure level for \S+: ([\d.]+)", out)[1]), EXPOSURE_MAX)

    def check_socket(self):
        """It is there before the engine is, and its user's alone."""
        self.systemctl("start", SOCKET)
        self.assertEqual(self.properties()["ActiveState"], "inactive")
        self.assertEqual(self.container.run(f"stat -c '%a %U %F' {CONTROL}"), (0, "600 root socket"))
        status, out = self.container.run(f"setpriv --reuid={STRANGER} --clear-groups vprof ctl {CONTROL} query-status")
        self.assertNotEqual(status, 0)
        self.assertIn("Permission denied", out)

    def check_started_by_a_client(self):
        status = self.ask("query-status")
        self.assertEqual(status["state"], "running")
        service = self.wait_state("active")
        self.assertEqual(service["SubState"], "running")
        self.assertEqual(int(service["MainPID"]), status["pid"])
        self.assertRegex(self.systemctl("status", SERVICE), rf"TriggeredBy: .* {SOCKET}")
        uid = self.container.run(f"stat -c %u /proc/{status['pid']}")[1]
        self.assertGreaterEqual(int(uid), DYNAMIC_USER_MIN)

    def check_restart(self):
        before = self.properties()["MainPID"]
        self.systemctl("restart", SERVICE)
        service = self.wait_state("active")
        self.assertNotEqual(service["MainPID"], before)
        self.assertEqual(self.ask("query-status")["pid"], int(service["MainPID"]))
        status, out = self.container.run(f"vprof top --once {CONTROL}")
        self.assertEqual(status, 0, out)
        self.assertRegex(out, r"(9\d\.\d+%|100\.00%) +\d+ +kernel +hang_here")

    def check_stop(self):
        """Asked to end, it has not failed, and its socket stays."""
        self.systemctl("stop", SERVICE)
        service = self.properties()
        self.assertEqual((service["ActiveState"], service["Result"]), ("inactive", "success"), self.journal())
        self.assertIn("vprof-vmm: stopped by a signal", self.journal())
        self.assertEqual(self.properties(SOCKET)["ActiveState"], "active")

    def daemon_status(self):
        return json.loads(self.container.run("vprof daemon status --json")[1])

    def check_daemon(self):
        """The daemon finds the service's guest and samples it, within what its unit allows it."""
        self.assertEqual(self.container.run(f"systemd-analyze verify --man=no {DAEMON}"), (0, ""))
        print(self.container.run(f"systemd-analyze security --no-pager {DAEMON} | tail -n 1")[1], flush=True)
        self.container.run(f"printf '{DAEMON_CONF}' >/etc/vprof/daemon.conf")
        self.systemctl("start", DAEMON)
        try:
            harness.wait_until(lambda: any(guest.get("profiles") for guest in self.daemon_status()["guests"]), "a profile", DAEMON_SECONDS)
        except AssertionError:
            print(self.daemon_status(), self.container.run(f"journalctl --no-pager -o cat -u {DAEMON}")[1], flush=True)
            raise
        [guest] = self.daemon_status()["guests"]
        self.assertEqual((guest["name"], guest["state"], guest["restarts"]), ("guest", "sampling", 0), guest)
        self.systemctl("reload", DAEMON)
        self.assertEqual(self.properties(DAEMON)["ActiveState"], "active")
        self.systemctl("stop", DAEMON)
        service = self.properties(DAEMON)
        self.assertEqual((service["ActiveState"], service["Result"], service["NRestarts"]), ("inactive", "success", "0"))
        self.assertEqual(self.container.run("ls /run/vprofd"), (0, ""))

    def check_end(self, guest, state, result, message):
        """A guest that ends by itself ends the service, whose start may still be under way by then."""
        self.set_guest(guest)
        self.container.run(f"systemctl start {SERVICE}")
        service = self.wait_state(state)
        self.assertEqual(service["Result"], result)
        self.assertIn(message, self.journal())
        return service

    def test_life(self):
        self.check_units()
        self.check_socket()
        self.check_started_by_a_client()
        self.check_restart()
        self.check_daemon()
        self.check_stop()
        self.check_end("power_off", "inactive", "success", "vprof-vmm: the guest powered off")
        service = self.check_end("triple_fault", "failed", "exit-code", "vprof-vmm: triple fault on vCPU 0")
        self.assertEqual(service["ExecMainStatus"], TRIPLE_FAULT)


if __name__ == "__main__":
    harness.main()
