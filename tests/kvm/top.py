#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`vprof top`: a snapshot as text and JSON, of its own session and of another client's, and the screen."""
import json
import subprocess

import harness
import json_schemas
from harness import VMM, VPROF
from terminal import Terminal

PARTS = "guest", "kvm", "vmm", "halted", "waiting", "offline", "residual"


class Guest(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.socket = self.folder / "hang.sock"
        self.engine = self.start(VMM, "--kernel", harness.guest("hang"), "--console", "none", "--name", "hang",
                                 "--control", self.socket)
        harness.wait_for_socket(self.socket)

    def tearDown(self):
        if self.engine.poll() is None:
            self.engine.terminate()
        self.finish(self.engine, status=None)
        super().tearDown()


class Snapshot(Guest):
    def top(self, *options):
        return self.run_program(VPROF, "top", self.socket, "-d", "1", *options)[0]

    def check(self, snapshot):
        """All there is runs in hang_here, and all time of its vCPU is accounted for."""
        self.assertGreater(snapshot["samples"], 20)
        row = snapshot["rows"][0]
        self.assertEqual((row["symbol"], row["mode"]), ("hang_here", "kernel"))
        self.assertGreater(row["share"], 0.9)
        json_schemas.check(self, "top", snapshot)
        self.assertLessEqual(sum(row["samples"] for row in snapshot["rows"]), snapshot["samples"])
        parts = snapshot["clocks"]["vcpus"][0]["parts-ns"]
        self.assertEqual(sum(parts[name] for name in PARTS), parts["wall"])
        # The VMM takes samples; where programs are emulated, that is a tenth of the time.
        self.assertGreater(parts["guest"] + parts["kvm"] + parts["waiting"], 0.8 * parts["wall"])
        self.assertAlmostEqual(parts["wall"] / 1e9, snapshot["seconds"], delta=0.5)

    def test_snapshot(self):
        snapshot = json.loads(self.top("--json", "-F", "500"))
        self.check(snapshot)
        self.assertEqual((snapshot["how"], snapshot["frequency-hz"]), ("a session of its own", 500))
        self.assertEqual(snapshot["statistics"]["dropbuf-sample"], 0)
        # It has ended its session, and no client has the control role.
        self.assertIn('"session":"idle"', self.run_program(VPROF, "ctl", "--compact", self.socket, "query-status")[0])
        text = self.top("--call-tree")
        self.assertRegex(text, r"(?m)^vprof top: hang, 1 vCPUs, 256 MiB$")
        self.assertRegex(text, r"(?m)^vCPU 0 +\[[#=+~ ]{16}\] +[\d.]+ # guest +[\d.]+ = KVM +[\d.]+ \+ VMM +[\d.]+ ~ waiting +\d+ exits/s$")
        self.assertRegex(text, r"(?m)^dropped in the session: 0 ring full")
        self.assertRegex(text, r"(?m)^ *TOTAL +SELF +MODE +CALLS$")
        # A sample of it in the VMM hangs below it.
        self.assertRegex(text, r"(?m)^ *\d+\.\d\d% +\d+\.\d\d%  kernel +(- )?hang_here$")

    def test_looks_on(self):
        self.run_program(VPROF, "ctl", self.socket, "session-start", "frequency-hz=250")
        first, second = (json.loads(self.top("--json")) for _ in range(2))
        for snapshot in first, second:
            self.check(snapshot)
            self.assertEqual(snapshot["frequency-hz"], 250)
            self.assertRegex(snapshot["how"], "looking on at session 1")
        status = self.run_program(VPROF, "ctl", "--compact", self.socket, "query-status")[0]
        self.assertIn('"session":"running"', status)

    def test_controlled_by_another(self):
        """Without a session that runs and without the role there are clocks, and a sentence."""
        holder = self.start(VPROF, "ctl", self.socket, stdin=subprocess.PIPE)
        holder.stdin.write("control-take\n")
        holder.stdin.flush()
        harness.wait_until(lambda: holder.stdout.read(1), "an answer")
        snapshot = json.loads(self.top("--json"))
        json_schemas.check(self, "top", snapshot)
        self.assertRegex(snapshot["how"], r"no samples: .* pid \d+ \(uid \d+\) holds the control role")
        self.assertEqual((snapshot["samples"], snapshot["event"], snapshot["rows"]), (0, None, []))
        self.assertGreater(snapshot["clocks"]["total"]["parts-ns"]["wall"], 0)
        self.finish(holder, status=None)

    def test_refusals(self):
        self.refused(VPROF, "top", self.folder / "none.sock", message="vprof list")
        self.refused(VPROF, "top", self.socket, "-F", "99999999", status=2, message="--frequency takes 1 to 50000")


class Screen(Guest):
    """The screen; its last line shows how top has left it."""

    def setUp(self):
        super().setUp()
        self.terminal = Terminal(self)
        self.lines, self.shows, self.press = self.terminal.lines, self.terminal.shows, self.terminal.press

    def open(self, *options):
        self.terminal.open(f"trap : INT; '{VPROF}' top '{self.socket}' -d 1 {' '.join(options)}; echo left $?; stty -a; read -r wait")

    def check_left(self, status):
        """Whatever was on the screen before is there again, and keys are echoed."""
        self.shows(rf"^left {status}$")
        self.shows(r"[ ;]icanon\b")
        self.shows(r" echo\b")
        self.assertNotIn("CALLS", "\n".join(self.lines()))

    def test_keys(self):
        self.open()
        self.shows(r"^vprof top: hang, 1 vCPUs")
        self.shows(r"^ *\d+\.\d\d% +\d+ +kernel +hang_here")
        self.press("h")
        self.shows("^KEYS")
        self.press("x", ">")
        self.shows("^ *SHARE +SAMPLES +COMMAND +PID$")
        self.shows(r"^ *\d+\.\d\d% +\d+ +guest +0$")
        self.press("p")
        self.shows("PAUSED$")
        self.press("p", "t")
        self.shows("call chains are recorded from now on")
        self.shows(r"^ *\d+\.\d\d% +\d+\.\d\d% +kernel +- (start64|guest_main)")
        self.press("Home", "Enter")
        self.shows(r"kernel +\+ ")
        self.terminal.resize(60, 12)
        self.shows(r"^q quit  h help  t functions")
        lines = self.lines()
        self.assertEqual(len(lines), 12)
        self.assertLessEqual(max(map(len, lines)), 60)
        self.terminal.resize(110, 24)
        harness.wait_until(lambda: len(self.lines()) == 24 and self.lines()[23].startswith("q quit"), "24 lines")
        self.press("q")
        self.check_left(0)

    def test_interrupted(self):
        self.open("--call-tree")
        self.shows("CALLS")
        self.press("C-c")
        self.check_left(0)

    def test_guest_ends(self):
        self.open("--call-tree")
        self.shows("CALLS")
        self.engine.terminate()
        self.shows("^vprof: the guest has ended: ")
        self.check_left(0)

    def test_engine_dies(self):
        self.open("--call-tree")
        self.shows("CALLS")
        self.engine.kill()
        self.shows("^vprof: the engine is gone")
        self.check_left(1)


if __name__ == "__main__":
    harness.main()
