# SPDX-License-Identifier: BSD-2-Clause
"""An engine with the test as its client, and other clients of it: the control protocol by hand."""
import array
import json
import os
import socket

from harness import SLOWNESS, VMM

DESCRIPTORS_MAX = 128


class Client:
    """One connection. What comes with it besides the answers: the names of events, and how many descriptors."""

    def __init__(self, connection, negotiate=True):
        connection.settimeout(60 * SLOWNESS)
        self.connection = connection
        self.buffer = b""
        self.events = []
        self.descriptors = 0
        self.greeting = self.line()
        if negotiate:
            self.execute("negotiate", protocol=1)

    @classmethod
    def connect(cls, path, **options):
        connection = socket.socket(socket.AF_UNIX)
        connection.connect(str(path))
        return cls(connection, **options)

    def close(self):
        self.connection.close()

    def line(self):
        """The next object; EOFError once the engine has closed."""
        while b"\n" not in self.buffer:
            some, ancillary, *_ = self.connection.recvmsg(65536, socket.CMSG_SPACE(4 * DESCRIPTORS_MAX))
            for _, _, data in ancillary:
                fds = array.array("i")
                fds.frombytes(data[:len(data) - len(data) % fds.itemsize])
                self.descriptors += len(fds)
                for fd in fds:
                    os.close(fd)
            if not some:
                raise EOFError("the engine has closed the connection")
            self.buffer += some
        line, self.buffer = self.buffer.split(b"\n", 1)
        return json.loads(line)

    def send(self, method, **arguments):
        self.connection.sendall(json.dumps({"execute": method, "arguments": arguments}).encode() + b"\n")

    def answer(self):
        """The next line that is no event."""
        while "event" in (answer := self.line()):
            self.events.append(answer["event"])
        return answer

    def ask(self, method, **arguments):
        self.send(method, **arguments)
        return self.answer()

    def execute(self, method, **arguments):
        answer = self.ask(method, **arguments)
        if "error" in answer:
            raise AssertionError(f"{method} {arguments}: {answer['error']}")
        return answer["return"]


class Engine(Client):
    """vprof-vmm with a guest that waits, and the client that owns it."""

    def __init__(self, test, guest, *options, name="engine"):
        ours, theirs = socket.socketpair()
        theirs.set_inheritable(True)
        self.path = test.folder / f"{name}.sock"
        self.process = test.start(VMM, "--kernel", guest, "--paused", "--console", "none", "--control", self.path,
                                  "--client-fd", theirs.fileno(), *options, pass_fds=[theirs.fileno()])
        theirs.close()
        test.addCleanup(self.end)
        super().__init__(ours)

    def end(self):
        """The guest goes with its owner."""
        self.close()
        self.process.communicate(timeout=20 * SLOWNESS)

    @property
    def ended(self):
        return "guest-ended" in self.events
