#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The metrics of vprof daemon, beside clients that never complete a request. Needs no guest and no rights."""
import selectors
import signal
import socket
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
        """Alone, it takes nobody's place."""
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


if __name__ == "__main__":
    harness.main()
