// SPDX-License-Identifier: BSD-2-Clause
/*
 * The control protocol between an engine (vprof-vmm, vprof-attach) and its clients: names and limits.
 *
 * JSON, one object a line, UTF-8, after QEMU's QMP:
 *   server, at once:  {"vprof": {"version": "0.2.0", "protocol": 1, "capabilities": [...], "guest": {...}}}
 *   client, first:    {"execute": "negotiate", "arguments": {"protocol": 1}, "id": 1}
 *   then requests:    {"execute": NAME, "arguments": {...}, "id": X}
 *   answered by:      {"return": ..., "id": X}   or   {"error": {"class": CLASS, "desc": TEXT}, "id": X}
 *   and at any time:  {"event": NAME, "data": {...}, "timestamp": {"seconds": S, "microseconds": U}}
 * File descriptors travel with the line that announces them (SCM_RIGHTS on its first byte; no other line is in that
 * message, so a received descriptor belongs to the line that the received bytes end in).
 *
 * "arguments" and "id" may be left out; an id is an integer or a short string, and comes back as it was sent. Requests
 * of one client are answered in their order, and the next one is taken when the answer to the last has gone out. Events
 * go to clients that have negotiated. `query-schema` describes every method, argument, event and error class.
 *
 * Each method needs a role. Every client may observe, and have instruments of its own beside those of others. Methods
 * that start, stop or configure the session or the guest need the control role, which one client has at a time: the one
 * that the guest belongs to (`vprof run`) from the start, another after control-take, until control-release or the end
 * of its connection. A session continues without a holder.
 *
 * An error answers the request and changes nothing. A line that is not a JSON object or is too long ends the connection
 * after the answer, and a client that leaves too many bytes unread is disconnected without one.
 */
#ifndef VPROF_CONTROL_H
#define VPROF_CONTROL_H

#define VPROF_CONTROL_PROTOCOL 1
#define VPROF_CONTROL_PROTOCOL_OLDEST 1               /* that an engine still serves */
#define VPROF_CONTROL_LINE_BYTES_MAX 131072u          /* with its newline, in both directions */
#define VPROF_CONTROL_ID_BYTES_MAX 128u               /* of an id that is a string */
#define VPROF_MODULE_SYMBOLS_MAX 64u                  /* addresses of a module-symbols; the answer fits into a line */
#define VPROF_FILE_READ_BYTES_MAX (UINT64_C(2) << 20) /* that a file-read returns: a few milliseconds of an engine */
#define VPROF_CONTROL_FDS_MAX 128u                    /* SCM_MAX_FD is 253: 64 vCPUs, a ring and an eventfd each, fit */

/* Samples in a second of vCPU time when nothing else is asked for: not 1000, so not in lockstep with a timer tick. */
#define VPROF_FREQUENCY_HZ_DEFAULT 999
#define VPROF_FREQUENCY_HZ_MAX 50000u
#define VPROF_EVENTS_MAX 8u       /* sampled at once by one session */
#define VPROF_CALL_DEPTH_MAX 127u /* as perf_event_max_stack: frames of kernel and user space together */
#define VPROF_VCPUS_MAX 64u
#define VPROF_DURATION_S_MAX 4000000u /* until an engine ends by itself: 46 days, as milliseconds fit 32 bits */

/* Error classes. */
#define VPROF_ERROR_GENERIC "GenericError"              /* the host refused, or the line is not a request */
#define VPROF_ERROR_COMMAND_NOT_FOUND "CommandNotFound" /* no such method */
#define VPROF_ERROR_INVALID_ARGUMENT "InvalidArgument"  /* unknown, missing, of the wrong type or out of range */
#define VPROF_ERROR_NOT_NEGOTIATED "NotNegotiated"      /* something else came before `negotiate` */
#define VPROF_ERROR_BUSY "Busy"                         /* another client holds what was asked for */
#define VPROF_ERROR_STATE "WrongState"                  /* not in this state of the guest or the session */
#define VPROF_ERROR_DENIED "PermissionDenied"           /* the client's role does not allow it */
#define VPROF_ERROR_UNSUPPORTED "Unsupported"           /* this host or this engine cannot do it */

/* Events. */
#define VPROF_EVENT_GUEST_ENDED "guest-ended"
#define VPROF_EVENT_GUEST_KERNEL "guest-kernel"
#define VPROF_EVENT_GUEST_PAUSE "guest-pause"
#define VPROF_EVENT_GUEST_PHASE "guest-phase"
#define VPROF_EVENT_SAMPLES_LOST "samples-lost"
#define VPROF_EVENT_MARKER "marker"

/*
 * Why a guest ended: "reason" of guest-ended and of query-status, and the exit status of `vprof run`. The exit port
 * gives (value << 1) | 1 like QEMU's isa-debug-exit, so every status of ours but the usual 1 and 2 is even.
 */
#define VPROF_GUEST_ENDS(X)                           \
	X(GUEST_END_NONE, "none", 0)                  \
	X(GUEST_END_POWER_OFF, "power-off", 0)        \
	X(GUEST_END_REBOOT, "reboot", 90)             \
	X(GUEST_END_EXIT_PORT, "exit-port", 1)        \
	X(GUEST_END_TRIPLE_FAULT, "triple-fault", 92) \
	X(GUEST_END_PANIC, "panic", 94)               \
	X(GUEST_END_VMM_ERROR, "vmm-error", 96)       \
	X(GUEST_END_DURATION, "duration", 124)        \
	X(GUEST_END_STOPPED, "stopped", 130)

#define X(id, name, status) id,
enum guest_end_reason { VPROF_GUEST_ENDS(X) GUEST_END_COUNT };
#undef X

#endif
