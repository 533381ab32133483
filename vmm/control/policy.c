// SPDX-License-Identifier: BSD-2-Clause
#include "control/policy.h"

#include <pwd.h>
#include <string.h>

#include "control/control_priv.h"

struct policy_user {
	uid_t uid;
	enum control_role role;
};

struct policy {
	GArray *users; /* of struct policy_user */
};

static bool parse_user(const char *text, uid_t *uid)
{
	guint64 number;
	if (g_ascii_string_to_unsigned(text, 10, 0, (uid_t)-2, &number, NULL)) {
		*uid = (uid_t)number;
		return true;
	}
	const struct passwd *user = getpwnam(text);
	if (user)
		*uid = user->pw_uid;
	return user;
}

static bool parse_role(const char *text, enum control_role *role)
{
	for (unsigned i = ROLE_OBSERVE; i <= ROLE_CONTROL; i++) {
		if (strcmp(text, control_role_name((enum control_role)i)) == 0) {
			*role = (enum control_role)i;
			return true;
		}
	}
	return false;
}

/* "USER ROLE", nothing, or a comment; *why says what is wrong with it. */
static bool parse_line(struct policy *policy, char *line, const char **why)
{
	char *rest = NULL, *comment = strchr(line, '#');
	struct policy_user user;

	if (comment)
		*comment = '\0';
	const char *name = strtok_r(line, " \t\r", &rest), *role = name ? strtok_r(NULL, " \t\r", &rest) : NULL;
	if (!name)
		return true;
	if (!role || strtok_r(NULL, " \t\r", &rest))
		*why = "it is not USER ROLE";
	else if (!parse_user(name, &user.uid))
		*why = "there is no such user";
	else if (!parse_role(role, &user.role))
		*why = "the role is none of observe, instrument, control";
	else if (policy->users->len == POLICY_USERS_MAX)
		*why = "it has too many users";
	else
		g_array_append_val(policy->users, user);
	return !*why;
}

struct policy *policy_parse(const char *name, const char *text, GError **error)
{
	struct policy *policy = g_new(struct policy, 1);
	*policy = (struct policy){.users = g_array_new(FALSE, FALSE, sizeof(struct policy_user))};
	g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
	for (unsigned i = 0; lines[i]; i++) {
		const char *why = NULL;
		if (parse_line(policy, lines[i], &why))
			continue;
		g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN, "cannot use policy %s: line %u: %s", name,
		            i + 1, why);
		policy_free(policy);
		return NULL;
	}
	return policy;
}

struct policy *policy_load(const char *path, GError **error)
{
	g_autoptr(GError) failure = NULL;
	g_autofree char *text = NULL;

	if (g_file_get_contents(path, &text, NULL, &failure))
		return policy_parse(path, text, error);
	g_set_error(error, CONTROL_ERROR, CONTROL_ERROR_LISTEN, "cannot read the policy: %s", failure->message);
	return NULL;
}

void policy_free(struct policy *policy)
{
	if (!policy)
		return;
	g_array_unref(policy->users);
	g_free(policy);
}

int policy_role(const struct policy *policy, uid_t uid)
{
	int role = -1;

	for (guint i = 0; policy && i < policy->users->len; i++) {
		const struct policy_user *user = &g_array_index(policy->users, struct policy_user, i);
		if (user->uid == uid)
			role = (int)user->role; /* the last line counts */
	}
	return role;
}
