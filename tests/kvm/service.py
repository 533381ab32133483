#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The engine as a service: the socket that its manager hands over, and what it tells the manager."""
import json
import os
import socket
import sys

sys.path.insert(0, os.environ["VPROF_SOURCE"] + "/tests/support")
import harness
from harness import VMM, VPROF


class Service(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.path = self.folder / "l.sock"
        self.command = [VMM, "--kernel", harness.guest("hang"), "--console", "none", "--name", "hang"]

    def quit(self, engine):
        self.run_program(VPROF, "ctl", self.path, "quit")
        self.finish(engine, status=130)

    def test_a_manager_is_told_and_its_socket_served(self):
        notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify.bind(str(self.folder / "n.sock"))
        notify.settimeout(30)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        listener.listen(4)
        # As sd_listen_fds(3) has it: the descriptor is 3, and the variables name the process.
        engine = self.start("sh", "-c", 'exec env LISTEN_PID=$$ "$@"', "sh", *self.command, pass_fds=[3],
                            preexec_fn=lambda: os.dup2(listener.fileno(), 3),
                            env=os.environ | {"LISTEN_FDS": "1", "NOTIFY_SOCKET": str(self.folder / "n.sock")})
        self.assertEqual(notify.recv(100), b"READY=1")
        status = json.loads(self.run_program(VPROF, "ctl", "-c", self.path, "query-status")[0])
        self.assertEqual(status["pid"], engine.pid)
        self.quit(engine)
        self.assertTrue(self.path.exists())
        notify.close()
        listener.close()

    def test_variables_of_another_process_mean_nothing(self):
        engine = self.start(*self.command, "--control", self.path,
                            env=os.environ | {"LISTEN_FDS": "1", "LISTEN_PID": "1"})
        harness.wait_until(self.path.exists, "the control socket")
        self.quit(engine)

    def test_a_wrong_policy_is_refused(self):
        policy = self.folder / "policy"
        policy.write_text("# comment\nroot everything\n")
        self.refused(*self.command, "--policy", policy, message="policy: line 2: the role is none of observe")
        self.refused(*self.command, "--policy", self.folder / "none", message="cannot read the policy")


if __name__ == "__main__":
    harness.main()
