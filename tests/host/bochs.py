# SPDX-License-Identifier: BSD-2-Clause
"""A host with an Intel processor: kvm_intel with EPT under Debian's kernel, in the emulator Bochs, which has VMX; QEMU's has not.

Bochs executes about 40 million instructions a second. Its processor has no PMU. Programs come in the initramfs."""
import ctypes
import os
import pathlib
import re
import shutil
import signal
import subprocess
import termios
import time

import harness

SHARE = pathlib.Path("/usr/share/bochs")
ISOLINUX = pathlib.Path("/usr/lib/ISOLINUX/isolinux.bin")
LDLINUX = pathlib.Path("/usr/lib/syslinux/modules/bios/ldlinux.c32")
MODULES = "irqbypass", "kvm", "kvm-intel"
PR_SET_PDEATHSIG = 1
LIBC = ctypes.CDLL(None)

BOCHSRC = """display_library: term
romimage: file={share}/BIOS-bochs-latest
vgaromimage: file={share}/VGABIOS-lgpl-latest
megs: {megabytes}
cpu: model=corei7_haswell_4770, count=1, ips=50000000, reset_on_triple_fault=0
clock: sync=none
boot: cdrom
ata0-master: type=cdrom, path={folder}/boot.iso, status=inserted
sound: waveoutdrv=dummy, waveindrv=dummy, midioutdrv=dummy
speaker: enabled=0
com1: enabled=1, mode=file, dev={folder}/console
log: {folder}/log
panic: action=fatal
error: action=ignore
info: action=ignore
"""

BOOT = """default linux
prompt 0
timeout 1
label linux
 kernel vmlinuz
 append initrd=initrd console=ttyS0,115200 quiet loglevel=3 mitigations=off cryptomgr.notests panic=-1
"""

# The job's output is the console's, between these lines.
BEGIN, END = "host: begin", "host: end"
INIT = f"""#!/bin/sh
/bin/busybox --install -s /bin
export PATH=/bin HOME=/ LC_ALL=C.UTF-8
mount -t devtmpfs dev /dev
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t tracefs tracefs /sys/kernel/tracing
mount -t tmpfs tmpfs /tmp
mkdir /run
ln -s /proc/self/fd /dev/fd
ip link set lo up
for module in {" ".join(MODULES)}; do insmod /modules/$module.ko; done
read -r seconds _ </proc/uptime
stty -F /dev/ttyS0 -opost
echo "{BEGIN}, up $seconds s"
. /job
echo "{END} $?"
stty -F /dev/ttyS0 sane  # which waits until everything is written
poweroff -f
"""


def need_bochs():
    harness.need_program("bochs", "bochs")
    harness.need_program("xorriso", "xorriso")
    harness.need_program("bsdtar", "libarchive-tools")
    harness.need_program("busybox", "busybox-static")
    harness.need_program("strip", "binutils")
    harness.need_program("cc", "gcc")
    for file, package in ((SHARE / "BIOS-bochs-latest", "bochsbios"), (ISOLINUX, "isolinux"), (LDLINUX, "syslinux-common")):
        harness.need(file.exists(), f"{file} is missing; install the package {package}")
    plugins = pathlib.Path("/usr/lib").glob("*/bochs/plugins/libbx_term_gui.so")
    harness.need(any(plugins), "Bochs has no text display; install the package bochs-term")


def libraries(program):
    """Those that its loader would map, and the loader; a static program, for which ldd fails, has none."""
    text = subprocess.run(["ldd", program], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=False).stdout
    return re.findall(r"(/\S+) \(0x", text)


