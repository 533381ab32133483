#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof daemon: a guest that comes and goes, a server that fails and takes, Prometheus's view of it, and its manager's."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import urllib.error
import urllib.parse
import urllib.request

import harness
import json_schemas
import web_server
from harness import BIN, VMM, VPROF

SECONDS = 120  # until something has happened
MODES = {"kernel", "user", "guest", "kvm", "vmm", "halted", "offline", "waiting", "other"}


def families(text):
    """{name: [({label: value}, number)]} of prometheus.io's text format, which is checked: each family has its help and its type
    in front, and counters are called so."""
    found, name = {}, None
    for line in text.splitlines():
        if head := re.fullmatch(r"# HELP (\w+) (\S.*\.)", line):
            name, kind = head[1], None
            assert name not in found, line
            found[name] = []
        elif head := re.fullmatch(r"# TYPE (\w+) (counter|gauge)", line):
            kind = head[2]
            assert head[1] == name and name.endswith("_total") == (kind == "counter"), line
        else:
            sample = re.fullmatch(r'(\w+)(?:\{((?:\w+="(?:[^"\\]|\\.)*",?)+)\})? ([0-9.e+-]+)', line)
            assert sample and sample[1] == name and kind, line
            found[name].append((dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', sample[2] or "")), float(sample[3])))
    return found


class Server:
    """What Pyroscope is asked; answers 503 until it `works`."""

    def __init__(self, test):
        self.names, self.attempts, self.works = [], 0, threading.Event()
        self.url = web_server.serve(test, self.respond)

    def respond(self, handler):
        url = urllib.parse.urlsplit(handler.path)
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        self.attempts += 1
        works = self.works.is_set()
        if works and url.path == "/ingest" and body:
            self.names.append(dict(urllib.parse.parse_qsl(url.query))["name"])
        handler.send_response(200 if works else 503)
        handler.end_headers()


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


class Daemon(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need(os.geteuid() == 0, "only root may load the BPF program that looks at KVM")
        harness.need((BIN / "vprof-attach").exists(), "vprof-attach is not built: libvirt-dev is missing")
        harness.need(harness.built_with("libcurl"), "vprof was built without libcurl")
        self.name = f"daemon{os.getpid()}"
        self.server = Server(self)
        self.config = self.folder / "daemon.conf"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.metrics = f"127.0.0.1:{free.getsockname()[1]}"
        self.configure("first")
        self.manager = Manager(self, self.folder / "notify.sock")

    def configure(self, label):
        self.config.write_text(f"""
[daemon]
socket = {self.folder}/status.sock
spool = {self.folder}/spool
[guests]
include = {self.name}*
[sampling]
interval = 5s
[push]
url = {self.server.url}
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

    def guest(self):
        guest = self.start(VMM, "--kernel", harness.guest("user_shares"), "--control", "none", "--name", self.name, stdout=subprocess.DEVNULL)
        self.addCleanup(self.finish, guest, status=None)
        self.addCleanup(guest.terminate)
        return guest

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

    def scrape(self, path="/metrics"):
        with urllib.request.urlopen(f"http://{self.metrics}{path}", timeout=60) as answer:
            self.assertEqual(answer.headers["Content-Type"], "text/plain; version=0.0.4; charset=utf-8")
            return answer.read().decode()

    def check_metrics(self):
        harness.need(harness.built_with("libmicrohttpd"), "vprof was built without libmicrohttpd")
        text = self.scrape()
        with self.assertRaises(urllib.error.HTTPError) as refused:
            self.scrape("/other")
        self.assertEqual(refused.exception.code, 404)
        if shutil.which("promtool"):
            checked = subprocess.run(["promtool", "check", "metrics"], input=text, text=True, check=False, capture_output=True)
            self.assertEqual((checked.returncode, checked.stdout + checked.stderr), (0, ""))
        found = families(text)
        times = found["vprof_guest_vcpu_seconds_total"]
        self.assertEqual({labels["mode"] for labels, _ in times}, MODES)
        self.assertEqual({(labels["domain"], labels["vcpu"]) for labels, _ in times}, {(self.name, "0")})
        self.assertGreater(sum(value for labels, value in times if labels["mode"] in ("kernel", "user", "guest")), 0)
        self.assertEqual([value for _, value in found["vprof_guest_up"]], [1])
        self.assertGreater(found["vprof_guest_samples_total"][0][1], 0)
        self.assertGreater(sum(value for _, value in found["vprof_guest_exits_total"]), 0)
        self.assertEqual({labels["cause"] for labels, _ in found["vprof_guest_lost_samples_total"]}, {"ring", "throttled", "discarded"})
        results = {labels["result"]: value for labels, value in found["vprof_push_profiles_total"]}
        self.assertEqual((results["refused"], results["dropped"]), (0, 0))
        self.assertGreater(results["sent"], 0)

    def names_with(self, label):
        return [name for name in self.server.names if f"run={label}" in name]

    def test_a_guest_comes_and_goes(self):
        daemon = self.begin()
        self.assertEqual(self.status()["guests"], [])
        guest = self.guest()
        self.wait_for_guest(guest.pid)

        # While the server fails, profiles wait.
        self.wait(lambda: self.server.attempts > 0 and self.status()["push"].get("spooled", 0) > 1, "profiles in the spool")
        self.assertIn("503", self.status()["push"]["why"])
        self.server.works.set()
        self.wait(lambda: self.names_with("first") and self.status()["push"]["spooled"] == 0, "profiles at the server")
        self.assertRegex(self.names_with("first")[0], rf"^vprof\{{domain={self.name},event=[\w-]+,host={socket.gethostname()},.*run=first\}}$")
        self.wait_for_guest(guest.pid, lambda guest: guest["samples"] > 0)
        self.check_metrics()
        self.manager.hear("WATCHDOG=1")

        # An engine that dies is started again.
        os.kill(self.only_guest()["engine"]["pid"], signal.SIGKILL)
        self.wait_for_guest(guest.pid, lambda guest: guest["restarts"] == 1)

        # Another configuration, and a wrong one, which changes nothing.
        self.configure("second")
        daemon.send_signal(signal.SIGHUP)
        self.manager.hear("RELOADING=1")
        self.wait(lambda: self.names_with("second"), "a profile with the new label")
        self.config.write_text("[nonsense]\nkey=value\n")
        daemon.send_signal(signal.SIGHUP)
        self.manager.hear("RELOADING=1")
        self.manager.hear("READY=1")
        self.configure("second")
        self.wait_for_guest(guest.pid)
        self.assertIn(f"\n{self.name} ", self.run_program(VPROF, "daemon", "--config", self.config, "status")[0])

        guest.terminate()
        self.wait(lambda: not self.only_guest(), "the guest's end")
        last = self.guest()
        self.wait_for_guest(last.pid)
        err = self.end(daemon)
        self.assertIn("there is no such key; the configuration stays as it was\n", err)
        self.assertIsNone(last.poll())
        self.assertFalse((self.folder / "status.sock").exists())

    def test_what_it_refuses(self):
        self.refused(VPROF, "daemon", "--config", self.config, "status", message="no daemon serves .*status.sock")
        self.refused(VPROF, "daemon", "--config", self.folder / "none", message="Failed to open file")
        self.refused(VPROF, "daemon", "again", status=2, message="expected run, status or check")
        self.refused(VPROF, "daemon", "check", "--json", status=2, message="--json goes with status")
        self.assertIn("is in order", self.run_program(VPROF, "daemon", "check", "--config", self.config)[0])
        daemon = self.begin()
        self.refused(VPROF, "daemon", "--config", self.config, message="another daemon serves")
        self.end(daemon)


if __name__ == "__main__":
    harness.main()
