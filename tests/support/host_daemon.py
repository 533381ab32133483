# SPDX-License-Identifier: BSD-2-Clause
"""`vprof daemon` with its service manager and a server for its profiles."""
import json
import os
import signal
import socket
import statistics
import threading
import time
import urllib.parse

import daemon_cost
import harness
import json_schemas
import profile_servers
import web_server
from harness import BIN, VPROF

SECONDS = 120  # until something has happened
SETTLED_SECONDS, LOOKS = 10, 5  # in the middle of which what was only needed for a profile is given back
MEMORY_MAX_MIB = 12  # of a guest: its engine's processes, and its worker in the daemon


class Server:
    """What Pyroscope, Parca and a collector are asked; answers 503 until it `works`. What it refuses by the rules of the first two
    is in `refused`."""

    def __init__(self, test):
        self.folder, self.lock = test.folder, threading.Lock()
        self.names, self.labels, self.refused, self.attempts, self.works = [], {"parca": [], "otlp": []}, [], 0, threading.Event()
        self.url = web_server.serve(test, self.respond)

    def pyroscope(self, query, body):
        name = dict(urllib.parse.parse_qsl(query))["name"]
        if not name.startswith("filler"):
            profile_servers.pyroscope(profile_servers.Pprof(self.folder, body), name, time.time())
        self.names.append(name)
        return b""

    def parca(self, _, body):
        self.labels["parca"].append(profile_servers.parca(self.folder, body[5:])[0])
        return bytes(5) + profile_servers.grpc_trailers("grpc-status: 0")

    def otlp(self, _, body):
        self.labels["otlp"].append(profile_servers.otlp_resource(self.folder, body))
        return b""

    def answer(self, url, body):
        take = {"/ingest": self.pyroscope, "/parca.profilestore.v1alpha1.ProfileStoreService/WriteRaw": self.parca,
                "/v1development/profiles": self.otlp}[url.path]
        if not self.works.is_set():
            return 503, b""
        try:
            return 200, take(url.query, body)
        except profile_servers.Refused as refused:
            self.refused.append(refused)
            return 422, str(refused).encode()

    def respond(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self.lock:
            self.attempts += 1
            status, answer = self.answer(urllib.parse.urlsplit(handler.path), body)
        handler.send_response(status)
        handler.end_headers()
        handler.wfile.write(answer)


class Manager:
    """The service manager's socket, which is always read."""

    def __init__(self, test, path):
        self.path, self.messages, self.taken = str(path), [], 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(self.path)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        test.addCleanup(self.close)

    def read(self):
        while message := self.socket.recv(4096).decode():
            self.messages.append(message)

    def close(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as end:
            end.sendto(b"", self.path)
        self.thread.join()
        self.socket.close()

    def hear(self, word):
        """Waits for a message that begins so, after the one that was heard last."""
        def heard():
            for i in range(self.taken, len(self.messages)):
                if self.messages[i].startswith(word):
                    self.taken = i + 1
                    return True
            return False
        harness.wait_until(heard, f"{word}, not {self.messages}", SECONDS)


class DaemonTest(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need(os.geteuid() == 0, "only root may load the BPF program that looks at KVM")
        harness.need((BIN / "vprof-attach").exists(), "vprof-attach is not built")
        harness.need(harness.built_with("libcurl"), "vprof was built without libcurl")
        self.name = f"daemon{os.getpid()}"
        self.server = Server(self)
        self.config, self.spool = self.folder / "daemon.conf", self.folder / "spool"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.metrics = f"127.0.0.1:{free.getsockname()[1]}"
        self.configure("first")
        self.manager = Manager(self, self.folder / "notify.sock")

    def configure(self, label, api="pyroscope", spool_mib=256, guests=None, call_graph="auto"):
        self.config.write_text(f"""
[daemon]
socket = {self.folder}/status.sock
spool = {self.spool}
spool-mib = {spool_mib}
[guests]
{guests or f'include = {self.name}*'}
[sampling]
interval = 5s
call-graph = {call_graph}
[push]
url = {self.server.url}
api = {api}
labels = run={label}
[metrics]
address = {self.metrics if harness.built_with("libmicrohttpd") else "off"}
""")

    def begin(self):
        daemon = self.start(VPROF, "daemon", "--config", self.config,
                            env=os.environ | {"NOTIFY_SOCKET": self.manager.path, "WATCHDOG_USEC": "1000000"})
        self.addCleanup(self.kill, daemon)
        self.manager.hear("READY=1")
        return daemon

    def kill(self, daemon):
        if daemon.poll() is None:
            daemon.kill()
            daemon.communicate()

    def end(self, daemon):
        """It ends its engines: nothing is left, which the harness checks."""
        daemon.send_signal(signal.SIGTERM)
        out, err = self.finish(daemon)
        self.manager.hear("STOPPING=1")
        print(out, err, flush=True)
        return err

    def status(self):
        out, _ = self.run_program(VPROF, "daemon", "--config", self.config, "status", "--json")
        return json_schemas.check(self, "daemon-status", json.loads(out))

    def only_guest(self):
        """Of the status; None if there is none."""
        guests = self.status()["guests"]
        self.assertLessEqual(len(guests), 1, guests)
        return guests[0] if guests else None

    def wait(self, condition, what):
        harness.wait_until(condition, what, SECONDS)

    def wait_for_guest(self, pid, condition=lambda guest: True):
        def there():
            guest = self.only_guest()
            return guest and guest["pid"] == pid and guest["state"] == "sampling" and condition(guest)
        self.wait(there, f"the guest of process {pid}")
        return self.only_guest()

    def memory_mib(self, daemon):
        """Of a guest, by the process; what is shared counts in proportion. None keeps a copy of the guest's kernel."""
        of_a_guest = [pid for pid, kind in daemon_cost.kinds(daemon.pid).items() if kind in daemon_cost.OF_A_GUEST]
        self.assertEqual([daemon_cost.sealed_kib(pid) for pid in of_a_guest], [0] * len(of_a_guest))
        return sum(daemon_cost.memory_kib(pid)[0] for pid in of_a_guest) / 1024

    def check_memory(self, daemon):
        """That of the only guest."""
        looks = []
        for _ in range(LOOKS):
            time.sleep(SETTLED_SECONDS / LOOKS)
            looks.append(self.memory_mib(daemon))
        mib = statistics.median(looks)
        print(f"  a guest: {mib:.2f} MiB", flush=True)
        self.assertGreater(mib, 1)
        self.assertLess(mib, MEMORY_MAX_MIB)

    def names_with(self, label):
        return [name for name in self.server.names if f"run={label}" in name]
