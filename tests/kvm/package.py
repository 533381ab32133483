#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The Debian packages, installed as README.md says in a Debian that has no more than they depend on, and used there; and what their
scripts, and those of the RPMs, do to services, in a Debian with systemd."""
import hashlib
import os
import re
import shutil
import subprocess

import container
import harness
import packages
import registry

SUITE = "bookworm"
MMDEBSTRAP_SECONDS = 600
SPLIT = "0.2.0-1"  # the last version of which vprof-agent had the agent of vprof
NEXT = "99-1"
DAEMON, AGENT = "vprofd.service", "vprof-agent.service"
SOCKET, SERVICE = "vprof-guest@web.socket", "vprof-guest@web.service"
OWN_FILES = "etc/vprof/daemon.conf", "etc/vprof/web.conf", "var/lib/vprofd/spool/profile"
CONF = "[metrics]\naddress = off\n"  # whose library is recommended only
AGENT_FILE = "usr/libexec/vprof/vprof-agent"
ARM64 = bytes((183, 0))  # EM_AARCH64, at e_machine's offset
MACHINE_OFFSET = 18


def fetch(folder, names):
    registry.run(folder, "mmdebstrap", "--variant=minbase", f"--include={','.join(names)}", "--format=directory",
                 '--aptopt=APT::Install-Recommends "false"', '--aptopt=APT::Get::Assume-Yes "true"', f"--keyring={registry.KEYRING}",
                 SUITE, "root", "http://deb.debian.org/debian", seconds=MMDEBSTRAP_SECONDS)


class Root(harness.ProgramTest):
    """Packages, and a root for them."""
    ALSO = ()
    built = []

    def setUp(self):
        super().setUp()
        harness.need(os.geteuid() == 0, "only root can install packages")
        harness.need_program("mmdebstrap", "mmdebstrap")
        harness.need_program("dpkg-shlibdeps", "dpkg-dev")
        harness.need(not packages.sanitizer(), f"packages are not made of a build with -fsanitize={packages.sanitizer()}")
        if not Root.built:
            Root.built += [(deb.name, deb.read_bytes()) for deb in packages.make(self, "DEB")]
        self.root = self.folder / "changed" / "root"
        self.debs = [self.folder / name for name, _ in self.built]
        for deb, (_, content) in zip(self.debs, self.built):
            deb.write_bytes(content)
        container.mount(self, self.root, self.dependencies() / "root")

    def dependencies(self):
        """What the package says that it needs, and what the test needs."""
        depends = self.run_program("dpkg-deb", "-f", self.debs[0], "Depends")[0]
        names = sorted({re.sub(r" .*", "", package) for package in depends.strip().split(", ")} | set(self.ALSO))
        recipe = hashlib.sha256(repr((SUITE, names, "directory")).encode()).hexdigest()[:8]
        return registry.cached(f"debian-dependencies-{SUITE}-{recipe}", fetch, names)

    def put(self, deb, folder="srv"):
        place = self.root / folder
        place.mkdir(parents=True, exist_ok=True)
        shutil.copy(deb, place)
        return f"/{folder}/{deb.name}"


class Package(Root):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def inside(self, command, timeout=120, status=0):
        """What a shell in the root prints; with the machine's devices, mounted for it alone."""
        mounts = f"mount --rbind /dev {self.root}/dev && mount -t proc proc {self.root}/proc && mount --rbind /sys {self.root}/sys"
        return self.run_program("unshare", "--mount", "sh", "-c",
                                f'{mounts} && exec chroot {self.root} env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C sh -ec "$0"',
                                command, timeout=timeout, status=status)

    def install(self):
        """As README.md says, in a folder with all packages that were made."""
        command, = re.findall(r"^    sudo (apt-get install \./build/packages/\S+)$", (harness.SOURCE / "README.md").read_text(), re.M)
        for deb in self.debs:
            self.put(deb, "srv/build/packages")
        self.inside(f"cd /srv && {command}")

    def split(self):
        """The two packages as those before were: the agent of `vprof run --exec` in the other one, and fewer scripts."""
        def host(tree):
            control = tree / "DEBIAN" / "control"
            control.write_text(re.sub(r"(?m)^(Breaks|Replaces): .*\n", "", control.read_text()))
            (tree / AGENT_FILE).unlink()
            for script in "prerm", "postrm":
                (tree / "DEBIAN" / script).unlink()

        def agent(tree):
            (tree / AGENT_FILE).parent.mkdir(parents=True)
            (tree / "usr/bin/vprof-agent").rename(tree / AGENT_FILE)
            (tree / "usr/bin/vprof-agent").symlink_to("../libexec/vprof/vprof-agent")

        return [packages.changed(self, deb, SPLIT, change) for deb, change in zip(self.debs, (host, agent))]

    def check_programs(self):
        out, _ = self.inside("dpkg --verify vprof && dpkg --audit && getent group kvm && vprof version && cd /tmp && "
                             "vprof run --demo --append seconds=2 -o demo.data")
        self.assertRegex(out, r"(?m)^ *\d+\.\d+% +\d+ +user +render_page$")
        # What is recommended is not there, and is named where it is wanted.
        self.assertIn("install", self.inside("cd /tmp && ! vprof push http://127.0.0.1:1 demo.data")[1])

    def run_exec(self, **expected):
        """In a guest without a system, which has an agent of its own: vprof's is packed, and not started."""
        shutil.copy(harness.guest("agent_plain"), self.root / "srv" / "guest")
        return self.inside("cd /tmp && vprof run --kernel /srv/guest --exec true -o exec.data --no-report", **expected)

    def check_agent(self):
        self.assertIn("plain: done", self.run_exec()[0])
        self.assertIn("vprof-agent", self.inside(f"/{AGENT_FILE} --version")[0])
        self.assertRegex(self.inside("vprof doctor")[0], rf"(?m)^ok +agent +/{AGENT_FILE}, for run --exec$")

    def check_agent_of_another_machine(self):
        agent = self.root / AGENT_FILE
        good = agent.read_bytes()
        agent.write_bytes(good[:MACHINE_OFFSET] + ARM64 + good[MACHINE_OFFSET + len(ARM64):])
        self.check_bad_agent("it is not an ELF program for x86-64")
        agent.unlink()
        # One of another version, as the service's may be, would do.
        self.check_bad_agent("cannot find vprof-agent: it is neither")
        agent.write_bytes(good)
        agent.chmod(0o755)

    def check_bad_agent(self, message):
        out, _ = self.inside("vprof doctor", status=1)
        self.assertRegex(out, rf"(?m)^MISSING +agent +.*{message}.*\n +fix: install vprof again")
        self.assertTrue(out.endswith("This host can profile guests; vprof is not completely installed on it.\n"), out)
        self.assertIn(message, self.run_exec(status=1)[1])

    def check_upgrade(self):
        """From packages that were split otherwise, of both and of one. No file is of both, so that each goes alone."""
        old = [self.put(deb) for deb in self.split()]
        new = [self.put(deb) for deb in self.debs]
        self.inside(f"dpkg -i {' '.join(old)} && apt-get install {' '.join(new)} && dpkg --verify vprof vprof-agent")
        self.check_agent()
        self.inside("dpkg -r vprof && vprof-agent --version && dpkg --verify vprof-agent && dpkg -r vprof-agent")
        self.inside(f"dpkg -i {' '.join(old)}")
        self.install()
        self.check_agent()
        self.assertIn("deinstall", self.inside("dpkg-query -W -f '${db:Status-Want}' vprof-agent")[0])
        self.inside(f"dpkg -i {new[1]} && dpkg --purge vprof && vprof-agent --version")

    def test_life(self):
        self.install()
        self.check_programs()
        self.check_agent()
        self.check_agent_of_another_machine()
        self.inside("dpkg --purge vprof")
        self.check_upgrade()
        self.inside("dpkg --purge vprof-agent")
        self.assertEqual(sorted(self.root.glob("usr/**/*vprof*")), [])

    def test_exec(self):
        """In a Linux guest, where the agent runs."""
        self.install()
        shutil.copy(harness.script("kernel-tiny.sh"), self.root / "srv" / "vmlinux")
        out, err = self.inside("cd /tmp && vprof run --kernel /srv/vmlinux --exec '/bin/sh -c \"echo it runs; exit 7\"' -o exec.data "
                               "--no-report", timeout=150, status=7)
        self.assertEqual(out, "it runs\n", err)


