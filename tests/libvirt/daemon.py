#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""vprof daemon and libvirt: domains come and go with its events, and stay while it is away."""
import json
import re
import subprocess
import threading

import daemon_cost
import harness
import host_daemon
import libvirt
from harness import BIN

DOMAIN = "shares"


class Follower:
    """The lists that libvirt's events make."""

    def __init__(self, test, uri):
        self.lists = []
        self.process = subprocess.Popen([BIN / "vprof-attach", "--list", "--follow", "--connect", uri], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.thread = threading.Thread(target=self.read)
        self.thread.start()
        test.addCleanup(self.close)

    def read(self):
        for line in self.process.stdout:
            self.lists.append(json.loads(line))

    def names(self):
        return [domain["name"] for domain in self.lists[-1]] if self.lists else None

    def ask(self):
        before = len(self.lists)
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        harness.wait_until(lambda: len(self.lists) > before, "an answer")

    def close(self):
        """Returns the exit status: it ends with its input."""
        self.process.stdin.close()
        self.thread.join()
        self.process.stdout.close()
        return self.process.wait()


class Daemon(host_daemon.DaemonTest, libvirt.LibvirtTest):
    def create(self):
        self.libvirt.create(DOMAIN, harness.guest("user_shares"), accelerator="kvm", memory=128)
        return self.libvirt.virsh("domuuid", DOMAIN).stdout.strip()

    def test_domains(self):
        follower = Follower(self, self.libvirt.uri)
        harness.wait_until(lambda: follower.names() == [], "an empty list")
        self.server.works.set()
        self.configure("libvirt", guests=f"connect = {self.libvirt.uri}")
        daemon = self.begin()
        uuid = self.create()
        # It is told without a question.
        harness.wait_until(lambda: follower.names() == [DOMAIN], "the list with the domain")
        follower.ask()
        self.assertEqual(follower.names(), [DOMAIN])
        self.wait(lambda: self.names_with("libvirt"), "a profile of the domain")
        self.assertRegex(self.names_with("libvirt")[0], rf"^vprof\{{domain={DOMAIN},.*\buuid={uuid}\b.*\}}$")
        worker = self.only_guest()["worker"]["pid"]
        self.check_memory(daemon)
        # KVM tells all that is left to know: nothing of libvirt's is kept for it.
        self.assertNotIn("vprof-asker", daemon_cost.names(daemon.pid))

        # Its domains are sampled on while libvirtd is restarted.
        self.libvirt.end_daemon()
        harness.wait_until(lambda: follower.process.poll() is not None, "the follower's end")
        self.assertRegex(follower.lists[-1]["why"], "has gone away|connection")
        self.assertEqual(follower.process.returncode, 1)
        before = self.only_guest()["profiles"]
        self.wait(lambda: self.only_guest()["profiles"] > before, "another profile")
        self.libvirt.start()
        self.assertEqual((self.only_guest()["worker"]["pid"], self.only_guest()["uuid"]), (worker, uuid))

        follower = Follower(self, self.libvirt.uri)
        harness.wait_until(lambda: follower.names() == [DOMAIN], "the list")
        self.libvirt.virsh("destroy", DOMAIN)
        harness.wait_until(lambda: follower.names() == [], "the list without the domain")
        self.assertEqual(follower.close(), 0)
        self.wait(lambda: not self.only_guest(), "the domain's end")
        self.assertRegex(self.end(daemon), re.escape(self.libvirt.uri))
        self.assertEqual(self.server.refused, [])


if __name__ == "__main__":
    harness.main()
