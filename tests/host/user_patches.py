#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Patches in programs: every call of a function is told once, in all processes or in one, while the guest moves the page that has the
patch, copies it, writes to it, truncates its file and forgets it; and afterwards the file is what it was. It needs a KVM that gives the
INT3 of a program to the VMM (host_lacks), so it is run by hand:

    tests/host/user_patches.py Patches.test_6_1 Patches.test_6_12"""
import functools
import json
import lzma
import pathlib
import re
import signal
import subprocess

import harness
from engine import Engine
from harness import VPROF

MODULES = ("drivers/virtio/virtio", "drivers/virtio/virtio_ring", "drivers/virtio/virtio_mmio", "drivers/block/virtio_blk",
           "lib/crc16", "crypto/crc32c_generic", "lib/libcrc32c", "fs/mbcache", "fs/jbd2/jbd2", "fs/ext4/ext4")
# Does what the first disk says, once.
INIT = """#!/bin/sh
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev
# Which of two needs the other depends on the kernel's version.
for name in %s; do [ ! -e /bin/$name.ko ] || busybox insmod /bin/$name.ko 2>/dev/null; done
# What is written stays in memory until it is told to go.
echo 0 >/proc/sys/vm/dirty_writeback_centisecs
busybox mkdir /mnt
busybox mount -t ext4 /dev/vdb /mnt
echo "init: ready"
last=
while :; do
	now=$(busybox dd if=/dev/vda bs=512 count=1 iflag=direct 2>/dev/null | busybox tr -d '\\0')
	[ "$now" = "$last" ] || { last=$now; eval "${now#* }"; echo "init: did ${now%%%% *}"; }
	busybox usleep 50000
