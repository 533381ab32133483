#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Debian's kernels as their packages install them, with no option that is about the kernel."""
import collections
import functools
import os
import pathlib
import re
import shlex
import shutil
import subprocess

import debuginfod
import harness
import perf
from harness import VPROF
from linux_guest import LinuxTest

# What it does on top of that on the way to /init and back: its own tables, symbols and cryptography.
MORE = (r"orc|unwind|btf|bpf|sort|swap|cmp|ftrace|fentry|trace|static_call|jump_label|crypt|sha|hash|acpi|xas|radix|mpi|"
        r"clear_bss|thunk|returns|find_next_bit|syscall|cmdline|e820|pvclock|ktime")

WORKLOAD = ("reader 8 & lister 8 & openssl version >/dev/null; wait; driver 3; read -r line </etc/motd; echo \"motd: $line\"; "
            "mount | busybox grep ' / '; echo kept >/written; exit 7")
WHOLE_MIN, ROOTED_MIN = 0.999, 0.95  # of a boot; of a load in a system with modules
# A boot of this kernel has some 200 million instructions: enough time for a host that emulates so many in a second.
EMULATION_MIN, SECONDS = 0.4e6, 850
QUIET = "quiet"  # as Debian's installer sets it: a byte to the console is two exits, and all messages are half of a boot's time


class Kernels(LinuxTest):
    """A boot to /init and back: names and whole call chains for all of its samples."""

    def check(self, series, flavour, vcpus):
        harness.need_fast_guests(EMULATION_MIN)
        kernel = harness.script("kernel-debian.sh", series, flavour)
        self.boot(kernel, "-g", "--append", QUIET, status=0, vcpus=vcpus, hz=400, timeout=SECONDS)
        report = self.check_profile(samples_min=600, more=MORE)
        self.assertRegex(report["recording"]["release"], rf"^{re.escape(series)}\..*-{flavour}-amd64$")
        total, rooted, _, others = self.kernel_chains()
        self.assertLessEqual(total - rooted, harness.most(1 - WHOLE_MIN, total), others.most_common(10))
        _, rows = self.report(self.recording, "--sort", "cpu,mode")
        self.assertEqual({row["vcpu"] for row in rows if row["mode"] == "kernel"}, set(range(vcpus)))

    test_6_1_one_vcpu = functools.partialmethod(check, "6.1", "cloud", 1)
    test_6_1_two_vcpus = functools.partialmethod(check, "6.1", "cloud", 2)
    test_6_1_four_vcpus = functools.partialmethod(check, "6.1", "cloud", 4)
    test_6_12_one_vcpu = functools.partialmethod(check, "6.12", "cloud", 1)
    test_6_12_two_vcpus = functools.partialmethod(check, "6.12", "cloud", 2)
    test_6_12_four_vcpus = functools.partialmethod(check, "6.12", "cloud", 4)
    test_6_12_preempt_rt = functools.partialmethod(check, "6.12", "rt", 2)


