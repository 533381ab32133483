// SPDX-License-Identifier: BSD-2-Clause
#include "guest/guest.h"

#include "guest/guest_debug.h"

G_DEFINE_QUARK(vprof_guest_error, guest_error)

const char *guest_end_name(enum guest_end_reason reason)
{
#define X(id, name, status) [id] = name,
	static const char *const names[] = {VPROF_GUEST_ENDS(X)};
#undef X
	return (unsigned)reason < G_N_ELEMENTS(names) ? names[reason] : "unknown";
}
