#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent as a service of Debian's: installed as CMake does it, started by systemd when udev finds the port."""
import contextlib
import os
import re
import signal
import socket
import struct
import subprocess
import time

import agent_frames
import debian_root
import harness
import libvirt
from agent_frames import HELLO, MAGIC, MARK, PING, PONG, READ, READ_DONE

BOOT_SECONDS = 500
COMMAND_SECONDS = 120
PROGRAM, COMPILER = harness.BIN / "user_spin_static", harness.BIN / "jit_spin"
CHANNEL = """<channel type='unix'>
  <source mode='bind' path='{socket}'/>
  <target type='virtio' name='{name}'/>
</channel>"""
MODULES = ("virtio/virtio", "virtio/virtio_ring", "virtio/virtio_pci_legacy_dev", "virtio/virtio_pci_modern_dev",
           "virtio/virtio_pci", "char/virtio_console")
# A shell of root's, for the test: on a port of its own.
SHELL_UNIT = r"""[Unit]
BindsTo=dev-virtio\x2dports-test.shell.device
After=dev-virtio\x2dports-test.shell.device multi-user.target
[Service]
ExecStart=/bin/sh -c 'exec sh <>/dev/virtio-ports/test.shell >&0 2>&0'
Restart=always
RestartSec=1
Environment=LC_ALL=C SYSTEMD_PAGER= SYSTEMD_COLORS=0
[Install]
WantedBy=dev-virtio\x2dports-test.shell.device
"""
UNIT = "vprof-agent.service"
READ_MAPPING, READ_JIT_DUMP, READ_PERF_MAP = 1, 2, 3
CAN_READ = 1
ENDED_PID = 999999
WANTS = r"etc/systemd/system/dev-virtio\x2dports-test.shell.device.wants"


