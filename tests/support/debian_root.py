# SPDX-License-Identifier: BSD-2-Clause
"""An initramfs that is a Debian with systemd and udev: its packages, unpacked and configured by mmdebstrap, are in the user's
cache folder; what a test adds lies over them."""
import hashlib
import os
import pathlib
import shutil
import subprocess

import harness
import registry

SUITE = "bookworm"
PACKAGES = "systemd-sysv", "udev", "kmod"
# Not used there, and a guest without an accelerator would have to unpack it.
LEFT_OUT = "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/perl", "usr/lib/*/perl", "usr/lib/*/gconv", "usr/lib/udev/hwdb*"
SECONDS = 900


def fetch(folder):
    registry.run(folder, "mmdebstrap", "--variant=essential", f"--include={','.join(PACKAGES)}", "--format=tar",
                 '--aptopt=APT::Install-Recommends "false"', f"--keyring={registry.KEYRING}", SUITE, "root.tar",
                 "http://deb.debian.org/debian", seconds=SECONDS)
    registry.run(folder, "bsdtar", "-cf", "root.cpio", "--format", "newc",
                 *(f"--exclude=./{place}" for place in LEFT_OUT), "@root.tar")
    (folder / "root.tar").unlink()


def root():
    """The cpio archive of the packages alone."""
    harness.need_program("mmdebstrap", "mmdebstrap")
    recipe = hashlib.sha256(repr((SUITE, PACKAGES, LEFT_OUT)).encode()).hexdigest()[:8]
    return registry.cached(f"debian-root-{SUITE}-{recipe}", fetch) / "root.cpio"


def add_modules(overlay, kernel, modules):
    """Modules ("char/virtio_console") of a kernel's package, where that has put /boot/vmlinuz, for udev to load."""
    (source,) = pathlib.Path(kernel).parents[1].glob("lib/modules/*")
    place = overlay / "usr" / "lib" / "modules" / source.name
    for module in modules:
        path = place / "kernel" / "drivers" / f"{module}.ko"
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source / "kernel" / "drivers" / f"{module}.ko", path)
    for name in "modules.order", "modules.builtin", "modules.builtin.modinfo":
        shutil.copy(source / name, place)
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    depmod = shutil.which("depmod", path=path)
    harness.need(depmod, "depmod is missing; install the package kmod")
    subprocess.run([depmod, "-b", overlay / "usr", source.name], check=True)


def initramfs(to, overlay):
    """Writes the packages' files and those of the folder `overlay`, which is laid out as the root."""
    with to.open("wb") as file:
        with root().open("rb") as base:
            shutil.copyfileobj(base, file)
        file.write(bytes(-file.tell() % 512))
        file.flush()
        subprocess.run(["bsdtar", "-cf", "-", "--format", "newc", "--uid", "0", "--gid", "0", "-C", overlay, "."],
                       stdout=file, check=True)
