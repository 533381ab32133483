// SPDX-License-Identifier: BSD-2-Clause
/*
 * The protocol between the host and the agent in the guest (vprof-agent), over any byte stream: a serial port, a virtio
 * console, vsock.
 *
 * Both directions carry frames: a header, then `bytes` bytes of payload. Numbers are little-endian, as the structures
 * below have them; text at the end of a payload has no NUL and is as long as the payload says. A frame of an unknown
 * type is skipped, as are bytes behind the members of a known one; fields are only appended.
 *
 * The agent speaks first, with HELLO; what the host wrote before might have been echoed by a terminal driver that was
 * not set up yet. A payload that is too long or too short for its type ends the conversation: the stream is a
 * different one, or has lost bytes.
 *
 * Times are CLOCK_MONOTONIC of the guest, in nanoseconds. PING and PONG relate it to the host's clock, and show that
 * the agent is alive.
 *
 * One program runs at a time. Its output comes as it is written, and all of it before EXITED. Its input is sent only as
 * far as the agent has said that there is room, so that no frame is ever stuck behind input that the program does not
 * read.
 */
#ifndef VPROF_AGENT_H
#define VPROF_AGENT_H

#include <stdint.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "frames are read and written as they lie in memory");

#define VPROF_AGENT_MAGIC 0x67417056u /* "VpAg" */
#define VPROF_AGENT_PROTOCOL 1u

#define VPROF_AGENT_PAYLOAD_BYTES_MAX 65536u
#define VPROF_AGENT_STDIN_BYTES_MAX 16384u /* sent and not yet taken by the program */
#define VPROF_AGENT_NAME_BYTES_MAX 63u     /* of a marker */

struct vprof_agent_frame {
	uint32_t bytes; /* of the payload: up to VPROF_AGENT_PAYLOAD_BYTES_MAX */
	uint16_t type;  /* VPROF_AGENT_* */
	uint16_t zero;
};
_Static_assert(sizeof(struct vprof_agent_frame) == 8, "on the wire");

/* Frames of the agent. */
enum vprof_agent_says {
	VPROF_AGENT_HELLO = 1,    /* struct vprof_agent_hello, the kernel's release */
	VPROF_AGENT_PONG,         /* struct vprof_agent_pong */
	VPROF_AGENT_STARTED,      /* struct vprof_agent_started */
	VPROF_AGENT_REFUSED,      /* struct vprof_agent_refused, text: the step that failed */
	VPROF_AGENT_STDOUT,       /* bytes */
	VPROF_AGENT_STDERR,       /* bytes */
	VPROF_AGENT_STDIN_ROOM,   /* struct vprof_agent_stdin_room */
	VPROF_AGENT_EXITED,       /* struct vprof_agent_exited */
	VPROF_AGENT_MARK,         /* struct vprof_agent_mark, the marker's name */
	VPROF_AGENT_TASK,         /* struct vprof_agent_task, its name */
	VPROF_AGENT_MAPPING,      /* struct vprof_agent_mapping, the file's path */
	VPROF_AGENT_MAPPINGS_END, /* empty: the answer to MAPPINGS is complete */
	VPROF_AGENT_STATISTICS,   /* struct vprof_agent_statistics */
	VPROF_AGENT_COMPLAINT,    /* text: an error of the agent, which continues */
	VPROF_AGENT_BYE,          /* empty: the machine is about to end */
	VPROF_AGENT_READ_DONE,    /* struct vprof_agent_read_done: the answer to READ */
};

/* Frames of the host. */
enum vprof_agent_hears {
	VPROF_AGENT_PING = 64, /* struct vprof_agent_ping */
	VPROF_AGENT_RUN,       /* struct vprof_agent_run, strings */
	VPROF_AGENT_STDIN,     /* bytes */
	VPROF_AGENT_STDIN_END, /* empty: end of file */
	VPROF_AGENT_SIGNAL,    /* struct vprof_agent_signal: to the program's process group */
	VPROF_AGENT_MAPPINGS,  /* struct vprof_agent_mappings: asks for TASK and MAPPING frames */
	VPROF_AGENT_STAT,      /* empty: asks for STATISTICS */
	VPROF_AGENT_POWER_OFF, /* empty: ends the machine if the agent is its init, else is ignored */
	VPROF_AGENT_READ,      /* struct vprof_agent_read: asks for one READ_DONE */
};

#define VPROF_AGENT_CAN_READ 1u

struct vprof_agent_hello {
	uint32_t magic;    /* VPROF_AGENT_MAGIC */
	uint32_t protocol; /* VPROF_AGENT_PROTOCOL */
	uint64_t time_ns;
	uint32_t is_init; /* 1: the agent is process 1 and can end the machine */
	uint32_t can;     /* VPROF_AGENT_CAN_*; other requests are known to every agent */
};
_Static_assert(sizeof(struct vprof_agent_hello) == 24, "on the wire");

struct vprof_agent_ping {
	uint64_t cookie;
};
_Static_assert(sizeof(struct vprof_agent_ping) == 8, "on the wire");

struct vprof_agent_pong {
	uint64_t cookie; /* the ping's */
	uint64_t time_ns;
};
_Static_assert(sizeof(struct vprof_agent_pong) == 16, "on the wire");

