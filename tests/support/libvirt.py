# SPDX-License-Identifier: BSD-2-Clause
"""A libvirtd of the test's own, and the domains that the tests of vprof attach look at.

It runs in a private mount namespace: nothing of the host's libvirt, its domains or its files is touched.
"""
import json
import os
import pathlib
import signal
import struct
import subprocess
import threading
import time

import harness

BINDS = {"etc": "/etc/libvirt", "lib": "/var/lib/libvirt", "cache": "/var/cache/libvirt", "log": "/var/log/libvirt",
         "run": "/run/libvirt"}

LIBVIRTD_CONF = """unix_sock_dir = "{folder}/sock"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_outputs = "3:file:{folder}/libvirtd.log"
"""

# As root and without a security driver, cgroups, virtlogd and a /dev of each QEMU's own: what a machine without an init system can
# have.
QEMU_CONF = """user = "root"
group = "root"
dynamic_ownership = 0
security_driver = "none"
stdio_handler = "file"
cgroup_controllers = []
namespaces = []
hugetlbfs_mount = "{folder}/huge"
"""

# SeaBIOS takes three seconds where the host emulates a guest's kernel, and starts all processors. This does neither.
SHORT_FIRMWARE = pathlib.Path("/usr/share/qemu/qboot.rom")

DOMAIN = """<domain type='{accelerator}'>
  <name>{name}</name>
  <memory unit='MiB'>{memory}</memory>
  {backing}
  <vcpu{current}>{vcpus}</vcpu>
  <os>
    <type arch='x86_64' machine='{machine}'>hvm</type>{loader}
    <kernel>{kernel}</kernel>{initrd}
    <cmdline>{append}</cmdline>
  </os>
  <features><acpi/></features>
  <on_poweroff>destroy</on_poweroff><on_reboot>restart</on_reboot><on_crash>destroy</on_crash>
  <devices>
    <emulator>/usr/bin/qemu-system-x86_64</emulator>
    <serial type='file'><source path='{console}'/><target port='0'/></serial>
    <memballoon model='none'/>{devices}
  </devices>
</domain>
"""


def need_libvirt():
    harness.need(os.geteuid() == 0, "a libvirtd of the test's own needs root")
    harness.need_program("libvirtd", "libvirt-daemon-system")
    harness.need_program("virsh", "libvirt-clients")
    harness.need_program("qemu-system-x86_64", "qemu-system-x86")


def kernel_without_types(kernel, folder):
    """A file in `folder`: the ELF in a bzImage (Linux, Documentation/arch/x86/boot.rst: setup_sects, payload_offset and
    _length), less its BTF."""
    harness.need_program("objcopy", "binutils")
    image, bare = pathlib.Path(kernel).read_bytes(), folder / "vmlinux"
    offset, length = struct.unpack_from("<II", image, 0x248)
    offset += (image[0x1f1] + 1) * 512
    with bare.open("wb") as file:
        subprocess.run(["bsdcat"], input=image[offset:offset + length], stdout=file, check=True)
    subprocess.run(["objcopy", "--remove-section", ".BTF", bare], check=True)
    return bare


class Reaper(threading.Thread):
    """Takes leave of the QEMU processes that libvirtd has started and disowned.

    They have become children of ours (harness), and libvirtd waits for their end, which a zombie has not come to: half a
    minute for each time it asks QEMU what it can do.
    """

    def __init__(self):
        super().__init__(daemon=True)
        self.done = threading.Event()

    def run(self):
        orphans = pathlib.Path(f"/proc/self/task/{os.getpid()}/children")
        while not self.done.wait(0.05):
            for pid in map(int, orphans.read_text().split()):
                self.reap(pid)

    @staticmethod
    def reap(pid):
        try:
            if pid not in harness.started and pathlib.Path(f"/proc/{pid}/comm").read_text().startswith("qemu-system"):
                os.waitpid(pid, os.WNOHANG)
        except (OSError, ChildProcessError):
            pass

    def stop(self):
        self.done.set()
        self.join()


