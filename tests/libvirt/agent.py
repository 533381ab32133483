#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A domain with an agent on a virtio-serial port: the phases that it marks are in the recording of vprof attach."""
import pathlib
import re
import socket

import harness
import libvirt
from harness import VPROF

BOOT_SECONDS = 240
COPY = r"clear_user|rep_stos|read_zero"
CHANNEL = """
    <channel type='unix'>
      <source mode='bind' path='{socket}'/>
      <target type='virtio' name='org.vprof.agent.0'/>
    </channel>"""
MODULES = ("virtio/virtio", "virtio/virtio_ring", "virtio/virtio_pci_legacy_dev", "virtio/virtio_pci_modern_dev",
           "virtio/virtio_pci", "char/virtio_console")


class Agent(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        kernel = harness.script("kernel-debian.sh")
        (drivers,) = pathlib.Path(kernel).parents[1].glob("lib/modules/*/kernel/drivers")
        initrd = self.folder / "initrd"
        harness.script("initramfs.sh", initrd, harness.SOURCE / "tests" / "libvirt" / "agent.init",
                       harness.BIN / "vprof-agent", *(drivers / f"{module}.ko" for module in MODULES))
        self.agent = self.folder / "agent.sock"
        self.console = self.libvirt.create("tcg", kernel, initrd, "console=ttyS0 panic=-1",
                                           devices=CHANNEL.format(socket=self.agent))
        self.recording = self.folder / "recording"

    def record(self, agent, seconds=12):
        return self.run_program(*self.attach("tcg", "--agent", agent, "--duration", f"{seconds}s", "--no-report", "-o",
                                             self.recording), timeout=120)[1]

    def copying(self, *options):
        """Samples of what dd has the kernel do."""
        _, rows = self.report(self.recording, *options)
        return sum(row["samples"] for row in rows if re.search(COPY, row["symbol"]))

    def check_marks(self):
        """Begins and ends in turn, at times of the recording: what was marked ran between them."""
        err = self.record(self.agent)
        self.assertNotIn("no agent", err)
        report, _ = self.report(self.recording)
        recording = report["recording"]
        marks = [mark for mark in recording["marks"] if mark["name"] == "copy"]
        print("marks", [round((mark["time-ns"] - recording["first-ns"]) / 1e9, 2) for mark in marks], flush=True)
        self.assertGreaterEqual(len(marks), 3)
        kinds = [mark["kind"] for mark in marks]
        self.assertTrue(all(one != other for one, other in zip(kinds, kinds[1:])), kinds)
        times = [mark["time-ns"] for mark in marks]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[-1], recording["first-ns"])
        all_of_it, inside = self.copying(), self.copying("--phase", "copy")
        print("copying:", inside, "of", all_of_it, "samples in the phases", flush=True)
        self.assertGreater(all_of_it, 20)
        self.assertGreater(inside, 0.8 * all_of_it)

    def check_nobody(self):
        """A port where no agent answers: the recording is there, and it is said."""
        path = self.folder / "nobody.sock"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            self.assertIn("no agent in the guest has said anything", self.record(path, seconds=3))
        self.assertEqual(self.report(self.recording)[0]["recording"]["marks"], [])
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.folder / "liar.sock"))
            server.listen()
            liar = self.start(*self.attach("tcg", "--agent", self.folder / "liar.sock", "--duration", "3s",
                                           "--no-report", "-o", self.recording))
            server.settimeout(60)
            with server.accept()[0] as connection:
                connection.sendall(b"\xff" * 64)
                self.assertIn("its phases are no longer recorded", self.finish(liar)[1])
        self.refused(*self.attach("tcg", "--agent", self.folder / "none.sock", "-o", self.recording),
                     message=r"cannot connect to \S+none.sock: No such file or directory; it is the source of")
        self.refused(VPROF, "attach", "one", "two", "--agent", path, status=2, message="--agent are of one guest")

    def test_marks(self):
        self.wait_console(self.console, "init: works", BOOT_SECONDS)
        self.check_marks()
        self.check_marks()  # again: whoever listened has gone, and the agent has noticed
        self.check_nobody()


if __name__ == "__main__":
    harness.main()
