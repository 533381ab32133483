#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The memory of the host that `vprof daemon` takes for a guest with KVM and Debian's unmodified kernel."""
import statistics
import subprocess
import time

import daemon_cost
import harness
import host_daemon
from harness import VMM

PROFILES = 3  # until then, all is read that a guest's samples need
SETTLED_SECONDS, LOOKS = 20, 5  # in the middle of which what was only needed for that is given back
MEMORY_MAX_MIB = 12  # of a guest: its engine's processes, and its worker in the daemon
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
exec busybox dd if=/dev/zero of=/dev/null bs=64k
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

    def memory_mib(self, daemon):
        """Of a guest, by the process; what is shared counts in proportion."""
        of_a_guest = (pid for pid, kind in daemon_cost.kinds(daemon.pid).items() if kind in daemon_cost.OF_A_GUEST)
        return sum(daemon_cost.memory_kib(pid)[0] for pid in of_a_guest) / 1024

    def test_memory(self):
        harness.need_fast_guests()
        daemon = self.begin()
        guest = self.guest()
        self.wait_for_guest(guest.pid, lambda guest: guest["profiles"] >= PROFILES and "release" in guest)
        looks = []
        for _ in range(LOOKS):
            time.sleep(SETTLED_SECONDS / LOOKS)
            looks.append(self.memory_mib(daemon))
        mib = statistics.median(looks)
        print(f"  a guest: {mib:.2f} MiB", flush=True)
        self.assertGreater(mib, 1)
        self.assertLess(mib, MEMORY_MAX_MIB)
        self.end(daemon)


if __name__ == "__main__":
    harness.main()
