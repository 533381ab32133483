#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Everything that vprof can do is in its help, its manual and its completions, and nothing else is."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import golden

BIN = pathlib.Path(os.environ["VPROF_BIN"])
SOURCE = pathlib.Path(os.environ["VPROF_SOURCE"])
MAN = SOURCE / "host-cli" / "man"


def vprof(*arguments, program="vprof"):
    return subprocess.run([BIN / program, *arguments], capture_output=True, text=True, check=True,
                          env={"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}).stdout


def commands():
    return re.findall(r"^  ([a-z]+) {2,}", vprof("help").split("Commands:")[1].split("\n\n")[0], re.M)


def help_options(text):
    return set(re.findall(r"^  (?:-\w, )*--([a-z0-9-]+)", text, re.M)) - {"help"}


def manual_options(page):
    return set(re.findall(r"\bFl -([a-z0-9-]+)", (MAN / page).read_text())) - {"help"}


def manual_page(command):
    return re.search(r"^Manual: man (\S+)$", vprof("help", command), re.M).group(1) + ".1"


class Surface(unittest.TestCase):
    def test_commands_are_known(self):
        self.assertEqual(commands(), ["run", "attach", "record", "report", "annotate", "script", "diff", "gate", "history", "export", "push", "daemon", "top", "stat", "ps", "stack", "list", "mpstat", "counter", "probe", "trace", "ctl", "doctor", "completion", "help", "version"])

    def test_manual_of_each_command(self):
        for command in commands():
            with self.subTest(command):
                page = manual_page(command)
                self.assertTrue((MAN / page).exists(), page)
                self.assertIn(f".It Cm {command}\n", (MAN / "vprof.1").read_text())
                options = help_options(vprof(command, "--help"))
                if page == "vprof.1" or command == "record":
                    self.assertEqual(options, set())
                else:
                    self.assertEqual(manual_options(page), options)

    def test_manual_of_the_engines(self):
        for engine, page in ("vprof-vmm", "vprof-vmm.8"), ("vprof-attach", "vprof-attach-engine.8"):
            with self.subTest(engine):
                options = help_options(vprof("--help", program=engine))
                self.assertEqual(manual_options(page), options)

    def test_manual_of_the_agent(self):
        options = set(re.findall(r"vprof-agent --([a-z]+)", vprof("--help", program="vprof-agent"))) - {"help"}
        self.assertEqual(options, {"device", "vsock"})
        self.assertEqual(manual_options("vprof-agent.8"), options)

    def test_every_page_belongs_to_something(self):
        pages = {manual_page(command) for command in commands()} | {"vprof-agent.8", "vprof-attach-engine.8", "vprof-vmm.8", "vprof-equivalents.7", "vprof-measurements.5", "vprof-daemon.conf.5"}
        self.assertEqual({file.name for file in MAN.iterdir()}, pages)

    def test_quotes_of_the_manual(self):
        """In a line with a macro, quotes are the macro's and are not printed; only -width takes a text in quotes."""
        for page in *MAN.iterdir(), SOURCE / "vmm" / "control" / "vprof-control.7.in":
            quoted = [line for line in page.read_text().splitlines() if re.match(r"\.[A-Z]\w+ (?!.*-width \")[^\"]*\"", line)]
            self.assertEqual(quoted, [], page.name)

    def test_short_options(self):
        """A letter means the same in all commands, and the manual has it."""
        meanings = {}
        for command in commands():
            manual = (MAN / manual_page(command)).read_text()
            for letters, name in re.findall(r"^  ((?:-\w, )*)--([a-z0-9-]+)", vprof(command, "--help"), re.M):
                for letter in re.findall(r"\w", letters):
                    meanings.setdefault(letter, set()).add(name)
                if name != "help":
                    item = "".join(f"Fl {letter} , " for letter in re.findall(r"\w", letters)) + f"Fl -{name}"
                    self.assertRegex(manual, rf"(?m)^\.It {item}(?![\w-])", f"{command} {name}")
        several = {letter: names for letter, names in meanings.items() if len(names) > 1}
        self.assertEqual(several, {"e": {"event", "probe"}, "g": {"call-chains", "call-tree", "stack"}})

    def test_help_fits_a_terminal(self):
        for command in "", *commands():
            self.assertEqual([line for line in vprof("help", *command.split()).splitlines() if len(line) > 80], [], command)

    def test_version_is_the_engines(self):
        self.assertRegex(vprof("version"), r"\Avprof [0-9.]+\ncontrol protocol [0-9]+, .*\nbuilt with glib .*\n\Z")
        self.assertEqual(vprof("version"), vprof("--version"))
        self.assertIn(vprof("version").split()[1], vprof("--version", program="vprof-vmm"))


def control_schema():
    return json.loads(vprof("json", program="control-docs"))


def flat(rows):
    """The rows of an answer, each followed by those of its own members."""
    for row in rows:
        yield row
        yield from flat(row.get("members", []))


class Control(unittest.TestCase):
    """The table of methods, and what is made of it."""

    def setUp(self):
        self.page = vprof("manual", SOURCE / "vmm" / "control" / "vprof-control.7.in", program="control-docs")

    def section(self, name):
        return re.search(rf"^\.Sh {name}\n(.*?)(?=^\.Sh )", self.page, re.M | re.S).group(1)

    def test_manual_has_every_method(self):
        methods = dict(re.findall(r"^\.Ss (\S+)\n(.*?)(?=^\.S[sh] )", self.page, re.M | re.S))
        schema = control_schema()["methods"]
        self.assertEqual(list(methods), [method["name"] for method in schema])
        for method in schema:
            with self.subTest(method["name"]):
                text = methods[method["name"]]
                self.assertIn(f"Role: {method['role']}.", text)
                arguments = re.findall(r"^\.It Fa (\S+)\n\((\S+?)[ ;:)]", text, re.M)
                self.assertEqual(arguments, [(argument["name"], argument["type"]) for argument in method["arguments"]])
                members = re.findall(r"^\.It Li (\S+)\n\((\S+?)(?: or null)?[;)]", text, re.M)
                self.assertEqual(members, [(member["name"], member["type"]) for member in flat(method["returns"])])

    def test_manual_has_every_term(self):
        for section, table in {"EVENTS": "events", "ERROR CLASSES": "errors", "STATISTICS": "statistics",
                               "CLOCKS": "vcpu-times"}.items():
            names = re.findall(r"^\.It Li (\S+)$", self.section(section), re.M)
            wanted = [[term["name"], *(member["name"] for member in flat(term.get("data", [])))]
                      for term in control_schema()[table]]
            self.assertEqual(names, sum(wanted, []))

    def test_error_classes_are_those_of_the_contract(self):
        header = (SOURCE / "include" / "vprof" / "control.h").read_text()
        self.assertEqual({term["name"] for term in control_schema()["errors"]},
                         set(re.findall(r"#define VPROF_ERROR_\w+ \"(\w+)\"", header)))

    def test_template_must_be_known(self):
        with tempfile.NamedTemporaryFile("w") as template:
            template.write("@nonsense@\n")
            template.flush()
            done = subprocess.run([BIN / "control-docs", "manual", template.name], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("@nonsense@", done.stderr)

    @unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
    def test_manual_is_clean(self):
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning"], input=self.page, capture_output=True, text=True)
        self.assertEqual(done.stdout + done.stderr, "")


class Libraries(unittest.TestCase):
    """What few commands need is loaded by them, and its absence is theirs. What reads files is loaded by vprof-parse."""

    USES = {"libcurl": ["push", "http://127.0.0.1:1", "clock.data"],
            "libdebuginfod": ["report", "--debuginfod", "clock.data"],
            "libmicrohttpd": ["daemon", "--config", "daemon.conf"],
            "libvirt": ["attach", "none"]}

    PARSERS = "libelf|libdw|libarchive|liblzo"

    def test_are_not_loaded_by_all(self):
        for program, few in (("vprof", f"libcurl|libdebuginfod|libcapstone|libmicrohttpd|{self.PARSERS}"),
                             ("vprof-vmm", f"libz|{self.PARSERS}"), ("vprof-attach", f"libvirt|libz|{self.PARSERS}")):
            needed = re.findall(r"NEEDED.*\[(.*)\]", subprocess.run(["readelf", "-d", BIN / program], capture_output=True,
                                                                    text=True, check=True).stdout)
            self.assertIn("libglib-2.0.so.0", needed)
            self.assertEqual([name for name in needed if re.match(few, name)], [])

    @unittest.skipUnless(shutil.which("nm"), "no nm")
    def test_parsers_are_elsewhere(self):
        """Our own parsers of files, too; what engines read in a guest's memory is theirs (SECURITY.md)."""
        files = {"image_parse_elf", "image_parse_boot", "image_lay_out_module", "symtab_parse", "cfi_table_make_of_image", "perf_map_encode"}
        memory = {"btf_new", "orc_load"}
        both = {"kallsyms_decode"}
        for program, theirs in (("vprof-parse", files | both), ("vprof", set()), ("vprof-vmm", memory), ("vprof-attach", memory | both)):
            listed = subprocess.run(["nm", BIN / program], capture_output=True, text=True, check=True).stdout
            if not listed:
                self.skipTest(f"{program} is stripped")
            self.assertEqual(set(re.findall(r" [tT] (\w+)$", listed, re.MULTILINE)) & (files | memory | both), theirs, program)

    def test_missing_library(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BIN / "make_recordings"], cwd=folder, check=True)
            pathlib.Path(folder, "daemon.conf").write_text(f"[daemon]\nsocket={folder}/status.sock\n")
            notes = (BIN / "vprof").read_bytes() + (BIN / "vprof-attach").read_bytes()
            for library, arguments in self.USES.items():
                if not re.search(rb'"soname":\["%s' % library.encode(), notes):
                    continue
                with self.subTest(library):
                    soname = re.search(rb'"soname":\["(%s[^"]*)"' % library.encode(), notes).group(1).decode()
                    pathlib.Path(folder, soname).write_text("no library")
                    done = subprocess.run([BIN / "vprof", *arguments], cwd=folder, capture_output=True, text=True,
                                          env={**os.environ, "LD_LIBRARY_PATH": folder})
                    self.assertRegex(done.stderr, rf"(push|--debuginfod|metrics|libvirt): cannot load a library: .*{re.escape(soname)}: .*; install")
                    self.assertNotEqual(done.returncode, 0)


@unittest.skipUnless(shutil.which("mandoc"), "no mandoc")
class Manual(unittest.TestCase):
    def test_pages_are_clean(self):
        pages = sorted(MAN.iterdir())
        done = subprocess.run(["mandoc", "-T", "lint", "-W", "warning", *pages], capture_output=True, text=True)
        self.assertEqual(done.stdout + done.stderr, "")


class Output(unittest.TestCase):
    def test_closed_pipe_is_quiet(self):
        done = subprocess.run(f"'{BIN}/vprof' help run | true", shell=True, capture_output=True, text=True)
        self.assertEqual(done.stderr, "")

    def lost(self, folder, *arguments, status):
        """What it says when its output goes to a full disk."""
        with open("/dev/full", "w") as full:
            done = subprocess.run([BIN / "vprof", *arguments], cwd=folder, stdout=full, stderr=subprocess.PIPE, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stderr

    def test_full_device_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BIN / "make_recordings"], cwd=folder, check=True)
            # Those that fill a buffer fail before the end, and must know why there.
            for arguments in (["help"], ["script", "-i", "clock.data"], ["script", "-i", "clock.data", "--json"],
                              ["report", "-i", "clock.data"], ["export", "-t", "csv", "-i", "clock.data"]):
                with self.subTest(arguments):
                    self.assertEqual(self.lost(folder, *arguments, status=1),
                                     "vprof: cannot write to standard output: No space left on device\n")

    def test_full_device_is_no_regression(self):
        """1 and 2 are answers of the gate; that its own output was lost is not one of them."""
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            golden.measurements(folder, "base.json")
            golden.measurements(folder, "slow.json", hash_percent=110)
            golden.measurements(folder, "few.json", hash_percent=106, repetitions=3)
            for now, status in ("base.json", 0), ("slow.json", 1), ("few.json", 2):
                gate = ["gate", "-b", "base.json", now]
                self.assertEqual(subprocess.run([BIN / "vprof", *gate], cwd=folder, capture_output=True).returncode, status)
                self.assertIn("No space left", self.lost(folder, *gate, status=3))
                for option in "--junit", "--markdown":
                    for file, why in ("/dev/full", "No space left on device"), ("none/file", "No such file or directory"):
                        done = subprocess.run([BIN / "vprof", *gate, option, file], cwd=folder, capture_output=True, text=True)
                        self.assertEqual((done.returncode, done.stderr), (3, f"vprof: cannot write {file}: {why}\n"))

    def test_baseline_that_cannot_be_written(self):
        """By its own name, not by that of the file that was to replace it."""
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            golden.measurements(folder, "base.json")
            done = subprocess.run([BIN / "vprof", "gate", "-u", "-b", "none/first.json", "base.json"], cwd=folder,
                                  capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (3, "vprof: cannot write none/first.json: No such file or directory\n"))

    def test_what_is_no_file_is_written_to(self):
        """A pipe or a device is not replaced by a file, and gets what standard output would."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([BIN / "make_recordings"], cwd=folder, check=True)
            export = [BIN / "vprof", "export", "--to", "folded", "-i", f"{folder}/clock.data"]
            expected = subprocess.run(export, capture_output=True, check=True).stdout
            pipe = pathlib.Path(folder) / "pipe"
            os.mkfifo(pipe)
            with open(os.open(pipe, os.O_RDONLY | os.O_NONBLOCK), "rb") as reader:
                subprocess.run([*export, "-o", pipe], check=True)
                self.assertEqual(reader.read(), expected)
            self.assertTrue(pipe.is_fifo())
            full = pathlib.Path(folder) / "full"
            full.symlink_to("/dev/full")
            done = subprocess.run([*export, "-o", full], capture_output=True, text=True)
            self.assertEqual(done.returncode, 1)
            self.assertIn(f"cannot write {full}: No space left on device", done.stderr)
            self.assertTrue(full.is_char_device())

    def test_links(self):
        """A link of one's own is followed, if it leads to a file; standard output by its name is no file to replace."""
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            subprocess.run([BIN / "make_recordings"], cwd=folder, check=True)
            export = [BIN / "vprof", "export", "--to", "folded", "-i", "clock.data", "-o"]
            expected = subprocess.run([*export, "-"], cwd=folder, capture_output=True, check=True).stdout
            (folder / "link").symlink_to("target")
            (folder / "descriptor").symlink_to("/proc/self/fd/1")
            for command in export, [BIN / "vprof", "gate", "-b", "clock.data", "clock.data", "--markdown"]:
                done = subprocess.run([*command, "link"], cwd=folder, capture_output=True, text=True)
                self.assertRegex(done.stderr, "cannot write link: it is a symbolic link to .*target, which does not exist")
                self.assertFalse((folder / "target").exists())
            (folder / "target").write_text("old")
            subprocess.run([*export, "link"], cwd=folder, check=True)
            self.assertEqual((folder / "target").read_bytes(), expected)
            for descriptor in "descriptor", "/dev/stdout":
                with open(folder / "shell", "wb") as shell:
                    subprocess.run([*export, descriptor], cwd=folder, stdout=shell, check=True)
                self.assertEqual((folder / "shell").read_bytes(), expected)
                self.assertTrue((folder / descriptor).is_symlink())
            self.assertEqual(list(folder.glob(".vprof-*")), [])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    if result.skipped:
        print("; ".join(sorted({reason for _, reason in result.skipped})))
    sys.exit(1 if not result.wasSuccessful() else 77 if result.skipped else 0)
