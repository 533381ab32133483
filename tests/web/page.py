#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The HTML page in Chromium: what it shows, how it is used, and that no name in a recording becomes part of it."""
import json
import pathlib
import re
import shutil
import subprocess
import tempfile
import time

import contrast
import harness
from browser import Browser
from harness import BIN, VPROF

LOAD_SECONDS = 2
CPU_SECONDS_MAX = 12  # of all processes and threads; other work on the machine does not count as it would in the time
DETAILS = "return document.getElementById('details-text').textContent"
FRAMES = "return [...document.querySelectorAll('#flame g.frame')].map((frame) => frame.getAttribute('name'))"
# Frames by name -> share of the width.
WIDTHS = """
const whole = document.getElementById("flame").clientWidth, widths = {};
for (const frame of document.querySelectorAll("#flame g.frame"))
  widths[frame.getAttribute("name")] = Number(frame.querySelector("rect").getAttribute("width")) / whole;
return widths"""
ROW_PIXELS_MAX = 40  # one line of text
ROWS = "return [...document.querySelectorAll('#functions tbody tr')].map((row) => [...row.cells].slice(0, -1).map((cell) => cell.textContent))"
FILL = "return getComputedStyle(document.querySelector(`#flame g.frame[name='${arguments[0]}'] rect`)).fill"


def choose(browser, element, value):
    browser.run("const list = document.getElementById(arguments[0]); list.value = arguments[1];"
                "list.dispatchEvent(new Event('change'))", element, value)


