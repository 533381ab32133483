#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The engine as a service: its manager's socket, clients of every kind at once, and that sampling minds none of them."""
import json
import os
import random
import socket
import struct
import time

import harness
from engine import Client, Engine
from harness import VMM, VPROF

CLIENTS = 64
LOSSES = "dropbuf", "dropbuf-sample", "dropevt", "stalls"
FLOOD = b'{"execute":"query-schema"}\n'
SEED = 20261121
OBSERVER, INSTRUMENTER, CONTROLLER, NOBODY_KNOWN = 61001, 61002, 61003, 61004  # uids


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
        status = json.loads(self.run_program(VPROF, "ctl", "--compact", self.path, "query-status")[0])
        self.assertEqual(status["pid"], engine.pid)
        self.quit(engine)
        self.assertTrue(self.path.exists())
        notify.close()
        listener.close()

    def test_variables_of_another_process_mean_nothing(self):
        engine = self.start(*self.command, "--control", self.path,
                            env=os.environ | {"LISTEN_FDS": "1", "LISTEN_PID": "1"})
        harness.wait_for_socket(self.path)
        self.quit(engine)

    def test_a_wrong_policy_is_refused(self):
        policy = self.folder / "policy"
        policy.write_text("# comment\nroot everything\n")
        policy.chmod(0o666)
        self.refused(*self.command, "--policy", policy, message="users other than its owner may write it")
        policy.chmod(0o644)
        self.refused(*self.command, "--policy", policy, message="policy: line 2: the role must be observe")
        self.refused(*self.command, "--policy", self.folder / "none", message="cannot read the policy")

    def connect_as(self, uid):
        """The connection of another user: the engine sees who connected."""
        connection = socket.socket(socket.AF_UNIX)
        self.addCleanup(connection.close)
        os.seteuid(uid)
        try:
            connection.connect(str(self.path))
        finally:
            os.seteuid(0)
        return connection

    def denied(self, client, method, needs, has, **arguments):
        error = client.ask(method, **arguments)["error"]
        self.assertEqual(error["class"], "PermissionDenied", (method, error))
        self.assertIn(f'it needs the role "{needs}", and the engine\'s policy gives uid', error["desc"])
        self.assertTrue(error["desc"].endswith(f'only "{has}"'), error)

    def test_a_policy_says_who_may_what(self):
        if os.geteuid() != 0:
            self.skipTest("only root can connect as other users")
        self.folder.chmod(0o711)
        policy = self.folder / "policy"
        policy.write_text(f"{OBSERVER} observe\n{INSTRUMENTER} instrument  # probes and counters\n{CONTROLLER} control\n")
        policy.chmod(0o644)
        engine = self.start(*self.command, "--control", self.path, "--policy", policy)
        harness.wait_for_socket(self.path)

        observer = Client(self.connect_as(OBSERVER))
        methods = observer.execute("query-schema")["methods"]
        required = {method["name"]: [argument["name"] for argument in method["arguments"] if not argument.get("optional")]
                    for method in methods}
        self.assertEqual(observer.execute("query-status")["session"], "idle")
        self.denied(observer, "probe-add", "instrument", "observe", probe="io:*")
        self.denied(observer, "counter-allocate", "instrument", "observe", event="task-clock", mode="guest-counting")
        self.denied(observer, "control-take", "control", "observe")
        for method in methods:  # each that needs more and can be asked without arguments
            if method["role"] != "observe" and not required[method["name"]]:
                self.denied(observer, method["name"], method["role"], "observe")

        instrumenter = Client(self.connect_as(INSTRUMENTER))
        instrumenter.execute("probe-add", probe="io:*")
        counter = instrumenter.execute("counter-allocate", event="task-clock", mode="guest-counting")["counter"]
        self.denied(instrumenter, "session-start", "control", "instrument")
        self.denied(instrumenter, "quit", "control", "instrument")

        controller = Client(self.connect_as(CONTROLLER))
        controller.execute("control-take")
        controller.execute("session-start", **{"events": ["task-clock"], "frequency-hz": 100})
        # The owner of the counter counts, whatever the role.
        error = controller.ask("counter-release", counter=counter)["error"]
        self.assertEqual(error["class"], "PermissionDenied")
        with self.assertRaises(EOFError):
            Client(self.connect_as(NOBODY_KNOWN))

        roles = {client["uid"]: client["role"] for client in controller.execute("query-clients")["clients"]}
        self.assertEqual(roles, {OBSERVER: "observe", INSTRUMENTER: "instrument", CONTROLLER: "control"})
        # Root needs no line.
        root = Client.connect(self.path)
        root.execute("probe-add", probe="io:*")
        self.assertEqual(root.ask("control-take")["error"]["class"], "Busy")
        controller.execute("quit")
        for client in observer, instrumenter, controller, root:
            client.close()
        self.finish(engine, status=130)

    def losses(self, engine):
        total = engine.execute("query-stats")["total"]
        return {name: total[name] for name in LOSSES}, total["sample"]

    def reset_connection(self, client):
        """It goes as a process that is killed: without a word, and with what it did not read."""
        client.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()

    def push(self, connection, data, seconds):
        """Sends what the engine takes; how many bytes. An engine that has had enough of it disconnects."""
        sent, end = 0, time.monotonic() + seconds
        connection.settimeout(0.05)
        while sent < len(data) and time.monotonic() < end:
            try:
                sent += connection.send(data[sent:])
            except TimeoutError:
                continue
            except OSError:
                break
        return sent

    def say_rubbish(self, path, engine):
        """Random bytes; bytes that look like requests; a line without end. The engine disconnects, and goes on."""
        chance = random.Random(SEED)
        for data in (chance.randbytes(200_000), b'{"execute":' * 20_000, b"[" * 70_000 + b"\n", b"\0\n" * 100,
                     b'{"execute":"negotiate","arguments":{"protocol":1e400}}\n'):
            client = Client.connect(path, negotiate=False)
            self.push(client.connection, data, 5)
            self.reset_connection(client)
            engine.execute("query-status")

    def test_bad_clients_cost_no_sample(self):
        engine = Engine(self, harness.guest("hang"), "--vcpus", 2)
        engine.execute("session-start", **{"events": ["task-clock"], "frequency-hz": 500, "ring-bytes": 16 << 20})
        engine.execute("guest-start")
        before, samples = self.losses(engine)

        clients = [Client.connect(engine.path) for _ in range(CLIENTS)]
        for client in clients:
            client.send("query-status")
        for client in clients:
            self.assertEqual(client.answer()["return"]["session"], "running")
        self.assertEqual(len(engine.execute("query-clients")["clients"]), CLIENTS + 1)

        flooder, silent = Client.connect(engine.path), Client.connect(engine.path)
        sent = self.push(flooder.connection, FLOOD * 20_000, 1)
        self.assertLess(sent, len(FLOOD) * 20_000)  # it holds up itself
        for i in range(300):  # events for all, of which one reads none
            engine.execute("marker-add", name="x" * 63, kind="begin" if i % 2 == 0 else "end")
        self.say_rubbish(engine.path, engine)
        for client in clients:
            self.assertIn("return", client.ask("query-status"))
        self.reset_connection(flooder)
        self.reset_connection(silent)

        engine.execute("control-release")
        holder, heir = clients[:2]
        holder.execute("control-take")
        self.assertEqual(heir.ask("control-take")["error"]["class"], "Busy")
        self.reset_connection(holder)
        harness.wait_until(lambda: "return" in heir.ask("control-take"), "the control role of who died")
        heir.execute("session-flush")
        for client in clients[1:]:
            client.close()

        engine.execute("query-status")
        after, more = self.losses(engine)
        self.assertEqual(after, before)
        self.assertEqual(set(after.values()), {0})
        self.assertGreater(more, samples)
        self.assertEqual(engine.execute("query-status")["state"], "running")


if __name__ == "__main__":
    harness.main()
