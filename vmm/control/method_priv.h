// SPDX-License-Identifier: BSD-2-Clause
/* The methods of the control protocol: how one is described, and what they share. */
#ifndef VPROF_CONTROL_METHOD_PRIV_H
#define VPROF_CONTROL_METHOD_PRIV_H

#include <vprof/control.h>

#include "control/connection_priv.h"
#include "control/control_error.h"
#include "control/server_priv.h"
#include "guest/task_match.h"

/* What a method works on. */
struct control_call {
	struct control_server *server;
	struct connection *connection;
	const json_t *arguments;        /* an object that fits the method's table */
	int fds[VPROF_CONTROL_FDS_MAX]; /* to go with the answer; borrowed */
	size_t n_fds;
	bool owns_fds;    /* they are to be closed afterwards */
	bool quit;        /* once the answer has been sent: at once, or, */
	bool leave;       /* as the owner, when the other clients have read what they want */
	bool wait;        /* no answer yet */
	bool last;        /* the time to wait is over */
	uint64_t flushes; /* control_server.flushes when the request came */
};

/* ---- the description of a method: dispatch, checks, query-schema and vprof-control(7) come from it ---- */

enum argument_type { ARGUMENT_ADDRESS, ARGUMENT_BOOLEAN, ARGUMENT_INTEGER, ARGUMENT_STRING, ARGUMENT_STRINGS };

struct method_argument {
	const char *name;
	const char *summary;
	enum argument_type type;
	bool optional;
	int64_t min, max;           /* an integer, the bytes of a string, the strings of an array */
	const char *const *choices; /* of a string, instead of min and max, or of each in an array; up to NULL */
	const char *preset;         /* JSON: the value when it is not given; NULL: the engine chooses */
};

/* The plural is an array of them. An address is a string like "0xffffffff81000000". */
enum member_type {
	MEMBER_ANY,
	MEMBER_ADDRESS,
	MEMBER_ADDRESSES,
	MEMBER_BOOLEAN,
	MEMBER_INTEGER,
	MEMBER_INTEGERS,
	MEMBER_STRING,
	MEMBER_STRINGS,
	MEMBER_OBJECT,
	MEMBER_OBJECTS,
};

/* A member of an answer, or of an object in it. */
struct method_member {
	const char *name; /* "*": all that have no row of their own; an underscore stands for a dash */
	const char *summary;
	enum member_type type;
	bool optional;
	bool nullable;
	const struct method_member *members; /* of an object, up to one without a name; NULL: not described */
	const char *names;                   /* of "*": the table of query-schema that has the names; NULL: any */
};

struct control_method {
	const char *name;
	const char *summary;
	const struct method_member *returns; /* up to one without a name; NULL: an empty object */
	const char *descriptors;             /* that come with the answer; NULL: none */
	enum control_role role;
	bool before_negotiate;
	const struct method_argument *arguments; /* up to one without a name; NULL: none */
	/* The answer (new reference), or NULL and an error. */
	json_t *(*run)(struct control_call *call, GError **error);
};

/* Each up to a method without a name. methods.c lists them. */
extern const struct control_method configuration_methods[], counter_methods[], engine_methods[], file_methods[],
	guest_methods[], host_methods[], mapping_methods[], probe_methods[], program_methods[], role_methods[],
	sample_methods[], session_methods[], table_methods[], task_methods[], time_methods[], trace_methods[];

/* methods.c: NULL behind the last, or for a name that no method has. */
const struct control_method *control_method_at(size_t index);
const struct control_method *control_method_find(const char *name);
/* The answer to query-schema. */
json_t *control_schema(void);

/* roles.c: whether the client may execute the method now. Errors: CONTROL_ERROR_DENIED, CONTROL_ERROR_BUSY. */
bool control_role_check(const struct connection *connection, const struct control_method *method, GError **error);

/* ---- arguments.c ---- */

#define CONTROL_EVENT_NAME_BYTES_MAX 63 /* counter_event.name holds one byte more */
#define CONTROL_TIMEOUT_MS_MAX 60000

/* The index of one of the choices, or -1. */
int argument_choice(const char *const *choices, const char *text);
bool arguments_check(const struct control_method *method, const json_t *arguments, GError **error);
/* Of an argument that was checked: 0 without it. */
uint64_t control_address(const json_t *value);
/* Whether the guest has this vCPU. Error: CONTROL_ERROR_INVALID_ARGUMENT. */
bool control_vcpu_check(const struct guest *guest, json_int_t vcpu, GError **error);
/* methods_task.c: the tasks that "pid" or "comm" choose; none: all. Error: CONTROL_ERROR_INVALID_ARGUMENT, for both. */
bool control_task_targets(const json_t *arguments, struct task_targets *targets, GError **error);
/* {"type", "choices" or "min" and "max"}: what fits. */
json_t *argument_limits(const struct method_argument *argument);