class Shell:
    """Runs commands in the guest."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(str(path))
        self.received = ""

    def close(self):
        self.socket.close()

    def run(self, command, seconds=COMMAND_SECONDS):
        """(exit status, output)"""
        self.socket.sendall(f"{{ {command}\n}} </dev/null 2>&1; echo \"<$?>\"\n".encode())
        end = time.monotonic() + seconds * harness.SLOWNESS
        while not (done := re.search(r"<(\d+)>\n", self.received)):
            self.socket.settimeout(max(end - time.monotonic(), 0.01))
            piece = self.socket.recv(65536)
            if not piece:
                raise AssertionError(f"the guest is gone: {command}")
            self.received += piece.decode(errors="replace").replace("\r", "")
        out, self.received = self.received[:done.start()], self.received[done.end():]
        return int(done.group(1)), out.strip()


class AgentService(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        self.kernel = harness.script("kernel-debian.sh")
        initrd = self.folder / "initrd"
        debian_root.initramfs(initrd, self.make_overlay())
        self.agent, shell = self.folder / "agent.sock", self.folder / "shell.sock"
        self.channel = CHANNEL.format(socket=self.agent, name="org.vprof.agent.0")
        devices = CHANNEL.format(socket=shell, name="test.shell") + self.channel
        self.console = self.libvirt.create("debian", self.kernel, initrd, "console=ttyS0 panic=-1 rdinit=/sbin/init",
                                           memory=1024, devices=devices)
        self.shell = Shell(shell)
        self.addCleanup(self.shell.close)
        self.recording = self.folder / "recording"

    def make_overlay(self):
        """The agent as it is installed, which udev starts, drivers, a program, and the test's shell."""
        overlay = self.folder / "overlay"
        subprocess.run(["cmake", "--install", os.environ["VPROF_BUILD"], "--component", "agent"], check=True,
                       env=os.environ | {"DESTDIR": str(overlay)}, stdout=subprocess.DEVNULL)
        debian_root.add_modules(overlay, self.kernel, MODULES)
        system = overlay / "etc" / "systemd" / "system"
        system.mkdir(parents=True)
        (system / "test-shell.service").write_text(SHELL_UNIT)
        wants = overlay / WANTS
        wants.mkdir()
        (wants / "test-shell.service").symlink_to("/etc/systemd/system/test-shell.service")
        (overlay / "opt").mkdir()
        for program in PROGRAM, COMPILER:
            (overlay / "opt" / program.name).write_bytes(program.read_bytes())
            (overlay / "opt" / program.name).chmod(0o755)
        return overlay

    def run_in_guest(self, command, status=0):
        got, out = self.shell.run(command)
        self.assertEqual(got, status, f"{command}: {out}")
        return out

    def properties(self, *names):
        lines = self.run_in_guest(f"systemctl show {UNIT} -p {','.join(names)}").splitlines()
        values = dict(line.split("=", 1) for line in lines)
        return [values[name] for name in names]

    def wait_active(self, but=None):
        """The process that systemd runs as the service, another one than `but`."""
        found = []

        def there():
            found[:] = self.properties("ActiveState", "MainPID")
            return found[0] == "active" and found[1] not in ("0", but)

        try:
            harness.wait_until(there, f"systemd to start {UNIT}", 120)
        except AssertionError:
            print(self.run_in_guest(f"systemctl status {UNIT}; :"), flush=True)
            raise
        return found[1]

    def mark(self, name):
        """A phase that an unprivileged user marks, once there is a listener."""
        user = "setpriv --reuid=65534 --regid=65534 --clear-groups vprof-agent mark"
        self.run_in_guest("for i in $(seq 600); do [ ! -p /run/vprof-agent.marks ] || break; sleep 0.1; done; "
                          f"{user} {name} begin && sleep 1 && {user} {name} end")

    def check_unit(self):
        self.assertEqual(self.run_in_guest(f"systemd-analyze verify --man=no {UNIT}"), "")
        exposure = self.run_in_guest(f"systemd-analyze security --no-pager {UNIT} | tail -n 1")
        print(exposure, flush=True)

    def check_no_listener(self):
        """There is no pipe that takes marks while they would be lost."""
        # A shell that waits by itself: a process takes longer to start there.
        self.run_in_guest("mkfifo /tmp/silent")
        self.run_in_guest("bash -c 'for i in {1..150}; do [ ! -p /run/vprof-agent.marks ] || exit 1; read -t 0.02; done <>/tmp/silent; :'")

    def check_life(self):
        """Phases go on through a restart and a crash, and mappings are known."""
        vprof = self.start(*self.attach("debian", "--agent", self.agent, "--no-report", "-o", self.recording))
        self.addCleanup(vprof.kill)
        self.mark("first")
        pid = self.wait_active()
        self.run_in_guest(f"systemctl restart {UNIT}")
        pid = self.wait_active(but=pid)
        self.mark("restarted")
        self.run_in_guest(f"kill -KILL {pid}")
        self.wait_active(but=pid)
        self.assertEqual(self.properties("NRestarts"), ["1"])
        self.mark("crashed")
        vprof.send_signal(signal.SIGINT)
        _, err = self.finish(vprof, timeout=120)
        marks = self.report(self.recording)[0]["recording"]["marks"]
        self.assertEqual([(mark["name"], mark["kind"]) for mark in marks],
                         [(name, kind) for name in ("first", "restarted", "crashed") for kind in ("begin", "end")], err)
        times = [mark["time-ns"] for mark in marks]
        self.assertEqual(times, sorted(times))

    def check_mappings(self):
        """By the hardened service, of a process of another user's."""
        bare = libvirt.kernel_without_types(self.kernel, self.folder)
        self.program = int(self.run_in_guest(
            f"setpriv --reuid=65534 --regid=65534 --clear-groups /opt/{PROGRAM.name} 1000000 >/dev/null 2>&1 & echo $!"))
        (self.folder / "opt").mkdir()
        (self.folder / "opt" / PROGRAM.name).symlink_to(PROGRAM)
        self.run_program(*self.attach("debian", "--agent", self.agent, "--kernel", bare, "--symfs", self.folder, "--no-report",
                                      "--duration", "4s", "-o", self.recording), timeout=120)
        _, rows = self.report(self.recording, "--sort", "mode,module,sym")
        user = [row for row in rows if row["mode"] == "user"]
        print(user[:5], flush=True)
        spin = sum(row["samples"] for row in user
                   if (row["module"], row["symbol"]) == (f"/opt/{PROGRAM.name}", "spin_in_user_mode"))
        self.assertGreater(spin, 20)
        self.assertGreater(spin, 0.8 * sum(row["samples"] for row in user))

    def check_reads(self):
        """By the hardened service: what that process executes, and the perf map of one that has ended."""
        code = self.run_in_guest(f"echo >/tmp/perf-{ENDED_PID}.map; grep ' r-xp .*/opt/' /proc/{self.program}/maps").split("-")[0]
        wanted = {READ_MAPPING: (int(code, 16), self.program), READ_PERF_MAP: (0, ENDED_PID)}
        with socket.socket(socket.AF_UNIX) as agent:
            agent.settimeout(COMMAND_SECONDS)
            agent.connect(str(self.agent))
            frames = agent_frames.frames(agent)
            next(payload for kind, payload in frames if kind == HELLO)
            for what, (address, pid) in wanted.items():
                agent.sendall(agent_frames.frame(READ, struct.pack("<QIIII", address, pid, what, what, 0)))
                done = next(payload for kind, payload in frames if kind == READ_DONE)
                self.assertEqual(struct.unpack("<II", done), (what, 0))

    def check_lies(self):
        """An agent that begins anew for ever, with a mark each time: a log is not filled, and the duration holds."""
        path = self.folder / "liar.sock"
        anew = (agent_frames.frame(HELLO, struct.pack("<IIQII", MAGIC, 1, 0, 0, CAN_READ)) +
                agent_frames.frame(MARK, struct.pack("<QII", 1, 1, 0) + b"again") + agent_frames.frame(READ_DONE, struct.pack("<II", 1, 0)))
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            vprof = self.start(*self.attach("debian", "--agent", path, "--no-report", "--duration", "2s", "-o", self.recording))
            server.settimeout(COMMAND_SECONDS)
            with server.accept()[0] as agent, contextlib.suppress(OSError):
                while True:
                    agent.sendall(anew * 100)
        _, err = self.finish(vprof, timeout=60)
        self.assertRegex(err, "it began anew before its clock was known|does not read what it is asked")
        self.assertLess(len(err), 8192)

    def check_made_code(self):
        """At the end, the agent is asked to read what names the code that a process has made; here, the test is the agent."""
        pid = int(self.run_in_guest(f"/opt/{COMPILER.name} 1000000 >/dev/null 2>&1 & echo $!"))
        path, asked = self.folder / "asked.sock", set()
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            vprof = self.start(*self.attach("debian", "--agent", path, "--no-report", "--duration", "3s", "-o", self.recording))
            server.settimeout(COMMAND_SECONDS)
            with server.accept()[0] as agent:
                agent.sendall(agent_frames.frame(HELLO, struct.pack("<IIQII", MAGIC, 1, 0, 0, CAN_READ) + b"6.1"))
                for kind, payload in agent_frames.frames(agent):
                    if kind == PING:
                        agent.sendall(agent_frames.frame(PONG, payload[:8] + struct.pack("<Q", time.monotonic_ns())))
                    elif kind == READ:
                        _, process, what, number, _ = struct.unpack("<QIIII", payload)
                        asked.add((process, what))
                        agent.sendall(agent_frames.frame(READ_DONE, struct.pack("<II", number, 0)))
        self.finish(vprof, timeout=120)
        self.run_in_guest(f"kill {pid}")
        _, rows = self.report(self.recording, "--comm", COMPILER.name, "--mode", "user", "--sort", "sym")
        print(asked, rows[:3], flush=True)
        self.assertEqual(asked, {(pid, READ_JIT_DUMP), (pid, READ_PERF_MAP)})
        self.assertLessEqual({"jit one", "jit three"}, {row["symbol"] for row in rows})

    def check_port(self):
        """It ends with its port, leaves no pipe behind, and is back with the port."""
        xml = self.folder / "channel.xml"
        xml.write_text(self.channel)
        self.libvirt.virsh("detach-device", "debian", xml)
        harness.wait_until(lambda: self.properties("ActiveState") == ["inactive"], f"systemd to stop {UNIT}", 120)
        self.run_in_guest("test ! -e /run/vprof-agent.marks")
        self.libvirt.virsh("attach-device", "debian", xml)
        self.wait_active()

    def test_systemd(self):
        start = time.monotonic()
        self.assertEqual(self.shell.run("echo up", BOOT_SECONDS), (0, "up"))
        print(f"booted in {time.monotonic() - start:.0f} s", flush=True)
        self.wait_active()
        self.check_unit()
        self.check_no_listener()
        self.check_life()
        self.check_mappings()
        self.check_reads()
        self.check_made_code()
        self.check_lies()
        self.check_port()


if __name__ == "__main__":
    harness.main()
