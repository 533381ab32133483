// SPDX-License-Identifier: BSD-2-Clause
/*
 * What a vprof recording holds beyond a perf.data file.
 *
 * A recording is a perf.data file (Linux, tools/perf/Documentation/perf.data-file-format.txt) in which the guest is the
 * machine: kernel samples carry PERF_RECORD_MISC_KERNEL, user samples PERF_RECORD_MISC_USER, `cpu` is the vCPU, and
 * time that a vCPU thread spent outside the guest carries PERF_RECORD_MISC_HYPERVISOR with an ip as in vprof/exit.h.
 * Times are CLOCK_MONOTONIC of the host, in nanoseconds.
 *
 * What perf has no record or section for is in additional feature sections, which perf skips: feature bits 200 and
 * above.
 */
#ifndef VPROF_RECORDING_H
#define VPROF_RECORDING_H

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * Every sample has these fields, in the order of linux/perf_event.h; PERF_SAMPLE_CALLCHAIN comes on top with -g, and
 * PERF_SAMPLE_CGROUP where the guest's kernel has cgroups: 0 where it could not be read, else an id that a
 * PERF_RECORD_CGROUP ahead of it has given a path.
 */
#define VPROF_SAMPLE_TYPE                                                                                 \
	(PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_PERIOD)

/*
 * An event with attr.inherit_stat and a sample_period of 0 counts certain tasks exactly: a sample at each switch of a
 * vCPU away from one of them has for its period what was counted since the vCPU had switched to it, and a
 * PERF_RECORD_READ what was counted of a task until its end: the value, and the time that the event was enabled and for
 * which it counted. The last sample of a task that ran when the counter was stopped is outside the guest.
 */
#define VPROF_READ_FORMAT (PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING)

/*
 * In a call chain, a PERF_CONTEXT_* precedes every frame that is not a call: the sample's own, the one that an
 * interrupt or an exception hit, and the first of user space. Their address is that of the instruction; others are
 * return addresses.
 */

/*
 * In a guest of ours, Linux runs at physical addresses until it has mapped itself; the ip of those samples is the
 * address that the code is linked at.
 *
 * The ip of a kernel sample in real mode (CR0.PE is clear: from reset or a start-up IPI until the kernel has set it) is
 * the linear address (SDM vol. 3B, 21.1.1) with these bits, which make it no address of any code that is mapped. A
 * PERF_RECORD_KSYMBOL gives the whole range the name VPROF_REAL_MODE_NAME. An engine that does not see CS takes its
 * base for 0.
 */
#define VPROF_REAL_MODE (UINT64_C(1) << 63)
#define VPROF_REAL_MODE_NAME "real mode"

static inline bool vprof_is_real_mode(uint64_t ip)
{
	return ip >> 32 == VPROF_REAL_MODE >> 32;
}

/*
 * In misc of a sample that a client made by hand (the control method sample-add). perf gives this bit meanings in other
 * types of records, and none in samples.
 */
#define VPROF_SAMPLE_ADDED (1u << 13)

/*
 * In misc of a sample with a call chain: why the chain of the guest ends where it does, one of VPROF_CHAIN_ENDS; 0: not
 * known. perf gives these bits no meaning in any record.
 */
#define VPROF_CHAIN_END_SHIFT 4u
#define VPROF_CHAIN_END_MASK (7u << VPROF_CHAIN_END_SHIFT)
#define VPROF_CHAIN_ENDS(X)                                                            \
	X(VPROF_CHAIN_WHOLE, "whole", "whole")                                         \
	X(VPROF_CHAIN_BAD_FRAME, "bad-frame", "cut at a frame that cannot be")         \
	X(VPROF_CHAIN_NO_ENTRY, "no-entry", "cut at code without unwind entry")        \
	X(VPROF_CHAIN_DEPTH, "depth", "cut at the depth limit")                        \
	X(VPROF_CHAIN_UNREADABLE, "unreadable", "cut at unreadable memory")            \
	X(VPROF_CHAIN_NO_STACK, "no-stack", "without a stack pointer that is certain") \
	X(VPROF_CHAIN_NO_FORM, "no-form", "cut at code with an unwind entry that is not walked")
