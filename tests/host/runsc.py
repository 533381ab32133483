#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""gVisor's runsc with its platform KVM, as Debian packages it: a guest of KVM without Linux, listed, sampled, and named as what it is."""
import json
import os
import shutil
import subprocess
import time

import harness
import perf
from harness import BIN, VPROF

SECONDS = 3
SAMPLES_MIN = 100
USER_MIN = 0.8  # of the samples in the guest: its program does nothing but compute


class Runsc(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        harness.need(os.geteuid() == 0, "only root may load the BPF program that looks at KVM")
        harness.need_program("runsc", "runsc")

    def sandbox(self):
        """Starts one; its row in the list, once it is a guest."""
        program = shutil.copy(BIN / "user_spin_static", self.folder / "spin")
        # A process group of its own: what it starts ends with it.
        runsc = self.start("runsc", "--root", self.folder / "state", "--platform=kvm", "--network=none", "--ignore-cgroups", "do", program,
                           "1000", stdout=subprocess.DEVNULL)
        self.addCleanup(runsc.communicate)
        self.addCleanup(runsc.terminate)
        found = []

        def listed():
            if runsc.poll() is not None:
                self.fail(f"runsc has ended: {runsc.stderr.read()}")
            found[:] = json.loads(self.run_program(VPROF, "attach", "--list", "--json")[0])
            return found
        harness.wait_until(listed, "a guest of KVM", 60)
        (row,) = found
        return row

    def test_sandbox(self):
        row = self.sandbox()
        print(" ", row, flush=True)
        self.assertEqual(row["accelerator"], "kvm")
        time.sleep(2)
        doctor = self.run_program(VPROF, "doctor", "--pid", row["pid"])[0]
        print(doctor, flush=True)
        self.assertRegex(doctor, "note +kernel +no Linux kernel found in the guest")
        recording = self.folder / "recording"
        _, err = self.run_program(VPROF, "attach", "--pid", row["pid"], "-g", "--no-report", "--duration", f"{SECONDS}s", "-o", recording)
        print(err, flush=True)
        # It has no interrupt controller in KVM, so that a vCPU that waits says nothing of a pause.
        self.assertNotIn("is paused", err)
        samples = [sample for sample in perf.vprof_samples(recording) if sample["mode"] in ("kernel", "user")]
        user = [sample for sample in samples if sample["mode"] == "user"]
        print(f"  {len(samples)} samples in the guest, {len(user)} of them in user space", flush=True)
        self.assertGreater(len(samples), SAMPLES_MIN)
        self.assertGreater(len(user), USER_MIN * len(samples))
        self.assertEqual({sample["symbol"] for sample in samples}, {"[unknown]"})


if __name__ == "__main__":
    harness.main()
