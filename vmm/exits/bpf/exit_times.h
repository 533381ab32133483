// SPDX-License-Identifier: BSD-2-Clause
/*
 * What exit_times.bpf.c and exit_events.c count, for exit_clock.c. All are built together, and run on one machine.
 * Includes nothing, for BPF has headers of its own.
 */
#ifndef VPROF_EXITS_BPF_EXIT_TIMES_H
#define VPROF_EXITS_BPF_EXIT_TIMES_H

/* Sizes of a vCPU's tables. What finds no slot is counted in the last one, of which the key is EXIT_TIMES_OTHER. */
#define EXIT_TIMES_REASONS 64u   /* a power of two, and one more for the rest */
#define EXIT_TIMES_ADDRESSES 64u /* the same */
#define EXIT_TIMES_CAUSES 64u    /* the same */
#define EXIT_TIMES_BUCKETS 32u   /* of a histogram: 2^n ns and more; the last has no end */
#define EXIT_TIMES_OTHER 0xffffffffffffffffull

/* What a vCPU's thread does, so that each ns is in one of them. */
enum exit_times_part {
	EXIT_TIMES_GUEST,   /* between kvm_entry and kvm_exit */
	EXIT_TIMES_KVM,     /* in KVM_RUN, on a processor */
	EXIT_TIMES_VMM,     /* outside KVM_RUN, on a processor or not */
	EXIT_TIMES_POLL,    /* KVM was awake while the vCPU was halted */
	EXIT_TIMES_HALT,    /* asleep because the vCPU was halted */
	EXIT_TIMES_WAITING, /* in KVM_RUN, ready to run, without a processor */
	EXIT_TIMES_BLOCKED, /* asleep in an exit, for another reason or one that is not known yet */
	EXIT_TIMES_OFFLINE, /* asleep in KVM_RUN before the guest was entered: the vCPU has not been started */
	EXIT_TIMES_UNKNOWN, /* since counting began, before the first event */
	EXIT_TIMES_LOST,    /* records were lost then: nothing is known of it */
	EXIT_TIMES_PARTS
};

enum exit_times_state {
	EXIT_TIMES_STATE_UNKNOWN,
	EXIT_TIMES_STATE_GUEST,
	EXIT_TIMES_STATE_KVM,
	EXIT_TIMES_STATE_VMM,
	EXIT_TIMES_STATE_LOST
};
enum exit_times_run { EXIT_TIMES_RUNNING, EXIT_TIMES_ASLEEP, EXIT_TIMES_READY };

/* Reasons of arm64: exception classes; with EXIT_TIMES_NO_TRAP, KVM's codes of other exits. */
#define EXIT_TIMES_ISA_ARM64 3u
#define EXIT_TIMES_NO_TRAP 0x80000000u

/* A key is a value plus 1; 0: the slot is free. */

/* Exits of one reason, from kvm_exit to the next kvm_entry. */
struct exit_times_reason {
	unsigned long long key; /* exit reason of the processor */
	unsigned long long count;
	unsigned long long ns, kvm_ns, vmm_ns, poll_ns, halt_ns, waiting_ns; /* ns: all of it, of it the others */
	unsigned long long max_ns;
	unsigned long long histogram[EXIT_TIMES_BUCKETS]; /* of ns */
};

/* By a port or address, and by a cause of a return to the VMM. */
struct exit_times_slot {
	unsigned long long key;
	unsigned long long count, ns;
};

/* Keys of accesses: EXIT_TIMES_ACCESS(...) + 1. */
#define EXIT_TIMES_ACCESS_MMIO (1ull << 62)
#define EXIT_TIMES_ACCESS_WRITE (1ull << 61)
#define EXIT_TIMES_ACCESS_ADDRESS(key) ((key) & ((1ull << 60) - 1))
/* Keys of causes: KVM_EXIT_* in the top byte, port or address below, as in vprof/exit.h. 0xff: a signal. */

/* Everything before since_ns is accounted for. `sequence` is odd while the rest of this struct changes. */
struct exit_times_now {
	unsigned long long sequence;
	unsigned long long since_ns; /* CLOCK_MONOTONIC */
	unsigned long long woken_ns; /* the thread was last made ready to run */
	unsigned int part;           /* enum exit_times_part since then */
	unsigned int state;          /* enum exit_times_state */
	unsigned int run;            /* enum exit_times_run */
	unsigned int open;           /* 1: the guest has left and was not entered again */
	unsigned int isa;            /* KVM_ISA_*: 1 VMX, 2 SVM; EXIT_TIMES_ISA_ARM64; 0: none seen */
	unsigned int reason;         /* of the open exit */
	unsigned long long events;   /* grows with each change of the tables below */
	unsigned long long exit_ns;  /* when the open exit began */
	unsigned long long ns[EXIT_TIMES_PARTS];
	unsigned long long at_exit[EXIT_TIMES_PARTS]; /* ns[] when it began */
	/* ns[] at the last event that says where the thread is: what KVM has done since may have been a halt. */
	unsigned long long mark_kvm, mark_blocked, mark_waiting, mark_offline;
	unsigned long long resolved; /* enum exit_times_part that EXIT_TIMES_UNKNOWN turned out to be */
	unsigned long long cause_ns; /* of the last return to the VMM, once it is over */
	unsigned long long vmm_ns;   /* when the thread left KVM_RUN */
	unsigned long long cause;    /* key of that */
	unsigned long long access;   /* key of the open exit's last port or address; 0: none */
	unsigned long long lost;     /* records of trace points that were not read; never by BPF */
};

/* [p] written by the vCPU's thread and the scheduler on its behalf; woken_ns by the processor that wakes it. */
struct exit_times_vcpu {
	struct exit_times_now now;
	struct exit_times_reason reasons[EXIT_TIMES_REASONS + 1];
	struct exit_times_slot accesses[EXIT_TIMES_ADDRESSES + 1];
	struct exit_times_slot causes[EXIT_TIMES_CAUSES + 1];
};

#endif