class Services(Root):
    ALSO = ("systemd-sysv",)

    def setUp(self):
        super().setUp()
        harness.need_program("systemd-nspawn", "systemd-container")
        self.container = container.Container(self, self.root)
        self.host = self.put(self.debs[0])
        self.next = self.put(packages.changed(self, self.debs[0], NEXT))

    def inside(self, command):
        status, out = self.container.run(command)
        self.assertEqual(status, 0, f"{command}: {out}")
        return out

    def state(self, unit):
        return tuple(self.container.run(f"systemctl {verb} {unit}")[1] for verb in ("is-enabled", "is-active"))

    def process(self, unit=DAEMON):
        return int(self.inside(f"systemctl show --value -p MainPID {unit}"))

    def configure(self):
        """What an administrator does."""
        for name in OWN_FILES:
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).touch(0o600)
        (self.root / OWN_FILES[0]).write_text(CONF)
        self.inside(f"systemctl enable --now {DAEMON} {SOCKET} || {{ journalctl --no-pager -o cat -u {DAEMON}; exit 1; }}")

    def links(self):
        return [str(link.relative_to(self.root)) for link in (self.root / "etc/systemd").glob("**/*vprof*")]

    def check_ended(self):
        """Nothing runs, nothing is enabled; what the administrator and the daemon wrote is there."""
        for unit in DAEMON, SOCKET, SERVICE:
            self.assertIn(self.state(unit)[1], ("inactive", ""), unit)
        self.assertEqual(self.container.run("cat /proc/[0-9]*/comm 2>/dev/null | grep vprof"), (1, ""))
        self.assertEqual(self.links(), [])
        self.assertEqual([name for name in OWN_FILES if not (self.root / name).exists()], [])

    def check_upgrade(self, upgrade):
        """A daemon that runs is restarted, once; one that does not stays so. A guest's socket stays open."""
        before = self.process()
        upgrade()
        self.assertEqual((self.state(DAEMON), self.state(SOCKET)), (("enabled", "active"),) * 2)
        after = self.process()
        self.assertNotIn(after, (before, 0))
        self.assertEqual(self.inside(f"readlink /proc/{after}/exe"), "/usr/bin/vprof")
        self.inside(f"systemctl stop {DAEMON}")
        upgrade()
        self.assertEqual(self.state(DAEMON), ("enabled", "inactive"))
        self.inside(f"systemctl start {DAEMON}")

    def scriptlet(self, name, count):
        """One of vprof's RPM, run as rpm does: with how many versions are there afterwards."""
        script = (harness.SOURCE / "host-cli/package/rpm" / f"vprof.{name}").read_text()
        (self.root / "srv" / name).write_text(script)
        self.inside(f"sh /srv/{name} {count}")

    def test_deb(self):
        self.inside(f"dpkg -i {self.host} {self.put(self.debs[1])}")
        self.assertEqual((self.state(DAEMON), self.state(AGENT)), (("disabled", "inactive"),) * 2)
        self.configure()
        self.check_upgrade(lambda: self.inside(f"dpkg -i {self.next}"))
        self.inside("dpkg -r vprof vprof-agent")
        self.check_ended()

        self.inside(f"dpkg -i {self.host}")
        self.assertEqual(self.state(DAEMON), ("disabled", "inactive"))
        self.inside(f"systemctl enable --now {DAEMON} && dpkg --purge vprof vprof-agent && getent group kvm")
        self.assertEqual(self.state(DAEMON)[1], "inactive")
        left = [path for folder in ("etc", "usr", "var/lib", "run") for path in self.root.glob(f"{folder}/**/*vprof*")]
        self.assertEqual(left, [])
        self.assertEqual(self.container.run("find /run /etc /var/lib -name '*vprof*'"), (0, ""))

    def test_rpm(self):
        """Its files are the same: those of the other package."""
        self.inside(f"dpkg -i {self.host}")
        self.scriptlet("post", 1)
        self.assertEqual(self.state(DAEMON), ("disabled", "inactive"))
        self.configure()

        def upgrade():
            self.scriptlet("post", 2)
            self.scriptlet("preun", 1)
            self.scriptlet("postun", 1)

        self.check_upgrade(upgrade)
        self.scriptlet("preun", 0)
        self.scriptlet("postun", 0)
        self.check_ended()


if __name__ == "__main__":
    harness.main()
