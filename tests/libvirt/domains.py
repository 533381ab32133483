#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Domains that differ in what libvirt gives them: memory, who looks on already, and how far they have come."""
import collections
import itertools
import os
import pathlib
import re
import signal
import subprocess

import harness
import libvirt
import perf
from harness import VPROF

HUGE_PAGES = pathlib.Path("/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages")
MEMORY_MIB = 128
CHAIN = re.compile("guest;user_main(;three_quarters|;one_quarter)?(;exit:vmm)?")


class Domains(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.image = harness.guest("user_shares")
        self.recording = self.folder / "recording"

    def create(self, **options):
        console = self.libvirt.create("shares", self.image, accelerator="kvm", memory=MEMORY_MIB, **options)
        if not options.get("paused"):
            self.wait_console(console, "one_quarter", 60)
        return console

    def record(self, *options, recording=None):
        return self.run_program(*self.attach("shares", "--kernel", self.image, "--duration", "3s", "-o",
                                             recording or self.recording, *options), timeout=120)

    def check_chains(self):
        """Whole chains, and their functions by name: both come out of the guest's memory."""
        folded = self.run_program(VPROF, "export", "-t", "folded", "-i", self.recording)[0]
        weights = {stack: int(weight) for stack, weight in (line.rsplit(" ", 1) for line in folded.splitlines())}
        known = sum(weight for stack, weight in weights.items() if CHAIN.fullmatch(stack))
        print("chains", weights, flush=True)
        self.assertGreater(len(perf.vprof_samples(self.recording)), 50)
        self.assertGreater(known, 0.99 * sum(weights.values()))

    def check_memory(self, backing):
        """Memory that QEMU has mapped in another way is read as well, by each route that reads it."""
        self.create(backing=backing)
        for route in "bpf", "monitor":
            self.record("-g", "--route", route)
            self.check_chains()

    def test_memfd(self):
        self.check_memory("<memoryBacking><source type='memfd'/></memoryBacking>")
        self.assertIn("memfd:", pathlib.Path(f"/proc/{self.libvirt.pid('shares')}/maps").read_text())

    def reserve_huge_pages(self, pages):
        harness.need(HUGE_PAGES.exists(), "this kernel has no huge pages of 2 MiB")
        before = HUGE_PAGES.read_text()
        self.addCleanup(HUGE_PAGES.write_text, before)
        HUGE_PAGES.write_text(str(int(before) + pages))
        harness.need(int(HUGE_PAGES.read_text()) >= int(before) + pages, f"no room for {pages} huge pages of 2 MiB")

    def test_hugepages(self):
        self.reserve_huge_pages(MEMORY_MIB // 2 + 4)
        self.check_memory("<memoryBacking><hugepages><page size='2048' unit='KiB'/></hugepages></memoryBacking>")
        smaps = pathlib.Path(f"/proc/{self.libvirt.pid('shares')}/smaps").read_text()
        self.assertRegex(smaps, r"KernelPageSize: +2048 kB")

    def test_twice(self):
        self.create()
        vprof = self.start(*self.attach("shares", "--kernel", self.image, "--no-report", "-o", self.folder / "first"))
        self.addCleanup(vprof.kill)
        harness.wait_until(lambda: (self.folder / "first").exists(), "the first recording")
        engine = harness.child(vprof.pid, "vprof-attach")
        self.refused(*self.attach("shares", "-o", self.recording),
                     message=rf"cannot listen on \S+/shares.sock: it is in use by process {engine} \(vprof-attach\), "
                             r"which has a guest of this name; look on with `vprof top`")
        self.assertFalse(self.recording.exists())
        self.run_program(VPROF, "top", "shares", "--interval", "1", timeout=120)
        # By another name it is another guest, which perf and BPF do not mind.
        self.run_program(VPROF, "attach", "--pid", self.libvirt.pid("shares"), "--duration", "2s", "--no-report", "-o",
                         self.recording)
        self.assertGreater(len(perf.vprof_samples(self.recording)), 50)
        vprof.send_signal(signal.SIGINT)
        self.finish(vprof)
        self.assertGreater(len(perf.vprof_samples(self.folder / "first")), 50)
        self.record()

    def test_firmware(self):
        """Before there is a kernel, that is what is said, and the kernel is found once it runs."""
        console = self.create(paused=True)
        doctor = self.run_program(VPROF, "doctor", "--connect", self.libvirt.uri, "shares")[0]
        self.assertRegex(doctor, r"note +kernel +the guest is still in its firmware or boot loader, .*vCPU 0 is not in long")
        vprof = self.start(*self.attach("shares", "--kernel", self.image, "--no-report", "-o", self.recording))
        self.addCleanup(vprof.kill)
        harness.wait_until(self.recording.exists, "the recording")
        self.libvirt.virsh("resume", "shares")
        self.wait_console(console, "one_quarter", 60)
        said = list(itertools.takewhile(lambda line: "symbols are taken from it from now on" not in line,
                                        iter(vprof.stderr.readline, "")))
        self.assertIn("the guest is still in its firmware", "".join(said))
        end = os.stat(self.recording).st_size + 4096
        harness.wait_until(lambda: os.stat(self.recording).st_size > end, "samples", 120)
        vprof.send_signal(signal.SIGINT)
        self.finish(vprof)
        symbols = {sample["symbol"] for sample in perf.vprof_samples(self.recording)}
        self.assertTrue({"three_quarters", "one_quarter"} <= symbols, symbols)



class Session(libvirt.LibvirtTest):
    """A user without rights, and a libvirtd and domain of that user's own."""

    USER = 65534

    def as_user(self, *command):
        home = self.folder / "home"
        return ("setpriv", f"--reuid={self.USER}", f"--regid={self.USER}", "--clear-groups", "env", f"HOME={home}",
                f"XDG_RUNTIME_DIR={home}/run", f"XDG_CONFIG_HOME={home}", f"XDG_CACHE_HOME={home}", *command)

    def make_home(self):
        home = self.folder / "home"
        (home / "libvirt").mkdir(parents=True)
        (home / "run").mkdir(mode=0o700)
        (home / "libvirt" / "qemu.conf").write_text('stdio_handler = "file"\nsecurity_driver = "none"\n'
                                                    'cgroup_controllers = []\n')
        kernel = home / "kernel"
        kernel.write_bytes(harness.guest("user_shares").read_bytes())
        (home / "domain.xml").write_text(libvirt.DOMAIN.format(
            name="mine", loader="", accelerator="qemu", memory=64, vcpus=1, machine="pc", current="", kernel=kernel, append="",
            initrd="", console=home / "console", backing="", devices=""))
        self.folder.chmod(0o711)
        for path in [home, *home.rglob("*")]:
            os.chown(path, self.USER, self.USER)
        return home

    def virsh(self, *command):
        return self.run_program(*self.as_user("virsh", "-q", "-c", "qemu:///session", *command), status=None)

    def vprof(self, *command, **options):
        return self.run_program(*self.as_user(VPROF, *command), cwd=self.folder / "home", **options)

    def test_rootless(self):
        home = self.make_home()
        able = self.start(*self.as_user(VPROF, "version"))
        able.communicate()
        harness.need(able.returncode == 0, f"user {self.USER} may not run {VPROF}")
        with (home / "log").open("w") as log:
            daemon = self.start(*self.as_user("libvirtd"), stdout=log, stderr=subprocess.STDOUT)
        self.addCleanup(daemon.wait)
        self.addCleanup(daemon.terminate)
        harness.wait_until(lambda: self.virsh("list")[0] is not None and (home / "run/libvirt/libvirt-sock").exists(),
                           "libvirtd", 60)
        self.addCleanup(self.virsh, "destroy", "mine")
        self.run_program(*self.as_user("virsh", "-q", "-c", "qemu:///session", "create", home / "domain.xml"), timeout=120)
        self.wait_console(home / "console", "one_quarter", 60)
        connect = "--connect", "qemu:///session"
        doctor, _ = self.vprof("doctor", *connect, "mine")
        self.assertRegex(doctor, r"ok +guest +mine, 1 vCPUs, accelerator tcg, process \d+ of user nobody\n")
        self.assertRegex(doctor, r"ok +memory +the guest's RAM can be read")
        self.assertRegex(doctor, r"ok +default +monitor")
        attach = self.start(*self.as_user(VPROF, "attach", *connect, "mine", "--kernel", home / "kernel", "-g", "--duration", "5s", "-o",
                                          home / "data"), cwd=home)
        harness.wait_until((home / "data").exists, "the recording", 60)
        self.check_namespaces(harness.child(attach.pid, "vprof-attach"), self.USER)
        _, err = self.finish(attach)
        self.assertIn("route monitor", err)
        symbols = collections.Counter(sample["symbol"] for sample in perf.vprof_samples(home / "data"))
        print(symbols, flush=True)
        self.assertGreater(symbols.total(), 20)
        self.assertEqual({symbol for symbol, _ in symbols.most_common(2)}, {"three_quarters", "one_quarter"})


if __name__ == "__main__":
    harness.main()