class Debian(LinuxTest):
    def run_workload(self):
        """Two programs at once, in a system on a disk with a modular driver."""
        kernel = pathlib.Path(harness.script("kernel-debian.sh"))
        modules, = (kernel.parents[1] / "lib" / "modules").iterdir()
        self.image = self.folder / "root.img"
        load = pathlib.Path(os.environ["VPROF_BIN"]) / "syscall_load"
        # The beginning of its library's table is far from all that it reads when it starts.
        harness.need_program("openssl", "openssl")
        openssl = shutil.which("openssl")
        harness.script("root_image.sh", self.image, f"{load}:reader:lister:driver", openssl)
        served, = re.findall(r"/\S*libcrypto\S*", self.run_program("ldd", openssl)[0])
        self.served = f"/buildid/{debuginfod.build_id(served)}/executable"
        self.asked, environment = debuginfod.serve(self, {self.served: pathlib.Path(served).read_bytes()})
        return self.run_program(VPROF, "run", "--kernel", kernel, "--disk", self.image, "--root", "/dev/vda",
                                "--modules", modules, "--append", f"{QUIET} 8250.nr_uarts=1", "-F", 500, "-g", "-o", self.recording, "--no-report",
                                *["--debuginfod"] * harness.built_with("libdebuginfod"),
                                "--exec", shlex.join(["sh", "-c", WORKLOAD]), status=7, timeout=SECONDS, env=environment)

    def test_one_serial_port(self):
        """A kernel with one serial port, of which ACPI names no other, and without modules: the agent has the other's registers."""
        harness.need_fast_guests(EMULATION_MIN)
        kernel = harness.script("kernel-debian.sh", "6.12", "cloud")
        flood = "x" * 10000
        self.assertIn("agent: by the driver of the second serial port",
                      self.run_program(VPROF, "doctor", "--kernel", kernel, status=None)[0])
        vprof = self.start(VPROF, "run", "--kernel", kernel, "--append", f"{QUIET} 8250.nr_uarts=1 pnpacpi=off", "-F", 200, "-o", self.recording, "--no-report",
                           "--exec", "sh -c 'ls /dev; cat; exit 5'", "--add", "/bin/cat", "--add", "/bin/ls", stdin=-1)
        out, _ = self.finish(vprof, status=5, timeout=SECONDS, typed=flood)
        self.assertIn("ttyS0\n", out)
        self.assertNotIn("ttyS1\n", out)
        self.assertTrue(out.endswith(flood), out[-200:])
        self.assertGreater(self.report(self.recording)[0]["recording"]["samples"], 0)

    def check_system(self, out):
        """It ran on the disk, and what it wrote is there afterwards."""
        self.assertIn("motd: a root on a disk", out)
        self.assertRegex(out, r"/dev/(vda|root) on / type ext4 \(rw")
        self.assertEqual(len(re.findall(r"(?:reader|lister|driver): pid \d+, [1-9]\d* calls", out)), 3, out)
        kept = subprocess.run(["/usr/sbin/debugfs", "-R", "cat /written", self.image], capture_output=True, text=True,
                              check=True).stdout
        self.assertEqual(kept, "kept\n")

    def check_tasks(self, out):
        """Both programs are there with their names and pids, each mostly in the kernel, and at the same time."""
        pids = {name: int(pid) for name, pid in re.findall(r"(reader|lister): pid (\d+)", out)}
        samples = [sample for sample in perf.vprof_samples(self.recording) if sample["comm"] in pids]
        counts = collections.Counter((sample["comm"], sample["pid"], sample["mode"]) for sample in samples)
        print(f"  {dict(counts)}", flush=True)
        times = {}
        for name, pid in pids.items():
            self.assertEqual({sample["pid"] for sample in samples if sample["comm"] == name}, {pid})
            self.assertGreater(counts[name, pid, "kernel"], 500)
            times[name] = [sample["time-ns"] for sample in samples if sample["pid"] == pid]
        overlap = min(map(max, times.values())) - max(map(min, times.values()))
        self.assertGreater(overlap, 5e9)

    def check_chains(self):
        """From the last frame in user space through the kernel's entry; nearly all others from another known root."""
        total, rooted, through_syscalls, others = self.kernel_chains()
        self.assertGreater(rooted, ROOTED_MIN * total, others.most_common(10))
        self.assertGreater(through_syscalls, 1000)

    def check_modules(self):
        """The disk's driver is a module, and uses another: their functions have names."""
        _, rows = self.report(self.recording, "--sort", "module,sym")
        functions = collections.defaultdict(dict)
        for row in rows:
            if row["module"].startswith("[virtio_"):
                functions[row["module"]][row["symbol"]] = row["samples"]
        print(f"  in modules: {dict(functions)}", flush=True)
        for module, prefix in ("[virtio_blk]", "virt(io|blk)_"), ("[virtio_ring]", "(virtqueue|vring)_"):
            self.assertTrue([name for name in functions[module] if re.match(prefix, name)])
        names = {name for module in functions.values() for name in module}
        self.assertFalse([name for name in names if "+0x" in name or name == "[unknown]"])

    def check_tables(self):
        """What the guest has not read of its programs' unwind tables: a server has one of them, and the agent reads the others."""
        sources = self.report(self.recording)[0]["recording"]["unwind-tables"]["sources"]
        print(f"  unwind tables: {sources}, asked for: {self.asked}", flush=True)
        self.assertGreater(sources["guest memory (read by the agent)"], 0)
        if harness.built_with("libdebuginfod"):
            self.assertEqual(sources["debuginfod"], 1)
            self.assertEqual(self.asked.count(self.served), 1)

    def test_workload(self):
        harness.need_fast_guests(EMULATION_MIN)
        out, _ = self.run_workload()
        self.check_system(out)
        self.check_tasks(out)
        self.check_modules()
        self.check_chains()
        self.check_tables()


if __name__ == "__main__":
    harness.main()