class Page(harness.ProgramTest):
    @classmethod
    def setUpClass(cls):
        harness.need(harness.built_with("d3-flame-graph"), "vprof was built without the HTML page: node or npm was missing")
        cls.recordings = tempfile.mkdtemp(prefix="vprof-page-")
        cls.addClassCleanup(shutil.rmtree, cls.recordings)
        subprocess.run([BIN / "make_pages"], cwd=cls.recordings, check=True)
        cls.browser = Browser()
        cls.addClassCleanup(cls.browser.close)

    def setUp(self):
        super().setUp()
        self.browser.open("/dev/null")
        self.browser.console()
        self.browser.requests()
        self.address = ""

    def check_nothing_left(self, seconds=5):
        """The browser stays for the next test."""

    def page(self, *command):
        file = self.folder / "page.html"
        self.run_program(VPROF, *command, "--html", file, cwd=self.recordings, timeout=120)
        self.show(file)
        return file

    def show(self, file, address=""):
        self.address = address
        self.browser.open(f"{file}{address}")
        self.browser.wait("return document.documentElement.dataset.drawnMs", seconds=240)

    def again(self, file, address):
        """The same page, from the start, by another address."""
        self.browser.open("/dev/null")
        self.browser.requests()
        self.show(file, address)

    def tearDown(self):
        """Whatever a test did: the page has not complained, and has asked for nothing but itself."""
        self.assertEqual(self.browser.console(), [])
        self.assertEqual(self.browser.requests(), [f"file://{self.folder}/page.html"])

    def hash(self):
        """What the address has got; it follows what is shown."""
        time.sleep(0.4)
        return self.browser.run("return location.hash")

    def widths(self):
        return {name: round(width, 3) for name, width in self.browser.run(WIDTHS).items()}

    def test_what_cannot_be_done_leaves_no_page(self):
        self.refused(VPROF, "report", "-i", "missing.data", "--html", "page.html", cwd=self.recordings, message="cannot read missing.data: No such file")
        self.refused(VPROF, "report", "-i", "base.data", "--html", "missing/page.html", cwd=self.recordings,
                     message="cannot write missing/page.html: No such file or directory")
        self.refused(VPROF, "diff", "base.data", "other.data", "--html", "page.html", cwd=self.recordings,
                     message="base.data and other.data cannot be compared: .* --force compares them anyway")
        self.assertEqual(list(pathlib.Path(self.recordings).glob("page*")), [])
        self.page("diff", "--force", "base.data", "other.data")

    def test_flame_graph(self):
        self.page("report", "-i", "base.data")
        self.assertEqual(self.widths(), {"all": 1, "main": 0.882, "hash_blocks.constprop.0": 0.49, "parse": 0.294,
                                         "read_token": 0.294, "old_path": 0.098, "default_idle": 0.098, "exit:io:0x3f8": 0.02})
        self.assertEqual(self.browser.run(DETAILS), "all: 100.00 %, 1.020 s, 1,020 samples")
        facts = "return [...document.querySelectorAll('#facts div')].map((pair) => [...pair.children].map((part) => part.textContent))"
        self.assertEqual(self.browser.run(facts), [["kernel", "release 6.1.0-page"], ["host", "Page CPU"], ["events", "task-clock, 999 Hz: 1,020 samples"],
                                                   ["samples", "1020 over 1.019 s, lost 0"]])
        self.browser.press("i")
        upside = "const y = (name) => document.querySelector(`#flame g.frame[name='${name}']`).getBoundingClientRect().y; return y('all') < y('main')"
        self.assertTrue(self.browser.run(upside))
        self.browser.press("i")
        self.assertFalse(self.browser.run(upside))

    def test_zoom(self):
        self.page("report", "-i", "base.data")
        self.browser.click("#flame g.frame[name='parse'] rect")
        self.assertEqual(self.widths(), {"all": 1, "main": 1, "parse": 1, "read_token": 1})
        self.browser.click("#reset")
        self.assertEqual(self.widths()["parse"], 0.294)
        self.browser.run("document.getElementById('flame').focus()")
        self.browser.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "Enter")
        self.assertEqual(self.widths(), {"all": 1, "main": 1, "parse": 1, "read_token": 1})
        self.browser.press("Backspace")
        self.assertEqual(self.widths()["main"], 1)
        self.assertEqual(self.widths()["parse"], 0.333)
        self.browser.press("Escape")
        self.assertEqual(self.widths()["main"], 0.882)

    def test_search(self):
        self.page("report", "-i", "base.data")
        self.browser.press("/")
        self.browser.press(*"PATH")
        self.assertEqual(self.browser.run(DETAILS), "1 function matches: 9.80 %")
        self.browser.type("#search", "/^(main|parse)$/")
        self.assertEqual(self.browser.run(DETAILS), "2 functions match: 88.24 %")
        marked = "return [...document.querySelectorAll('#flame g.match')].map((frame) => frame.getAttribute('name')).sort()"
        self.assertEqual(self.browser.run(marked), ["main", "parse"])
        self.assertEqual([row[3] for row in self.browser.run(ROWS)], ["main", "parse"])
        self.browser.type("#search", "/(/")
        self.assertEqual(self.browser.run("return document.getElementById('search').getAttribute('aria-invalid')"), "true")
        self.browser.press("Escape")
        self.assertEqual(self.browser.run(marked), [])
        self.assertEqual(len(self.browser.run(ROWS)), 7)

    def test_table(self):
        self.page("report", "-i", "base.data")
        rows = self.browser.run(ROWS)
        self.assertEqual(rows[0], ["49.02 %", "49.02 %", "500", "hash_blocks.constprop.0", "[user]", "user"])
        self.assertEqual([row[2] for row in rows], ["500", "300", "100", "100", "20", "0", "0"])
        heights = self.browser.run("return [...document.querySelectorAll('#functions tbody tr')].map((row) => row.offsetHeight)")
        self.assertLess(max(heights), ROW_PIXELS_MAX)
        self.browser.click("#functions th:nth-child(2) button")
        self.assertEqual([row[3] for row in self.browser.run(ROWS)][:3], ["main", "hash_blocks.constprop.0", "parse"])
        self.browser.click("#functions th:nth-child(4) button")
        names = [row[3] for row in self.browser.run(ROWS)]
        self.assertEqual(names, sorted(names))

    def test_groups_and_selections(self):
        self.page("report", "-i", "base.data")
        choose(self.browser, "grouping", "process")
        self.assertEqual({name: width for name, width in self.widths().items() if "(" in name},
                         {"bench (100)": 0.882, "swapper (0)": 0.118})
        choose(self.browser, "grouping", "cpu")
        self.assertEqual({name: width for name, width in self.widths().items() if "vCPU" in name}, {"vCPU 0": 0.882, "vCPU 1": 0.118})
        choose(self.browser, "grouping", "phase")
        self.assertEqual(self.widths()["tokens"], 0.294)
        self.assertEqual(self.widths()["no phase"], 0.706)
        choose(self.browser, "grouping", "none")
        choose(self.browser, "phase", "tokens")
        self.assertEqual(self.widths(), {"all": 1, "main": 1, "parse": 1, "read_token": 1})
        choose(self.browser, "phase", "")
        choose(self.browser, "vcpu", "1")
        self.assertEqual(self.widths(), {"all": 1, "default_idle": 0.833, "exit:io:0x3f8": 0.167})

    def test_timeline(self):
        self.page("report", "-i", "base.data")
        lanes = "return [...document.querySelectorAll('svg.timeline [role=row]')].map((row) => row.getAttribute('aria-label'))"
        self.assertEqual(self.browser.run(lanes), ["tokens", "vCPU 0", "vCPU 1"])
        phase = "return document.querySelector('svg.timeline .span title').textContent"
        self.assertEqual(self.browser.run(phase), "tokens: 0 s to 300 ms")
        columns = self.browser.run("return [...document.querySelectorAll('svg.timeline .column title')].map((title) => title.textContent)")
        self.assertEqual({column.split(": ")[1] for column in columns} - {"user 100.0 %", "kernel 100.0 %", "exit io 100.0 %"},
                         {column.split(": ")[1] for column in columns if "," in column})
        self.assertIn("exit io 100.0 %", {column.split(": ")[1] for column in columns})

    def test_many_phases(self):
        self.page("report", "-i", "phases.data")
        names = "return [...document.querySelectorAll('svg.timeline [role=row]')].map((row) => row.getAttribute('aria-label'))"
        rest = "return [...document.querySelectorAll('button.rest')].map((button) => button.textContent)"
        self.assertEqual(self.browser.run(names)[7:], ["sort", "vCPU 0"])
        self.assertEqual(self.browser.run(rest), ["3 more phases"])
        self.browser.click("button.rest")
        self.assertEqual(self.browser.run(names)[7:], ["sort", "write", "sync", "stop", "vCPU 0"])
        self.assertEqual(self.browser.run(rest), [])

    def shown(self):
        """Of which time, and how many samples there are then, by function."""
        text = self.browser.run("return document.getElementById('range').hidden ? '' : document.getElementById('range-text').textContent")
        return text, {row[-3]: int(row[2].replace(",", "")) for row in self.browser.run(ROWS) if row[2] != "0"}

    def test_time_range(self):
        """300 ms of tokens, 500 of hash_blocks, 100 of old_path, 100 idle and 20 in an exit, a sample each millisecond."""
        self.page("report", "-i", "base.data")
        everything = self.shown()
        self.assertEqual([everything[0], sum(everything[1].values())], ["", 1020])
        # The lanes begin right of their names, and end a little before the picture.
        left, right, width = self.browser.run("const lane = document.querySelector('svg.timeline .lane'), x = Number(lane.getAttribute('x'));"
                                              "return [x, x + Number(lane.getAttribute('width')), Number(document.querySelector('svg.timeline').getAttribute('width'))]")
        at = lambda ms: (left + (right - left) * ms / 1019) / width
        self.browser.drag("svg.timeline", at(400), at(600))
        text, samples = self.shown()
        begin, end = (float(number) for number in re.fullmatch(r"([\d.]+) ms to ([\d.]+) ms only", text).groups())
        # Whole slices of 2^22 ns, and a pixel.
        self.assertAlmostEqual(begin, 400, delta=4.2 + 1)
        self.assertAlmostEqual(end, 600, delta=4.2 + 1)
        self.assertEqual(list(samples), ["hash_blocks.constprop.0"])
        self.assertAlmostEqual(samples["hash_blocks.constprop.0"], end - begin, delta=1)
        self.assertEqual(set(self.widths()), {"all", "main", "hash_blocks.constprop.0"})
        # The other choices are beside it, and its own one is drawn anew.
        self.browser.drag("svg.timeline", at(1019), at(850))
        self.assertEqual(set(self.shown()[1]), {"old_path", "default_idle", "exit:io:0x3f8"})
        choose(self.browser, "vcpu", "1")
        self.assertEqual(self.shown()[1], {"default_idle": 100, "exit:io:0x3f8": 20})
        choose(self.browser, "vcpu", "")
        self.browser.press("Escape")
        self.assertEqual(self.shown(), everything)
        # By keys: a tenth, the next one, back; a click in the picture ends it, too.
        self.browser.press("]")
        first = self.shown()
        self.assertRegex(first[0], r"^0 s to 10\d(\.\d+)? ms only$")
        self.assertEqual(set(first[1]), {"read_token"})
        self.browser.press("]")
        self.assertNotEqual(self.shown(), first)
        self.browser.press("[")
        self.assertEqual(self.shown(), first)
        self.browser.drag("svg.timeline", at(500), at(500))
        self.assertEqual(self.shown(), everything)
        self.browser.press("[")
        self.browser.click("#range-reset")
        self.assertEqual(self.shown(), everything)

    def test_time_range_of_one_side(self):
        self.page("diff", "base.data", "new.data")
        self.browser.drag("svg.timeline", 0.6, 0.7)
        self.assertRegex(self.browser.run("return document.getElementById('range-text').textContent"), "^base: [^,]* only$")
        rows = {row[5]: row for row in self.browser.run(ROWS)}
        self.assertEqual(rows["old_path"][1], "0.00 %")
        self.assertNotEqual(rows["new_path"][2], "0.00 %")

    def test_comparison(self):
        self.page("diff", "base.data", "new.data")
        red, green, blue = (int(number) for number in self.browser.run(FILL, "hash_blocks")[4:-1].split(","))
        self.assertGreater(red, blue)
        red, green, blue = (int(number) for number in self.browser.run(FILL, "old_path")[4:-1].split(","))
        self.assertGreater(blue, red)
        rows = {row[5]: row for row in self.browser.run(ROWS)}
        self.assertEqual(rows["hash_blocks"][:4], ["+10.81", "49.02 %", "59.83 %", "+10.81"])
        self.assertEqual(rows["old_path"][:5], ["−9.80", "9.80 %", "0.00 %", "−9.80", "gone"])
        self.assertEqual(rows["new_path"][4], "new")
        self.assertLessEqual({"old_path", "new_path"}, set(self.browser.run(FRAMES)))
        choose(self.browser, "width", "base")
        self.assertEqual(self.widths()["old_path"], 0.098)
        self.assertNotIn("new_path", self.browser.run(FRAMES))
        choose(self.browser, "width", "new")
        self.assertEqual(self.widths()["hash_blocks"], 0.598)
        self.assertNotIn("old_path", self.browser.run(FRAMES))
        self.browser.type("#search", "hash")
        self.assertEqual(self.browser.run(DETAILS), "1 function matches: base 49.02 %, new 59.83 %")

    def saturation(self, frame):
        """How far the colour of a frame is from grey, 0 to 255."""
        colour = [int(number) for number in self.browser.run(FILL, frame)[4:-1].split(",")]
        return max(colour) - min(colour)

    def test_comparison_of_repetitions(self):
        self.page("diff", "repeats.data", "slower.data")
        # Neither the warm-up nor what lies between the repetitions.
        self.assertEqual(set(self.browser.run(FRAMES)), {"all", "main", "parse", "read_token", "hash_blocks"})
        self.assertIn("phase repeat-* only", self.browser.run("return document.getElementById('what').textContent"))
        self.assertTrue(self.browser.run("return document.getElementById('notes').hidden"))
        self.assertIn("Change, points", self.browser.run("return document.querySelector('#functions thead').textContent"))
        # hash_blocks stands, and colours its caller; read_token is less of the whole, but as long as before.
        self.assertGreater(self.saturation("hash_blocks"), 80)
        self.assertGreater(self.saturation("main"), 80)
        choose(self.browser, "scale", "absolute")
        self.assertGreater(self.saturation("hash_blocks"), 80)
        self.assertLess(self.saturation("read_token"), 50)

    def test_comparison_of_the_same(self):
        self.page("diff", "repeats.data", "repeats.data")
        self.assertLess(self.saturation("hash_blocks"), 20)
        self.assertIn("No function's change can be told from chance, with 8 and 8 repetitions",
                      self.browser.run("return document.getElementById('notes').textContent"))

    def test_comparison_of_a_phase(self):
        self.page("diff", "--phase", "warmup-*", "repeats.data", "slower.data")
        self.assertEqual(set(self.browser.run(FRAMES)), {"all", "main", "old_path"})

    def test_renamed(self):
        self.page("diff", "base.data", "renamed.data")
        rows = {row[5]: row for row in self.browser.run(ROWS)}
        self.assertEqual([rows["old_path"][4], rows["slow_old_path"][4], rows["main"][4]], ["now slow_old_path?", "was old_path?", ""])

    def test_theme(self):
        self.page("report", "-i", "base.data")
        background = "return getComputedStyle(document.body).backgroundColor"
        light, frame = self.browser.run(background), self.browser.run(FILL, "main")
        self.browser.press("t")
        self.assertEqual([light, self.browser.run(background)], ["rgb(255, 255, 255)", "rgb(20, 23, 27)"])
        self.assertNotEqual(self.browser.run(FILL, "main"), frame)

    def test_contrast(self):
        """In both themes: graph, search, zoom, callers, two recordings; what was 2.73 once."""
        for theme in "light", "dark":
            self.page("report", "-i", "repeats.data")
            self.browser.run("document.documentElement.dataset.theme === arguments[0] || document.getElementById('theme').click()", theme)
            self.browser.press("?")
            self.browser.click("#facts-all")
            worst = [contrast.check(self, self.browser, 60, f"{theme}: all")]
            self.browser.press("[")
            self.browser.type("#search", "hash")
            worst.append(contrast.check(self, self.browser, 50, f"{theme}: search, a part of the time"))
            self.browser.press("Escape")
            self.browser.click("#flame g.frame[name='hash_blocks.constprop.0'] rect")
            worst.append(contrast.check(self, self.browser, 50, f"{theme}: zoomed"))
            self.browser.click("#details-centre")
            worst.append(contrast.check(self, self.browser, 50, f"{theme}: callers"))
            self.browser.open("/dev/null")
            self.browser.requests()
            self.page("diff", "repeats.data", "slower.data")
            self.browser.run("document.documentElement.dataset.theme === arguments[0] || document.getElementById('theme').click()", theme)
            worst.append(contrast.check(self, self.browser, 60, f"{theme}: two"))
            print(f"\nleast contrast, {theme}: {min(worst):.2f}", flush=True)
            if theme == "light":
                self.browser.open("/dev/null")
                self.browser.requests()

    def test_contrast_can_fail(self):
        self.page("report", "-i", "base.data")
        self.browser.run("document.getElementById('details-text').style.color = '#999'")
        with self.assertRaisesRegex(AssertionError, "samples"):
            contrast.check(self, self.browser, 10, "grey")

    def test_filters(self):
        """The patterns and the lists of the command line."""
        self.page("report", "-i", "base.data")
        only = lambda: {row[3]: row[2] for row in self.browser.run(ROWS) if row[2] != "0"}
        whole = only()
        for name, value, functions in (("comm", "swap*", {"default_idle", "exit:io:0x3f8"}), ("comm", "none,ben?h", {"read_token", "hash_blocks.constprop.0", "old_path"}),
                                       ("pid", "1-99", set()), ("pid", "50-150", {"read_token", "hash_blocks.constprop.0", "old_path"}), ("pid", "x", set()),
                                       ("vcpu", "1-3", {"default_idle", "exit:io:0x3f8"}), ("mode", "vmm", {"exit:io:0x3f8"}), ("mode", "kernel", {"default_idle"}),
                                       ("phase", "tokens", {"read_token"})):
            choose(self.browser, name, value)
            self.assertEqual(set(only()), functions, (name, value))
            self.assertIn(f"{name}={value.replace('*', '*')}"[:6], self.hash())
            self.browser.click("#clear")
            self.assertEqual(only(), whole)
        self.assertEqual(self.hash(), "")

    def test_cgroups_and_states(self):
        """Of recordings with them: samples by cgroup, by what their tasks waited for."""
        subprocess.run([BIN / "make_recordings"], cwd=self.folder, check=True)
        rows = json.loads(self.run_program(VPROF, "report", "-i", "cgroups.data", "--sort", "cgroup", "--json", cwd=self.folder)[0])
        shares = {row["cgroup"]: round(row["share"], 3) for row in rows["tables"][0]["rows"]}
        self.page("report", "-i", self.folder / "cgroups.data")
        choose(self.browser, "grouping", "cgroup")
        widths = self.widths()
        self.assertEqual({name: widths[name] for name in shares}, shares)
        name = max(shares, key=shares.get)
        choose(self.browser, "cgroup", name)
        self.assertEqual(self.widths()[name], 1)
        self.again(self.page("report", "-i", self.folder / "waits.data"), "#event=task-clock+and+wall&group=state")
        self.assertLessEqual({"sleeping", "disk-sleep"}, set(self.browser.run(FRAMES)))
        # What each task did over time; a click on its name, or the key p, leaves its process alone.
        rows = "return [...document.querySelectorAll('#timeline-0 [role=row]')].map((row) => row.getAttribute('aria-label')).filter((name) => !name.startsWith('vCPU'))"
        tasks = self.browser.run(rows)
        self.assertGreaterEqual(len(tasks), 2)
        states = "return [...document.querySelectorAll('#timeline-0 [role=row] title')].map((title) => title.textContent).join(' ')"
        self.assertRegex(self.browser.run(states), r"running \S+ .s.*sleeping|sleeping \S+ .s")
        self.browser.run("[...document.querySelectorAll('#timeline-0 text.pick')][0].dispatchEvent(new MouseEvent('click', { bubbles: true }))")
        self.assertRegex(self.browser.run("return document.getElementById('pid').value"), r"^\d+$")
        # What ended the waits.
        self.again(self.page("report", "-i", self.folder / "locks.data"), "#event=off-cpu&group=waker")
        self.assertLessEqual({"reader", "writer", "[interrupt]", "unknown"}, set(self.browser.run(FRAMES)))

    def test_callers_and_callees(self):
        file = self.page("report", "-i", "base.data")
        names = lambda host: self.browser.run(f"return [...document.querySelectorAll('#{host} g.frame')].map((frame) => frame.getAttribute('name'))")
        self.browser.run("document.getElementById('flame').focus()")
        self.browser.press("ArrowUp", "ArrowUp", "ArrowUp", "ArrowRight", "c")
        self.assertEqual([set(names("callers")), set(names("callees"))], [{"main", "parse"}, {"parse", "read_token"}])
        self.assertEqual(self.browser.run("return [document.getElementById('centre').textContent, document.getElementById('centre-facts').textContent]"),
                         ["parse", "29.41 %, 300.00 ms, 300 samples"])
        address = self.hash()
        # A frame leads to its own callers and callees; Esc leads back.
        self.browser.click("#callees g.frame[name='read_token'] rect")
        self.assertEqual([set(names("callers")), set(names("callees"))], [{"main", "parse", "read_token"}, {"read_token"}])
        self.browser.press("Escape")
        self.assertTrue(self.browser.run("return document.getElementById('sandwich').hidden"))
        self.browser.click("#functions tbody tr:first-child button.callers")
        self.assertEqual(set(names("callees")), {"hash_blocks.constprop.0"})
        self.again(file, address)
        self.assertEqual([set(names("callers")), set(names("callees"))], [{"main", "parse"}, {"parse", "read_token"}])

    def test_address(self):
        """What is shown stands in the address, and is shown again by it."""
        file = self.page("report", "-i", "base.data")
        state = lambda: [self.widths(), self.shown(), self.browser.run(DETAILS),
                         self.browser.run("return [...document.querySelectorAll('#controls select, #controls input')].map((field) => field.value)"),
                         self.browser.run("return [...document.querySelectorAll('g.frame.selected')].map((frame) => frame.getAttribute('name'))")]
        choose(self.browser, "grouping", "process")
        choose(self.browser, "shape", "icicle")
        choose(self.browser, "mode", "user")
        self.browser.press("]", "]")
        self.browser.run("document.getElementById('flame').focus()")
        self.browser.press("ArrowDown", "ArrowDown", "ArrowDown", "Enter", "ArrowDown", "ArrowDown")
        self.browser.type("#search", "token")
        before, address = state(), self.hash()
        self.assertEqual(before[0], {"all": 1, "bench (100)": 1, "main": 1, "parse": 1, "read_token": 1})
        self.again(file, address)
        self.assertEqual(state(), before)
        self.assertEqual(self.hash(), address)
        # One that is typed into the open page.
        self.browser.run("location.hash = '#vcpu=1'")
        self.browser.wait("return document.getElementById('vcpu').value === '1'")
        self.assertEqual(self.widths(), {"all": 1, "default_idle": 0.833, "exit:io:0x3f8": 0.167})

    def test_addresses_of_others(self):
        """What the page does not have, cannot be, or is too much is left out."""
        file = self.page("report", "-i", "base.data")
        whole = self.widths()
        for address in ("#event=__proto__&group=constructor&shape=%00&mode=toString&phase=none&width=x&scale=x", "#time=5,1", "#time=-1,Infinity", "#time=1e9,2e9",
                        "#time=999999999,999999999.5", "#zoom=none&zoom=main", "#select=%ff%fe", "#function=main&function=x", "#search=" + "a" * 20000,
                        "#" + "zoom=main&" * 5000, "#%%%&=&&&==", "#search=/(/", "#search=/(a*)*$/"):
            self.again(file, address)
            self.assertEqual(self.widths(), whole, address[:60])
            self.assertFalse(self.browser.run("return document.getElementById('search').hasAttribute('aria-invalid')"))
        self.again(file, "#search=<img src=x onerror=alert(1)>&comm=<b>&zoom=main&time=0,1e9")
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, b b').length"), 0)

    def test_roles_and_keys(self):
        """A tree of frames and a grid of time, for the keyboard and for those who do not see the picture."""
        self.page("report", "-i", "repeats.data")
        self.assertEqual(self.browser.run("const at = document.getElementById('flame'); return [at.getAttribute('role'), at.tabIndex]"), ["tree", 0])
        items = "return [...document.querySelectorAll('#flame g.frame')].every((frame) => frame.getAttribute('role') === 'treeitem'" \
                " && frame.getAttribute('aria-label').startsWith(frame.getAttribute('name')) && Number(frame.getAttribute('aria-level')) >= 1)"
        self.assertTrue(self.browser.run(items))
        active = "const at = document.getElementById(document.activeElement.getAttribute('aria-activedescendant')); return at && at.getAttribute('aria-label')"
        self.browser.run("document.getElementById('flame').focus()")
        self.assertIsNone(self.browser.run(active))
        self.browser.press("ArrowUp", "ArrowUp")
        self.assertTrue(self.browser.run(active).startswith("main (user"), self.browser.run(active))
        self.assertEqual(self.browser.run("return document.activeElement.matches(':focus-visible') ? getComputedStyle(document.activeElement).outlineStyle : ''"), "solid")
        # The repetitions are one track; a cell is chosen by Enter and extended by Shift.
        rows = "return [...document.querySelectorAll('#timeline-0 [role=row]')].map((row) => [row.getAttribute('aria-label'), row.querySelectorAll('[role=gridcell]').length])"
        self.assertEqual([row for row in self.browser.run(rows) if "vCPU" not in row[0]], [["warmup-1", 1], ["repeat", 8]])
        self.browser.run("document.getElementById('timeline-0').focus()")
        self.browser.press("ArrowRight", "ArrowDown")
        self.assertRegex(self.browser.run(active), "^repeat-1: ")
        self.browser.press("ArrowRight", "Enter")
        self.assertRegex(self.browser.run(active), "^repeat-2: ")
        second = self.shown()
        self.assertEqual(set(second[1]) - {"default_idle"}, {"read_token", "hash_blocks.constprop.0"})
        self.browser.run("const at = document.getElementById('timeline-0'); for (const key of ['ArrowRight', 'ArrowRight'])"
                         "at.dispatchEvent(new KeyboardEvent('keydown', { key, shiftKey: true, bubbles: true }))")
        self.assertGreater(sum(self.shown()[1].values()), 2.5 * sum(second[1].values()))
        self.browser.press("Escape")
        self.assertEqual(self.shown()[0], "")

    def test_scale(self):
        self.page("report", "-i", "base.data")
        ticks = lambda: self.browser.run("return [...document.querySelectorAll('#ruler text')].map((text) => text.textContent)")
        self.assertEqual([ticks()[0], ticks()[-1]], ["0 %", "100 % · 1.02 s"])
        self.browser.click("#flame g.frame[name='parse'] rect")
        self.assertIn("20 % · 204 ms", ticks())
        self.assertNotIn("30 %", " ".join(ticks()))
        self.browser.press("Escape")
        edges = self.browser.run("return [...document.querySelectorAll('#ruler text')].map((text) => text.getBoundingClientRect())"
                                 ".map((box) => [box.left, box.right])")
        self.assertTrue(all(left[1] < right[0] for left, right in zip(edges, edges[1:])), edges)

    def test_hostile_names(self):
        file = self.page("report", "-i", "hostile.data")
        self.assertEqual(file.read_text().count("</script>"), 2)
        self.assertEqual(self.browser.run("return document.title"), "vprof: hostile.data")
        self.assertEqual(self.browser.run("return document.querySelectorAll('img, b + b, i, script').length"), 1)
        names = {row[3] for row in self.browser.run(ROWS)}
        self.assertEqual(names, {"</script><script>document.title='owned'</script>", "<img src=x onerror=\"document.title='owned'\">",
                                 "<!--<script>", "@vprof-data@ $& ${x} %s &lt;b&gt; \\u003c", "__proto__", "right???!left ??"})
        choose(self.browser, "grouping", "process")
        self.assertIn("</script><b> (66)", self.browser.run(FRAMES))
        self.assertEqual(self.browser.run("return document.title"), "vprof: hostile.data")

    def test_many_stacks(self):
        before = self.browser.cpu_seconds()
        self.page("report", "-i", "stacks.data")
        cpu = self.browser.cpu_seconds() - before
        seconds = float(self.browser.run("return document.documentElement.dataset.drawnMs")) / 1000
        print(f"\n200,000 stacks: drawn {seconds:.2f} s after the start of the navigation (aim: {LOAD_SECONDS} s),"
              f" {cpu:.2f} s of CPU time in all of the browser", flush=True)
        self.assertLess(cpu, CPU_SECONDS_MAX)
        self.assertEqual(self.browser.run(DETAILS), "all: 100.00 %, 200.000 s, 200,000 samples")
        self.assertGreater(len(self.browser.run(FRAMES)), 100)
        self.browser.type("#search", "/^function_0$/")
        self.assertEqual(self.browser.run(DETAILS), "1 function matches: 100.00 %")


if __name__ == "__main__":
    harness.main()