/* ---- methods_file.c ---- */

struct os_file;
struct os_files;

/* A part of a file that the guest has in memory, on its way to a client. */
struct file_copy {
	struct guest *guest;
	const struct os_files *files;
	struct os_file *file;
	uint64_t mapping;   /* what names its pages */
	uint64_t bytes;     /* of the file */
	uint64_t begin;     /* where the copy begins in the file */
	uint64_t size;      /* of the copy */
	uint64_t from, end; /* the part of the file that is copied into it; `from` begins a page */
	uint64_t pages;     /* of it that were in memory; the others stay holes */
};
/* The copy goes with the answer, sealed. Error: CONTROL_ERROR_GENERIC. */
bool control_file_copy(struct control_call *call, struct file_copy *copy, GError **error);

/* ---- answer.c: what several methods answer with ---- */

/*
 * For a method that has nothing to answer yet: true when its "timeout-ms" is not over; the method then returns NULL
 * without an error, and is called again.
 */
bool control_call_wait(struct control_call *call);
/* The same for a time that the client does not choose. */
bool control_call_wait_ms(struct control_call *call, int64_t timeout_ms);

/*
 * Text from outside (a guest's console, a path) as a JSON string: bytes that are not UTF-8 are replaced, and text
 * beyond `bytes_max` is cut off. NULL becomes null.
 */
json_t *control_text(const char *text, size_t bytes_max);
/* A line holds an object with two such texts, even if each byte becomes \u00XX. */
#define CONTROL_PATH_BYTES_MAX 4096u
#define CONTROL_MESSAGE_BYTES_MAX 1024u

/* "0x" and hexadecimal digits: JSON's integers have a sign, and addresses and registers have none. */
json_t *control_hex_address(uint64_t address);
/* Two hexadecimal digits for each byte. */
json_t *control_hex(const void *bytes, size_t n);
/* Member `name`, with dashes for underscores. */
void control_set_count(json_t *object, const char *name, uint64_t count);

/* An event of a session or a counter; steals `ids`. */
json_t *control_event(const struct counter_event *event, const struct perf_event_attr *attr, json_t *ids);
extern const struct method_member control_event_members[];

json_t *control_statistics(const struct session_statistics *statistics);
void control_statistics_add(struct session_statistics *sum, const struct session_statistics *one);
extern const struct method_member control_statistics_members[];

/* Adds a ring's descriptors to the answer, and returns its description. */
json_t *control_ring_json(struct control_call *call, unsigned vcpu, const struct ring *ring);
/* Of an answer with such a description for each vCPU, as "vcpus". */
extern const struct method_member control_rings_members[];
#define CONTROL_RINGS_DESCRIPTORS "for each vCPU, the memory of its ring and its eventfd"

/* ---- what one method shares with others ---- */

/* events.c: up to one without a name. */
struct control_event_type {
	const char *name;
	const char *summary;
	const struct method_member *data; /* up to one without a name */
};
extern const struct control_event_type control_events[];

/* events.c: how the guest ended. */
json_t *control_guest_end(const struct guest *guest);
extern const struct method_member control_guest_end_members[];

/* unread.c: the client has got samples of this vCPU; `end`: up to their end */
void control_note_samples(struct control_call *call, unsigned vcpu, bool end);

/* methods_guest.c: of the greeting, too. */
json_t *control_guest_summary(const struct guest *guest);

/* configuration.c: the keys, which session-start takes, too. */
extern const struct method_argument control_session_keys[];
extern const char *const control_call_graph_names[]; /* by enum session_call_graph */
extern const char *const control_on_full_names[];    /* by whether it stalls */
/* The keys as a session takes them; what they leave open stays 0. */
bool control_session_config(const json_t *keys, struct session_config *config, GError **error);
/* The keys that are set, under the arguments of a request (new reference). */
json_t *control_configuration_merge(const struct control_server *server, const json_t *arguments);
json_t *control_configuration_reset(struct control_server *server, GError **error);
/* Applies the keys that change the engine at once instead of the next session: trace. */
bool control_configuration_apply(struct control_call *call, GError **error);

/* methods_session.c: whether there was a session. Error: CONTROL_ERROR_STATE. */
bool control_had_session(const struct session *session, GError **error);
/* Resumes stalled counters when there is room, while any may stall. */
void control_watch_stalls(struct control_server *server);

/* methods_probe.c: what the client of the call has of probes. */
struct probe_client *control_probe_client(const struct control_call *call);

/* methods_trace.c */
extern const char *const control_trace_kinds[];
/* These kinds of lines are on from now on, and no others. Error: CONTROL_ERROR_STATE. */
bool control_trace_configure(struct control_server *server, const json_t *kinds, GError **error);
json_t *control_trace_configuration(const struct control_server *server);

#endif