class BochsHost:
    """One boot of the host, which runs one job and powers off. All its files are in `folder`."""

    def __init__(self, folder, megabytes=512):
        self.folder = pathlib.Path(folder)
        self.megabytes = megabytes
        self.root = self.folder / "root"
        for name in "bin", "dev", "proc", "sys", "tmp", "modules":
            (self.root / name).mkdir(parents=True)
        shutil.copy(shutil.which("busybox"), self.root / "bin" / "busybox")
        (self.root / "bin" / "sh").symlink_to("busybox")
        self.kernel = pathlib.Path(harness.script("kernel-debian.sh"))
        for module in MODULES:
            (file,) = self.kernel.parents[1].rglob(f"{module}.ko")
            shutil.copy(file, self.root / "modules")

    def add(self, *files, to=None):
        """Files at their own paths, or in the folder `to`; programs with their libraries."""
        for file in map(pathlib.Path, files):
            place = self.root / str(to or file.parent).lstrip("/")
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)

    def add_program(self, *programs):
        """Without what nothing there needs, and the BIOS would have to read: debug information, and ICU's data, 30 MB."""
        self.add(*programs, to="bin")
        for program in programs:
            subprocess.run(["strip", "--strip-debug", self.root / "bin" / program.name], check=True)
            self.add(*(file for file in libraries(program) if "libicudata" not in file))
            for file in libraries(program):
                if version := re.search(r"libicudata\.so\.(\d+)$", file):
                    self.add_symbol(file, f"icudt{version[1]}_dat")

    def add_symbol(self, library, name):
        """A library with nothing but this one, in the place of another."""
        place = self.root / library.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cc", "-shared", "-x", "c", "-", f"-Wl,-soname,{place.name}", "-o", place], input=f"const char {name}[16] = {{0}};\n",
                       text=True, check=True)

    def make_image(self, job):
        (self.root / "job").write_text(job)
        (self.root / "init").write_text(INIT)
        (self.root / "init").chmod(0o755)
        iso = self.folder / "iso"
        iso.mkdir()
        subprocess.run(["bsdtar", "-cf", iso / "initrd", "--format", "newc", "--uid", "0", "--gid", "0", "-C", self.root, "."],
                       check=True)
        shutil.copy(self.kernel, iso / "vmlinuz")
        shutil.copy(ISOLINUX, iso)
        shutil.copy(LDLINUX, iso)
        (iso / "isolinux.cfg").write_text(BOOT)
        subprocess.run(["xorriso", "-as", "mkisofs", "-quiet", "-o", self.folder / "boot.iso", "-b", "isolinux.bin", "-c",
                        "boot.cat", "-no-emul-boot", "-boot-load-size", "4", "-boot-info-table", iso], check=True,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def console(self):
        try:
            return (self.folder / "console").read_text(errors="replace").replace("\r", "")
        except OSError:
            return ""

    def run(self, job, seconds):
        """What the shell commands `job` print there, and their status. Bochs is ended in any case."""
        self.make_image(job)
        (self.folder / "bochsrc").write_text(BOCHSRC.format(share=SHARE, folder=self.folder, megabytes=self.megabytes))
        # Debian's Bochs starts in its debugger.
        (self.folder / "commands").write_text("continue\n")
        # The text display wants a terminal of a known size.
        terminal, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (40, 120))
        os.set_blocking(terminal, False)
        with (self.folder / "errors").open("w") as errors:
            process = subprocess.Popen(["bochs", "-q", "-f", self.folder / "bochsrc", "-rc", self.folder / "commands"],
                                       stdin=theirs, stdout=theirs, stderr=errors, cwd=self.folder, start_new_session=True,
                                       env=os.environ | {"TERM": "xterm"},
                                       preexec_fn=lambda: LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL))
        os.close(theirs)
        harness.started.add(process.pid)
        try:
            return self.watch(process, terminal, time.monotonic() + seconds * harness.SLOWNESS)
        finally:
            process.send_signal(signal.SIGKILL)
            process.wait()
            os.close(terminal)

    def watch(self, process, terminal, end):
        while True:
            try:
                while os.read(terminal, 65536):
                    pass
            except BlockingIOError:
                pass
            except OSError:  # EIO: Bochs has ended
                time.sleep(0.1)
            text = self.console()
            if done := re.search(rf"^{BEGIN}, up ([\d.]+) s\n(.*)^{END} (\d+)\n", text, re.S | re.M):
                return done[2], int(done[3])
            if process.poll() is not None or time.monotonic() > end:
                raise AssertionError(f"Bochs {'has ended' if process.returncode is not None else 'is not done'}; its console:\n"
                                     f"{text}\n{(self.folder / 'errors').read_text()}")
            time.sleep(0.2)
