// SPDX-License-Identifier: BSD-2-Clause
/* The policy file of a control socket: refused with the line that is wrong, or each user has a role. */
#include <string.h>

#include "control/control_error.h"
#include "control/policy.h"
#include "fuzz_target.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	g_autofree char *text = g_strndup((const char *)data, size);
	g_autoptr(GError) error = NULL;
	struct policy *policy = policy_parse("policy", text, &error);

	if (!policy) {
		g_assert(g_error_matches(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN) &&
		         strstr(error->message, ": line "));
		return 0;
	}
	g_assert(!error);
	for (uid_t uid = 0; uid < 3; uid++) {
		int role = policy_role(policy, uid);

		g_assert(role >= -1 && role <= ROLE_CONTROL);
		/* A user without a line has no role. */
		g_assert(role == -1 || text[0] != '\0');
	}
	policy_free(policy);
	return 0;
}
