# SPDX-License-Identifier: BSD-2-Clause
"""The frames between the host and the agent in a guest (include/vprof/agent.h)."""
import struct

MAGIC = 0x67417056
(HELLO, PONG, STARTED, REFUSED, STDOUT, STDERR, STDIN_ROOM, EXITED, MARK, TASK, MAPPING, MAPPINGS_END, STATISTICS,
 COMPLAINT, BYE, READ_DONE) = range(1, 17)
PING, RUN, STDIN, STDIN_END, SIGNAL, MAPPINGS, STAT, POWER_OFF, READ = range(64, 73)
FRAME = struct.Struct("<IHH")


def frame(kind, payload=b""):
    return FRAME.pack(len(payload), kind, 0) + payload


def take(received):
    """The first frame of what was received and what is left of that: (type, payload, rest); None: it is not whole."""
    if len(received) < FRAME.size:
        return None
    n, kind, _ = FRAME.unpack_from(received)
    if len(received) - FRAME.size < n:
        return None
    return kind, received[FRAME.size:FRAME.size + n], received[FRAME.size + n:]


def frames(connection):
    """(type, payload) of each until the other end is closed."""
    received = b""
    while piece := connection.recv(65536):
        received += piece
        while taken := take(received):
            kind, payload, received = taken
            yield kind, payload
