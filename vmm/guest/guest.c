// SPDX-License-Identifier: BSD-2-Clause
#include "guest/guest.h"

const char *guest_end_name(enum guest_end_reason reason)
{
#define X(id, name, status) [id] = name,
	static const char *const names[] = {VPROF_GUEST_ENDS(X)};
#undef X
	return (unsigned)reason < G_N_ELEMENTS(names) ? names[reason] : "unknown";
}
