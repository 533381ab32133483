// SPDX-License-Identifier: BSD-2-Clause
/* One counter of a client, on all vCPUs. Main thread only; its samplers or countings run on the vCPU threads. */
#ifndef VPROF_SAMPLE_CLIENT_COUNTER_H
#define VPROF_SAMPLE_CLIENT_COUNTER_H

#include "sample/counting.h"
#include "sample/sampler.h"
#include "sample/switch_probe.h"

#define COUNTER_RING_BYTES_DEFAULT (1u << 18)

#define COUNTER_MODES(X)                            \
	X(COUNTER_GUEST_COUNTING, "guest-counting") \
	X(COUNTER_GUEST_SAMPLING, "guest-sampling") \
	X(COUNTER_TASK_COUNTING, "task-counting")   \
	X(COUNTER_TASK_SAMPLING, "task-sampling")

#define X(id, name) id,
enum counter_mode { COUNTER_MODES(X) COUNTER_MODES_COUNT };
#undef X

enum counter_state { COUNTER_FREE, COUNTER_ALLOCATED, COUNTER_RUNNING, COUNTER_STOPPED, COUNTER_DISABLED };

/* "guest-counting", ...; "free", "allocated", "running", "stopped", "disabled" */
const char *counter_mode_name(enum counter_mode mode);
const char *counter_state_name(enum counter_state state);
bool counter_mode_is_task(enum counter_mode mode);
bool counter_mode_is_sampling(enum counter_mode mode);

/* Who holds a counter. */
struct counter_owner {
	const void *key; /* identifies the owner; never dereferenced */
	int pid;
	unsigned uid;
};

struct counter_request {
	struct counter_event event;
	enum counter_mode mode;
	/*
	 * The rate of samples. With a counting mode, zero counts exactly; otherwise the counter adds up what samples
	 * stand for. That is an estimate, but it can tell modes and tasks apart where an exact count cannot.
	 */
	struct counter_rate rate;
	bool descendants;  /* with a task mode */
	bool per_switch;   /* with COUNTER_TASK_COUNTING, exactly: what it counts goes into rings (counting_log.h) */
	bool one_vcpu;     /* it counts on `vcpu` only, and not on every vCPU */
	unsigned vcpu;     /* with one_vcpu: below guest->vcpus */
	size_t ring_bytes; /* of each vCPU's ring, if it has rings; 0: COUNTER_RING_BYTES_DEFAULT */
	bool stall;        /* with rings: it does not count while its ring is nearly full; else it drops records */
	/* With a sampling mode, as in struct session_config. */
	enum session_call_graph call_graph;
	unsigned call_depth;
	bool call_kernel_only;
};

/* Whether such a counter has rings that are read like those of a session. */
bool counter_has_rings(const struct counter_request *request);

/* What reads a counter without the engine. */
struct counter_descriptors {
	size_t n;
	struct counter_descriptor {
		unsigned vcpu;
		int fd;          /* of perf's; the receiver's to close */
		uint64_t before; /* counted before; to be added to what is read */
	} each[GUEST_VCPUS_MAX];
};

/* What one vCPU has counted. */
struct counter_value {
	uint64_t value;
	uint64_t enabled_ns, running_ns;      /* thread time with the counter open, and with it counting; exact only */
	uint64_t modes[SAMPLER_MODES];        /* with samples: the parts of the value by where they fell */
	struct session_statistics statistics; /* with samples or per switch: since the last start */
};

/*
 * vCPU threads read config, unwind, matched, layout and the probe while it runs, and the main thread leaves them alone.
 */
struct client_counter {
	struct switch_probe probe; /* first; for an exact counter in a task mode */
	struct session *session;
	struct guest *guest;
	unsigned number;
	struct counter_owner owner;
	struct counter_request request;
	enum counter_state state;
	struct task_targets targets;
	struct task_targets *matched;   /* what they were when it was started or they last changed; NULL: not running */
	const struct os_kernel *kernel; /* the session's */
	struct task_claims *claims;     /* of its samplers or logs; NULL without rings */
	struct session_config config;   /* of its samplers */
	struct unwind_config unwind;    /* with call chains */
	const struct counter_delivery *delivery; /* of its samplers */
	struct sampler *samplers;                /* one for each vCPU; NULL: it counts exactly */
	struct task_family *families;            /* one for each vCPU, with a task mode */
	uint64_t (*before)[SAMPLER_MODES];       /* one for each vCPU: counted until the last stop */
	struct counting *countings;              /* one for each vCPU; NULL: it samples */
	struct counting_log *logs;               /* one for each vCPU; NULL: not per switch */
	struct task_totals *totals;              /* of its logs */
	struct ring *rings[GUEST_VCPUS_MAX];     /* NULL if it has none */
};

/* Of its samples on this vCPU. */
uint64_t counter_event_id(unsigned number, unsigned vcpu);

/* As in counter_table.h. The caller has checked the number, the owner and the state. */
struct client_counter *client_counter_new(struct session *session, unsigned number, const struct counter_owner *owner,
                                          const struct counter_request *request, GError **error);
void client_counter_free(struct client_counter *counter);
bool client_counter_start(struct client_counter *counter, GError **error);
void client_counter_stop(struct client_counter *counter);
/* It runs and may stall: goes on where there is room again. */
void client_counter_resume_stalled(struct client_counter *counter);
bool client_counter_write(struct client_counter *counter, uint64_t value, GError **error);
bool client_counter_set_rate(struct client_counter *counter, const struct counter_rate *rate, GError **error);
bool client_counter_attach(struct client_counter *counter, const struct task_target *target, GError **error);
bool client_counter_detach(struct client_counter *counter, const struct task_target *target, GError **error);
void client_counter_read(struct client_counter *counter, struct counter_value *values);
bool client_counter_descriptors(struct client_counter *counter, struct counter_descriptors *descriptors,
                                GError **error);

#endif
