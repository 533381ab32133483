#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""One look at all tasks of a guest and at their kernel stacks, beside drgn's in the same run: both read the same dump, and neither time
has the program's start in it.

usage: bench_look.py BIN_FOLDER
"""
import contextlib
import os
import pathlib
import statistics
import sys
import time
import unittest

HERE = pathlib.Path(__file__).resolve().parent
LOOKS = 21

if len(sys.argv) != 2:
    sys.exit(__doc__)
os.environ["VPROF_BIN"] = str(pathlib.Path(sys.argv.pop()).resolve())
os.environ["VPROF_SOURCE"] = str(HERE.parents[1])
sys.path[:0] = [str(HERE.parent / "support"), str(HERE.parent / "libvirt")]
import dump  # noqa: E402
import engine  # noqa: E402
import harness  # noqa: E402


class Look(dump.Dump):
    def our_look(self):
        """Seconds, and the numbers of stacks and of their frames."""
        control = self.folder / "engine.sock"
        process = self.start(harness.BIN / "vprof-attach", "--dump", self.core, "--kernel", self.kernel, "--control", control)
        harness.wait_for_socket(control)
        with contextlib.closing(engine.Client.connect(control)) as client:
            seconds, chains = [], []
            for _ in range(LOOKS):
                begin = time.perf_counter()
                answer = client.execute("query-tasks", depth=127)
                chains = [task["chain"] for task in answer["tasks"]]
                while answer["next"] is not None:
                    answer = client.execute("query-tasks", **{"look": answer["look"], "from": answer["next"]})
                    chains += [task["chain"] for task in answer["tasks"]]
                seconds.append(time.perf_counter() - begin)
        process.terminate()
        self.finish(process)
        return statistics.median(seconds), len([chain for chain in chains if chain]), sum(len(chain) - 1 for chain in chains if chain)

    def test_stopped(self):
        self.boot()
        self.dump()
        seconds, stacks, frames = self.our_look()
        theirs = self.drgn_look()
        print(f"look         vprof {seconds * 1e3:.2f} ms ({stacks} stacks, {frames} frames), drgn {theirs['look'] * 1e3:.0f} ms "
              f"(and {theirs['open']:.1f} s to open it): {theirs['look'] / seconds:.0f} times", flush=True)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + ["Look.test_stopped"])
