# SPDX-License-Identifier: BSD-2-Clause
"""A defect of QEMU's TCG, in which the stock hosts run: a guest that is interrupted often ends in a triple fault in user mode, with CR2 0
and all of its registers in order. KVM's guests have it under QEMU 7.2 as their VMM, too: 5 of 96 runs of five seconds, with its vCPUs
interrupted 300 times a second. A test that fails by this, and only by this, may run again, once."""
import re
import unittest

SIGNATURE = re.compile(r"ended with 92, not (?s:.*)triple fault on vCPU \d+(?s:.*)^vCPU \d+, CPL 3$(?s:.*)^CR0 [0-9a-f]{8}  CR2 0{16}  ", re.MULTILINE)


def pass_again(result, stock_host):
    """Whether all that failed on a stock host failed by the defect, and passes when it runs again."""
    failed = result.failures + result.errors
    if not stock_host.exists() or result.unexpectedSuccesses or not all(SIGNATURE.search(text) for _, text in failed):
        return False
    tests = {test.id(): test for test in (getattr(test, "test_case", test) for test, _ in failed)}
    print(f"triple faults of the emulator: {len(failed)}; again: {', '.join(tests)}", flush=True)
    suite = unittest.TestSuite(type(test)(name.rpartition(".")[2]) for name, test in tests.items())
    return unittest.TextTestRunner(verbosity=2).run(suite).wasSuccessful()
