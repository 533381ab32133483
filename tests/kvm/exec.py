#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""--exec with guests in which nothing will ever run: what is said and done about them."""
import json
import os
import re
import signal

import harness
from harness import VPROF, guest


CLEAR = "\r\x1b[K"
PLAIN_OUTPUT = "plain: done\nvprof: metric turns=200000 1\n"


class Exec(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()
        self.recording = self.folder / "recording"

    def run_guest(self, name, *options, status, command="true"):
        out, err = self.run_program(VPROF, "run", "--kernel", guest(name), "--exec", command, "-o", self.recording,
                                    "--no-report", *options, status=status)
        self.assertEqual(out, "")
        return err

    def test_the_guest_powers_off(self):
        err = self.run_guest("power_off", status=1)
        self.assertIn("the guest powered off, before the command could start\n", err)
        self.assertIn("Last console lines:\npower_off: by ACPI", err)
        self.assertEqual(self.report(self.recording)[0]["recording"]["samples"], 0)

    def test_the_guest_panics(self):
        err = self.run_guest("panic", status=94)
        self.assertIn("Kernel panic - not syncing: a test, before the command could start\n", err)

    def test_there_is_no_agent(self):
        err = self.run_guest("halt", "--duration", "1", status=124)
        self.assertIn("the duration of 1 s is over, before the command could start\n", err)

    def test_the_boot_can_be_profiled(self):
        self.run_guest("console_flood", "--from-boot", status=1)
        self.assertGreater(self.report(self.recording)[0]["recording"]["samples"], 10)

    def test_the_guest_lies(self):
        err = self.run_guest("agent_liar", status=1)
        self.assertIn("an agent's frame claims 4294967295 bytes; the limit is 65536\n", err)
        complaints = err.count("the agent in the guest: something is wrong\n")
        left_out = sum(int(n) for n in re.findall(r"^vprof: warning: (\d+) messages left out$", err, re.M))
        self.assertGreaterEqual(complaints, 10)
        self.assertGreater(left_out, 0)
        self.assertEqual(complaints + left_out, 100)

    def test_interrupted(self):
        vprof = self.start(VPROF, "run", "--kernel", guest("halt"), "--exec", "true", "-o", self.recording, "-v")
        harness.wait_until(self.recording.exists, "the recording")
        vprof.send_signal(signal.SIGUSR1)  # there is no program to hand it on to
        vprof.send_signal(signal.SIGINT)
        _, err = self.finish(vprof, status=130)
        self.assertIn("the guest was stopped, before the command could start\n", err)

    def plain(self, command, *options):
        """A guest with an agent that works without a system."""
        return self.run_program(VPROF, command, "--kernel", guest("agent_plain"), "--exec", "true", *options)

    def test_a_program_that_is_not_in_the_guest(self):
        """Shells say so by their exit status."""
        command = " ".join(["true"] + 127 * ["-"])
        disk = self.folder / "disk"
        disk.write_bytes(bytes(4096))
        for options, hint in (((), "; programs that it calls must be copied into the guest with --add"),
                              (("--disk", disk, "--root", "/dev/vda"), "")):
            _, err = self.run_program(VPROF, "run", "--kernel", guest("agent_plain"), "--exec", command, "-o", self.recording,
                                      "--no-report", *options, status=127)
            self.assertIn(f"true exited with status 127{hint}\n", err)

    def test_repetitions_measure_themselves(self):
        out, _ = self.plain("run", "--warmup", 1, "--repeat", 3, "-o", self.recording, "--no-report")
        self.assertEqual(out, 4 * PLAIN_OUTPUT)
        recorded = self.report(self.recording)[0]["recording"]
        self.assertEqual([run["phase"] for run in recorded["exec"]["runs"]],
                         ["warmup-1", "repeat-1", "repeat-2", "repeat-3"])
        for run in recorded["exec"]["runs"]:
            self.assertEqual(run["metrics"], [{"name": "turns", "value": 200000, "unit": "1"}])
            self.assertEqual((run["status"], run["user-ns"], run["system-ns"], run["memory-bytes"]),
                             (0, 3000, 1000, 4096))

    def test_record_as_perf_has_it(self):
        """By the kernel of the command line, or else of the environment."""
        options = ("-o", self.recording, "--no-report")
        for kernel, more in ((("--kernel", guest("agent_plain")), {}), ((), {"VPROF_KERNEL": str(guest("agent_plain"))})):
            out, err = self.run_program(VPROF, "record", *kernel, *options, "--", "true", "two words", env=os.environ | more,
                                        status=1)  # its number of arguments
            self.assertEqual(out, PLAIN_OUTPUT)
            self.assertRegex(err, "record becomes: vprof run --exec 'true .*two words.*' .*-o ")
            self.assertEqual(self.report(self.recording)[0]["recording"]["exec"]["command"], ["true", "two words"])
            self.recording.unlink()

    def test_each_repetition_boots(self):
        folder = self.folder / "each"
        out, _ = self.plain("run", "--boot-each", "--repeat", 2, "-F", 5000, "-o", folder)
        self.assertEqual(out, 2 * PLAIN_OUTPUT)
        for name in ("001.data", "002.data"):
            recorded = self.report(folder / name)[0]["recording"]
            self.assertEqual([run["phase"] for run in recorded["exec"]["runs"]], ["repeat-1"])

    def lines_of(self, shown):
        """What the terminal keeps: a line about the progress is taken away before anything else is written."""
        pieces = re.split(r"(\r[^\r\n\x1b]*\x1b\[K)", shown)
        for before, text in zip([CLEAR, *pieces[1::2]], pieces[0::2]):
            self.assertTrue(text == "" or (before == CLEAR and text.endswith("\n")), (before, text))
        return "".join(pieces[0::2]).replace("\r\n", "\n")

    def test_progress_on_a_terminal(self):
        """Beside what the command prints: there or elsewhere."""
        run = VPROF, "run", "--kernel", guest("agent_plain"), "--exec", "true", "--repeat", 3, "-o", self.recording, "--no-report"
        told = r"\r(booting|repeat-\d of 3|powering off), [\d.]+ s, \d+ samples, \d+/s\x1b\[K"
        shown, _ = self.on_terminal(*run, stdout="terminal")
        self.assertRegex(shown, told)
        self.assertEqual(self.lines_of(shown).count(PLAIN_OUTPUT), 3)
        shown, out = self.on_terminal(*run)
        self.assertRegex(shown, told)
        self.assertEqual(self.lines_of(shown).count("plain: no errors\n"), 3)
        self.assertEqual(out, 3 * PLAIN_OUTPUT)

    def test_progress_of_a_boot(self):
        shown, _ = self.on_terminal(VPROF, "run", "--kernel", guest("halt"), "--exec", "true", "--duration", 1, "-o", self.recording,
                                    "--no-report", status=124)
        self.assertIn("\rbooting, ", shown)
        self.assertIn("the duration of 1 s is over, before the command could start\n", self.lines_of(shown))

    def test_no_progress_elsewhere(self):
        run = VPROF, "run", "--kernel", guest("agent_plain"), "--exec", "true", "-o", self.recording, "--no-report"
        _, err = self.run_program(*run, env=os.environ | {"VPROF_PROGRESS": "0"})
        self.assertNotIn("\r", err)
        self.assertNotRegex(self.on_terminal(*run, after="never")[0], r"\r[^\n]")

    @staticmethod
    def stat_of(err):
        return json.loads(err[err.index("{"):])

    def agent_bytes(self, err):
        return {row["name"]: row["count"] for row in self.stat_of(err)["exits"]}["exit:io:0x2f8"]

    def test_clocks_of_the_command(self):
        out, err = self.plain("stat", "--json")
        self.assertEqual(out, PLAIN_OUTPUT)
        self.assertGreater(self.stat_of(err)["total"]["parts-ns"]["wall"], 0)
        _, all_of_it = self.plain("stat", "--json", "--from-boot")
        # How the agent says that it is there comes before the command.
        self.assertLess(self.agent_bytes(err), self.agent_bytes(all_of_it))

    def test_what_the_program_needs_is_missing(self):
        program = self.folder / "program"
        program.write_text("#!/no/such/interpreter\n")
        self.refused(VPROF, "run", "--kernel", guest("halt"), "--exec", program, status=126,
                     message="program is not executable")
        program.chmod(0o755)
        self.refused(VPROF, "run", "--kernel", guest("halt"), "--exec", program, status=1,
                     message='is a script for "/no/such/interpreter", which is not on this host')
        self.refused(VPROF, "run", "--kernel", guest("halt"), "--exec", "true", "--add", "nowhere", status=1,
                     message="nowhere into the initramfs: No such file or directory")
        self.refused(VPROF, "run", "--kernel", guest("halt"), "--exec", "true", "--initrd", "nowhere", status=1,
                     message="nowhere")
        self.assertFalse(self.recording.exists())


if __name__ == "__main__":
    harness.main()