/*
 * Behind it, each with a NUL: the file to execute (without a slash: a name to look for in PATH), the working directory,
 * `arguments` arguments (the first is the program's name), `variables` of the environment ("NAME=value", on top of the
 * agent's own).
 */
struct vprof_agent_run {
	uint32_t run;           /* a number, for STARTED, REFUSED and EXITED */
	uint32_t time_limit_ms; /* then SIGTERM, and SIGKILL a little later; 0: none */
	uint32_t arguments;
	uint32_t variables;
};
_Static_assert(sizeof(struct vprof_agent_run) == 16, "on the wire");

struct vprof_agent_started {
	uint32_t run;
	uint32_t pid;
	uint64_t time_ns;
};
_Static_assert(sizeof(struct vprof_agent_started) == 16, "on the wire");

struct vprof_agent_refused {
	uint32_t run;
	uint32_t error; /* errno of Linux on x86-64 */
};
_Static_assert(sizeof(struct vprof_agent_refused) == 8, "on the wire");

struct vprof_agent_exited {
	uint32_t run;
	uint32_t status;     /* what the program exited with, or 0 */
	uint32_t signal;     /* that ended it, or 0 */
	uint32_t time_limit; /* 1: it was ended because its time was over */
	uint64_t time_ns;
	uint64_t user_ns; /* CPU time of the program and of the children it waited for */
	uint64_t system_ns;
	uint64_t memory_bytes; /* the largest resident set */
};
_Static_assert(sizeof(struct vprof_agent_exited) == 48, "on the wire");

/* At the program's start, and whenever it has taken input: so many bytes more may be sent. */
struct vprof_agent_stdin_room {
	uint32_t bytes;
};
_Static_assert(sizeof(struct vprof_agent_stdin_room) == 4, "on the wire");

struct vprof_agent_signal {
	uint32_t number; /* of Linux on x86-64 */
};
_Static_assert(sizeof(struct vprof_agent_signal) == 4, "on the wire");

enum vprof_agent_mark_kind { VPROF_AGENT_MARK_BEGIN = 1, VPROF_AGENT_MARK_END = 2 };

struct vprof_agent_mark {
	uint64_t time_ns;
	uint32_t kind; /* enum vprof_agent_mark_kind */
	uint32_t zero;
};
_Static_assert(sizeof(struct vprof_agent_mark) == 16, "on the wire");

struct vprof_agent_mappings {
	uint32_t pid; /* 0: of all processes */
};
_Static_assert(sizeof(struct vprof_agent_mappings) == 4, "on the wire");

struct vprof_agent_task {
	uint32_t pid; /* of its process */
	uint32_t tid;
};
_Static_assert(sizeof(struct vprof_agent_task) == 8, "on the wire");

/* A mapping of a file that is executable, as in /proc/PID/maps. */
struct vprof_agent_mapping {
	uint64_t start;
	uint64_t bytes;
	uint64_t offset; /* in the file */
	uint32_t pid;
	uint32_t zero;
};
_Static_assert(sizeof(struct vprof_agent_mapping) == 32, "on the wire");

/*
 * A file of the guest that the agent reads from its beginning to its end, so that all of it is in the guest's page
 * cache. The host finds it there: a serial port would take a minute for a library, and an exit for each byte. It is
 * only what a process executes, or what names the code that a process has made: the host cannot name any other.
 */
enum vprof_agent_read_what {
	VPROF_AGENT_READ_MAPPING = 1, /* what process `pid` has mapped, executable, at `address` */
	VPROF_AGENT_READ_JIT_DUMP,    /* what it has mapped so, of the name jit-PID.dump */
	VPROF_AGENT_READ_PERF_MAP,    /* its /tmp/perf-PID.map; also after its end */
};

struct vprof_agent_read {
	uint64_t address;
	uint32_t pid;
	uint32_t what;   /* enum vprof_agent_read_what */
	uint32_t number; /* for READ_DONE */
	uint32_t zero;
};
_Static_assert(sizeof(struct vprof_agent_read) == 24, "on the wire");

struct vprof_agent_read_done {
	uint32_t number;
	uint32_t error; /* errno of Linux on x86-64; 0: it has all been read */
};
_Static_assert(sizeof(struct vprof_agent_read_done) == 8, "on the wire");

/* Since the agent's start. */
struct vprof_agent_statistics {
	uint64_t time_ns;
	uint64_t received_bytes, sent_bytes; /* frames, with their headers */
	uint64_t marks;
	uint64_t marks_refused; /* malformed lines on the marker pipe */
	uint64_t skipped;       /* frames of a type that the agent does not know */
};
_Static_assert(sizeof(struct vprof_agent_statistics) == 48, "on the wire");

/*
 * The marker pipe: a program of the guest writes "begin NAME\n" or "end NAME\n" to it, with one write(2) for a line,
 * and may put a time (CLOCK_MONOTONIC, nanoseconds) in front: "12345678 begin NAME\n". Without one, the time is that at
 * which the agent reads it. Names are UTF-8 without control characters.
 */
#define VPROF_AGENT_MARK_PATH "/run/vprof-agent.marks"

#endif
