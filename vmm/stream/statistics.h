// SPDX-License-Identifier: BSD-2-Clause
/* What a session counts of its samples. */
#ifndef VPROF_STREAM_STATISTICS_H
#define VPROF_STREAM_STATISTICS_H

#include <stdatomic.h>
#include <stdint.h>

/*
 * What became of every overflow and record; the names are those of the control protocol. Words of kernel profilers are
 * used where there are some: NetBSD tprof (sample to dropbuf_sample), OpenBSD dt (readevt to recurevt), FreeBSD hwpmc
 * (intr_*). All are exact, except as noted.
 */
#define SESSION_STATISTICS(X)                                                                                       \
	X(sample, "samples written to the ring")                                                                    \
	X(overflow, "counter overflows seen: sample + dropbuf_sample + filtered + quirk")                           \
	X(expected, "overflows that the counted events amount to, as of the last overflow")                         \
	X(late, "parts of overflows that did not come, as the counter was set again late: the rest of expected")    \
	X(buf, "times that the ring's reader was told to come: at the watermark, by a flush, at the end")           \
	X(emptybuf, "flushes and ends that found nothing new in the ring")                                          \
	X(dropbuf, "times that the ring was full, until there was room again: a PERF_RECORD_LOST each")             \
	X(dropbuf_sample, "samples dropped because the ring was full")                                              \
	X(dropbuf_task, "records about tasks that found no room in the ring, and were tried again")                 \
	X(mappings_later,                                                                                           \
	  "times that mappings were left to a later sample: more than a twentieth of the vCPU's time or ring")      \
	X(build_ids_later, "times that a search for build-ids was left to a later sample, for the same reason")     \
	X(cgroups_later, "times that the path of a cgroup was left to a later sample, for the same reason")         \
	X(readevt, "records that the ring's reader has given back")                                                 \
	X(dropevt, "records of any kind that found no room in the ring, and were lost")                             \
	X(skiptick, "timer ticks that found the vCPU thread asleep, not written")                                   \
	X(recurevt, "times that an overflow came while others were being recorded; not known of sigmask")           \
	X(intr_processed, "overflow signals taken: overflow, skiptick and those that came together")                \
	X(intr_ignored, "overflow signals on the vCPU thread that were for no open event, as of the last overflow") \
	X(intr_bufferfull, "overflows that found the ring full: dropbuf_sample, and stalls")                        \
	X(stalls, "times that the counters were stopped because the ring was nearly full")                          \
	X(stalled_ns, "nanoseconds for which they were")                                                            \
	X(throttled, "overflows that the host throttled or coalesced")                                              \
	X(throttles, "times that the host's kernel stopped an event until its next tick: overflows came too fast")  \
	X(throttled_ns, "nanoseconds for which events were stopped so; those of the PMU count nothing meanwhile")   \
	X(in_hypervisor, "samples that fell outside the guest, written as HYPERVISOR")                              \
	X(filtered, "overflows in a mode or a task that is left out, not written")                                  \
	X(quirk, "overflows inside a page of a host quirk, not written")                                            \
	X(added, "samples made by hand (sample-add), written beside the others")                                    \
	X(switches, "context switches written, twice each: out of one task, into another")                          \
	X(truncated, "call chains that do not reach the first frame of their stack")                                \
	X(chain_end, "call chains that reached the first frame of their stack")                                     \
	X(chain_bad_frame, "call chains cut where a frame cannot be right")                                         \
	X(chain_no_entry, "call chains cut at code that the unwind tables do not cover")                            \
	X(chain_depth, "call chains cut at the depth limit")                                                        \
	X(chain_unreadable, "call chains cut at guest memory that cannot be read")                                  \
	X(chain_no_stack, "call chains of one frame: the stack pointer is not known, and was not found")            \
	X(chain_no_form, "call chains cut at code of a program with an unwind entry that is not walked")            \
	X(stack_found, "stack pointers found by search, where the host does not give them (VMX)")                   \
	X(stack_none, "searches without a chain that leads to the first frame of a stack")                          \
	X(stack_ambiguous, "searches with several such chains, none of them surer")                                 \
	X(stack_switching, "searches in code that changes from one task's stack to another's")                      \
	X(stack_no_table, "searches in code whose calls are not known: modules, BPF, return thunks")                \
	X(stack_work, "searches given up after too many steps")                                                     \
	X(user_stack_found, "the same in user mode, by the unwind tables of programs")                              \
	X(user_stack_none, "searches in user mode without a chain that begins with a call that is certain")         \
	X(user_stack_ambiguous, "searches in user mode with several such chains")                                   \
	X(user_stack_no_table, "searches in user mode in code without an unwind entry")                             \
	X(user_stack_work, "searches in user mode given up after too many steps")                                   \
	X(unstepped, "times that the guest ran what this host cannot step, with the event steps: CPL 3 on some")    \
	X(wall_looks, "looks at the tasks that wait")                                                               \
	X(wall_broken, "looks that did not see all tasks")                                                          \
	X(wall_later, "samples of waiting tasks that were left to the next look")                                   \
	X(wall_no_frame, "samples of waiting tasks that were dropped: their stack cannot be read")                  \
	X(wall_torn, "samples of waiting tasks that were dropped: the task ran while its stack was read")           \
	X(off_cpu_dropped, "waits that are not recorded: the table of tasks that wait was full")                    \
	X(off_cpu_no_waker, "recorded waits that nothing was seen to end")                                          \
	X(off_cpu_unread, "waits that are not recorded: the task or its stack cannot be read")                      \
	X(no_task, "samples without a task that could be read, written with pid -1")

struct session_statistics {
#define X(name, help) uint64_t name;
	SESSION_STATISTICS(X)
#undef X
};

/* [a] The same while it is counted. */
struct statistics_live {
#define X(name, help) _Atomic uint64_t name;
	SESSION_STATISTICS(X)
#undef X
};

/*
 * A statistic has one writer; other threads read it at any time. With one writer, a load and a store are enough to add;
 * each is read by itself, so every access is relaxed.
 */
static inline void statistic_set(_Atomic uint64_t *statistic, uint64_t value)
{
	atomic_store_explicit(statistic, value, memory_order_relaxed);
}

static inline void statistic_add(_Atomic uint64_t *statistic, uint64_t more)
{
	statistic_set(statistic, atomic_load_explicit(statistic, memory_order_relaxed) + more);
}

struct ring;

void statistics_reset(struct statistics_live *live);
/* What the producer counts and, with a ring, what that counts. Any thread. */
void statistics_read(const struct statistics_live *live, const struct ring *ring, struct session_statistics *out);

#endif
