#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The unit tests of the cross build, each as a process of arm64 that QEMU emulates; those that need more run in arm64.py. Its packages."""
import os
import shutil
import subprocess

import arm64_host
import harness
import packages

EMULATOR = "qemu-aarch64"
PARSER = "vprof-parse"  # this machine's, which programs find beside them: one for arm64 could not be started, nor confine itself
FACTOR = 10 * harness.SLOWNESS  # of a test's limits
LEFT_OUT = {
    # They check clocks, which an emulator does not keep.
    "session", "session_verbs", "control_samples", "control_counters", "control_session", "counter_set", "engine", "losses",
    # One has exits by the names of x86-64.
    "control",
    # One reads the cache of the machine's libraries, which has none for arm64.
    "initramfs",
    # They compute for long, and nothing that depends on the processor.
    "cfi", "change_point", "shift",
}


class Units(harness.ProgramTest):
    def test_units(self):
        arm64_host.need_build()
        harness.need_program(EMULATOR, "qemu-user")
        tests = {path.name.removeprefix("test_") for path in arm64_host.ARM64.glob("test_*")}
        self.assertEqual(arm64_host.UNIT_TESTS - tests, set())
        tests -= arm64_host.UNIT_TESTS | LEFT_OUT
        self.assertGreater(len(tests), 40)
        environment = os.environ | {"VPROF_BIN": str(arm64_host.ARM64), "CK_TIMEOUT_MULTIPLIER": str(FACTOR), "VPROF_TEST_SLOWNESS": str(FACTOR)}
        (self.folder / PARSER).symlink_to(harness.BIN / PARSER)
        for test in sorted(tests):
            program = shutil.copy(arm64_host.ARM64 / f"test_{test}", self.folder)
            with self.subTest(test=test):
                done = subprocess.run([EMULATOR, program], cwd=self.folder, env=environment, text=True,
                                      stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                self.assertIn(done.returncode, (0, harness.SKIPPED), done.stdout)

    def test_packages(self):
        """They are for arm64, too."""
        arm64_host.need_build()
        harness.need_program("dpkg-shlibdeps", "dpkg-dev")
        harness.need_program("rpmbuild", "rpm")
        for kind, question, arch in ("DEB", ("dpkg-deb", "--show", "--showformat", "${Architecture}"), "arm64"), ("RPM", ("rpm", "-qp", "--qf", "%{ARCH}"), "aarch64"):
            for file in packages.make(self, kind, arm64_host.ARM64.parent):
                self.assertEqual(self.run_program(*question, file)[0], arch, file)


if __name__ == "__main__":
    harness.main()
