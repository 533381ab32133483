#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The memory of the host that `vprof daemon` takes for a guest with KVM and Debian's unmodified kernel."""
import subprocess

import harness
import host_daemon
from harness import VMM

PROFILES = 3  # until then, all is read that a guest's samples need
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
while :; do busybox dd if=/dev/zero of=/dev/null bs=64k count=2000 2>/dev/null; busybox sleep 1; done
"""


class Daemon(host_daemon.DaemonTest):
    def guest(self):
        (self.folder / "init").write_text(INIT)
        harness.script("initramfs.sh", self.folder / "initrd", self.folder / "init")
        guest = self.start(VMM, "--kernel", harness.script("kernel-debian.sh"), "--initrd", self.folder / "initrd", "--memory", "256M",
                           "--append", "quiet", "--console", "none", "--control", "none", "--name", self.name,
                           stdout=subprocess.DEVNULL)
        self.addCleanup(self.finish, guest, status=None)
        self.addCleanup(guest.terminate)
        return guest

    def test_memory(self):
        harness.need_fast_guests()
        daemon = self.begin()
        guest = self.guest()
        self.wait_for_guest(guest.pid, lambda guest: guest["profiles"] >= PROFILES and "release" in guest)
        self.check_memory(daemon)
        self.end(daemon)


if __name__ == "__main__":
    harness.main()
