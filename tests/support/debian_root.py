# SPDX-License-Identifier: BSD-2-Clause
"""A Debian with systemd, udev and a kernel: its packages, unpacked and configured by mmdebstrap, are in the user's cache folder. A
test boots them as an initramfs, with what it adds over them, or from a disk by the initramfs that Debian has made, or has their files
in a container."""
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import harness
import registry

SUITE = "bookworm"
PACKAGES = "systemd-sysv", "udev", "kmod", "initramfs-tools", "zstd", "linux-image-cloud-amd64"
# Not used there, and a guest without an accelerator would have to unpack it. Debian's initramfs has the modules.
LEFT_OUT = ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/perl", "usr/lib/*/perl", "usr/lib/*/gconv", "usr/lib/udev/hwdb*",
            "usr/lib/modules", "boot")
DISK_MIB = 320
SECONDS = 540
RECIPE = hashlib.sha256(repr((SUITE, PACKAGES, LEFT_OUT, DISK_MIB)).encode()).hexdigest()[:8]
NAME = f"debian-root-{SUITE}-{RECIPE}"


def make_disk(folder):
    """An ext4 image of root.cpio, and what boots it."""
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        registry.run(unpacked, "bsdtar", "-xpf", folder / "root.cpio")
        registry.run(folder, "truncate", "-s", f"{DISK_MIB}M", "disk.img")
        registry.run(folder, harness.sbin("mke2fs", "e2fsprogs"), "-q", "-t", "ext4", "-d", unpacked, "disk.img")


def fetch(folder):
    registry.run(folder, "mmdebstrap", "--variant=essential", f"--include={','.join(PACKAGES)}", "--format=tar",
                 '--aptopt=APT::Install-Recommends "false"', f"--keyring={registry.KEYRING}", SUITE, "root.tar",
                 "http://deb.debian.org/debian", seconds=SECONDS)
    registry.run(folder, "bsdtar", "-cf", "root.cpio", "--format", "newc",
                 *(f"--exclude=./{place}" for place in LEFT_OUT), "@root.tar")
    registry.run(folder, "bsdtar", "-xf", "root.tar", "./boot/vmlinuz-*", "./boot/initrd.img-*")
    (folder / "root.tar").unlink()
    make_disk(folder)


def files():
    """The folder with the cpio archive of the packages alone, and with what boots from a disk."""
    harness.need_program("mmdebstrap", "mmdebstrap")
    return registry.cached(NAME, fetch)


def root():
    return files() / "root.cpio"


def unpack(folder):
    registry.run(folder, "bsdtar", "-xpf", root())


def tree():
    """The folder with its files as they are, which only root makes."""
    return registry.cached(f"{NAME}-tree", unpack)


def disk():
    """Its image, kernel and initramfs."""
    place = files()
    return place / "disk.img", *(next(place.glob(f"boot/{name}-*")) for name in ("vmlinuz", "initrd.img"))


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
    subprocess.run([harness.sbin("depmod", "kmod"), "-b", overlay / "usr", source.name], check=True)


def initramfs(to, overlay):
    """Writes the packages' files and those of the folder `overlay`, which is laid out as the root."""
    with to.open("wb") as file:
        with root().open("rb") as base:
            shutil.copyfileobj(base, file)
        file.write(bytes(-file.tell() % 512))
        file.flush()
        subprocess.run(["bsdtar", "-cf", "-", "--format", "newc", "--uid", "0", "--gid", "0", "-C", overlay, "."],
                       stdout=file, check=True)


if __name__ == "__main__":
    try:
        print(root())
        if os.geteuid() == 0:
            print(tree())
    except unittest.SkipTest as missing:
        print(missing)
        sys.exit(harness.SKIPPED)
