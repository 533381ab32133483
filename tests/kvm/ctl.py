#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""`vprof ctl`, and the protocol by hand, against a live engine."""
import base64
import json
import os
import pty
import select
import sys
import time

sys.path.insert(0, os.environ["VPROF_SOURCE"] + "/tests/support")
import harness
from harness import BIN, VMM, VPROF


class Ctl(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.socket = self.folder / "hang.sock"
        self.engine = self.start(VMM, "--kernel", harness.guest("hang"), "--console", "none", "--name", "hang",
                                 "--control", self.socket, "--vcpus", "2")
        harness.wait_for_socket(self.socket)

    def tearDown(self):
        if self.engine.poll() is None:
            self.run_program(VPROF, "ctl", self.socket, "quit")
        self.finish(self.engine, status=130)
        super().tearDown()

    def ctl(self, *words):
        return json.loads(self.run_program(VPROF, "ctl", "--compact", self.socket, *words)[0])

    def test_the_schema_is_the_one_in_the_manual(self):
        documented = json.loads(self.run_program(BIN / "control-docs", "json")[0])
        self.assertEqual(self.ctl("query-schema"), documented)

    def test_a_session_word_by_word(self):
        usable = {event["name"] for event in self.ctl("query-host")["events"] if event["usable"]}
        clock = "task-clock" if "task-clock" in usable else "timer"
        started = self.ctl("session-start", f"events={clock}:u,{clock}", "frequency-hz=500", "tasks=false")
        self.assertEqual([event["name"] for event in started["events"]], [f"{clock}:u", clock])
        answer = self.ctl("samples-read", "vcpu=0", "timeout-ms=10000")
        self.assertGreater(len(base64.b64decode(answer["data"])), 0)
        self.assertEqual(answer["session"], started["session"])
        self.ctl("sample-add", "ip=0xffffffff81000000", "mode=user")
        # No client has held the role since, and the session goes on.
        self.assertEqual(self.ctl("query-status")["session"], "running")
        stopped = self.ctl("session-stop")
        self.assertEqual(stopped["statistics"]["total"]["added"], 1)
        self.assertEqual(stopped["statistics"]["total"]["dropevt"], 0)

    def test_the_trace_has_what_was_asked_for(self):
        self.assertEqual(self.ctl("trace-set"),
                         {"exits": False, "phases": False, "console": False, "requests": False})
        self.ctl("trace-set", "what=requests")
        self.ctl("trace-write", "text=by hand", "vcpu=1")
        self.ctl("trace-write", "text=two\nlines", "vcpu=0", "stack=true")
        self.refused(VPROF, "ctl", self.socket, "trace-write", "text=x", "stack=true", status=2, message='"stack" of trace-write needs "vcpu"')
        self.refused(VPROF, "ctl", self.socket, "trace-write", "text=x", "vcpu=2", status=2, message="there is no vCPU 2")
        self.refused(VPROF, "ctl", self.socket, "trace-read", "offset=999999", status=2, message="InvalidArgument: the trace ends")
        answer = self.ctl("trace-read")
        self.assertRegex(answer["text"], r"\A\[\d+\.\d{9}\]:vmm: pid \d+ \(uid \d+\): trace-set: done\n")
        self.assertRegex(answer["text"], r"\n\[\d+\.\d{9}\]:vcpu1: by hand\n")
        self.assertRegex(answer["text"], r"trace-read: InvalidArgument\n")
        self.assertRegex(answer["text"], r"(?s)(\n\[\d+\.\d{9}\]:vcpu0: )two\1lines\1\tBacktrace:\1\thang_here\+0x\w+\1\t[a-z]\w+\+0x")
        self.assertFalse(self.ctl("trace-set", "what=requests", "state=toggle")["requests"])
        rest = self.ctl("trace-read", f"offset={answer['next']}")
        self.assertEqual((rest["offset"], rest["missed"]), (answer["next"], 0))
        self.assertTrue(rest["text"].startswith("["))

    def test_errors_are_said(self):
        for words, message, status in [(["nonsense"], "CommandNotFound: there is no method", 2),
                                       (["samples-read", "vcpu=7"], "InvalidArgument: there is no vCPU 7: guest hang has 2", 2),
                                       (["samples-read", "vcpu=x"], 'InvalidArgument: argument "vcpu"', 2),
                                       (["query-status", "word"], '"word" is no argument; write KEY=VALUE', 2),
                                       (["session-stop"], "WrongState: cannot stop a session: none is running", 1)]:
            with self.subTest(words):
                self.refused(VPROF, "ctl", self.socket, *words, message=message, status=status)

    def test_the_holder_is_named(self):
        """By the numbers that it has outside of the engine's namespaces."""
        self.ctl("query-status")  # it answers when it has given up its rights
        self.check_namespaces(self.engine.pid)
        holder = self.start(VPROF, "ctl", self.socket, stdin=-1)
        try:
            holder.stdin.write("control-take\n")
            holder.stdin.flush()
            harness.wait_until(lambda: any(client["role"] == "control"
                                           for client in self.ctl("query-clients")["clients"]), "the holder")
            self.refused(VPROF, "ctl", self.socket, "session-start",
                         message=rf"Busy: cannot execute session-start: pid {holder.pid} \(uid {os.getuid()}\)")
        finally:
            self.finish(holder, typed="exit\n")
        self.ctl("session-start")

    def test_lines_are_read(self):
        lines = ["query-status", "", "nonsense", "samples-read 'vcpu=0", "help samples-read", "exit", "query-guest"]
        out, err = self.finish(self.start(VPROF, "ctl", "--compact", self.socket, stdin=-1), typed="\n".join(lines) + "\n")
        self.assertEqual(json.loads(out.splitlines()[0])["state"], "running")
        self.assertIn("timeout-ms: maximum time", out)
        self.assertNotIn("command-line", out)
        self.assertRegex(err, "CommandNotFound")

    def test_a_terminal_completes_and_protects_the_guest(self):
        pid, terminal = pty.fork()
        if pid == 0:
            os.environ["TERM"] = "xterm"
            os.execv(VPROF, ["vprof", "ctl", "--compact", str(self.socket)])
        try:
            self.expect(terminal, "hang> ")
            libedit = "libedit" in self.run_program(VPROF, "version")[0]
            os.write(terminal, b"query-gu\t\n" if libedit else b"query-guest\n")
            self.expect(terminal, "quirks")
            os.write(terminal, b"quit\n")
            self.expect(terminal, "repeat it")
            os.write(terminal, b"exit\n")
            self.expect_end(terminal)
        finally:
            os.close(terminal)
            status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.assertEqual(status, 0)
        self.assertEqual(self.ctl("query-status")["state"], "running")

    def expect_end(self, terminal, seconds=20):
        """Its last words are read: a terminal that is closed before would end it by SIGHUP."""
        end = time.monotonic() + seconds * harness.SLOWNESS
        try:
            while select.select([terminal], [], [], max(0, end - time.monotonic()))[0]:
                os.read(terminal, 4096)
        except OSError:  # EIO: the other side is closed
            return
        self.fail(f"still there after {seconds} s")

    def expect(self, terminal, text, seconds=20):
        seen, end = "", time.monotonic() + seconds
        while text not in seen:
            ready = select.select([terminal], [], [], max(0, end - time.monotonic()))[0]
            self.assertTrue(ready, f"no {text!r} in {seen!r}")
            seen += os.read(terminal, 4096).decode(errors="replace")

    def test_events_are_printed(self):
        listener = self.start(VPROF, "ctl", "--events", self.socket)
        harness.wait_until(lambda: len(self.ctl("query-clients")["clients"]) == 2, "the listener")
        self.ctl("guest-stop")
        out, _ = self.finish(listener)
        self.engine.wait(30)
        self.assertEqual(json.loads(out)["event"], "guest-ended")

    def test_socat_is_enough(self):
        harness.need_program("socat", "socat")
        requests = '{"execute":"negotiate","arguments":{"protocol":1}}\n{"execute":"query-status","id":"x"}\n'
        out, _ = self.finish(self.start("socat", "-t", "10", "-", f"UNIX-CONNECT:{self.socket}", stdin=-1),
                             typed=requests)
        greeting, negotiated, status = map(json.loads, out.splitlines())
        self.assertEqual(greeting["vprof"]["guest"]["name"], "hang")
        self.assertEqual(negotiated, {"return": {"protocol": 1}})
        self.assertEqual((status["id"], status["return"]["state"]), ("x", "running"))


if __name__ == "__main__":
    harness.main()
