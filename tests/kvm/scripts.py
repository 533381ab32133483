#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""Scripts of vprof trace, with a guest that does everything a known number of times: nothing is lost, and nothing counted twice."""
import json
import re

import harness
import json_schemas
import manual
from engine import Engine
from harness import SOURCE, VPROF

ROUNDS = 100  # tests/guests/rounds
PORT, MSR = 0x510, 0x174

ACCESSES = f"""
BEGIN {{ @before = 5; printf("ready\\n"); }}
io:{PORT:#x}:out {{
	@ports[args.port, args.bytes] = count();
	@sum = sum(args.value); @min = min(args.value); @max = max(args.value); @avg = avg(args.value);
	@powers = hist(args.value); @tens = lhist(args.value, 0, 50, 10);
	$half = args.value / 2;
	if ($half * 2 == args.value) {{ @even++; }} else {{ @odd++; }}
}}
io:{PORT:#x}:out /args.value % 10 == 3 && args.value > 50/ {{ printf("%d %s|%5x|%-4u|\\n", args.value, "of", args.value, args.value); }}
io:{PORT:#x}:out /args.value == 1000/ {{ printf("never\\n"); }}
msr:{MSR:#x}:write {{ @last[args.value % 3] = args.value; @gone[args.value] = 1; delete(@gone[args.value]); }}
END {{ printf("end\\n"); }}
"""

CALLS = """
BEGIN { printf("ready\\n"); }
function:countdown { @n[arg0] = count(); }
kprobe:round_port { @start[arg0] = nsecs; @func[func, probe] = count(); }
function:round_mmio /@start[arg0]/ { @known = count(); @late = max(nsecs - @start[arg0]); }
function:round_msr /arg0 == 49/ { exit(); }
"""


