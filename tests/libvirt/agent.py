#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A domain with an agent on a virtio-serial port: the phases that it marks are in the recording of vprof attach, and what
its processes have mapped where the kernel does not say it."""
import contextlib
import pathlib
import re
import shutil
import socket
import struct
import time

import agent_frames
import harness
import libvirt
import perf
from agent_frames import HELLO, MAGIC, MAPPING, MAPPINGS, MAPPINGS_END, PING, PONG
from harness import VPROF

BOOT_SECONDS = 240
PROGRAM = harness.BIN / "user_spin_static"
COPY = r"clear_user|rep_stos|read_zero"
CHANNEL = """
    <channel type='unix'>
      <source mode='bind' path='{socket}'/>
      <target type='virtio' name='org.vprof.agent.0'/>
    </channel>"""
GREETING = agent_frames.frame(HELLO, struct.pack("<IIQII", MAGIC, 1, 0, 0, 0) + b"6.1")
MODULES = ("virtio/virtio", "virtio/virtio_ring", "virtio/virtio_pci_legacy_dev", "virtio/virtio_pci_modern_dev",
           "virtio/virtio_pci", "char/virtio_console")


class Agent(libvirt.LibvirtTest):
    def setUp(self):
        super().setUp()
        self.kernel = harness.script("kernel-debian.sh")
        (drivers,) = pathlib.Path(self.kernel).parents[1].glob("lib/modules/*/kernel/drivers")
        initrd = self.folder / "initrd"
        harness.script("initramfs.sh", initrd, harness.SOURCE / "tests" / "libvirt" / "agent.init",
                       harness.BIN / "vprof-agent", PROGRAM, *(drivers / f"{module}.ko" for module in MODULES))
        self.agent = self.folder / "agent.sock"
        self.console = self.libvirt.create("tcg", self.kernel, initrd, "console=ttyS0 panic=-1",
                                           devices=CHANNEL.format(socket=self.agent))
        self.recording = self.folder / "recording"

    def record(self, agent, *options, seconds=4):
        return self.run_program(*self.attach("tcg", "--agent", agent, "--duration", f"{seconds}s", "--no-report", "-o",
                                             self.recording, *options), timeout=120)[1]

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

    def check_mappings(self):
        """With a kernel image that says nothing of its types, by the agent."""
        self.bare, place = libvirt.kernel_without_types(self.kernel, self.folder), self.folder / "bin"
        place.mkdir()
        shutil.copy(PROGRAM, place)
        self.record(self.agent, "--kernel", self.bare, "--symfs", self.folder, seconds=3)
        report, rows = self.report(self.recording, "--sort", "mode,module,sym")
        user = [row for row in rows if row["mode"] == "user"]
        print(report["recording"]["missing"], user[:5], flush=True)
        self.assertTrue(any(sentence.startswith("tasks: ") for sentence in report["recording"]["missing"]))
        self.assertIn("mapped files: those that the agent in the guest has told", report["recording"]["missing"])
        spin = sum(row["samples"] for row in user
                   if (row["module"], row["symbol"]) == (f"/bin/{PROGRAM.name}", "spin_in_user_mode"))
        self.assertGreater(spin, 20)
        self.assertGreater(spin, 0.8 * sum(row["samples"] for row in user))

    def check_ambiguous(self):
        """An address that another process has, too, is ambiguous from then on. The last question is that at the end."""
        one, other = "/one/program", "/other/program"
        told = [[(10, 0x400000, one), (11, 0x400000, one), (1, 0x500000, other)], [(10, 0x400000, one), (12, 0x401000, other)]]
        asked = []

        def answer(send):
            asked.append(len(asked))
            for pid, start, path in told[min(len(asked), len(told)) - 1]:
                send(MAPPING, struct.pack("<QQQII", start, 0x2000, 0, pid, 0) + path.encode())
            send(MAPPINGS_END)

        vprof = self.begin_with_agent(answer, seconds=2)
        self.finish(vprof)
        script = perf.perf("script", "-i", self.recording, "--show-mmap-events", "-F", "ip")
        records = re.findall(r"PERF_RECORD_MMAP 0/0: \[0x([0-9a-f]+)\(0x2000\).*\]: \S+ (\S+)", script)
        print(asked, records, flush=True)
        self.assertGreaterEqual(len(asked), 2)
        self.assertEqual(records, [("400000", one), ("500000", other), ("400000", "[unmapped]")], script[:2000])

    def check_silent(self):
        """An agent that is asked and does not answer delays nothing."""
        asked = []
        vprof = self.begin_with_agent(lambda _: asked.append(True), seconds=2)
        _, err = self.finish(vprof)
        self.assertEqual(asked, [True])
        self.assertNotIn("no agent", err)

    def check_flood(self):
        """An agent that greets again and again and reads nothing is left alone."""
        vprof, connection = self.begin_with_socket(seconds=3)
        with connection, contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for _ in range(1000):
                connection.sendall(GREETING * 1000)
            self.fail("everything was read")
        self.assertIn("does not read what it is asked", self.finish(vprof)[1])

    def check_vsock(self):
        """This domain has no address there, by which it could be told from others."""
        def refused(port, message, status=1):
            self.refused(*self.attach("tcg", "--agent", f"vsock:{port}", "-o", self.recording), message=message,
                         status=status)

        refused("4294967296", "--agent vsock", status=2)
        try:
            server = socket.socket(socket.AF_VSOCK)
        except OSError as error:
            refused("4711", f"cannot listen on vsock port 4711: {error.strerror}; load the module vhost_vsock")
            return
        with server:
            server.bind((socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY))
            server.listen()
            port = server.getsockname()[1]
            refused(port, f"cannot listen on vsock port {port}: Address already in use; give another")
        refused(port, "the guest's vsock address is unknown")

    def begin_with_socket(self, seconds):
        """A recording, with the kernel that says nothing, and the end of its agent."""
        path = self.folder / "teller.sock"
        path.unlink(missing_ok=True)
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        server.bind(str(path))
        server.listen()
        vprof = self.start(*self.attach("tcg", "--agent", path, "--kernel", self.bare, "--duration", f"{seconds}s",
                                        "--no-report", "-o", self.recording))
        server.settimeout(60)
        connection = server.accept()[0]
        connection.settimeout(60)
        return vprof, connection

    def begin_with_agent(self, on_mappings, seconds):
        """The same, after it has talked to an agent which does that when it is asked."""
        vprof, connection = self.begin_with_socket(seconds)
        with connection:
            def send(kind, payload=b""):
                connection.sendall(agent_frames.frame(kind, payload))

            connection.sendall(GREETING)
            for kind, payload in agent_frames.frames(connection):
                if kind == PING:
                    send(PONG, payload[:8] + struct.pack("<Q", time.monotonic_ns()))
                elif kind == MAPPINGS:
                    on_mappings(send)
        return vprof

    def check_nobody(self):
        """A port where no agent answers: the recording is there, and it is said."""
        path = self.folder / "silent.sock"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            self.assertIn("no agent in the guest has said anything", self.record(path, seconds=1))
        self.assertEqual(self.report(self.recording)[0]["recording"]["marks"], [])
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(self.folder / "liar.sock"))
            server.listen()
            liar = self.start(*self.attach("tcg", "--agent", self.folder / "liar.sock", "--duration", "1s",
                                           "--no-report", "-o", self.recording))
            server.settimeout(60)
            with server.accept()[0] as connection:
                connection.sendall(b"\xff" * 64)
                self.assertIn("its reports are ignored from now on", self.finish(liar)[1])
        self.refused(*self.attach("tcg", "--agent", self.folder / "none.sock", "-o", self.recording),
                     message=r"cannot connect to \S+none.sock: No such file or directory; give the source of")
        self.refused(VPROF, "attach", "one", "two", "--agent", path, status=2, message="--agent apply to a single guest")

    def test_marks(self):
        self.wait_console(self.console, "init: works", BOOT_SECONDS)
        self.check_marks()
        self.check_marks()  # again: the listener has gone, and the agent has noticed
        self.check_mappings()
        self.check_ambiguous()
        self.check_silent()
        self.check_flood()
        self.check_vsock()
        self.check_nobody()


if __name__ == "__main__":
    harness.main()
