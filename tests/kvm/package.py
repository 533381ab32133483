#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages, installed by dpkg in a Debian that has no more than they depend on, and used there."""
import hashlib
import os
import re
import shutil
import subprocess

import harness
import packages
import registry

SUITE = "bookworm"
MMDEBSTRAP_SECONDS = 600


def fetch(folder, names):
    registry.run(folder, "mmdebstrap", "--variant=minbase", f"--include={','.join(names)}", "--format=tar",
                 '--aptopt=APT::Install-Recommends "false"', f"--keyring={registry.KEYRING}", SUITE, "root.tar",
                 "http://deb.debian.org/debian", seconds=MMDEBSTRAP_SECONDS)


class Package(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need(os.geteuid() == 0, "only root can install packages")
        harness.need_program("mmdebstrap", "mmdebstrap")
        harness.need_program("dpkg-shlibdeps", "dpkg-dev")
        harness.need(not packages.sanitizer(), f"packages are not made of a build with -fsanitize={packages.sanitizer()}")
        self.debs = packages.make(self, "DEB")
        self.root = self.folder / "root"
        (self.root / "dev").mkdir(parents=True)
        subprocess.run(["bsdtar", "-xpf", self.dependencies() / "root.tar", "--exclude=./dev/*", "-C", self.root], check=True)
        for deb in self.debs:
            shutil.copy(deb, self.root)

    def dependencies(self):
        """A root with what the package says that it needs."""
        depends = self.run_program("dpkg-deb", "-f", self.debs[0], "Depends")[0]
        names = sorted(re.sub(r" .*", "", package) for package in depends.strip().split(", "))
        recipe = hashlib.sha256(repr((SUITE, names)).encode()).hexdigest()[:8]
        return registry.cached(f"debian-dependencies-{SUITE}-{recipe}", fetch, names)

    def inside(self, command, timeout=120):
        """What a shell in the root prints; with the machine's devices, mounted for it alone."""
        mounts = f"mount --rbind /dev {self.root}/dev && mount -t proc proc {self.root}/proc && mount --rbind /sys {self.root}/sys"
        return self.run_program("unshare", "--mount", "sh", "-c",
                                f'{mounts} && exec chroot {self.root} env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C sh -ec "$0"',
                                command, timeout=timeout)

    def test_life(self):
        names = " ".join(f"/{deb.name}" for deb in self.debs)
        self.inside(f"dpkg -i {names} && dpkg --verify vprof vprof-agent && dpkg --audit && getent group kvm && rm {names}")
        before = "usr/share/doc/vprof/copyright", "usr/libexec/vprof/vprof-agent"
        self.assertEqual([name for name in before if not (self.root / name).exists()], [])
        out, _ = self.inside("vprof version && vprof-agent --version && cd /tmp && vprof run --demo --append seconds=2 -o demo.data")
        self.assertRegex(out, r"(?m)^ *\d+\.\d+% +\d+ +user +render_page$")
        # What is recommended is not there, and is named where it is wanted.
        self.assertIn("install", self.inside("cd /tmp && ! vprof push http://127.0.0.1:1 demo.data")[1])
        self.inside("dpkg --purge vprof vprof-agent")
        self.assertEqual(sorted(self.root.glob("usr/**/*vprof*")), [])


if __name__ == "__main__":
    harness.main()
