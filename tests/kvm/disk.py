#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""--disk: what a guest reads and writes, what it is refused, and what happens to images that cannot be used."""
import os
import subprocess

import harness
from harness import VMM, guest

SECTOR = 512
SECTORS = 16
READ_ONLY = 1 << 5  # VIRTIO_BLK_F_RO


class Disk(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.image = self.folder / "image"
        self.image.write_bytes(b"found on the disk...".ljust(SECTORS * SECTOR, b"\0"))

    def command(self, disk):
        return VMM, "--kernel", guest("virtio_blk"), "--control", "none", "--disk", disk

    def drive(self, disk):
        """The guest's lines as a dictionary, and stderr."""
        out, err = self.run_program(*self.command(disk), timeout=30)
        lines = [line.removeprefix("virtio_blk: ") for line in out.splitlines()]
        return {line.rpartition(" ")[0]: line.rpartition(" ")[2] for line in lines if line[-1:].isalnum()}, lines, err

    def check_found(self, values, lines):
        self.assertEqual((values["magic"], values["version"], values["device"]), ("74726976", "2", "2"))
        self.assertEqual((values["queue"], values["capacity"]), ("80", f"{SECTORS:x}"))
        self.assertEqual(values["next device"], "ffffffff")
        self.assertEqual(values["read"], "0")
        self.assertIn("sector 0: found on the disk...", lines)
        self.assertIn("is vprof-disk-0", lines)

    def check_refused(self, values, err):
        """Requests that make no sense fail, and rings that make none stop the device until its reset."""
        for refused in "past the end", "far past the end", "half a sector":
            self.assertEqual(values[refused], "1", refused)
        self.assertEqual(values["nonsense"], "2")
        self.assertEqual((values["loop"], values["not in RAM"], values["again"]), ("40", "40", "0"))
        self.assertRegex(err, "virtio-blk: the guest's driver broke a rule: a chain longer than the queue")
        self.assertEqual(err.count("broke a rule"), 1)

    def test_read_and_write(self):
        values, lines, err = self.drive(self.image)
        self.check_found(values, lines)
        self.assertEqual((values["write"], values["flush"], values["id"]), ("0", "0", "0"))
        self.assertEqual((values["interrupt"], values["acknowledged"]), ("1", "0"))
        self.assertIn("sector 1: written by the guest", lines)
        self.check_refused(values, err)
        expected = b"found on the disk...".ljust(SECTOR, b"\0") + (b"written by the guest" * 52)[:2 * SECTOR]
        self.assertEqual(self.image.read_bytes(), expected.ljust(SECTORS * SECTOR, b"\0"))

    def test_read_only(self):
        before = self.image.read_bytes()
        self.image.chmod(0o444)
        values, lines, _ = self.drive(f"{self.image},ro")
        self.check_found(values, lines)
        self.assertEqual(int(values["features"], 16) & READ_ONLY, READ_ONLY)
        self.assertEqual(values["write"], "1")
        self.assertEqual(self.image.read_bytes(), before)

    def test_flush_is_synchronous(self):
        """What a flush has answered is on the disk: fdatasync comes between the request and its answer."""
        harness.need_program("strace", "strace")
        trace = self.folder / "trace"
        self.run_program("strace", "-f", "-e", "trace=pwritev,fdatasync", "-o", trace, *self.command(self.image))
        calls = [line.split()[1].partition("(")[0] for line in trace.read_text().splitlines() if "(" in line]
        self.assertEqual([call for call in calls if call in ("pwritev", "fdatasync")], ["pwritev", "fdatasync"])

    def test_full_disk(self):
        """The guest gets an error, we say which one, and the guest goes on."""
        harness.need(os.geteuid() == 0, "only root can mount")
        full = self.folder / "full"
        full.mkdir()
        script = ("mount -t tmpfs -o size=64k none $0 && truncate -s 1M $0/image && "
                  "{ cat /dev/zero >$0/rest; true; } 2>/dev/null && shift && exec \"$@\"")
        out, err = self.run_program("unshare", "--mount", "sh", "-c", script, full, "-", *self.command(full / "image"))
        self.assertIn("virtio_blk: write 1", out)
        self.assertIn("virtio_blk: again 0", out)
        self.assertEqual(err.count("No space left on device"), 1, err)

    def test_images_that_cannot_be_used(self):
        refused = {self.folder / "none": "disk image .*none: No such file",
                   self.folder: "neither a file nor a block device|Is a directory",
                   "/dev/null": "neither a file nor a block device",
                   ",ro": "expected IMAGE or IMAGE,ro"}
        for disk, message in refused.items():
            self.refused(*self.command(disk), message=message, status=2 if disk == ",ro" else 1)
        self.image.write_bytes(b"short")
        self.refused(*self.command(self.image), message="less than one sector")

    def test_one_writer(self):
        """A second guest is refused; two that only read are not."""
        hang = (VMM, "--kernel", guest("hang"), "--control", "none", "--disk")
        first = self.start(*hang, self.image, stderr=subprocess.DEVNULL)
        self.assertIn("hang: ", first.stdout.readline())
        self.refused(*self.command(self.image), message="another guest uses it")
        first.terminate()
        self.finish(first, status=None)
        reader = self.start(*hang, f"{self.image},ro", stderr=subprocess.DEVNULL)
        self.assertIn("hang: ", reader.stdout.readline())
        self.drive(f"{self.image},ro")
        reader.terminate()
        self.finish(reader, status=None)


if __name__ == "__main__":
    harness.main()
