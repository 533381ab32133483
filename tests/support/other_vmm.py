# SPDX-License-Identifier: BSD-2-Clause
"""The VMM of the tests' own (tests/kvm/other_vmm.c), of which vprof knows no more than KVM tells."""
import subprocess

from harness import BIN


class OtherVmm:
    """It has made its guest, which waits for the word "go", or "hold" and "continue"."""

    def __init__(self, test, image, *folder, options=()):
        self.test = test
        self.process = test.start(BIN / "other_vmm", *options, image, *folder, stdin=subprocess.PIPE)
        test.addCleanup(self.close)
        self.pid = int(self.process.stdout.readline())  # its number on this host
        test.assertEqual(self.process.stdout.readline().strip(), "ready")

    def say(self, *words):
        for word in words:
            self.process.stdin.write(word + "\n")
            self.process.stdin.flush()
            self.test.assertEqual(self.process.stdout.readline().strip(), f"{word}: done")

    def end(self):
        """It ends with its input."""
        self.process.stdin.close()

    def close(self):
        self.process.kill()
        self.process.wait()
        for pipe in self.process.stdin, self.process.stdout, self.process.stderr:
            pipe.close()
