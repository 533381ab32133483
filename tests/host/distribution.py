#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A Debian as it is installed: its kernel and the initramfs that it has made boot its systemd from a disk, which runs a command and
powers off. One recording has all of it: the kernel, the drivers that the initramfs has loaded, and its programs by their names."""
import collections
import re
import subprocess

import debian_root
import harness
from harness import VPROF
from linux_guest import LinuxTest

UNIT = "vprof-test.service"
UNIT_TEXT = """[Unit]
DefaultDependencies=no
SuccessAction=poweroff-force
[Service]
Type=oneshot
StandardOutput=tty
TTYPath=/dev/console
ExecStart=/bin/sh -c 'read -r init </proc/1/comm; echo "test: $$init on $$(findmnt -no SOURCE,FSTYPE /)"; echo kept >/written'
ExecStart=dd if=/dev/vda of=/dev/null iflag=direct bs=4096 count=2000 status=none
"""
APPEND = f"root=/dev/vda rw quiet systemd.unit={UNIT} systemd.gpt_auto=0"
WHOLE_MIN, SAMPLES_MIN, SECONDS = 0.998, 1000, 200
BUILT_IN = "ext4_"  # in Debian's cloud kernel


class Distribution(LinuxTest):
    def debugfs(self, command):
        return self.run_program(harness.sbin("debugfs", "e2fsprogs"), "-w", "-R", command, self.image)[0]

    def boot(self):
        image, kernel, initrd = debian_root.disk()
        self.image, unit = self.folder / "disk.img", self.folder / UNIT
        subprocess.run(["cp", "--sparse=always", image, self.image], check=True)
        unit.write_text(UNIT_TEXT)
        self.debugfs(f"write {unit} /etc/systemd/system/{UNIT}")
        return self.run_program(VPROF, "run", "--kernel", kernel, "--initrd", initrd, "--disk", self.image, "-m", "512M", "-F", 300, "-g",
                                "--append", APPEND, "-o", self.recording, "--no-report", timeout=SECONDS)[0]

    def functions(self):
        """Names of functions by the module that has them."""
        found = collections.defaultdict(set)
        for row in self.report(self.recording, "--sort", "module,sym")[1]:
            found[row["module"]].add(row["symbol"])
        return found

    def test_boot(self):
        out = self.boot()
        self.assertIn("test: systemd on /dev/vda ext4", out)
        self.assertEqual(self.debugfs("cat /written"), "kept\n")

        total, rooted, through_syscalls, others = self.kernel_chains()
        self.assertGreater(total, SAMPLES_MIN)
        self.assertGreater(rooted, WHOLE_MIN * total, others.most_common(10))
        self.assertGreater(through_syscalls, 0.2 * total)
        functions = self.functions()
        print(f"  {[(module, len(names)) for module, names in functions.items()]}", flush=True)
        self.assertTrue(any(name.startswith(BUILT_IN) for name in functions["[kernel]"]))
        for module, prefix in ("[virtio_blk]", "virt(io|blk)_"), ("[virtio_mmio]", "vm_|virtio_mmio"):
            self.assertTrue(any(re.match(prefix, name) for name in functions[module]), functions[module])
        commands = {row["comm"] for row in self.report(self.recording, "--sort", "comm")[1]}
        # The disk's programs are in no file of this host: they are read from the guest's memory.
        sources = self.report(self.recording)[0]["recording"]["unwind-tables"]["sources"]
        print(f"  unwind tables: {sources}", flush=True)
        self.assertGreater(sources.get("guest memory", 0), 1)
        library = next(names for module, names in functions.items() if "libsystemd-shared" in module)
        self.assertTrue(any(not name.startswith("libsystemd") for name in library), library)
        self.assertLessEqual({"init", "systemd-udevd", "systemd", "dd"}, commands)


if __name__ == "__main__":
    harness.main()
