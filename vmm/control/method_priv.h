// SPDX-License-Identifier: BSD-2-Clause
/* The methods of the control protocol: their table, and what they share. */
#ifndef VPROF_CONTROL_METHOD_PRIV_H
#define VPROF_CONTROL_METHOD_PRIV_H

#include <vprof/control.h>

#include "control/connection_priv.h"
#include "control/control_error.h"
#include "control/server_priv.h"

/* What a method works on. */
struct control_call {
	struct control_server *server;
	struct connection *connection;
	const json_t *arguments;        /* an object that fits the method's table */
	int fds[VPROF_CONTROL_FDS_MAX]; /* to go with the answer; borrowed */
	size_t n_fds;
	int own_fd;       /* one of them that is to be closed afterwards; -1 */
	bool quit;        /* once the answer has been sent */
	bool wait;        /* there is no answer yet */
	bool last;        /* no more waiting */
	uint64_t flushes; /* control_server.flushes when the request came */
};

/*
 * For a method that has nothing to answer yet: true when its "timeout-ms" is not over; the method then returns NULL
 * without an error, and is called again.
 */
bool control_call_wait(struct control_call *call);

/* counter_event.name holds one byte more. */
#define CONTROL_EVENT_NAME_BYTES_MAX 63

/* methods.c: the table, from which dispatch, argument checks and query-schema come. */
enum argument_type { ARGUMENT_ADDRESS, ARGUMENT_BOOLEAN, ARGUMENT_INTEGER, ARGUMENT_STRING, ARGUMENT_STRINGS };

struct method_argument {
	const char *name;
	const char *summary;
	enum argument_type type;
	bool optional;
	int64_t min, max;           /* an integer, the bytes of a string, the strings of an array */
	const char *const *choices; /* of a string, instead of min and max, or of each in an array; up to NULL */
	const char *preset; /* JSON: the value of a configuration key that nobody set; NULL: what the host does best */
};

struct control_method {
	const char *name;
	const char *summary;
	const char *returns; /* shape of the answer, for people */
	enum control_role role;
	bool before_negotiate;
	const struct method_argument *arguments; /* up to one without a name; NULL: none */
	/* The answer (new reference), or NULL and an error. */
	json_t *(*run)(struct control_call *call, GError **error);
};

extern const struct control_method control_methods[]; /* up to one without a name */

/* arguments.c */
/* The index of one of the choices, or -1. */
int argument_choice(const char *const *choices, const char *text);
bool arguments_check(const struct control_method *method, const json_t *arguments, GError **error);
/* Of an argument that was checked: 0 without it. */
uint64_t control_address(const json_t *value);
/* {"type", "choices" or "min" and "max"}: what fits. */
json_t *argument_limits(const struct method_argument *argument);
/* "address", "boolean", "integer", "string", "[string]" */
const char *argument_type_name(enum argument_type type);

/* roles.c */
/* Whether the client may do this now. Errors: CONTROL_ERROR_DENIED, CONTROL_ERROR_BUSY. */
bool control_role_check(const struct connection *connection, const struct control_method *method, GError **error);
json_t *method_control_take(struct control_call *call, GError **error);
json_t *method_control_release(struct control_call *call, GError **error);
json_t *method_query_clients(struct control_call *call, GError **error);

/*
 * Text from outside (a guest's console, a path) as a JSON string: bytes that are no UTF-8 are replaced, and what
 * exceeds `bytes_max` is cut off. NULL becomes null.
 */
json_t *control_text(const char *text, size_t bytes_max);
/* With \u00XX for each byte of two of either, a line holds the rest of its object, too. */
#define CONTROL_PATH_BYTES_MAX 4096u
#define CONTROL_MESSAGE_BYTES_MAX 1024u

/* events.c */
json_t *control_guest_end(const struct guest *guest);

