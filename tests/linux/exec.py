#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""A program of this host runs in the tiny kernel: its streams, its signals, its end, and a profile of it alone."""
import hashlib
import json
import re
import signal

import harness
from harness import VPROF

BOOT_SECONDS = 500
FLOOD_LINES = 2000

# Says what it was given, marks a phase, answers a signal, floods its output, copies its input, and fails.
STREAMS = f"""#!/bin/sh
echo "arguments: $1 and $2 in $(pwd), COLOUR=$COLOUR LEFT_OUT=$LEFT_OUT"
echo "to standard error" >&2
trap 'caught=yes' USR1
echo "ready"
while [ -z "$caught" ]; do :; done
echo "caught USR1"
vprof-agent mark flood begin
i=0
while [ $i -lt {FLOOD_LINES} ]; do
	echo "line $i of a flood that is wider than it is deep"
	i=$((i + 1))
done
vprof-agent mark flood end
echo "begin pipe" >/run/vprof-agent.marks
echo "input:"
cat
echo "end pipe" >/run/vprof-agent.marks
exit 3
"""
FLOOD = "".join(f"line {i} of a flood that is wider than it is deep\n" for i in range(FLOOD_LINES))
INPUT = "".join(f"{i} squared is {i * i}\n" for i in range(2000))


class Exec(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.kernel = harness.script("kernel-tiny.sh", "orc")
        self.recording = self.folder / "recording"

    def script(self, text):
        path = self.folder / "script"
        path.write_text(text)
        path.chmod(0o755)
        return path

    def begin(self, command, *options, **process):
        return self.start(VPROF, "run", "--kernel", self.kernel, "--exec", command, "-o", self.recording,
                          "--no-report", *options, cwd=self.folder, **process)

    def description(self):
        """What the recording says of its run."""
        text = self.recording.read_bytes()
        return json.loads(re.search(rb'\{"version": ?1.*?\}\0', text, re.S).group(0)[:-1])

    def test_streams(self):
        self.script(STREAMS)
        vprof = self.begin("./script 'the first' second", "--env", "COLOUR=blue", "--add", "/bin/cat",
                           stdin=-1, env={"PATH": "/usr/bin:/bin", "LEFT_OUT": "is not inherited"})
        lines = []
        while "ready\n" not in lines:
            lines.append(vprof.stdout.readline())
            self.assertNotEqual(lines[-1], "", vprof.stderr.read() if lines[-1] == "" else "")
        vprof.send_signal(signal.SIGUSR1)
        rest, messages = self.finish(vprof, status=3, timeout=BOOT_SECONDS, typed=INPUT)
        self.assertEqual("".join(lines), f"arguments: the first and second in {self.folder}, COLOUR=blue LEFT_OUT=\n"
                                         "ready\n")
        self.assertEqual(rest[:11], "caught USR1")
        self.assertEqual(hashlib.sha256(rest.encode()).hexdigest(),
                         hashlib.sha256(f"caught USR1\n{FLOOD}input:\n{INPUT}".encode()).hexdigest())
        self.assertIn("to standard error\n", messages)
        self.assertIn("script exited with status 3\n", messages)
        self.assertNotIn("Linux version", messages)


if __name__ == "__main__":
    harness.main()