class Scripts(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        harness.need_kvm()

    def trace(self, script, *parameters):
        """What the script prints with the guest, from its first instruction to its end: the texts, the maps and the end."""
        engine = Engine(self, harness.guest("rounds"), "--vcpus", 2)
        trace = self.start(VPROF, "trace", engine.path, *parameters, "--json", *script)
        self.assertEqual(json.loads(trace.stdout.readline()), {"text": "ready\n"})
        engine.execute("guest-start")
        out, _ = self.finish(trace)
        lines = [json.loads(line) for line in out.splitlines()]
        for line in lines:
            json_schemas.check(self, "trace", line)
        return ([line["text"] for line in lines if "text" in line], {line["map"]: line for line in lines if "map" in line},
                lines[-1]["end"])

    def entries(self, map_):
        return {tuple(entry["key"]): entry["value"] for entry in map_["entries"]}

    def value(self, map_):
        return self.entries(map_)[()]

    def test_accesses(self):
        path = self.folder / "accesses"
        path.write_text("#!/usr/bin/env -S vprof trace --script\n" + ACCESSES)
        texts, maps, end = self.trace(["--script", path])
        self.assertEqual(texts, [f"{i} of|{i:5x}|{i:<4d}|\n" for i in range(53, ROUNDS, 10)] + ["end\n"])
        self.assertEqual(self.entries(maps["@ports"]), {(PORT, 1): ROUNDS})
        self.assertEqual([self.value(maps[name]) for name in ("@sum", "@min", "@max", "@avg", "@even", "@odd", "@before")],
                         [sum(range(ROUNDS)), 0, ROUNDS - 1, (ROUNDS - 1) // 2, ROUNDS // 2, ROUNDS // 2, 5])
        self.assertEqual([range_["count"] for range_ in self.value(maps["@powers"])], [1, 1, 2, 4, 8, 16, 32, 36])
        self.assertEqual([(range_["range"], range_["count"]) for range_ in self.value(maps["@tens"])],
                         [(f"[{low}, {low + 10})", 10) for low in range(0, 50, 10)] + [("[50, ...)", 50)])
        self.assertEqual(self.entries(maps["@last"]), {(0,): 99, (1,): 97, (2,): 98})
        self.assertEqual(self.entries(maps["@gone"]), {})
        statistics = end["statistics"]
        self.assertEqual([statistics[name] for name in ("dropevt", "map-full", "fault")], [0, 0, 0])
        # One program for all clauses of a probe. What was printed are the only events.
        self.assertEqual((statistics["hit"], statistics["event"]), (2 * ROUNDS + 2, len(texts) + 1))

    def test_calls(self):
        harness.need_feature("breakpoint")
        texts, maps, end = self.trace(["-e", CALLS])
        self.assertEqual(texts, [])
        # exit() is in round 49: of later rounds, nothing is counted.
        self.assertEqual(self.entries(maps["@n"]), {(1,): 49, (2,): 49, (3,): 49})
        self.assertEqual(self.entries(maps["@func"]), {("round_port", "kprobe:round_port"): 50})
        self.assertEqual(self.value(maps["@known"]), 50)
        self.assertGreater(self.value(maps["@late"]), 0)
        self.assertEqual(end["statistics"]["hit"], 1 + 3 * 49 + 3 * 50)

    def functions(self, places):
        """Without the offsets, which depend on the compiler."""
        return [re.sub(r"\+0x\w+$", "", place) for place in places]

    def test_source_lines(self):
        """A line of the guest's source in a function that is inlined twice, at a place in each; a line without code."""
        harness.need_feature("breakpoint")
        harness.need(harness.built_with("libdw"), "vprof was built without libdw")
        source = (SOURCE / "tests" / "guests" / "rounds" / "guest.c").read_text().splitlines()
        line = source.index("	at[0] = round;") + 1
        header = (SOURCE / "vmm" / "demo" / "x86" / "x86.h").read_text().splitlines()
        outb = next(i for i, text in enumerate(header, 1) if '"outb ' in text)
        inlined = f"x86/x86.h:{outb}"
        _, maps, _ = self.trace(["-e", f'''BEGIN {{ printf("ready\\n"); }} kprobe:{inlined}/arg0 < 50/{{ @[func, probe] = count(); }}
                                 function:guest.c:{line - 1} {{ @next = count(); }}'''])
        self.assertEqual([(func, *self.functions([probe]), count) for (func, probe), count in sorted(self.entries(maps["@"]).items())],
                         [(name, f"kprobe:{name}", ROUNDS // 2) for name in ("round_mark", "round_port")])
        self.assertEqual(self.value(maps["@next"]), ROUNDS)

        engine = Engine(self, harness.guest("rounds"))

        def listed(pattern):
            out, err = self.run_program(VPROF, "probe", "list", pattern, "-E", engine.path)
            return self.functions(out.split()), err

        self.assertEqual(listed(f"function:{inlined}"), (["function:round_port", "function:round_mark"], ""))
        self.assertEqual(listed(f"function:guest.c:{line - 1}"),
                         (["function:round_mmio"], f"vprof: line {line - 1} of guest.c has no code; the next that has some is {line}\n"))
        lines, _ = listed("function:rounds/guest.c:*")
        self.assertIn(f"function:rounds/guest.c:{line}", lines)
        self.assertNotIn(f"function:rounds/guest.c:{line - 1}", lines)
        out, _ = self.run_program(VPROF, "probe", "args", "-E", engine.path, f"function:guest.c:{line}")
        self.assertEqual(out.split()[:2], ["arg0", "arg1"])
        for probe, message in (("guest.c:9999", r"the last line of guest.c that has code is \d+"),
                               ("uest.c:1", "the kernel has no code of a source file uest.c"),
                               (f"x86.h:{outb}000000000000000000000", "the last line of x86.h")):
            self.refused(VPROF, "trace", engine.path, "-e", f"function:{probe}", message=message)
        self.assertIn("a line of a source file, which the engine does not read",
                      engine.ask("probe-add", probe=f"function:{inlined}")["error"]["desc"])

    def test_maps_have_a_size(self):
        script = f'BEGIN {{ printf("ready\\n"); }} io:{PORT:#x}:out {{ @[args.value] = count(); @n = count(); }} END {{ print(@, 3); clear(@n); }}'
        engine = Engine(self, harness.guest("rounds"))
        trace = self.start(VPROF, "trace", engine.path, "--map-keys", 10, "-j", "-e", script)
        trace.stdout.readline()
        engine.execute("guest-start")
        out, _ = self.finish(trace)
        lines = [json.loads(line) for line in out.splitlines()]
        self.assertEqual([len(line["entries"]) for line in lines if "map" in line], [3, 10, 0])
        self.assertEqual(lines[-1]["end"]["statistics"]["map-full"], ROUNDS - 10)

    def test_manual(self):
        """The scripts of vprof-equivalents(7), in the place of a kernel with a guest that has other functions. What only Linux has is
        in host/one_liners."""
        harness.need_feature("breakpoint")
        examples = manual.scripts()
        self.assertGreater(len(examples), 40)
        for name, script in examples:
            if manual.is_for_linux(script):
                continue
            script = re.sub("vfs_read?", "round_port", script.replace("vfs_rea[d]", "round_por[t]"))
            with self.subTest(name, script=script):
                engine = Engine(self, harness.guest("rounds"), name=re.sub(r"\W", "_", name))
                trace = self.start(VPROF, "trace", engine.path, "-j", "-e", 'BEGIN { printf("ready\\n"); }', "-e", script)
                self.wait_for_line(trace)
                engine.execute("guest-start")
                out, _ = self.finish(trace)
                hits = json.loads(out.splitlines()[-1])["end"]["statistics"]["hit"]
                self.assertGreater(hits, ROUNDS if re.match("k|io", script) else 0)

    def test_refusals(self):
        engine = Engine(self, harness.guest("rounds"))
        for script, message in (("BEGIN { @x = }", "vprof: 1:14: here is \"}\", where a value should be\nvprof:   BEGIN { @x = }\n"
                                                   "vprof:                ^\n"),
                                ("io:1 { @ = args.what }", "io:1 has no argument that \"what\" begins with; it has port, value, bytes, write")):
            err = self.refused(VPROF, "trace", engine.path, "-e", script, message=".", status=2)
            self.assertIn(message, err)
        self.refused(VPROF, "trace", engine.path, "-e", "BEGIN { }", "--filter", "pid=1", status=2, message="--filter is for events")
        self.refused(VPROF, "trace", engine.path, "parameter", "-e", "io:1", status=2, message="only a script has parameters")
        self.refused(VPROF, "trace", engine.path, "-e", "function:none { }", status=2, message="has no function \"none\"")
        out = self.folder / "out"
        self.run_program(VPROF, "trace", "-o", out, "-e", 'BEGIN { printf("%s %d\\n", $1, $2 * 2); @ = stats($2); print(@); exit(); }',
                         "--", engine.path, "x y", "-3")
        self.assertEqual(out.read_text(), "x y -6\n@: count 1, average -3, total -3\n\n@: count 1, average -3, total -3\n")


if __name__ == "__main__":
    harness.main()
