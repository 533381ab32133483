# SPDX-License-Identifier: BSD-2-Clause
"""A kernel of which the structures lie, and change while they are read: the engine answers on, and ends in time. probes.py boots it."""
import os
import pathlib
import random
import re
import struct
import subprocess
import threading
import time

import harness
from harness import VPROF

LIE_SECONDS = 6
ANSWER_SECONDS = 15
LATE = 1.5
SEED = 20261125
PAGE = 4096
NAME = b"kworker/"  # tasks that every kernel has
KERNEL_POINTER = 0xffff_8000_0000_0000


class Memory:
    """The guest's RAM, as its engine has it: the largest mapping that can be written."""

    def __init__(self, pid):
        ranges = [(int(end, 16) - int(begin, 16), int(begin, 16)) for begin, end in
                  re.findall(r"^([0-9a-f]+)-([0-9a-f]+) rw", pathlib.Path(f"/proc/{pid}/maps").read_text(), re.M)]
        self.bytes, self.begin = max(ranges)
        self.file = os.open(f"/proc/{pid}/mem", os.O_RDWR)

    def read(self, at, n):
        return os.pread(self.file, n, self.begin + at)

    def write(self, at, data):
        os.pwrite(self.file, data, self.begin + at)

    def pages_of(self, name):
        """Those of its tasks, and the ones around each."""
        pages = set()
        for at in range(0, self.bytes, 1 << 22):
            data = self.read(at, min(1 << 22, self.bytes - at))
            pages |= {at + found.start() & -PAGE for found in re.finditer(re.escape(name), data)}
        return sorted(page + by for page in pages for by in (-PAGE, 0, PAGE) if 0 <= page + by < self.bytes)


class Liar(threading.Thread):
    """Puts pointers and numbers of these pages in the place of others, until it is told to stop."""

    def __init__(self, memory, pages):
        super().__init__()
        self.memory, self.pages, self.random = memory, pages, random.Random(SEED)
        self.lies, self.stops = 0, False

    def words(self, page):
        return struct.unpack(f"<{PAGE // 8}Q", self.memory.read(page, PAGE))

    def run(self):
        pointers = [word for page in self.pages for word in self.words(page) if word >= KERNEL_POINTER]
        odd = [0, 1, 7, 2**63, 2**64 - 1, KERNEL_POINTER, 0xffffffff81000000]
        while not self.stops:
            page = self.random.choice(self.pages)
            words = self.words(page)
            i = self.random.randrange(len(words))
            if words[i] >= KERNEL_POINTER:
                word = self.random.choice(pointers) + self.random.choice((0, 0, 8, -8, PAGE))
            else:
                word = self.random.choice(odd)
            self.memory.write(page + 8 * i, struct.pack("<Q", word & 2**64 - 1))
            self.lies += 1
            time.sleep(0.0002)


class LieChecks:
    """Of a ProgramTest, with an engine whose guest has panicked and is kept: no vCPU runs."""

    def ask(self, *command):
        """Either answer will do; none is late, and no end is one by a signal."""
        begin = time.monotonic()
        done = subprocess.run([VPROF, *command, self.engine], capture_output=True, timeout=60 * harness.SLOWNESS)
        self.assertLess(time.monotonic() - begin, ANSWER_SECONDS * harness.SLOWNESS, command)
        self.assertIn(done.returncode, (0, 1), (command, done.stderr))
        return done.returncode == 0

    def check_lies(self, vmm):
        harness.need(os.geteuid() == 0, "writing the memory of another process needs root")
        out = self.run_program(VPROF, "ps", self.engine)[0]
        self.assertGreater(out.count(NAME.decode()), 3, out)
        memory = Memory(vmm.pid)
        pages = memory.pages_of(NAME)
        self.assertGreater(len(pages), 3)
        liar = Liar(memory, pages)
        liar.start()
        answers, end = [], time.monotonic() + LIE_SECONDS
        try:
            while time.monotonic() < end:
                answers += [self.ask("ps"), self.ask("stack"), self.ask("ps", "--json")]
        finally:
            liar.stops = True
            liar.join()
        print(f"  {liar.lies} lies in {len(pages)} pages, {sum(answers)} of {len(answers)} answers", flush=True)
        self.assertGreater(liar.lies, 1000)
        self.assertGreater(len(answers), 6)
        self.assertIsNone(vmm.poll())
        vmm.terminate()
        begin = time.monotonic()
        self.finish(vmm, status=None)
        self.assertGreaterEqual(vmm.returncode, 0)
        self.assertLess(time.monotonic() - begin, LATE * harness.SLOWNESS)
