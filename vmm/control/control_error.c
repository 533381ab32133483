// SPDX-License-Identifier: BSD-2-Clause
#include "control/control_error.h"

#include <vprof/control.h>

#include "counter/counter.h"
#include "probe/probe.h"
#include "sample/session.h"

G_DEFINE_QUARK(vprof_control_error, control_error)

static const char *own_class(int code)
{
	switch ((enum control_error)code) {
	case CONTROL_ERROR_COMMAND_NOT_FOUND:
		return VPROF_ERROR_COMMAND_NOT_FOUND;
	case CONTROL_ERROR_INVALID_ARGUMENT:
		return VPROF_ERROR_INVALID_ARGUMENT;
	case CONTROL_ERROR_NOT_NEGOTIATED:
		return VPROF_ERROR_NOT_NEGOTIATED;
	case CONTROL_ERROR_BUSY:
		return VPROF_ERROR_BUSY;
	case CONTROL_ERROR_DENIED:
		return VPROF_ERROR_DENIED;
	case CONTROL_ERROR_STATE:
		return VPROF_ERROR_STATE;
	case CONTROL_ERROR_UNSUPPORTED:
		return VPROF_ERROR_UNSUPPORTED;
	case CONTROL_ERROR_LISTEN:
	case CONTROL_ERROR_GENERIC:
		break;
	}
	return VPROF_ERROR_GENERIC;
}

static const char *session_class(int code)
{
	switch ((enum session_error)code) {
	case SESSION_ERROR_STATE:
		return VPROF_ERROR_STATE;
	case SESSION_ERROR_RANGE:
		return VPROF_ERROR_INVALID_ARGUMENT;
	case SESSION_ERROR_BUSY:
		return VPROF_ERROR_BUSY;
	case SESSION_ERROR_DENIED:
		return VPROF_ERROR_DENIED;
	case SESSION_ERROR_UNSUPPORTED:
		return VPROF_ERROR_UNSUPPORTED;
	case SESSION_ERROR_SYSTEM:
		break;
	}
	return VPROF_ERROR_GENERIC;
}

static const char *counter_class(int code)
{
	switch ((enum counter_error)code) {
	case COUNTER_ERROR_UNKNOWN_EVENT:
	case COUNTER_ERROR_RANGE:
		return VPROF_ERROR_INVALID_ARGUMENT;
	case COUNTER_ERROR_UNAVAILABLE:
		return VPROF_ERROR_UNSUPPORTED;
	case COUNTER_ERROR_SYSTEM:
		break;
	}
	return VPROF_ERROR_GENERIC;
}

static const char *probe_class(int code)
{
	switch ((enum probe_error)code) {
	case PROBE_ERROR_SYNTAX:
	case PROBE_ERROR_UNKNOWN:
		return VPROF_ERROR_INVALID_ARGUMENT;
	case PROBE_ERROR_EXISTS:
	case PROBE_ERROR_STATE:
		return VPROF_ERROR_STATE;
	case PROBE_ERROR_UNSUPPORTED:
		return VPROF_ERROR_UNSUPPORTED;
	}
	return VPROF_ERROR_GENERIC;
}

static const char *guest_class(int code)
{
	switch ((enum guest_error)code) {
	case GUEST_ERROR_UNSUPPORTED:
		return VPROF_ERROR_UNSUPPORTED;
	case GUEST_ERROR_TAKEN:
		return VPROF_ERROR_BUSY;
	case GUEST_ERROR_ENDED:
		return VPROF_ERROR_STATE;
	case GUEST_ERROR_SYSTEM:
		break;
	}
	return VPROF_ERROR_GENERIC;
}

const char *control_error_class(const GError *error)
{
	if (error->domain == CONTROL_ERROR)
		return own_class(error->code);
	if (error->domain == SESSION_ERROR)
		return session_class(error->code);
	if (error->domain == COUNTER_ERROR)
		return counter_class(error->code);
	if (error->domain == PROBE_ERROR)
		return probe_class(error->code);
	if (error->domain == PROGRAM_ERROR)
		return VPROF_ERROR_INVALID_ARGUMENT;
	if (error->domain == GUEST_ERROR)
		return guest_class(error->code);
	return VPROF_ERROR_GENERIC;
}
