// SPDX-License-Identifier: BSD-2-Clause
/* What the files of the control server share. Everything runs on the main thread. */
#ifndef VPROF_CONTROL_PRIV_H
#define VPROF_CONTROL_PRIV_H

#include <sys/socket.h>

#include "control/server.h"
#include "lib/client/line.h"

struct listener;

/* What a client may do; each includes those before it. */
enum control_role {
	ROLE_OBSERVE,    /* look */
	ROLE_INSTRUMENT, /* add to what there is to see, and take nothing from others */
	ROLE_CONTROL,    /* start, stop and configure; one client at a time */
};

/* Counts the guest-phase events of one second (events.c). */
struct phase_limit {
	int64_t second;
	unsigned sent;
	uint64_t dropped;
};

struct control_server {
	struct guest *guest;
	struct session *session;
	int64_t started_us; /* g_get_monotonic_time() */

	GPtrArray *connections;              /* of struct connection, owned */
	struct listener *listener;           /* NULL until control_server_listen */
	const struct connection *controller; /* who holds the control role; NULL: nobody */

	struct phase_limit phases;
	uint64_t lost_told[GUEST_VCPUS_MAX]; /* dropbuf_sample as the clients know it */
	guint lost_timer;

	void (*quit)(void *data);
	void *quit_data;
	bool quitting;
	guint quit_source;
};

/* Ends the guest, if it has not ended, and has `quit` called from the main loop. */
void control_server_quit(struct control_server *server, const char *why);

/* connection.c: one client. */
struct connection {
	struct control_server *server;
	int fd;
	bool owner;
	struct ucred peer;
	enum control_role permitted; /* the most that its uid may have */
	bool negotiated;
	bool broken;  /* nothing more goes in or out */
	bool closing; /* nothing more comes in; over once `output` has gone out */
	struct line_buffer input;
	GQueue output; /* of struct output */
	size_t output_bytes;
	GSource *source;
	gpointer fd_tag;
};

/*
 * A connection is freed by its own dispatch, which tells the server first, and by control_server_free; whoever else
 * finds it broken leaves that to them.
 */
struct connection *connection_new(struct control_server *server, int fd, bool owner);
void connection_free(struct connection *connection);

/* Queues one JSON object as a line, and n_fds descriptors (borrowed) with it. Fails when a line cannot hold it. */
bool connection_send(struct connection *connection, const json_t *object, const int *fds, size_t n_fds, GError **error);
/* Hands to the socket what it takes now. */
void connection_flush(struct connection *connection);
bool connection_has_output(const struct connection *connection);

/* server.c: the connection is gone; an owner takes the guest along. Frees it. */
void control_server_drop(struct control_server *server, struct connection *connection);

/* listener.c */
struct listener *listener_new(struct control_server *server, const char *path, GError **error);
void listener_free(struct listener *listener);

/* request.c: answers one line of a client; or says why it is none, and takes no more. */
void request_answer(struct connection *connection, const char *line, size_t length);
void request_refuse(struct connection *connection, const char *why);

/* What a method works on. */
struct control_call {
	struct control_server *server;
	struct connection *connection;
	const json_t *arguments;        /* an object that fits the method's table */
	int fds[VPROF_CONTROL_FDS_MAX]; /* to go with the answer; borrowed */
	size_t n_fds;
	bool quit; /* once the answer has been sent */
};

/* methods.c: the table, from which dispatch, argument checks and query-schema come. */
enum argument_type { ARGUMENT_BOOLEAN, ARGUMENT_INTEGER, ARGUMENT_STRING, ARGUMENT_STRINGS };

struct method_argument {
	const char *name;
	const char *summary;
	enum argument_type type;
	bool optional;
	int64_t min, max;           /* an integer, the bytes of a string, the strings of an array */
	const char *const *choices; /* of a string, instead of min and max; up to NULL */
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
/* "boolean", "integer", "string", "[string]" */
const char *argument_type_name(enum argument_type type);

/* roles.c */
const char *control_role_name(enum control_role role);
/* Whether the client may do this now. Errors: CONTROL_ERROR_DENIED, CONTROL_ERROR_BUSY. */
bool control_role_check(const struct connection *connection, const struct control_method *method, GError **error);
json_t *method_control_take(struct control_call *call, GError **error);
json_t *method_control_release(struct control_call *call, GError **error);
json_t *method_query_clients(struct control_call *call, GError **error);

/* control_error.c */
const char *control_error_class(const GError *error);

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
void control_events_watch(struct control_server *server);
void control_events_unwatch(struct control_server *server);

/* methods_engine.c */
json_t *method_negotiate(struct control_call *call, GError **error);
json_t *method_query_schema(struct control_call *call, GError **error);
json_t *method_query_status(struct control_call *call, GError **error);
json_t *method_quit(struct control_call *call, GError **error);
/* methods_guest.c */
json_t *control_guest_summary(const struct guest *guest);
json_t *method_query_guest(struct control_call *call, GError **error);
json_t *method_guest_start(struct control_call *call, GError **error);
json_t *method_guest_stop(struct control_call *call, GError **error);
/* methods_session.c */
extern const char *const control_delivery_names[];
extern const char *const control_call_graph_names[];
json_t *method_session_start(struct control_call *call, GError **error);
json_t *method_session_stop(struct control_call *call, GError **error);
json_t *method_query_stats(struct control_call *call, GError **error);
json_t *method_rings(struct control_call *call, GError **error);
/* methods_time.c */
json_t *method_query_vcpu_time(struct control_call *call, GError **error);
json_t *method_vcpu_time_reset(struct control_call *call, GError **error);

#endif