done
""" % " ".join(2 * [pathlib.PurePath(name).name for name in MODULES])
CALLS = 1000  # page_calls.c
CODE, PROGRAM = "/mnt/code", "/bin/page_calls"  # on a disk, and in the initramfs
TWICE, DEPTH, NOTE = f"user:{CODE}:twice", f"user:{CODE}:depth", f"usdt:{CODE}:page:called"
# Six places, of which two are the same.
PROBES = TWICE, f"{TWICE}:return", DEPTH, f"{DEPTH}:return", NOTE
READY = 'BEGIN { printf("ready\\n"); }\n'
TROUBLE = r"BUG|Oops|WARNING|[Pp]anic|segfault|trap|Bus error|Illegal"


class Patches(harness.ProgramTest):
    def boot(self, series):
        harness.need_kvm()
        harness.need_feature("patch")
        self.kernel = pathlib.Path(harness.script("unpacked-kernel.sh", series, "cloud"))
        initrd, init, self.disk, image = (self.folder / name for name in ("initrd", "init", "disk", "image"))
        init.write_text(INIT)
        self.disk.write_bytes(bytes(4 << 20))
        program = harness.BIN / "page_calls"
        self.copies = self.folder / "copies"
        for path in CODE, PROGRAM:
            copy = self.copies / path.removeprefix("/")
            copy.parent.mkdir(parents=True)
            copy.write_bytes(program.read_bytes())
        subprocess.run([harness.sbin("mke2fs", "e2fsprogs"), "-q", "-t", "ext4", "-d", self.copies / "mnt", image, "64M"], check=True)
        files = [program]
        folder, = (self.kernel.parent / "lib" / "modules").glob("*/kernel")
        for name in MODULES:
            for packed in folder.glob(f"{name}.ko*"):
                files.append(self.folder / f"{packed.name.split('.')[0]}.ko")
                files[-1].write_bytes(lzma.decompress(packed.read_bytes()) if packed.suffix == ".xz" else packed.read_bytes())
        harness.script("initramfs.sh", initrd, init, *files)
        self.console = self.folder / "console"
        self.engine = Engine(self, self.kernel, "--initrd", initrd, "--console", self.console, "--disk", self.disk, "--disk", image,
                             "--vcpus", 2, "--append", "quiet")
        self.engine.execute("guest-start")
        self.works = 0
        harness.wait_until(lambda: "init: ready" in self.said(), "/init", 300)

    def said(self):
        return self.console.read_text(errors="replace")

    def do(self, command):
        """Has the guest do it; what it said meanwhile."""
        before = len(self.said())
        self.works += 1
        with self.disk.open("r+b") as file:
            file.write(f"{self.works} {command}".encode().ljust(512, b"\0"))
        harness.wait_until(lambda: f"init: did {self.works}\n" in self.said().replace("\r", ""), command, 300)
        said = self.said()[before:]
        self.assertNotRegex(said, TROUBLE)
        return said

    def work(self, *works, path=CODE):
        """Does all of them at once: the numbers of the processes that have called the functions, once for each time, and have computed
        what they should."""
        said = self.do("".join(f"page_calls {path} {words} & " for words in works) + "wait")
        found = re.findall(r"page calls: (\d+) (\d+)", said)
        self.assertEqual([int(result) for _, result in found], [CALLS // 4 * 3] * len(found), said)
        return [int(pid) for pid, _ in found]

    def begin(self, *options, probes=PROBES):
        script = self.folder / "script.bt"
        script.write_text(READY + "\n".join(f"{probe} {{ @[probe, pid] = count(); }}" for probe in probes))
        trace = self.start(VPROF, "trace", "-j", "--breakpoints", "patch", "--symfs", self.copies, *options, "--script", script, self.engine.path)
        self.wait_for_line(trace)
        return trace

    def end(self, trace):
        """How often each probe was hit by each process, and what it said."""
        trace.send_signal(signal.SIGINT)
        out, err = self.finish(trace, timeout=120)
        lines = [json.loads(line) for line in out.splitlines()]
        print(f"  {lines[-1]} {err}", flush=True)
        return {tuple(entry["key"]): entry["value"] for line in lines for entry in line.get("entries", [])}, err

    def check(self, trace, pids):
        """Each of these processes, as often as it is among them, has called the functions; what was said."""
        counts, err = self.end(trace)
        self.assertEqual(counts, {(probe, pid): CALLS * pids.count(pid) for probe in PROBES for pid in pids})
        return err

    def check_all(self, series):
        self.boot(series)
        self.check_counts()
        self.check_faults()
        self.check_pages()
        self.check_written()
        self.check_in_memory()
        self.check_left_behind()
        self.check_file()

    def check_counts(self):
        """More than four places, in two processes at once, and in one of them."""
        trace = self.begin()
        self.assertEqual(len(pids := self.work("wait wait call", "wait wait wait call")), 2)
        self.check(trace, pids + self.work("call"))
        said = self.do(f"page_calls {CODE} {'wait ' * 24} call & echo process $!; page_calls {CODE} {'wait ' * 24} call &")
        chosen = int(re.search(r"process (\d+)", said)[1])
        trace = self.begin("--pid", str(chosen))
        self.assertEqual(len(re.findall("page calls: ", self.do("wait"))), 2)
        self.check(trace, [chosen])

    def check_faults(self):
        """Page faults of the instructions that are patched: each is executed once, and told once."""
        probes = f"user:{CODE}:load", f"user:{CODE}:store"
        trace = self.begin(probes=probes)
        said = self.do(f"page_calls {CODE} wait wait fault")
        pid, result = map(int, re.search(r"page faults: (\d+) (\d+)", said).groups())
        self.assertEqual(result, 2 * CALLS)
        self.assertEqual(self.end(trace)[0], {(probes[0], pid): CALLS * 3 // 2, (probes[1], pid): CALLS})

    def check_pages(self):
        for what in "move", "copy", "drop wait", "cut wait":
            with self.subTest(what=what):
                trace = self.begin()
                err = self.check(trace, self.work(f"wait wait call {what} call"))
                self.assertNotIn("has written to the file", err)
                self.assertNotIn("still there", self.said())

    def check_written(self):
        """A page that is to be written to its disk has no patch any more, and gets none."""
        trace = self.begin()
        first, again = self.work("wait wait call write wait call")
        self.assertEqual(first, again)
        self.assertIn("has written to the file", self.check(trace, [first]))
        self.do(f"busybox sync; page_calls {CODE} write {'wait ' * 60} &")
        self.refused(VPROF, "trace", "--breakpoints", "patch", "--symfs", self.copies, self.engine.path, "-e", TWICE,
                     message="has written to that page")
        self.do("busybox killall page_calls; wait; busybox sync")
        trace = self.begin()
        self.check(trace, self.work("wait wait call"))

    def check_left_behind(self):
        """A process with a page of its own goes on when the patches have been removed."""
        trace = self.begin()
        before = self.said().count("page calls:")
        self.do(f"page_calls {CODE} wait wait copy call {'wait ' * 24} call &")
        harness.wait_until(lambda: self.said().count("page calls:") > before, "calls", 60)
        self.check(trace, [int(re.findall(r"page calls: (\d+)", self.said())[-1])])
        self.assertIn("page calls:", self.do("wait"))

    def check_in_memory(self):
        """A file that is never written, all pages of which are dirty."""
        probe = f"user:{PROGRAM}:twice"
        trace = self.begin(probes=[probe])
        pid, = self.work("wait wait call", path=PROGRAM)
        self.assertEqual(self.end(trace)[0], {(probe, pid): CALLS})

    def check_file(self):
        self.do("busybox sync; echo 3 >/proc/sys/vm/drop_caches")
        self.assertIn("the same", self.do(f"busybox cmp {CODE} /bin/page_calls && echo the same"))

    test_6_1 = functools.partialmethod(check_all, "6.1")
    test_6_12 = functools.partialmethod(check_all, "6.12")


if __name__ == "__main__":
    harness.main()
