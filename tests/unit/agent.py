#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The agent as a service on this host, at the other end of a terminal: what it says to every frame."""
import ctypes
import errno
import hashlib
import mmap
import os
import pathlib
import re
import select
import signal
import struct
import subprocess
import time
import unittest

import agent_frames
import harness
from agent_frames import (COMPLAINT, EXITED, FRAME, HELLO, MAGIC, MAPPING, MAPPINGS, MAPPINGS_END, MARK, PING, PONG, POWER_OFF,
                          READ, READ_DONE, REFUSED, RUN, SIGNAL, STARTED, STAT, STATISTICS, STDERR, STDIN, STDIN_END, STDIN_ROOM, STDOUT, TASK)

AGENT = harness.BIN / "vprof-agent"
MARKS = pathlib.Path("/run/vprof-agent.marks")
STDIN_MAX = 16384
FLOOD_LINES = 300000
CAN_READ = 1
READ_MAPPING, READ_JIT_DUMP, READ_PERF_MAP = 1, 2, 3
PAD_BYTES = 8 << 20


class Agent(harness.ProgramTest):
    def setUp(self):
        super().setUp()
        self.master, slave = os.openpty()
        self.addCleanup(os.close, self.master)
        self.path = os.ttyname(slave)
        self.bytes = b""
        self.agent = subprocess.Popen([AGENT, "--device", self.path], env={"PATH": os.environ["PATH"], "KEPT": "yes"})
        self.addCleanup(self.end)
        self.hello = self.wait_for(HELLO)
        os.close(slave)

    def end(self):
        self.agent.kill()
        self.agent.wait()
        MARKS.unlink(missing_ok=True)

    # ---- frames ----

    def send(self, kind, payload=b""):
        data = agent_frames.frame(kind, payload)
        while data:
            data = data[os.write(self.master, data[:2048]):]

    def frame(self, seconds=30):
        """The next frame: (type, payload)."""
        end = time.monotonic() + seconds * harness.SLOWNESS
        while (taken := agent_frames.take(self.bytes)) is None:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.master], [], [], left)[0]:
                raise AssertionError(f"no frame within {seconds} s")
            try:
                self.bytes += os.read(self.master, 65536)
            except OSError as error:  # the other end is closed
                if error.errno != errno.EIO:
                    raise
                time.sleep(0.05)
        kind, payload, self.bytes = taken
        return kind, payload

    def wait_for(self, wanted, seconds=30):
        """The payload of the next frame of this type; the others go."""
        while True:
            kind, payload = self.frame(seconds)
            if kind == wanted:
                return payload

    def run_frame(self, *arguments, run=1, limit_ms=0, folder="/", variables=(), path=None):
        strings = [path or arguments[0], folder, *arguments, *variables]
        self.send(RUN, struct.pack("<IIII", run, limit_ms, len(arguments), len(variables)) +
                  b"".join(string.encode() + b"\0" for string in strings))

    def until_exited(self, seconds=30):
        """(standard output, standard error, (status, signal, time limit)) of the program that runs."""
        outputs = {STDOUT: b"", STDERR: b""}
        while True:
            kind, payload = self.frame(seconds)
            if kind in outputs:
                outputs[kind] += payload
            if kind == EXITED:
                self.exited = struct.unpack("<IIIIQQQQ", payload)
                return outputs[STDOUT], outputs[STDERR], self.exited[1:4]

    def sh(self, script, **options):
        self.run_frame("/bin/sh", "-c", script, **options)
        self.wait_for(STARTED)

    # ---- tests ----

    def test_greeting(self):
        magic, protocol, time_ns, is_init, can = struct.unpack_from("<IIQII", self.hello)
        self.assertEqual((magic, protocol, is_init, can), (MAGIC, 1, 0, CAN_READ))
        self.assertAlmostEqual(time_ns / 1e9, time.monotonic(), delta=10)
        self.assertEqual(self.hello[24:].decode(), os.uname().release)

    def test_output_status_and_place(self):
        self.sh("pwd; echo $A $KEPT; echo wrong >&2; exit 3", run=7, folder=str(self.folder), variables=["A=1", "A=2"])
        self.assertEqual(self.until_exited(), (f"{self.folder}\n2 yes\n".encode(), b"wrong\n", (3, 0, 0)))
        self.assertEqual(self.exited[0], 7)
        self.assertGreater(self.exited[7], 100000)
        self.sh("exit 0", run=8)
        self.assertEqual(self.until_exited(), (b"", b"", (0, 0, 0)))

    def test_input(self):
        data = os.urandom(200000)
        self.sh("sha256sum")
        room, at = 0, 0
        while at < len(data):
            while room == 0:
                room += struct.unpack("<I", self.wait_for(STDIN_ROOM))[0]
            n = min(room, len(data) - at)
            self.assertLessEqual(n, STDIN_MAX)
            self.send(STDIN, data[at:at + n])
            at, room = at + n, room - n
        self.send(STDIN_END)
        self.assertEqual(self.until_exited()[0].split()[0].decode(), hashlib.sha256(data).hexdigest())

    def test_input_that_nobody_reads(self):
        self.sh("exec <&-; echo closed; read answer; sleep 1")
        self.wait_for(STDOUT)
        # It counts as read once the pipe is known to have no reader.
        for _ in range(2):
            self.send(STDIN, b"x" * STDIN_MAX)
            self.assertEqual(struct.unpack("<I", self.wait_for(STDIN_ROOM))[0], STDIN_MAX)
        self.until_exited()

    def test_more_input_than_there_is_room_for_breaks_it(self):
        self.sh("exec sleep 100")
        for _ in range(6):  # the pipe takes four of them
            self.send(STDIN, b"x" * STDIN_MAX)
        self.wait_for(HELLO)

    def test_crash(self):
        self.sh("kill -SEGV $$")
        self.assertEqual(self.until_exited()[2], (0, signal.SIGSEGV, 0))

    def test_signals_reach_the_group(self):
        self.sh("trap 'echo caught; exit 5' USR1; echo ready; while :; do sleep 0.1; done")
        self.assertEqual(self.wait_for(STDOUT), b"ready\n")
        self.send(SIGNAL, struct.pack("<I", signal.SIGUSR1))
        out, _, end = self.until_exited()
        self.assertEqual((out, end), (b"caught\n", (5, 0, 0)))

    def test_time_limit(self):
        self.sh("exec sleep 100", limit_ms=200)
        self.assertEqual(self.until_exited()[2], (0, signal.SIGTERM, 1))

    def test_time_limit_of_the_deaf(self):
        self.sh("trap '' TERM; while :; do sleep 1; done", limit_ms=200)
        self.assertEqual(self.until_exited()[2], (0, signal.SIGKILL, 1))
        self.assertGreater(self.exited[4] / 1e9, 5)

    def test_flood(self):
        self.sh(f"seq {FLOOD_LINES}; seq {FLOOD_LINES} >&2")
        time.sleep(1)  # by now every buffer is full
        out, err, end = self.until_exited()
        expected = "".join(f"{i}\n" for i in range(1, FLOOD_LINES + 1)).encode()
        self.assertEqual(hashlib.sha256(out).hexdigest(), hashlib.sha256(expected).hexdigest())
        self.assertEqual(hashlib.sha256(err).hexdigest(), hashlib.sha256(expected).hexdigest())
        self.assertEqual(end, (0, 0, 0))

    def test_the_last_output_is_read_when_the_other_is_closed(self):
        self.sh(f"exec >&-; seq {FLOOD_LINES // 10} >&2")
        _, err, _ = self.until_exited()
        self.assertEqual(err.splitlines()[-1:], [b"%d" % (FLOOD_LINES // 10)])

    def test_what_is_left_running_is_killed(self):
        self.sh("sleep 1000 & echo $!")
        out, _, end = self.until_exited(seconds=10)
        self.assertEqual(end, (0, 0, 0))
        harness.wait_until(lambda: not pathlib.Path(f"/proc/{int(out)}/fd/0").exists(), "the end of sleep")

    def test_refusals(self):
        self.run_frame("/no/such/program")
        run, error = struct.unpack_from("<II", answer := self.wait_for(REFUSED))
        self.assertEqual((run, error, answer[8:]), (1, errno.ENOENT, b"execute it"))
        self.run_frame("/bin/sh", folder="/no/such/folder", run=2)
        answer = self.wait_for(REFUSED)
        self.assertEqual(answer[8:], b"change to its working directory")
        self.sh("exec sleep 100", run=3)
        self.run_frame("/bin/sh", run=4)
        run, error = struct.unpack_from("<II", self.wait_for(REFUSED))
        self.assertEqual((run, error), (4, errno.EBUSY))

    def test_ping_and_statistics(self):
        before = time.monotonic_ns()
        self.send(PING, struct.pack("<Q", 77))
        cookie, at = struct.unpack("<QQ", self.wait_for(PONG))
        self.assertEqual(cookie, 77)
        self.assertTrue(before <= at <= time.monotonic_ns())
        self.send(999, b"of a later protocol")
        self.send(STAT)
        _, received, sent, _, _, skipped = struct.unpack("<QQQQQQ", self.wait_for(STATISTICS))
        self.assertEqual((received, skipped), (FRAME.size * 3 + 8 + len("of a later protocol"), 1))
        self.assertEqual(sent, FRAME.size * 2 + len(self.hello) + 16)

    def test_mappings(self):
        self.send(MAPPINGS, struct.pack("<I", self.agent.pid))
        tasks, mappings = [], []
        while (frame := self.frame())[0] != MAPPINGS_END:
            (tasks if frame[0] == TASK else mappings).append(frame[1])
        self.assertEqual([(struct.unpack_from("<II", task), task[8:]) for task in tasks],
                         [((self.agent.pid, self.agent.pid), b"vprof-agent")])
        start, n, _, pid, _ = struct.unpack_from("<QQQII", mappings[0])
        self.assertEqual((pid, mappings[0][32:].decode()), (self.agent.pid, str(AGENT.resolve())))
        self.assertTrue(n > 4096 and start >= 4096)
        # Of all processes: ours are among them.
        self.send(MAPPINGS, struct.pack("<I", 0))
        names = set()
        while (frame := self.frame())[0] != MAPPINGS_END:
            if frame[0] == TASK:
                names.add(struct.unpack_from("<I", frame[1])[0])
        self.assertLessEqual({os.getpid(), self.agent.pid}, names)

    # ---- files that are read ----

    def read(self, what, pid, address=0, number=5):
        """The error, 0 when it was read."""
        self.send(READ, struct.pack("<QIIII", address, pid, what, number, 0))
        done, error = struct.unpack("<II", self.wait_for(READ_DONE))
        self.assertEqual(done, number)
        return error

    def program(self):
        """A process, the address of its code, and its file, most of which is not in memory, if it is on a disk."""
        path = self.folder / "program"
        path.write_bytes(pathlib.Path("/bin/sleep").read_bytes() + bytes(PAD_BYTES))
        path.chmod(0o755)
        with path.open("rb") as file:
            os.fsync(file.fileno())
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        process = subprocess.Popen([path, "1000"])
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        maps = pathlib.Path(f"/proc/{process.pid}/maps")
        harness.wait_until(lambda: str(path) in maps.read_text(), "the program's start")
        code, = re.findall(rf"(?m)^(\w+)-\w+ r-x.* {path}$", maps.read_text())
        return process, int(code, 16), path

    def missing_pages(self, path):
        with path.open("rb") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE) as memory:
            pages = -(-len(memory) // mmap.PAGESIZE)
            states = ctypes.create_string_buffer(pages)
            first = ctypes.c_char.from_buffer(memory)
            result = ctypes.CDLL(None).mincore(ctypes.c_void_p(ctypes.addressof(first)), ctypes.c_size_t(len(memory)), states)
            del first
        self.assertEqual(result, 0)
        return sum(not state & 1 for state in states.raw)

    def test_mapped_files_are_read(self):
        process, code, path = self.program()
        print(f"{self.missing_pages(path)} pages were not in memory", flush=True)
        self.assertEqual(self.read(READ_MAPPING, process.pid, code + 5, number=77), 0)
        self.assertEqual(self.missing_pages(path), 0)
        self.assertEqual(self.read(READ_MAPPING, process.pid, code - 1), errno.ENOENT)  # not executable
        self.assertEqual(self.read(READ_MAPPING, process.pid, 0), errno.ENOENT)
        self.assertEqual(self.read(9, process.pid, code), errno.EINVAL)
        path.unlink()
        self.assertEqual(self.read(READ_MAPPING, process.pid, code), errno.ENOENT)
        os.mkfifo(path.with_name("program (deleted)"))
        self.assertEqual(self.read(READ_MAPPING, process.pid, code), errno.EINVAL)
        process.kill()
        process.wait()
        self.assertEqual(self.read(READ_MAPPING, process.pid, code), errno.ENOENT)

    def test_one_file_is_read_at_a_time(self):
        process, code, _ = self.program()
        self.pause()
        for number in 1, 2:
            self.send(READ, struct.pack("<QIIII", code, process.pid, READ_MAPPING, number, 0))
        self.agent.send_signal(signal.SIGCONT)
        answers = [struct.unpack("<II", self.wait_for(READ_DONE)) for _ in range(2)]
        self.assertEqual(answers, [(2, errno.EBUSY), (1, 0)])

    def test_names_of_made_code_are_read(self):
        pid = os.getpid()
        dump = self.folder / f"jit-{pid}.dump"
        self.assertEqual(self.read(READ_JIT_DUMP, pid), errno.ENOENT)
        dump.write_bytes(b"JiTD" * 1000)
        with dump.open("r+b") as file, mmap.mmap(file.fileno(), 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_EXEC):
            self.assertEqual(self.read(READ_JIT_DUMP, pid), 0)
        names = pathlib.Path(f"/tmp/perf-{pid}.map")
        self.addCleanup(names.unlink, missing_ok=True)
        names.unlink(missing_ok=True)
        self.assertEqual(self.read(READ_PERF_MAP, pid), errno.ENOENT)
        names.symlink_to(dump)
        self.assertEqual(self.read(READ_PERF_MAP, pid), errno.ELOOP)
        names.unlink()
        names.write_text("1000 10 function\n")
        self.assertEqual(self.read(READ_PERF_MAP, pid), 0)

    @unittest.skipUnless(os.access("/run", os.W_OK), "/run cannot be written")
    def test_marks(self):
        harness.wait_until(MARKS.is_fifo, "the pipe")
        subprocess.run([AGENT, "mark", "a phase", "begin"], check=True)
        MARKS.write_text("end a phase\n")
        MARKS.write_text("12345 begin x\nstart y\nbegin \nbegin " + "n" * 64 + "\nbegin " + "n" * 500 + "\nbegin \033\n")
        marks = [self.wait_for(MARK) for _ in range(3)]
        self.assertEqual([(struct.unpack_from("<QI", mark)[1], mark[16:]) for mark in marks],
                         [(1, b"a phase"), (2, b"a phase"), (1, b"x")])
        times = [struct.unpack_from("<Q", mark)[0] for mark in marks]
        self.assertLessEqual(times[0], times[1])
        self.assertEqual(times[2], 12345)
        self.send(STAT)
        self.assertEqual(struct.unpack("<QQQQQQ", self.wait_for(STATISTICS))[3:5], (3, 5))
        self.assertEqual(subprocess.run([AGENT, "mark", "x", "middle"], stderr=subprocess.PIPE).returncode, 2)
        self.assertEqual(subprocess.run([AGENT, "mark", "n" * 64, "end"], stderr=subprocess.PIPE).returncode, 2)

    def pause(self):
        self.agent.send_signal(signal.SIGSTOP)
        harness.wait_until(lambda: self.state(self.agent.pid) == "T", "the agent to stand still")

    def state(self, pid):
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0]

    def mark_until(self, last):
        """The names of the marks up to the next frame of the type `last`."""
        names = []
        while (frame := self.frame())[0] != last:
            names += [frame[1][16:].decode()] if frame[0] == MARK else []
        return names

    @unittest.skipUnless(os.access("/run", os.W_OK), "/run cannot be written")
    def test_marks_come_before_a_later_answer(self):
        names = [f"mark {i}" for i in range(200)]
        harness.wait_until(MARKS.is_fifo, "the pipe")
        self.pause()
        with MARKS.open("w") as pipe:
            pipe.write("".join(f"begin {name}\n" for name in names))
        self.send(PING, struct.pack("<Q", 1))
        self.agent.send_signal(signal.SIGCONT)
        self.assertEqual(self.mark_until(PONG), names)

    @unittest.skipUnless(os.access("/run", os.W_OK), "/run cannot be written")
    def test_marks_of_a_program_come_before_its_end(self):
        harness.wait_until(MARKS.is_fifo, "the pipe")
        self.run_frame("/bin/sh", "-c", f"read go; kill -STOP $PPID; echo begin last >{MARKS}")
        _, pid, _ = struct.unpack("<IIQ", self.wait_for(STARTED))
        self.send(STDIN, b"go\n")
        harness.wait_until(lambda: self.state(pid) == "Z", "the end of the program")
        self.agent.send_signal(signal.SIGCONT)
        self.assertEqual(self.mark_until(EXITED), ["last"])

    @unittest.skipUnless(os.access("/run", os.W_OK), "/run cannot be written")
    def test_marks_are_sent_when_the_service_is_stopped(self):
        harness.wait_until(MARKS.is_fifo, "the pipe")
        self.pause()
        MARKS.write_text("begin last\nend last\n")
        self.agent.terminate()
        self.agent.send_signal(signal.SIGCONT)
        self.assertEqual([self.wait_for(MARK)[16:] for _ in range(2)], [b"last", b"last"])
        self.assertEqual(self.agent.wait(), 0)
        self.assertFalse(MARKS.exists())

    def test_broken_streams_begin_anew(self):
        for broken in (FRAME.pack(1 << 31, PING, 0),                               # too long
                       FRAME.pack(4, PING, 0) + b"1234",                           # too short
                       FRAME.pack(20, READ, 0) + bytes(20),
                       FRAME.pack(16, RUN, 0) + struct.pack("<IIII", 1, 0, 1, 0),  # no strings
                       FRAME.pack(20, RUN, 0) + struct.pack("<IIII", 1, 0, 0, 0) + b"/\0/\0",
                       FRAME.pack(20, RUN, 0) + struct.pack("<IIII", 1, 0, 0xffffffff, 2) + b"/\0/\0"):
            os.write(self.master, broken)
            self.wait_for(HELLO)
        self.sh("exit 4")
        self.assertEqual(self.until_exited()[2], (4, 0, 0))

    def test_a_service_does_not_end_the_machine(self):
        self.send(POWER_OFF)
        self.send(PING, struct.pack("<Q", 1))
        self.wait_for(PONG)


class Usage(unittest.TestCase):
    def test_usage(self):
        for arguments in [], ["--vsock", "x"], ["mark", "x"], ["--device"], ["x"]:
            done = subprocess.run([AGENT, *arguments], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertIn("vprof-agent mark NAME begin|end", done.stderr)

    def test_no_device(self):
        done = subprocess.run([AGENT, "--device", "/no/such/device"], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(done.stderr, "vprof-agent: cannot open /no/such/device: No such file or directory\n")


if __name__ == "__main__":
    harness.main()