/* methods_engine.c */
extern const struct method_argument negotiate_arguments[];
json_t *method_negotiate(struct control_call *call, GError **error);
json_t *method_query_schema(struct control_call *call, GError **error);
json_t *method_query_status(struct control_call *call, GError **error);
json_t *method_quit(struct control_call *call, GError **error);
/* methods_guest.c */
json_t *control_guest_summary(const struct guest *guest);
json_t *method_query_guest(struct control_call *call, GError **error);
json_t *method_guest_start(struct control_call *call, GError **error);
json_t *method_kernel_image(struct control_call *call, GError **error);
json_t *method_guest_stop(struct control_call *call, GError **error);
/* configuration.c */
extern const struct method_argument control_session_keys[];
extern const char *const control_call_graph_names[]; /* by enum session_call_graph */
/* The keys as a session takes them; what they leave open stays 0. */
bool control_session_config(const json_t *keys, struct session_config *config, GError **error);
/* The keys that are set, under the arguments of a request (new reference). */
json_t *control_configuration_merge(const struct control_server *server, const json_t *arguments);
json_t *control_configuration_reset(struct control_server *server, GError **error);
/* What of the arguments is not of the next session but of the engine, at once. */
bool control_configuration_apply(struct control_call *call, GError **error);
json_t *method_session_configure(struct control_call *call, GError **error);
json_t *method_query_configuration(struct control_call *call, GError **error);
/* methods_marker.c */
extern const struct method_argument marker_add_arguments[];
json_t *method_marker_add(struct control_call *call, GError **error);
/* methods_samples.c */
extern const struct method_argument samples_read_arguments[], sample_add_arguments[];
#define SAMPLES_READ_BYTES_MAX 45056 /* base64 of it, and the rest of the answer, fit into a line */
#define CONTROL_TIMEOUT_MS_MAX 60000
json_t *method_samples_read(struct control_call *call, GError **error);
json_t *method_sample_add(struct control_call *call, GError **error);
/* methods_session.c */
extern const struct method_argument reset_arguments[];
bool control_had_session(const struct session *session, GError **error);
json_t *method_session_flush(struct control_call *call, GError **error);
json_t *method_reset(struct control_call *call, GError **error);
json_t *method_session_start(struct control_call *call, GError **error);
json_t *method_session_stop(struct control_call *call, GError **error);
json_t *method_query_session(struct control_call *call, GError **error);
json_t *method_query_stats(struct control_call *call, GError **error);
json_t *method_rings(struct control_call *call, GError **error);
/* Adds a ring's descriptors to the answer, and returns its description. */
json_t *control_ring_json(struct control_call *call, unsigned vcpu, const struct ring *ring);
/* Member `name`, with dashes for underscores. */
void control_set_count(json_t *object, const char *name, uint64_t count);
json_t *control_hex(const void *bytes, size_t n);
/* methods_probe.c */
extern const struct method_argument probe_list_arguments[], probe_args_arguments[], probe_add_arguments[],
	probe_remove_arguments[], probe_record_arguments[], probe_read_arguments[];
json_t *method_probe_list(struct control_call *call, GError **error);
json_t *method_probe_args(struct control_call *call, GError **error);
json_t *method_probe_add(struct control_call *call, GError **error);
json_t *method_probe_remove(struct control_call *call, GError **error);
json_t *method_probe_record(struct control_call *call, GError **error);
json_t *method_query_probes(struct control_call *call, GError **error);
json_t *method_probe_rings(struct control_call *call, GError **error);
json_t *method_probe_read(struct control_call *call, GError **error);
/* methods_mapping.c */
extern const struct method_argument mapping_read_arguments[];
json_t *method_mapping_read(struct control_call *call, GError **error);
#define CONTROL_SYMBOL_BYTES_MAX 256u
extern const struct method_argument module_symbols_arguments[];
json_t *method_module_symbols(struct control_call *call, GError **error);
/* {"name", "backend", "attr", "ids"}; steals `ids`. */
json_t *control_event(const struct counter_event *event, const struct perf_event_attr *attr, json_t *ids);
json_t *control_statistics(const struct session_statistics *statistics);
void control_statistics_add(struct session_statistics *sum, const struct session_statistics *one);
/* methods_counter.c */
extern const struct method_argument counter_allocate_arguments[], counter_arguments[], counter_write_arguments[],
	counter_set_period_arguments[], counter_target_arguments[];
json_t *method_counter_allocate(struct control_call *call, GError **error);
json_t *method_counter_release(struct control_call *call, GError **error);
json_t *method_counter_attach(struct control_call *call, GError **error);
json_t *method_counter_detach(struct control_call *call, GError **error);
json_t *method_counter_start(struct control_call *call, GError **error);
json_t *method_counter_stop(struct control_call *call, GError **error);
json_t *method_counter_read(struct control_call *call, GError **error);
json_t *method_counter_write(struct control_call *call, GError **error);
json_t *method_counter_set_period(struct control_call *call, GError **error);
json_t *method_counter_rings(struct control_call *call, GError **error);
json_t *method_counter_disable(struct control_call *call, GError **error);
json_t *method_counter_enable(struct control_call *call, GError **error);
json_t *method_query_counters(struct control_call *call, GError **error);
/* methods_host.c */
json_t *method_query_host(struct control_call *call, GError **error);
/* methods_trace.c */
extern const struct method_argument trace_read_arguments[], trace_write_arguments[], trace_set_arguments[];
#define TRACE_READ_BYTES_MAX 16384 /* each of them may become U+FFFD, and it fits into a line still */
json_t *method_trace_read(struct control_call *call, GError **error);
json_t *method_trace_write(struct control_call *call, GError **error);
extern const char *const control_trace_kinds[];
/* These kinds of lines are on from now on, and no others. Error: CONTROL_ERROR_STATE. */
bool control_trace_configure(struct control_server *server, const json_t *kinds, GError **error);
json_t *control_trace_configuration(const struct control_server *server);
json_t *method_trace_set(struct control_call *call, GError **error);
/* methods_time.c */
extern const struct method_argument query_vcpu_time_arguments[];
json_t *method_query_vcpu_time(struct control_call *call, GError **error);
json_t *method_vcpu_time_reset(struct control_call *call, GError **error);

#endif
