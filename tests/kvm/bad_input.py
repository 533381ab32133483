#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""What cannot work: each has its message, exit status 1 (2 for usage), and leaves no process and no recording behind."""
import bz2
import os
import pathlib
import shutil
import struct
import subprocess
import unittest

import harness
from elf import EM_AARCH64, Segment, elf32, elf64
from harness import VMM, VPROF, guest


def bzimage(payload, unpacked_bytes):
    """Linux, Documentation/arch/x86/boot.rst: a boot sector and one more, then what is packed, and its size unpacked."""
    setup = bytearray(1024)
    struct.pack_into("<B", setup, 0x1f1, 1)  # setup_sects
    struct.pack_into("<HH4sH", setup, 0x1fe, 0xaa55, 0x6aeb, b"HdrS", 0x20f)
    struct.pack_into("<II", setup, 0x248, 0, len(payload) + 4)
    return bytes(setup) + payload + struct.pack("<I", unpacked_bytes)


class BadKernel(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def refused_kernel(self, data, message, *options, within=None):
        kernel = self.folder / "kernel"
        kernel.write_bytes(data)
        limit = ["prlimit", f"--as={within}"] if within else []
        err = self.refused(*limit, VPROF, "run", "--kernel", kernel, "-o", self.recording, *options, message=message)
        self.assertIn(str(kernel), err)
        self.assertFalse(self.recording.exists())
        self.refused(*limit, VMM, "--kernel", kernel, message="^vprof-vmm: cannot .*" + message)

    def test_a_right_one_is_not_refused(self):
        kernel = self.folder / "kernel"
        kernel.write_bytes(elf64([Segment(0x100000)]))
        self.run_program(VPROF, "run", "--kernel", kernel, "-o", self.recording, "--duration", 1)

    def test_missing(self):
        self.refused(VPROF, "run", "--kernel", self.folder / "none", message="cannot open kernel .*No such file")

    def test_a_folder(self):
        self.refused(VPROF, "run", "--kernel", self.folder, message="cannot open kernel .*directory")

    def test_empty(self):
        self.refused_kernel(b"", "empty|neither")

    def test_not_an_elf(self):
        self.refused_kernel(b"#!/bin/sh\necho hello\n" * 100, "neither")

    def test_elf32(self):
        self.refused_kernel(elf32(), "32-bit")

    def test_other_machine(self):
        self.refused_kernel(elf64([Segment(0x100000)], machine=EM_AARCH64), "machine|x86")

    def test_truncated_anywhere(self):
        whole = elf64([Segment(0x100000, bytes(256))])
        for size in (8, 63, 64, 100, len(whole) - 1):
            with self.subTest(size=size):
                self.refused_kernel(whole[:size], "neither|the file ([0-9]+;|has 0x|.0x)")

    def test_no_segments(self):
        self.refused_kernel(elf64([]), "segment|PT_LOAD")

    def test_overlapping_segments(self):
        self.refused_kernel(elf64([Segment(0x100000, bytes(64)), Segment(0x100020, bytes(64))]), "overlap")

    def test_segment_that_wraps(self):
        self.refused_kernel(elf64([Segment(0x100000), Segment(2**64 - 16, bytes(16), 4096)]),
                            "program header . has impossible sizes")

    def test_segment_outside_memory(self):
        self.refused_kernel(elf64([Segment(0x100000), Segment(0x40000000)]),
                            "segment at 0x40000000 .*0x0..0xfffffff", "--memory", "256M")

    def test_pvh_without_a_note(self):
        kernel = self.folder / "kernel"
        kernel.write_bytes(elf64([Segment(0x100000)], pvh=False))
        self.refused(VPROF, "run", "--boot", "pvh", "--kernel", kernel, message="XEN_ELFNOTE_PHYS32_ENTRY")

    def test_corrupt_bzimage_payload(self):
        bzimage = bytearray(pathlib.Path(harness.script("kernel-tiny.sh")).with_name("bzImage").read_bytes())
        middle = len(bzimage) // 2
        bzimage[middle:middle + 64] = bytes(64)
        self.refused_kernel(bytes(bzimage), "unpack|payload")

    def test_bzimage_that_unpacks_to_much(self):
        """A few kilobytes that unpack to 1 GiB, whether they say so or not, in programs with 1 GiB of address space."""
        payload = bz2.compress(bytes(64 << 20)) * 16
        self.assertLess(len(payload), 64 << 10)
        for said in 1 << 30, 64 << 20:
            with self.subTest(said=said):
                self.refused_kernel(bzimage(payload, said), "the limit is 268435456|more than [0-9]+ bytes", within=1 << 30)

    def test_cut_off_bzimage(self):
        bzimage = pathlib.Path(harness.script("kernel-tiny.sh")).with_name("bzImage").read_bytes()
        self.refused_kernel(bzimage[:len(bzimage) // 2], "unpack|payload|truncated|ends|outside|beyond")


class BadArguments(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def refused_option(self, *options, message, status=1):
        return self.refused(VPROF, "run", "--kernel", guest("hang"), "-o", self.folder / "recording", *options,
                            message=message, status=status)

    def test_no_kernel(self):
        self.refused(VPROF, "run", message="--kernel", status=2)

    def test_kernel_and_demo(self):
        self.refused_option("--demo", message="--demo", status=2)

    def test_unknown_option(self):
        self.refused_option("--colour", message="--colour", status=2)

    def test_unknown_event(self):
        self.refused_option("-e", "cylces", message="cylces.*cycles", status=2)

    def test_unknown_modifier(self):
        self.refused_option("-e", "task-clock:x", message=":x", status=2)

    def test_frequency(self):
        for value in ("0", "-5", "1000000", "99999999999999999999", "fast", "10.5", ""):
            with self.subTest(value=value):
                self.refused_option("-F", value, message=r"(?i)frequency|-F", status=2)

    def test_period(self):
        for value in ("0", "-1", "often"):
            with self.subTest(value=value):
                self.refused_option("-c", value, message=r"(?i)period|-c", status=2)

    def test_frequency_and_period(self):
        self.refused_option("-F", "100", "-c", "1000000", message="--frequency and --count exclude each other", status=2)

    def test_memory(self):
        for value in ("0", "1M", "65G", "-1G", "much", "999999999999999999999G"):
            with self.subTest(value=value):
                self.refused_option("--memory", value, message="(?i)memory", status=2)

    def test_vcpus(self):
        for value in ("0", "65", "-1", "two"):
            with self.subTest(value=value):
                self.refused_option("--vcpus", value, message="(?i)vcpus", status=2)

    def test_command_line_too_long(self):
        self.refused_option("--append", "x" * 2048, message="command line of 2048 bytes.*2047")

    def test_initramfs_missing(self):
        self.refused_option("--initrd", self.folder / "none", message="cannot open initramfs .*No such file")

    def test_a_pipe_is_no_file(self):
        """Without a writer, it would be waited for."""
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        for option in ("--initrd", "--kernel"):
            self.refused(VPROF, "run", "--kernel", guest("hang"), option, fifo, timeout=10, message="it is not a regular file")

    def test_initramfs_larger_than_memory(self):
        initrd = self.folder / "initrd"
        with open(initrd, "wb") as file:
            file.truncate(300 << 20)
        err = self.refused_option("--initrd", initrd, "--memory", "256M", message="256 MiB")
        self.assertIn(str(initrd), err)


class BadHost(harness.ProgramTest):
    def test_no_kvm(self):
        """In a mount namespace without kvm in /dev."""
        harness.need(os.geteuid() == 0, "making a mount namespace needs root")
        hide = 'mount -t tmpfs none /dev && exec "$@"'
        self.refused("unshare", "-m", "sh", "-c", hide, "sh", VPROF, "run", "--kernel", guest("hang"),
                     "-o", self.folder / "recording", message="cannot open /dev/kvm: No such file.*modprobe")

    def test_no_permission(self):
        harness.need(os.geteuid() == 0, "becoming another user needs root")
        harness.need_kvm()
        programs = self.programs_for_others()
        self.refused("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", programs / "vprof", "run",
                     "--kernel", programs / "guest-hang.elf", "-o", programs / "recording",
                     message="cannot open /dev/kvm: Permission denied.*group kvm")

    def programs_for_others(self):
        """Copies that any user can reach, whatever the rights of the folders above the build."""
        self.folder.chmod(0o755)
        programs = self.folder / "bin"
        programs.mkdir()
        for name in ("vprof", "vprof-vmm", "guest-hang.elf"):
            shutil.copy(harness.BIN / name, programs / name)
        os.chown(programs, 65534, 65534)
        return programs


class BadOutput(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def refused_output(self, path, message):
        return self.refused(VPROF, "run", "--kernel", guest("hang"), "-o", path, message=message, timeout=20)

    def test_folder_that_is_not_there(self):
        self.refused_output(self.folder / "none" / "recording", "cannot .*none/recording: No such file")

    def test_a_folder(self):
        self.refused_output(self.folder, "cannot .*directory")

    def test_not_writable(self):
        self.refused_output("/proc/version", "cannot .*/proc/version")

    def test_a_pipe(self):
        fifo = self.folder / "fifo"
        os.mkfifo(fifo)
        reader = subprocess.Popen(["cat", fifo], stdout=subprocess.DEVNULL, start_new_session=True)
        try:
            self.refused_output(fifo, "(?i)pipe|seek")
        finally:
            reader.kill()
            reader.wait()

    def test_disk_full(self):
        """What was written before is a recording all the same."""
        harness.need(os.geteuid() == 0, "mounting a small file system needs root")
        disk = self.folder / "disk"
        disk.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48k", "vprof-test", disk], check=True)
        try:
            self.refused(VPROF, "run", "--kernel", guest("hang"), "-F", 20000, "--duration", 20, "-o", disk / "recording",
                         message="disk/recording: No space left on device", timeout=40)
            _, rows = self.report(disk / "recording", "--kernel", guest("hang"))
            self.assertIn("hang_here", {row["symbol"] for row in rows})
        finally:
            subprocess.run(["umount", disk], check=True)


if __name__ == "__main__":
    harness.main()
