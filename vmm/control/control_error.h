// SPDX-License-Identifier: BSD-2-Clause
/* The errors of the control server. */
#ifndef VPROF_CONTROL_CONTROL_ERROR_H
#define VPROF_CONTROL_CONTROL_ERROR_H

#include <glib.h>

#define CONTROL_ERROR control_error_quark()
GQuark control_error_quark(void);
enum control_error {
	CONTROL_ERROR_LISTEN, /* control_server_listen: the message says what, on which path and what to do */
	/* The others answer a request, as the class of the same name in vprof/control.h. */
	CONTROL_ERROR_COMMAND_NOT_FOUND,
	CONTROL_ERROR_INVALID_ARGUMENT,
	CONTROL_ERROR_NOT_NEGOTIATED,
	CONTROL_ERROR_BUSY,
	CONTROL_ERROR_STATE,
	CONTROL_ERROR_DENIED,
	CONTROL_ERROR_UNSUPPORTED,
	CONTROL_ERROR_GENERIC,
};

/*
 * The class that a client is told for an error of this domain, or of a library below: sessions, counters, probes and
 * guests. GenericError for any other.
 */
const char *control_error_class(const GError *error);

#endif