#define X(id, name, words) id,
enum vprof_chain_end { VPROF_CHAIN_UNKNOWN, VPROF_CHAIN_ENDS(X) VPROF_CHAIN_END_COUNT };
#undef X

/*
 * In misc of a sample of VPROF_WALL_EVENT or VPROF_OFF_CPU_EVENT: what its task waited for, one of VPROF_TASK_STATES,
 * by the letter that ps(1) has for it; 0: the sample is of another event, and its task ran. perf gives these bits no
 * meaning.
 */
#define VPROF_TASK_STATE_SHIFT 7u
#define VPROF_TASK_STATE_MASK (15u << VPROF_TASK_STATE_SHIFT)
#define VPROF_TASK_STATES(X)                        \
	X(VPROF_TASK_RUNNABLE, 'R', "runnable")     \
	X(VPROF_TASK_SLEEPING, 'S', "sleeping")     \
	X(VPROF_TASK_DISK_SLEEP, 'D', "disk-sleep") \
	X(VPROF_TASK_STOPPED, 'T', "stopped")       \
	X(VPROF_TASK_TRACED, 't', "traced")         \
	X(VPROF_TASK_IDLE, 'I', "idle")             \
	X(VPROF_TASK_PARKED, 'P', "parked")
#define X(id, letter, name) id,
enum vprof_task_state { VPROF_TASK_RUNNING, VPROF_TASK_STATES(X) VPROF_TASK_STATE_COUNT };
#undef X

/*
 * The event of samples of tasks that wait. The period of a sample is the time since the task was looked at last,
 * without the CPU time that it has used since, in nanoseconds.
 */
#define VPROF_WALL_EVENT "wall"

/*
 * The event of the waits of tasks, one by one: the period is the time for which the task was on no vCPU, in
 * nanoseconds, and the sample's time is that of the end of the wait. Where the kernel counts the time that a task waits
 * for a processor, that part of a wait is a sample of its own, in state R, behind that of the other part.
 */
#define VPROF_OFF_CPU_EVENT "off-cpu"

/*
 * PERF_SAMPLE_RAW of a sample of these two events: who ended the wait, and what lock it was for, where that is known. A
 * later version appends members; a reader takes those that it knows, and 0 for those that are missing.
 *
 * waker: what made the task ready to run, of enum vprof_waker. waker_pid and waker_tid are of the task that did, or
 * that was interrupted by what did; waker_vcpu is where. VPROF_WAKER_UNKNOWN: nothing, as for a task that was ready all
 * the time, or it was not seen.
 *
 * lock: the address of the kernel's object, and of user space's in the sample's process for VPROF_LOCK_FUTEX; 0: not
 * known. owner_pid and owner_tid: who held it when the task began to wait, or was looked at; 0: not known.
 */
enum vprof_waker { VPROF_WAKER_UNKNOWN, VPROF_WAKER_TASK, VPROF_WAKER_INTERRUPT, VPROF_WAKER_COUNT };

#define VPROF_LOCKS(X)               \
	X(VPROF_LOCK_MUTEX, "mutex") \
	X(VPROF_LOCK_RWSEM, "rwsem") \
	X(VPROF_LOCK_FUTEX, "futex")
#define X(id, name) id,
enum vprof_lock { VPROF_LOCK_UNKNOWN, VPROF_LOCKS(X) VPROF_LOCK_COUNT };
#undef X

struct vprof_wait {
	uint32_t waker; /* enum vprof_waker */
	uint32_t waker_pid, waker_tid, waker_vcpu;
	uint32_t lock_kind; /* enum vprof_lock */
	uint32_t owner_pid, owner_tid, reserved;
	uint64_t lock;
};
_Static_assert(sizeof(struct vprof_wait) == 40, "no padding");

