#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A test runs again for the emulator's triple fault alone, once, and on a stock host only."""
import pathlib
import unittest

import emulator_fault

ENDED = """['vprof', 'run', '--demo'] ended with 92, not 0
stdout:
stderr: vprof: triple fault on vCPU 1
Registers as last seen, at the exit before: KVM has reset the vCPU
vCPU 1, CPL 3
RIP 0000000000401000  RSP 0000000000500000  RBP 0000000000500000  RFLAGS 00000202
CR0 80050033  CR2 0000000000000000  CR3 0000000000200000  CR4 00000020  EFER d01
"""
OTHERS = ENDED.replace("CPL 3", "CPL 0"), ENDED.replace("CR2 0000", "CR2 00f0"), ENDED.replace("with 92", "with 94"), "0.7 is not 0.8"
HERE, NOWHERE = pathlib.Path(__file__), pathlib.Path("/nowhere")


class Failing(unittest.TestCase):
    """Not a test of its own: it fails with these texts in turn, and passes then."""
    texts = ()

    def runTest(self):
        if self.texts:
            Failing.texts, text = self.texts[1:], self.texts[0]
            self.fail(text)


class EmulatorFault(unittest.TestCase):
    def passes_again(self, *texts, stock_host=HERE):
        result = unittest.TestResult()
        Failing.texts = texts
        Failing().run(result)
        return emulator_fault.pass_again(result, stock_host)

    def test_it_runs_again(self):
        self.assertTrue(self.passes_again(ENDED))

    def test_once(self):
        self.assertFalse(self.passes_again(ENDED, ENDED))

    def test_on_a_stock_host_only(self):
        self.assertFalse(self.passes_again(ENDED, stock_host=NOWHERE))

    def test_for_this_alone(self):
        for text in OTHERS:
            self.assertFalse(self.passes_again(text), text)

    def test_not_beside_another_failure(self):
        result = unittest.TestResult()
        for text in ENDED, OTHERS[0]:
            Failing.texts = text,
            Failing().run(result)
        self.assertFalse(emulator_fault.pass_again(result, HERE))


if __name__ == "__main__":
    unittest.main(argv=["emulator_fault", "EmulatorFault"])
