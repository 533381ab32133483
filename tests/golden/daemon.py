#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof daemon without a guest: its metrics beside clients that never complete a request, and secrets in its configuration."""
import os
import re
import selectors
import signal
import socket
import subprocess
import threading
import time
import urllib.request

import harness
from harness import VPROF

SILENT, DRIPPING = 40, 40
SCRAPES = 8
SECONDS = 60 * harness.SLOWNESS  # ends what hangs
DRIP_SECONDS = 0.1
DRIPPED = b"GET /metrics HTTP/1.1\r\nHost: " + b"x" * 1000000


class Clients:
    """Connect again when they are closed, until they are told to stop."""

    def __init__(self, address):
        self.address, self.closed = address, 0
        self.selector, self.ending = selectors.DefaultSelector(), threading.Event()
        for i in range(SILENT + DRIPPING):
            self.connect(i < DRIPPING)
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def connect(self, drips):
        client = socket.create_connection(self.address)
        client.setblocking(False)
        self.selector.register(client, selectors.EVENT_READ, [drips, 0])

    def end(self, client):
        drips, _ = self.selector.unregister(client).data
        client.close()
        self.closed += 1
        self.connect(drips)

    def drip(self):
        for key in list(self.selector.get_map().values()):
            if key.data[0]:
                try:
                    key.data[1] += key.fileobj.send(DRIPPED[key.data[1]:key.data[1] + 1])
                except ConnectionError:
                    self.end(key.fileobj)

    def run(self):
        due = 0
        while not self.ending.is_set():
            for key, _ in self.selector.select(DRIP_SECONDS):
                self.end(key.fileobj)
            if time.monotonic() >= due:
                self.drip()
                due = time.monotonic() + DRIP_SECONDS

    def stop(self):
        self.ending.set()
        self.thread.join()
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()


class Metrics(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need(harness.built_with("libmicrohttpd"), "vprof was built without libmicrohttpd")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.address = free.getsockname()
        config = self.folder / "daemon.conf"
        config.write_text(f"[daemon]\nsocket = {self.folder}/status.sock\nspool = {self.folder}/spool\n[guests]\nexclude = *\n"
                          f"[metrics]\naddress = 127.0.0.1:{self.address[1]}\n")
        self.daemon = self.start(VPROF, "daemon", "--config", config)
        self.addCleanup(self.finish, self.daemon, status=None)
        self.addCleanup(self.daemon.send_signal, signal.SIGTERM)
        harness.wait_until(self.listens, "the daemon to listen")

    def listens(self):
        self.assertIsNone(self.daemon.poll())
        try:
            socket.create_connection(self.address).close()
        except ConnectionRefusedError:
            return False
        return True

    def scrape(self):
        """Seconds until the answer."""
        begin = time.monotonic()
        with urllib.request.urlopen(f"http://127.0.0.1:{self.address[1]}/metrics", timeout=SECONDS) as answer:
            self.assertIn("vprof_build_info", answer.read().decode())
        return time.monotonic() - begin

    def test_beside_requests_without_end(self):
        clients = Clients(self.address)
        self.addCleanup(clients.stop)
        taken = [self.scrape() for _ in range(SCRAPES)]
        print(f"  the slowest of {SCRAPES} scrapes took {max(taken):.3f} s; {clients.closed} requests were closed", flush=True)

    def test_a_head_that_drips_is_closed(self):
        """Even alone."""
        with socket.create_connection(self.address) as client:
            client.settimeout(DRIP_SECONDS)
            for i in range(int(SECONDS / DRIP_SECONDS)):
                try:
                    client.send(DRIPPED[i:i + 1])
                    if client.recv(1) == b"":
                        return
                except TimeoutError:
                    continue
                except ConnectionError:
                    return
        self.fail("it was not closed")

    def test_bodies_that_do_not_come(self):
        """Such clients give their places to later ones, too."""
        for _ in range(SILENT):
            client = socket.create_connection(self.address)
            self.addCleanup(client.close)
            client.sendall(b"POST /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n")
        self.scrape()


class Secrets(harness.ProgramTest):
    """The daemon starts, and `check` is content, only while others cannot read them."""

    def setUp(self):
        super().setUp()
        self.config, self.headers = self.folder / "daemon's.conf", self.folder / "headers"
        # An address of no host here: what is read, and not refused, ends here.
        self.rest = f"[daemon]\nsocket = {self.folder}/status.sock\n[metrics]\naddress = 192.0.2.1:1\n"

    def check(self, *arguments, status, **options):
        return self.run_program(VPROF, "daemon", *arguments, "--config", self.config, status=status, **options)

    def refuses(self, file, **options):
        for arguments in ("check",), ():
            _, err = self.check(*arguments, status=1, **options)
            self.assertIn(f"{file} has a secret, and other users can read it; run: chmod 600 ", err)
            self.assertNotIn("s3cr3t", err)
        return re.search("run: (.*)", err)[1]

    def test_configuration(self):
        for secret in ("url = http://me:s3cr3t@host", "headers = X-Scope-OrgID: x; X-Api-Key: s3cr3t"):
            self.config.write_text(f"{self.rest}[push]\n{secret}\n")
            for mode in 0o644, 0o640, 0o604:
                self.config.chmod(mode)
                subprocess.run(self.refuses(self.config), shell=True, check=True)
                self.assertEqual(self.config.stat().st_mode & 0o777, 0o600)
                self.check("check", status=0)

    def test_no_secret(self):
        self.config.write_text(f"{self.rest}[push]\nurl = http://me@host/a:b@c\nheaders = X-Scope-OrgID: kernel\n")
        self.config.chmod(0o644)
        self.assertIn("is in order", self.check("check", status=0)[0])

    def test_header_file(self):
        """The configuration may be read by others then."""
        self.config.write_text(f"{self.rest}[push]\nurl = http://host\nheader-file = {self.headers}\n")
        self.config.chmod(0o644)
        self.assertIn("cannot read", self.check("check", status=1)[1])
        self.headers.write_text("# for the server\n\nAuthorization: Bearer s3cr3t\n")
        self.headers.chmod(0o644)
        subprocess.run(self.refuses(self.headers), shell=True, check=True)
        self.check("check", status=0)
        self.headers.write_text("Authorization s3cr3t\n")
        _, err = self.check("check", status=1)
        self.assertIn("headers: line 1 is not NAME: VALUE", err)
        self.assertNotIn("s3cr3t", err)
        self.headers.write_text("")
        self.check("check", status=0)
        _, err = self.check("check", status=1, env=os.environ | {"VPROF_PUSH_HEADERS": "X-Scope-OrgID"})
        self.assertIn("VPROF_PUSH_HEADERS: line 1 is not NAME: VALUE", err)


if __name__ == "__main__":
    harness.main()