class Libvirt:
    """The daemon. What it has started is stopped by `stop`, by process id."""

    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.socket = self.folder / "sock" / "libvirt-sock"
        self.uri = f"qemu:///system?socket={self.socket}"
        for name in [*BINDS, "sock", "huge"]:
            (self.folder / name).mkdir(parents=True, exist_ok=True)
        self.config = self.folder / "libvirtd.conf"
        self.config.write_text(LIBVIRTD_CONF.format(folder=self.folder))
        (self.folder / "etc" / "qemu.conf").write_text(QEMU_CONF.format(folder=self.folder))
        self.daemon = None

    def start(self):
        mounts = "\n".join(f"mkdir -p {to}; mount --bind {self.folder}/{name} {to}" for name, to in BINDS.items())
        # Where a kernel has no huge pages, no test asks for them.
        mounts += f"\nmount -t hugetlbfs -o pagesize=2M hugetlbfs {self.folder}/huge || :"
        run = f"exec libvirtd -f {self.config} -p {self.folder}/libvirtd.pid"
        with (self.folder / "libvirtd.err").open("w") as errors:
            self.daemon = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sh", "-e", "-c",
                                            f"{mounts}\n{run}"],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=errors,
                                           start_new_session=True)
        harness.wait_until(self.answers, f"libvirtd, which said {(self.folder / 'libvirtd.err').read_text()}", 60)

    def answers(self):
        return self.socket.exists() and self.virsh("list", check=False).returncode == 0

    def end_daemon(self):
        """Its domains live on."""
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait()
            self.daemon = None

    def stop(self):
        if self.daemon:
            for name in self.virsh("list", "--all", "--name", check=False).stdout.split():
                self.virsh("destroy", name, check=False)
        self.end_daemon()

    def virsh(self, *command, check=True):
        result = subprocess.run(["virsh", "-q", "-c", self.uri, *map(str, command)], capture_output=True, text=True,
                                timeout=120, check=False)
        if check and result.returncode != 0:
            raise AssertionError(f"virsh {command} failed: {result.stderr}")
        return result

    def create(self, name, kernel, initrd=None, append="", accelerator="qemu", vcpus=1, vcpus_now=None, memory=256,
               machine="pc", backing="", devices="", paused=False, seabios=False):
        """Starts a transient domain. Its console goes to the file that is returned."""
        console = self.folder / f"{name}.console"
        short = accelerator == "kvm" and not seabios and SHORT_FIRMWARE.exists()
        loader = f"\n    <loader type='rom'>{SHORT_FIRMWARE}</loader>" if short else ""
        text = DOMAIN.format(name=name, loader=loader, accelerator=accelerator, memory=memory, vcpus=vcpus, machine=machine,
                             current=f" current='{vcpus_now}'" if vcpus_now else "", kernel=kernel, append=append,
                             initrd=f"\n    <initrd>{initrd}</initrd>" if initrd else "", console=console,
                             backing=backing, devices=devices)
        xml = self.folder / f"{name}.xml"
        xml.write_text(text)
        self.virsh("create", xml, *(["--paused"] if paused else []))
        return console

    def pid(self, name):
        return int((self.folder / "run" / "qemu" / f"{name}.pid").read_text())

    def monitor(self, name, command, **arguments):
        request = json.dumps({"execute": command, "arguments": arguments})
        return json.loads(self.virsh("qemu-monitor-command", name, request).stdout)["return"]

    def state(self, name):
        return self.virsh("domstate", name, check=False).stdout.strip()


class LibvirtTest(harness.ProgramTest):
    """A daemon for each test class's test, stopped whatever happens; what outlives it is found by the harness."""

    def setUp(self):
        super().setUp()
        need_libvirt()
        harness.need((harness.BIN / "vprof-attach").exists(), "vprof-attach is not built: libvirt-dev is missing")
        reaper = Reaper()
        reaper.start()
        self.addCleanup(reaper.stop)
        # Paths of sockets have 107 bytes at most.
        self.libvirt = Libvirt(self.folder / "lv")
        self.addCleanup(self.libvirt.stop)
        self.libvirt.start()

    def attach(self, *arguments):
        return (harness.VPROF, "attach", "--connect", self.libvirt.uri, *arguments)

    def wait_console(self, console, text, seconds=120):
        harness.wait_until(lambda: console.exists() and text in console.read_text(errors="replace"),
                           f"{text!r} on {console}", seconds)
        return console.read_text(errors="replace")
