# SPDX-License-Identifier: BSD-2-Clause
"""A stock arm64 KVM host on an x86-64 machine: Debian's kernel with EL2, a GICv3 and a PMU that counts, inside QEMU's TCG. Its root is
that of the machine, which has Debian's libraries of both architectures. It boots, runs one script and powers off."""
import os
import pathlib
import re
import shutil
import subprocess

import harness

HERE = pathlib.Path(__file__).resolve().parent
MODULES = "9pnet_virtio", "9p", "overlay"  # to mount the root
INIT = HERE / "arm64.init"
ARM64 = harness.SOURCE / "build" / "arm64" / "bin"
# Unit tests of vprof-parse and of what it is built with, of perf events, seccomp filters and other processes: what emulates one process of
# arm64 has none of that. arm64_unit.py runs the others, ten times as fast.
UNIT_TESTS = {
    "control_answers", "core_file", "counter_event", "keeper", "parser", "privilege", "sandbox", "session_off_cpu", "session_steps", "session_wall",
}

SECTION = "section: "
SHOWN = 2000  # of the end of what a job has printed that does not end
# give_way PROGRAM...: for a guest that never waits, beside its clients.
JOB_BEGIN = f"""
cat >/run/bin/give_way <<'END'
#!/bin/sh
renice -n 19 -p $$ >/dev/null
exec "$@"
END
chmod +x /run/bin/give_way
section() {{
	echo "{SECTION}$1 $(cut -d ' ' -f 1 /proc/uptime)"
}}
"""


def need_build():
    harness.need((ARM64 / "vprof").exists(), "there is no cross build: cmake --preset arm64 && cmake --build --preset arm64")


def need_host():
    need_build()
    harness.need_program("bsdtar", "libarchive-tools")
    harness.need(os.path.exists("/lib/ld-linux-aarch64.so.1"), "the libraries for arm64 are missing; install the package libglib2.0-dev:arm64")


def module_files(kernel, modules):
    """The files of these modules, each after those that it needs."""
    package, version = kernel.parents[1], kernel.name.removeprefix("vmlinuz-")
    if not (package / "lib/modules" / version / "modules.dep").exists():
        subprocess.run(["depmod", "-b", package, version], check=True)
    listed = subprocess.run(["modprobe", "-d", package, "-S", version, "--show-depends", "-a", *modules], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    words = (line.split() for line in listed.splitlines())
    return list(dict.fromkeys(pathlib.Path(word[1]) for word in words if word[0] == "insmod"))


def unpacked(module, folder):
    if module.suffix != ".xz":
        return shutil.copy(module, folder)
    target = folder / module.stem
    target.write_bytes(subprocess.run(["xz", "-dc", module], check=True, stdout=subprocess.PIPE).stdout)
    return target


def make_initrd(folder, kernel):
    root = folder / "root"
    modules = root / "lib/modules"
    for place in "bin", "dev", "lower", "proc", "root", "rw", "sys":
        (root / place).mkdir(parents=True)
    modules.mkdir(parents=True)
    names = [pathlib.Path(unpacked(module, modules)).name for module in module_files(kernel, MODULES)]
    (root / "modules").write_text("".join(f"{name}\n" for name in names))
    busybox = pathlib.Path(harness.script("package-arm64.sh", "busybox-static")) / "bin/busybox"
    shutil.copy(busybox, root / "bin/busybox")
    shutil.copy(INIT, root / "init")
    initrd = folder / "initrd"
    subprocess.run(["bsdtar", "-cf", initrd, "--format", "newc", "--uid", "0", "--gid", "0", "-C", root, *os.listdir(root)], check=True)
    return initrd


class Arm64Host:
    def __init__(self, test):
        self.test = test
        self.folder = test.folder / "host"
        self.shared = self.folder / "shared"
        self.shared.mkdir(parents=True)

    def sections(self, job, seconds, icount=None):
        """What a shell script prints there, by the names that it gives to `section`."""
        out, _ = self.run(JOB_BEGIN + job, seconds, icount)
        parts = re.split(rf"^{SECTION}(\w+) ([\d.]+)\n", out, flags=re.M)[1:]
        print("sections begin:", ", ".join(f"{name} {at} s" for name, at in zip(parts[::3], parts[1::3])), flush=True)
        return dict(zip(parts[::3], parts[2::3]))

    def run(self, job, seconds, icount=None):
        """What a shell script prints there, where this folder is /run/shared, and its exit status. icount: QEMU's option, with
        which the host's time is a number of instructions."""
        kernel = pathlib.Path(harness.script("kernel-debian.sh", "6.12", "arm64"))
        initrd = make_initrd(self.folder, kernel)
        (self.shared / "job").write_text(job)

        def share(path, tag, *options):
            return "-virtfs", ",".join(("local", f"path={path}", f"mount_tag={tag}", "security_model=none", "multidevs=remap", *options))

        output, status = self.shared / "output", self.shared / "status"
        try:
            console, _ = self.test.run_program(
                *harness.script("emulator.sh", "aarch64").splitlines(), "-machine", "virt,virtualization=on,gic-version=3", "-cpu", "max,pauth-impdef=on,sve=off", "-smp", "2", "-m", "2048",
                "-accel", "tcg,thread=single" if icount else "tcg,thread=multi", *(("-icount", icount) if icount else ()), "-nographic", "-nodefaults", "-no-reboot", "-monitor", "none", "-serial", "stdio",
                "-kernel", kernel, "-initrd", initrd, "-append", "console=ttyAMA0 quiet panic=-1",
                *share("/", "root", "readonly=on"), *share(self.shared, "shared"), timeout=seconds)
            self.test.assertTrue(status.exists(), f"the arm64 host did not run the job\n{console}")
        except AssertionError:
            if output.exists():
                print("the job had printed:", output.read_text(errors="replace")[-SHOWN:], flush=True)
            raise
        return output.read_text(errors="replace"), int(status.read_text())
