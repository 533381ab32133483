# SPDX-License-Identifier: BSD-2-Clause
"""A root folder of which what is changed stays in memory, and a container with a systemd of its own in it."""
import os
import re
import signal
import subprocess

import harness

# What a host's systemd gives its services, and a container only if it is asked.
HOSTS_OWN = "--capability=all", "--system-call-filter=@debug bpf perf_event_open"
BOOT_SECONDS = 60
COMMAND_SECONDS = 60


def mount(test, root, tree):
    """`root`, in a folder that is not there yet, gets the files of `tree`, until the test's end."""
    changed, upper, work = root.parent, root.parent / "upper", root.parent / "work"
    changed.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "none", changed], check=True)
    test.addCleanup(subprocess.run, ["umount", "--recursive", changed], check=True)
    for folder in root, upper, work:
        folder.mkdir()
    subprocess.run(["mount", "-t", "overlay", "-o", f"lowerdir={tree},upperdir={upper},workdir={work}", "none", root], check=True)


class Container:
    """A Debian with systemd as its first process, in namespaces of its own."""

    def __init__(self, test, root):
        self.manager = test.start("systemd-nspawn", "--quiet", "--directory", root, "--boot", "--register=no", "--keep-unit",
                                  "--console=pipe", "--link-journal=no", *HOSTS_OWN, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        test.addCleanup(self.end)
        harness.wait_until(lambda: self.leader() and self.run("systemctl is-system-running")[1] in ("running", "degraded"),
                           "the container's systemd", BOOT_SECONDS)

    def add_kvm(self):
        """As udev makes it."""
        device = os.stat("/dev/kvm").st_rdev
        subprocess.run(["nsenter", "--target", str(self.leader()), "--mount", "--root", "sh", "-c",
                        f"umask 117; mknod /dev/kvm c {os.major(device)} {os.minor(device)} && chgrp kvm /dev/kvm"], check=True, cwd="/")

    def leader(self):
        """systemd's process id outside."""
        return next((pid for pid in harness.children_of(self.manager.pid) if re.match(r"(/usr)?/lib/systemd/systemd\b", harness.command_line(pid))), None)

    def run(self, command):
        """(exit status, output)"""
        result = subprocess.run(["nsenter", "--target", str(self.leader()), "--all", "--root", "--wd", "env", "-i",
                                 "PATH=/usr/sbin:/usr/bin", "LC_ALL=C", "SYSTEMD_COLORS=0", "SYSTEMD_PAGER=", "sh", "-c",
                                 command], cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                text=True, check=False, timeout=COMMAND_SECONDS * harness.SLOWNESS)
        return result.returncode, result.stdout.strip()

    def end(self):
        if self.manager.poll() is None:
            leader = self.leader()
            self.manager.send_signal(signal.SIGKILL)
            if leader:
                os.kill(leader, signal.SIGKILL)
        self.manager.communicate()