/*
 * Between the native frames of a call chain may be those of Python (CPython): an address in the instructions of a code
 * object, which are data of the process. A PERF_RECORD_MMAP of user space ahead of the sample has their range, and as
 * its file name "py::NAME:FILE", with the qualified name of the function and the path that it was compiled from.
 */
#define VPROF_PYTHON "py::"

/*
 * The file name in a PERF_RECORD_MMAP of user space for a range where a process no longer has code mapped: perf has no
 * record for a removed mapping. Addresses in the range have no name.
 */
#define VPROF_UNMAPPED "[unmapped]"

/*
 * pid and tid are those of the guest's task, named by PERF_RECORD_COMM; 0 for its idle tasks, and for everything in
 * a recording that does not tell tasks apart. This is the value where it could not be read, as in perf for tasks that
 * have ended.
 */
#define VPROF_PID_UNKNOWN UINT32_MAX

/*
 * Bytes of perf_event_attr in the file: PERF_ATTR_SIZE_VER7. perf 6.1 refuses anything larger as too new.
 */
#define VPROF_ATTR_BYTES 128u

/*
 * UTF-8 JSON, one object: {"version": 1, "guest": {...}, "events": [...], "statistics": {...}, "end": {...},
 * "phases": [...], "marks": [...], "exec": {...}, "time": [...], "host-cpu": TEXT, "realtime-offset-ns": N,
 * "unwinder": TEXT, "missing": [TEXT]}; members as the control methods query-guest, session-start and query-stats
 * return them.
 *
 * time: where the time of each vCPU went from the session's start to its end, as query-vcpu-time returns it: {"ns":
 * {...}, "looks": {...}, "exits": [...], "kvm-exits": [...], "counters": {"exits": N}, "missing": TEXT, "untraced":
 * TEXT}.
 *
 * realtime-offset-ns: how far the host's CLOCK_REALTIME was ahead of CLOCK_MONOTONIC when the recording was finished.
 *
 * phases: what the guest wrote to port 0x80: {"vcpu": N, "value": N, "time-ns": N}.
 * marks: the begin and the end of phases that have names: {"name": TEXT, "kind": "begin" or "end", "time-ns": N}, in
 * the order in which they came; of one name they may nest. Those of a guest's agent have their time from the guest's
 * clock. exec, where a command ran in the guest: {"command": [TEXT], "runs": [{"phase": NAME of its marks, "status": N,
 * "signal": N, "time-limit": BOOLEAN, "wall-ns": N, "user-ns": N, "system-ns": N, "memory-bytes": N, "metrics": [...]}
 * ]}. metrics: those that the command printed (vprof-run(1)): {"name": TEXT, "value": NUMBER, "unit": TEXT}.
 */
#define VPROF_FEATURE_DESCRIPTION 200
#define VPROF_MARKERS_MAX 100000u /* those beyond are not kept */

/*
 * The symbols that were hit, so that a report needs no image. Little-endian:
 *   header: u32 version (1), u32 count, u64 string table bytes
 *   count entries, sorted by address: u64 address, u64 size in bytes, u32 name offset, u32 module name offset
 *   string table: NUL-terminated; offset 0 is the empty string
 */
#define VPROF_FEATURE_SYMBOLS 201
#define VPROF_SYMBOLS_VERSION 1u

/*
 * The same for user space, where an address belongs to one process only: "address" is the offset in the file, and the
 * module name is its path, as in PERF_RECORD_MMAP and MMAP2. Sorted by module name (bytes as unsigned), then by offset.
 */
#define VPROF_FEATURE_USER_SYMBOLS 202

/*
 * The same as VPROF_FEATURE_SYMBOLS for the host's code (vprof/exit.h). The module is "[host]" for its kernel,
 * "[kvm]" for a module of that, or a file that the process which ran the guest had mapped. Only with the host's side.
 */
#define VPROF_FEATURE_HOST_SYMBOLS 203

#endif
